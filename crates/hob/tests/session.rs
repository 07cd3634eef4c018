//! Programs that stay for one visitor, behind the real server: a shop in Python, a counter in C.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "session/cookies.rs"]
mod cookies;
#[path = "session/duplicates.rs"]
mod duplicates;
#[path = "session/expiry.rs"]
mod expiry;
#[path = "session/handles.rs"]
mod handles;
#[path = "session/heads.rs"]
mod heads;
#[path = "session/hosts_h1_only.rs"]
mod hosts_h1_only;
#[path = "session/lasting.rs"]
mod lasting;
#[path = "session/limits.rs"]
mod limits;
#[path = "resident/linked.rs"]
mod linked;
#[path = "session/many.rs"]
mod many;
#[path = "session/place.rs"]
mod place;
#[path = "cgi/site.rs"]
mod site;
#[path = "session/turns.rs"]
mod turns;
#[path = "session/upgrades.rs"]
mod upgrades;
#[path = "session/visits.rs"]
mod visits;
