//! Visits: what is kept for one visitor between requests, whatever keeps it.
//!
//! ```text
//! request --carrier--> handle --table--> visit, live and of this program
//! answer  --said-----> kept, with this handle and for so long; or over
//! ```
//!
//! - `handle` what names a visit: made, checked, shown
//! - `carrier` where it stands in a request: a segment of the path, a cookie
//! - `said` what the head of an answer says of the visit
//! - `repeat` the same request again, while it is under way
//! - `room` how many there may be where a config does not say it
//! - `table` the visits of one program: found, opened, given another handle, forgotten
//! - `refuse` what is answered where there is none
//! - `keys` what a config says of them, `config` how it is read
//! - `status` what people are told, `told` in which words

pub(crate) mod carrier;
pub mod config;
pub mod handle;
pub(crate) mod keys;
pub(crate) mod refuse;
pub mod repeat;
mod room;
pub mod said;
pub(crate) mod status;
pub mod table;
pub mod told;
