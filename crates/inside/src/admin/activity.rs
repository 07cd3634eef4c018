//! `GET /v1/activity`: rows by second or minute, as JSON.

use hob_http::unix_ms;

use hob_http::Answered;
use hob_trace::activity::{COLUMNS, MINUTES_KEPT, Stretch};
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::query::value_of;
use super::{Admin, reply};
use crate::api::Series;

/// Seconds told of where nobody says.
const USUAL_S: u64 = 600;
/// Rows that are pushed: a reader that misses an event or two lacks none.
const NEWEST_ROWS: u64 = 4;

/// Answers with the rows of the query's `from`, `to` (Unix seconds) and `step` (seconds).
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let now_s = unix_ms() / 1000;
    let to_s = ask.number("to", now_s);
    let from_s = ask.number("from", to_s.saturating_sub(USUAL_S));
    let activity = &ask.admin.inside.activity;
    let stretch = activity.stretch(from_s, to_s, ask.number("step", 1), now_s);
    Answered::Ready(reply::object(200, &json!(series(&stretch))))
}

/// The newest rows of a `step`, the one under way among them: what a chart that is shown lacks.
pub(super) fn newest(admin: &Admin, query: &[u8]) -> Value {
    let step = value_of(query, "step").and_then(|step| step.parse().ok());
    let step_s: u64 = step.unwrap_or(1).clamp(1, MINUTES_KEPT * 60);
    let now_s = unix_ms() / 1000;
    let from_s = now_s.saturating_sub(NEWEST_ROWS * step_s);
    let activity = &admin.inside.activity;
    json!(series(&activity.stretch(from_s, now_s, step_s, now_s)))
}

/// Rows as the API tells them.
pub(super) fn series(stretch: &Stretch) -> Series {
    let rows = stretch.rows.iter();
    Series {
        step_s: stretch.step_s,
        from_unix_s: stretch.from_unix_s,
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: rows
            .map(|row| Some(row.as_ref()?.values().to_vec()))
            .collect(),
    }
}
