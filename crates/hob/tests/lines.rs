//! Programs that speak lines, behind the real server: in C, sh, bash and awk, and one in Python
//! that misbehaves on demand.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "lines/answers.rs"]
mod answers;
#[path = "lines/asking.rs"]
mod asking;
#[path = "lines/bodies.rs"]
mod bodies;
#[path = "lines/ending.rs"]
mod ending;
#[path = "lines/kinds.rs"]
mod kinds;
#[path = "lines/lifetime.rs"]
mod lifetime;
#[path = "resident/pool.rs"]
mod pool;
#[path = "lines/program.rs"]
mod program;
#[path = "cgi/site.rs"]
mod site;
