//! Mischief: clients that misbehave beside others that do not, for `hob bench --exercise`.
//!
//! `act` is what is drawn from a seed: steps and what may come of them; `h1`, `h2`, `h3` and
//! `secure` have the acts over each. `line` is a connection and `perform` carries an act out on it,
//! `quic` does both over QUIC; `reader` reads what comes back, `seen` judges it. `run` is the
//! whole, `report` tells it.

mod act;
mod h1;
mod h2;
mod h3;
mod line;
mod perform;
mod quic;
mod reader;
mod report;
mod run;
mod secure;
mod seen;

pub use report::Exercised;
pub use run::{Exercise, exercise};

#[cfg(test)]
mod tests;
