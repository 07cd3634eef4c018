//! Visits of pages that last over several requests (`@DTW_STATIC`).
//!
//! ```text
//!  page that lasts, no handle --> new visit --.
//!  handle --> its visit ----------------------+--> its turn --> run, with what was kept
//!                                                               | ACCEPT: kept for the next
//!                                                               '--> TERMINATE, fault: over
//! ```
//!
//! A visit keeps the page as it was read, its variables, and the connections on which something was
//! written and not committed. What is over is closed by the thread that looks at the time, so that
//! nobody else waits for a database: what was not committed is undone with its connection.
//!
//! - `home` the visits of a route, `turns` what one keeps and who has it, `clock` when they end
//! - `run` a run with what is kept, and what the page says of the visit
//! - `answer` from a request to its visit, and what the visit adds to the answer

pub(super) mod answer;
pub(super) mod clock;
pub(crate) mod home;
pub(super) mod run;
pub(super) mod turns;
