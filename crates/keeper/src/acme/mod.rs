//! The process that gets certificates from an authority: it asks, proves names, and hears when to
//! renew. It has the server's account and no files: what it gets goes to the keeper, which looks at
//! it, keeps it and has the server serve it.
//!
//! ```text
//!  keeper --- plan ------------------> this process --- HTTPS --> authority
//!    |   <-- proofs, account, chain --      |
//!    v                                      +-- runs the program of `acme.dns`
//!  server  answers http-01 and tls-alpn-01
//! ```
//!
//! - `plan` what is wanted, from the config; `message` what keeper and process say to each other
//! - `state` what `hob status` tells of a certificate
//! - `run` the process, `link` its end of the channel, `desk` what all orders share, `tend` one
//!   certificate's life

mod desk;
mod link;
pub(crate) mod message;
pub(crate) mod plan;
mod run;
pub(crate) mod state;
mod tend;

pub use run::run;
pub use state::CertificateState;
