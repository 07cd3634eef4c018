//! `hob history --follow`: requests as they finish. The server is asked for what came in since the
//! last answer: without doubles, and without gaps that are not told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{PAGE_COUNT, rows};
use crate::control::{ControlAnswer, Hob};
use crate::facts::JsonView;
use crate::filter::{Filter, push_encoded};
use crate::output::StdoutReader;
use crate::{CommandFailure, escape, output};

/// Time between two looks while nothing is behind.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a signal may wait.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a server that has gone may take to be followed by another.
const RETURN_LIMIT: Duration = Duration::from_secs(10);

/// How requests are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HistoryOutputStyle {
    Table,
    Json,
}

/// Shows requests until it is told to end.
pub(super) fn follow(
    hob: &mut Hob,
    filter: &Filter,
    style: HistoryOutputStyle,
) -> Result<(), CommandFailure> {
    let is_stopped = hob_load::stop_at_signals().map_err(|error| CommandFailure {
        code: 1,
        text: error.to_string(),
    })?;
    let base = filter.target("/v1/history");
    let joint = if base.contains('?') { '&' } else { '?' };
    let base = format!("{base}{joint}limit={PAGE_COUNT}&after=");
    let mut page = hob.get(&format!("{base}now"))?;
    eprintln!("hob: following; Ctrl-C ends it");
    let mut shown = HistoryPrinter::new(style);
    shown.begin();
    loop {
        let told = JsonView(&page);
        if told.is("gap") {
            eprintln!("hob: some requests may be missing here");
        }
        // An older one knows no `after` and tells the newest again and again.
        let Some(next) = told.text("next").filter(|next| next.starts_with('~')) else {
            let text = "this hob cannot be followed: it is of an older version".to_owned();
            return Err(CommandFailure { code: 1, text });
        };
        shown.take(told);
        let mut target = base.clone();
        push_encoded(&mut target, next);
        let pause = match told.is("more") {
            true => Duration::ZERO,
            false => PERIOD,
        };
        if shown.reader == StdoutReader::Gone || is_over(pause, &is_stopped) {
            return Ok(());
        }
        match ask(hob, &target, &is_stopped)? {
            Some(next) => page = next,
            None => return Ok(()),
        }
    }
}

/// Waits; true when it is told to end.
fn is_over(time: Duration, is_stopped: &AtomicBool) -> bool {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || is_stopped.load(Ordering::Relaxed) {
            return is_stopped.load(Ordering::Relaxed);
        }
        thread::sleep(left.min(PATIENCE));
    }
}

/// What has come in; of the server that follows, where this one has gone. `None` when it is told to
/// end.
fn ask(
    hob: &mut Hob,
    target: &str,
    is_stopped: &AtomicBool,
) -> Result<Option<Value>, CommandFailure> {
    let until = Instant::now() + RETURN_LIMIT;
    let mut has_gone = false;
    loop {
        let answer = hob.ask("GET", target);
        // A server that refuses is there, and will not change its mind.
        let is_refused = |answer: &ControlAnswer| (400..500).contains(&answer.status);
        let is_final = answer.as_ref().is_ok_and(is_refused);
        match answer.and_then(ControlAnswer::told) {
            Ok(page) => {
                if has_gone {
                    eprintln!("hob: following again");
                }
                return Ok(Some(page));
            }
            Err(refusal) if is_final => return Err(refusal),
            Err(refusal) if Instant::now() >= until => return Err(refusal),
            Err(_) if !has_gone => {
                has_gone = true;
                eprintln!("hob: this server has ended; waiting for the next one");
            }
            Err(_) => {}
        }
        if is_over(PATIENCE, is_stopped) {
            return Ok(None);
        }
    }
}

/// What was shown.
struct HistoryPrinter {
    style: HistoryOutputStyle,
    /// Columns as wide as the widest so far.
    widths: Vec<usize>,
    reader: StdoutReader,
}

impl HistoryPrinter {
    fn new(style: HistoryOutputStyle) -> HistoryPrinter {
        HistoryPrinter {
            style,
            widths: Vec::new(),
            reader: StdoutReader::Reads,
        }
    }

    fn begin(&mut self) {
        if self.style == HistoryOutputStyle::Table {
            let table = rows::table(std::iter::empty(), output::width());
            self.widths = rows::usual_widths(&table, output::width());
            self.reader = output::line(&table.heading(&self.widths));
        }
    }

    fn take(&mut self, told: JsonView<'_>) {
        let text = match self.style {
            HistoryOutputStyle::Json => {
                let lines = told.list("requests").iter();
                lines.map(|one| escape::json(one) + "\n").collect()
            }
            HistoryOutputStyle::Table => {
                let table = rows::table(told.each("requests"), output::width());
                let least = std::mem::take(&mut self.widths);
                self.widths = table.widths_from(&least, output::width());
                rows::lines(&table, told.each("requests"), &self.widths)
            }
        };
        if !text.is_empty() {
            self.reader = output::write(&text);
        }
    }
}
