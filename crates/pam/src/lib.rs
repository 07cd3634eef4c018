//! Accounts of the system, as its PAM knows them: one conversation in a process of its own.
//!
//! Modules of PAM are other people's C code, which may hang or crash, and which have to have rights
//! that whoever serves requests must not have. So a process is started for each conversation, as an
//! account of its own; it says what PAM has said, and ends.
//!
//! ```text
//!  server ---- PamRequest ----> process -- libpam.so.0 -- modules of the service
//!         <---- PamReply ------
//! ```
//!
//! `message` is what is said there, `process` is the other side. The library is loaded at run time:
//! neither the server nor whoever builds it needs it.
#![deny(missing_docs)]

pub mod message;
pub mod process;

pub use message::{MalformedPamMessage, PamReply, PamRequest, PamVerdict};
