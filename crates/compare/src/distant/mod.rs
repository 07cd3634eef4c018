//! Servers on one machine and the client on another: what `--serve` and `--target` say to each
//! other, over one TCP connection, a JSON object a line.
//!
//! The client asks and the servers' machine answers, one answer for each question. It says which
//! version of the protocol and of hob it is, and the secret that the other side printed; then what
//! it wants to measure; then it has servers started and ended and asks for their CPU time. Requests
//! themselves go straight to the servers' ports. When the connection ends, all that was started
//! for it ends.

mod line;
mod machine;
mod port;
mod serve;
mod session;
mod target;
mod words;

pub use port::ControlPort;
pub use serve::{ServePlan, serve};
pub(crate) use target::{DistantServer, TargetMachine};
pub use words::replay_words;
