//! Steps before and after a handler: what a request's conditions, ranges and preferences mean.
//!
//! All of them take header values as bytes (several lines of one field joined by commas) and the
//! time as an argument; none does I/O. `date` reads and writes HTTP dates, `weights` lists with
//! quality values.

pub mod compress;
pub mod conditional;
pub mod date;
pub mod negotiate;
pub mod range;
pub mod weights;
