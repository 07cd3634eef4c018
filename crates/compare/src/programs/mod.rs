//! Programs that answer requests: the same work in each way there is to run a program. The query
//! string says how many KiB of body.

mod build;
mod routes;

pub(crate) use build::{PAGE_BYTES, write};
