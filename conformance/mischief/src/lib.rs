//! Mischief: clients that misbehave beside others that do not, to see what a server makes of it.
//!
//! `act` is what is drawn from a seed: steps and what may come of them; `h1`, `h2`, `h3` and
//! `tls` have the acts over each. `line` is a connection and `perform` carries an act out on it,
//! `quic` does both over QUIC; `reader` reads what comes back, `seen` judges it. `run` is the
//! whole, `report` tells it, as JSON as `result` has it. Connections, TLS, QUIC and frames
//! are the load generator's (`hob_load::parts`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod act;
mod h1;
mod h2;
mod h3;
mod limits;
mod line;
mod perform;
mod quic;
mod reader;
mod report;
mod result;
mod run;
mod seen;
mod tls;

pub use report::Exercised;
pub use result::schema;
pub use run::{Exercise, exercise};

#[cfg(test)]
mod tests;
