//! Requests to answers: config, routes, steps, cache, handlers, and the life of the processes.

pub mod acme;
pub mod activity;
pub mod advice;
pub mod answer;
pub mod api;
pub mod cache;
pub mod config;
mod environment;
pub mod explain;
pub mod handle;
pub mod life;
pub mod names;
mod old_logs;
pub mod otlp;
pub mod process;
pub mod resources;
pub mod route;
pub mod serve;
pub mod shared;
pub mod step;
pub mod tls;
mod watch;
