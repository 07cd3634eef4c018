//! Programs at their worst: killed again and again, running away, thousands at once; and the server
//! at its own: out of descriptors, files overwritten, upgrades, deaths and reloads under load.
//!
//! In CI each part is as short as its claim allows. `HOB_SIEGE_SECONDS=60` (`make siege`) goes on
//! with each for so long, reads the endless writer for 10 GB, starts 2,000 programs at once.
//!
//! - `kills` programs and the spawner are killed under load
//! - `workers` the same for programs that stay, over shared memory and over a socket
//! - `runaways` a fork bomb, a memory hog, a sleeper, an endless and a headless writer
//! - `many` as many programs under way as a route may have
//! - `open_files` clients hold more connections than there are descriptors
//! - `overwrites` files are overwritten in place while they are downloaded
//! - `upgrades` upgrades while warm scripts are asked for
//! - `deaths` servers die under clients of HTTP/3
//! - `rates` a rate that is asked beyond
//! - `reloads` requests live through reloads that change the access log
//! - `upstreams` servers behind hob are killed, restarted and exchanged
//! - `watch` what a running server holds: processes, descriptors, memory
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "siege/deaths.rs"]
mod deaths;
#[path = "siege/kills.rs"]
mod kills;
#[path = "siege/many.rs"]
mod many;
#[path = "siege/open_files.rs"]
mod open_files;
#[path = "siege/overwrites.rs"]
mod overwrites;
#[path = "resident/pool.rs"]
mod pool;
#[path = "siege/rates.rs"]
mod rates;
#[path = "siege/reloads.rs"]
mod reloads;
#[path = "siege/runaways.rs"]
mod runaways;
#[path = "cgi/site.rs"]
mod site;
#[path = "siege/upgrades.rs"]
mod upgrades;
#[path = "siege/upstreams.rs"]
mod upstreams;
#[path = "siege/watch.rs"]
mod watch;
#[path = "siege/workers.rs"]
mod workers;
