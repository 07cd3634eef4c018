//! What happens in a run, a line each on standard error: failures always, the rest with `--trace`.

use hob_page::host::{Trace, TraceEvent, TracePlace};
use hob_page::sql::{BoundKind, BoundValue, Statement};
use hob_page::value::{Text, ValueOrigin};

use crate::escape;

/// Characters of a value that are shown.
const SHOWN_CHARS_MAX: usize = 200;

/// Hears of a run, and tells.
pub(super) struct RunTold {
    /// With `--trace`.
    is_whole: bool,
    /// A function failed, so nothing that was written stays.
    pub(super) has_failed: bool,
}

impl RunTold {
    pub(super) fn new(is_whole: bool) -> RunTold {
        RunTold {
            is_whole,
            has_failed: false,
        }
    }
}

impl Trace for RunTold {
    fn event(&mut self, event: TraceEvent<'_>) {
        match event {
            TraceEvent::Variable { place, name, value } if self.is_whole => {
                let origin = origin(value);
                tell(place, &format!("{name} = {}{origin}", shown(value.bytes())));
            }
            TraceEvent::Variable { .. } => {}
            TraceEvent::Statement {
                place,
                statement,
                rows,
                micros,
                fault,
            } => {
                self.has_failed |= fault.is_some();
                if self.is_whole {
                    let end = match fault {
                        Some(fault) => format!("failed with {}", fault.code),
                        None => format!("{rows} {}", if rows == 1 { "row" } else { "rows" }),
                    };
                    tell_statement(place, statement, &format!("{end} in {}", time(micros)));
                }
            }
            TraceEvent::Code { place, fault } => {
                self.has_failed |= fault.code < 0;
                let state = fault.sql_state.as_deref();
                let state = state.map(|state| format!(", state {state}"));
                let state = state.unwrap_or_default();
                tell(
                    place,
                    &format!("code {}{state}: {}", fault.code, fault.message),
                );
            }
            TraceEvent::Refused { place, reason } => {
                tell(place, &format!("a value was left out: {reason}"));
            }
        }
    }
}

fn tell_statement(place: TracePlace<'_>, statement: &Statement, end: &str) {
    let words: Vec<&str> = statement.text.split_whitespace().collect();
    tell(place, &words.join(" "));
    for (index, value) in statement.parameters.iter().enumerate() {
        tell(place, &format!("  {}: {}", index + 1, bound(value)));
    }
    tell(place, &format!("  {end}"));
}

fn bound(value: &BoundValue) -> String {
    let kind = match value.kind {
        BoundKind::Null => return "NULL".to_owned(),
        BoundKind::Integer => "integer",
        BoundKind::Decimal => "decimal",
        BoundKind::Text => "text",
    };
    format!("{kind} {}", shown(&value.value))
}

/// Who made a value, if it is data.
fn origin(value: &Text) -> &'static str {
    match value.data_origin() {
        None | Some(ValueOrigin::Macro) => "",
        Some(ValueOrigin::Client) => "  (data of the client)",
        Some(ValueOrigin::Environment) => "  (data of the environment)",
        Some(ValueOrigin::Database) => "  (data of the database)",
        Some(ValueOrigin::Program) => "  (data of a program)",
        Some(ValueOrigin::File) => "  (data of a file)",
    }
}

/// The value in quotes, cut where it is long.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => format!("\"{text}\""),
        Some((end, _)) => format!("\"{}\"... ({} bytes)", &text[..end], bytes.len()),
    }
}

fn time(micros: u64) -> String {
    match micros {
        0..10_000 => format!("{micros} us"),
        _ => format!("{} ms", micros / 1_000),
    }
}

fn tell(place: TracePlace<'_>, text: &str) {
    let TracePlace { file, line } = place;
    eprintln!("{}", escape::line(&format!("{file}:{line}: {text}")));
}
