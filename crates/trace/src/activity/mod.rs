//! Activity: what a server did in each second of the last hour and each minute of four weeks, in
//! fixed memory and, if there is a file, over restarts.
//!
//! A row stands at the place of its time, `time % places`, and bears that time: so a clock that
//! jumps can only cover rows, never mix them up, and time without a server is a hole. `row` is one
//! of them, `rows` has them all, `file` keeps them.

mod file;
mod row;
mod rows;
#[cfg(test)]
mod tests;

pub use file::{ACTIVITY_FILE_BYTES, ActivityFile, is_slot};
pub use row::{ActivityRow, COLUMNS};
pub use rows::{Activity, Changed, MINUTES_KEPT, ROWS_MAX, SECONDS_KEPT, Stretch};
