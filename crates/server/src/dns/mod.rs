//! The DNS: who has which name, as name servers say.
//!
//! - `asking` a name server, which waits: for threads that may
//! - `message` questions and answers as bytes
//! - `lookup` where a name leads, and for how long that holds
//! - `files` what the machine's own files say

pub mod asking;
pub mod files;
pub mod lookup;
pub mod message;
