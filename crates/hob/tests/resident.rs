//! Programs that stay, behind the real server: real applications in Python and Perl, their bodies,
//! their ends, and how many workers they get.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "resident/bodies.rs"]
mod bodies;
#[path = "resident/ending.rs"]
mod ending;
#[path = "resident/files.rs"]
mod files;
#[path = "resident/framing.rs"]
mod framing;
#[path = "resident/leaving.rs"]
mod leaving;
#[path = "resident/lifetime.rs"]
mod lifetime;
#[path = "resident/linked.rs"]
mod linked;
#[path = "resident/place.rs"]
mod place;
#[path = "resident/pool.rs"]
mod pool;
#[path = "resident/queue.rs"]
mod queue;
#[path = "resident/renewal.rs"]
mod renewal;
#[path = "resident/scaling.rs"]
mod scaling;
#[path = "cgi/site.rs"]
mod site;
#[path = "resident/speaks.rs"]
mod speaks;
