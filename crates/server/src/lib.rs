//! Requests to answers: config, routes, steps, cache, handlers, and the life of the processes.

pub mod activity;
pub mod advice;
pub mod answer;
pub mod api;
mod authorities;
pub mod cache;
pub mod config;
mod environment;
pub mod explain;
pub mod handle;
mod limits;
pub mod names;
mod old_logs;
pub mod otlp;
pub mod resources;
pub mod route;
pub mod serve;
pub mod shared;
pub mod step;
mod watch;
