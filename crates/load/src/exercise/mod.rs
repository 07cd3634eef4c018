//! Mischief: clients that misbehave beside others that do not, for `hob bench --exercise`.
//!
//! `act` is what is drawn from a seed: steps and what may come of them; `h1` has
//! the acts over HTTP/1.1. `line` is a connection, `perform` carries an act out on it,
//! `seen` judges what came of it. `run` is the whole, `report` tells it.

mod act;
mod h1;
mod line;
mod perform;
mod report;
mod run;
mod seen;

pub use report::Exercised;
pub use run::{Exercise, exercise};

#[cfg(test)]
mod tests;
