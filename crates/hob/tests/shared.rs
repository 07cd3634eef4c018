//! A C program over libhob behind the real server: its answers travel through shared memory, and
//! what the two processes do to each other there is seen from outside.
//!
//! - `bodies` every size both ways, trailers, interim answers, clients that are slow or leave
//! - `ring` wakes, requests handed ahead and taken back, many at a time
//! - `worst` workers that die, lie, fork, close what they should not
//! - `moves` another carrier, reload and stop under load
//! - `bounds` limits of a program, and what it may ask the server for
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "shared/bodies.rs"]
mod bodies;
#[path = "shared/bounds.rs"]
mod bounds;
#[path = "shared/moves.rs"]
mod moves;
#[path = "shared/place.rs"]
mod place;
#[path = "resident/pool.rs"]
mod pool;
#[path = "shared/ring.rs"]
mod ring;
#[path = "cgi/site.rs"]
mod site;
#[path = "shared/slots.rs"]
mod slots;
#[path = "shared/worst.rs"]
mod worst;
