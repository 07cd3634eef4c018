//! Which site and which route a request belongs to, and where redirects and rewrites lead.
//!
//! `table` finds the first route that matches a path, `host` the site that a host name means,
//! `redirects` where a path has moved to. What paths are, and patterns of them, is the config's.

#[cfg(test)]
#[path = "../../../config/src/route/dice.rs"]
mod dice;
pub mod host;
pub mod redirects;
pub mod table;

pub use hob_config::route::{pattern, percent, target, template};
