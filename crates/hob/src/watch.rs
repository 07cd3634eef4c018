//! `hob watch`: what happens to requests, as it happens.

mod dump;
mod line;

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use hob_inside::api::SERVER_ENDS;
use hob_load::page::count;
use serde_json::Value;

use crate::args::{Surroundings, WatchOptions};
use crate::control::{self, Came, Hob, Listening, ServerSentEvent};
use crate::facts::JsonView;
use crate::filter::Filter;
use crate::output::StdoutReader;
use crate::{CommandFailure, escape, output};
use line::{WatchOutputStyle, line};

/// What requests can be chosen by.
const KEYS: &[&str] = &[
    "client", "site", "path", "method", "header", "status", "handler", "slower",
];
/// How long a signal may wait.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a server that has gone may take to be followed by another.
const RETURN_LIMIT: Duration = Duration::from_secs(10);

/// Shows events until it is told to end.
pub(crate) fn run(
    options: &WatchOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let target = filter(options)?.target("/v1/watch");
    let is_stopped = hob_load::stop_at_signals().map_err(|error| CommandFailure {
        code: 1,
        text: error.to_string(),
    })?;
    let hob = control::hob(&options.control, surroundings)?;
    let mut listening = match hob.listen(&target) {
        // An upgrade is under way.
        Err(refusal) if refusal.text.contains(SERVER_ENDS) => again(&hob, &target)?,
        listening => listening?,
    };
    eprintln!("hob: watching; Ctrl-C ends it");
    let mut shown = WatchPrinter::new(options);
    while !shown.is_over() && !is_stopped.load(Ordering::Relaxed) {
        match listening.wait(shown.patience())? {
            Came::Events(events) => events.into_iter().for_each(|event| shown.take(&event)),
            Came::End => {
                eprintln!("hob: this server has ended; waiting for the next one");
                listening = again(&hob, &target)?;
                eprintln!("hob: watching again");
            }
        }
    }
    shown.tell();
    Ok(())
}

fn filter(options: &WatchOptions) -> Result<Filter, CommandFailure> {
    let mut filter = Filter::read(&options.filters, KEYS, None)?;
    for (key, is_wanted) in [
        ("head", options.head),
        ("body", options.body),
        ("secrets", options.secrets),
    ] {
        if is_wanted {
            filter.add(key, "1");
        }
    }
    if let Some(trigger) = &options.trigger {
        filter.add("trigger", trigger);
    }
    if let Some(keep) = options.keep {
        filter.add("keep", &keep.to_string());
    }
    Ok(filter)
}

/// A stream of the server that follows.
fn again(hob: &Hob, target: &str) -> Result<Listening, CommandFailure> {
    let until = Instant::now() + RETURN_LIMIT;
    loop {
        match hob.listen(target) {
            Err(refusal) if Instant::now() >= until => return Err(refusal),
            Err(_) => thread::sleep(PATIENCE),
            listening => return listening,
        }
    }
}

/// What was shown, and what of it is still wanted.
struct WatchPrinter {
    style: WatchOutputStyle,
    until: Option<Instant>,
    /// Events that may still be shown.
    left: Option<u64>,
    events: u64,
    dropped: u64,
    reader: StdoutReader,
}

impl WatchPrinter {
    fn new(options: &WatchOptions) -> WatchPrinter {
        WatchPrinter {
            style: match (options.control.json, output::is_terminal()) {
                (true, _) => WatchOutputStyle::Json,
                (false, true) => WatchOutputStyle::Coloured,
                (false, false) => WatchOutputStyle::Plain,
            },
            until: options.duration.map(|duration| Instant::now() + duration),
            left: options.count,
            events: 0,
            dropped: 0,
            reader: StdoutReader::Reads,
        }
    }

    fn is_over(&self) -> bool {
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        is_late || self.left == Some(0) || self.reader == StdoutReader::Gone
    }

    fn patience(&self) -> Duration {
        let left = self.until.map(|until| until - Instant::now().min(until));
        left.unwrap_or(PATIENCE).min(PATIENCE)
    }

    fn take(&mut self, event: &ServerSentEvent) {
        if self.is_over() {
            return;
        }
        let Ok(value) = serde_json::from_str::<Value>(&event.data) else {
            return;
        };
        match event.name.as_str() {
            "dropped" => {
                let more = JsonView(&value).count("count").unwrap_or(1);
                self.dropped = self.dropped.saturating_add(more);
                eprintln!("hob: {} events were dropped here", count(more));
            }
            "message" => {
                self.events += 1;
                self.left = self.left.map(|left| left - 1);
                let text = match self.style {
                    WatchOutputStyle::Json => escape::json(&value),
                    style => line(JsonView(&value), style),
                };
                self.reader = output::line(&text);
            }
            _ => {}
        }
    }

    fn tell(&self) {
        let (events, dropped) = (count(self.events), count(self.dropped));
        eprintln!("hob: {events} events were shown, {dropped} were dropped");
    }
}
