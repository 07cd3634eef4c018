//! Requests to answers: config, routes, steps, cache, handlers, and the life of the processes.

pub mod config;
pub mod life;
