//! Requests to answers: config, routes, steps, cache, handlers.

pub mod answer;
pub mod authorities;
mod by_hash;
pub mod cache;
pub mod dns;
pub mod explain;
pub mod handle;
pub mod inside;
pub mod limits;
pub mod local_time;
pub mod otlp;
pub mod route;
pub mod serve;
pub mod step;
pub mod watch;

pub use handle::config;
