//! Looking at a running server from inside: the admin API and its pages, metrics, activity,
//! resources, alerts, advice, the environment, names of clients.
#![forbid(unsafe_code)]

pub mod activity;
pub mod admin;
pub mod advice;
pub mod api;
mod environment;
pub mod metrics;
pub mod names;
pub mod resources;
