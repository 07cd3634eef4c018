//! Series: the routes of all configs a server has had, each with a number that outlives reloads,
//! and what was counted of each.
//!
//! A record bears the number of its series, so a finished request can still be named after a
//! reload, and a route goes on counting where it was. Numbers and blocks are bounded: routes beyond
//! [`SERIES_MAX`] have no name of their own, and those beyond the room for blocks are counted
//! together under `other`.

mod block;
mod book;
#[cfg(test)]
mod tests;

pub use block::{SeriesSum, SeriesWriter, ThreadSeries};
pub use book::{BLOCKS_BYTES_MAX, SERIES_MAX, SeriesName, SeriesRegistry};
