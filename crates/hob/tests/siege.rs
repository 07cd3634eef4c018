//! Programs at their worst: killed again and again, running away, thousands at once.
//!
//! In CI each part is as short as its claim allows. `HOB_SIEGE_SECONDS=60` (`make siege`) goes on
//! with the kills for so long, reads the endless writer for 10 GB, starts 2,000 programs at once.
//!
//! - `kills` programs and the spawner are killed under load
//! - `workers` the same for programs that stay, over shared memory and over a socket
//! - `runaways` a fork bomb, a memory hog, a sleeper, an endless and a headless writer
//! - `many` as many programs under way as a route may have
//! - `watch` what a running server holds: processes, descriptors, memory
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "siege/kills.rs"]
mod kills;
#[path = "siege/many.rs"]
mod many;
#[path = "resident/pool.rs"]
mod pool;
#[path = "siege/runaways.rs"]
mod runaways;
#[path = "cgi/site.rs"]
mod site;
#[path = "siege/watch.rs"]
mod watch;
#[path = "siege/workers.rs"]
mod workers;
