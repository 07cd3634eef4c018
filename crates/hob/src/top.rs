//! `hob top`: what the running hob does, again and again: on a screen, once as text, or as JSON.

mod detail;
mod draw;
mod keys;
mod once;
mod overview;
mod rows;
mod screen;
mod snapshot;
mod state;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::args::{Surroundings, TopOptions};
use crate::control::{self, Hob};
use crate::output::StdoutReader;
use crate::{CommandFailure, escape, output};
use snapshot::{Snapshot, SnapshotSelection};

/// A server that does not answer for so long is not waited for.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Shortest time between two looks.
const DELAY_MIN: Duration = Duration::from_millis(100);
/// How long a signal may wait where nobody looks at a screen.
const PATIENCE: Duration = Duration::from_millis(250);

/// Shows the running hob until it is told to end.
pub(crate) fn run(options: &TopOptions, surroundings: &Surroundings) -> Result<(), CommandFailure> {
    if options.delay < DELAY_MIN {
        let text = "--delay: 100ms is the least".to_owned();
        return Err(CommandFailure { code: 2, text });
    }
    let mut hob = control::hob(&options.control, surroundings)?.with_patience(ANSWER_LIMIT);
    if options.control.json {
        return json(&mut hob, options);
    }
    if options.once {
        return once::run(&mut hob, options);
    }
    screen::run(hob, options)
}

/// A document for every look.
fn json(hob: &mut Hob, options: &TopOptions) -> Result<(), CommandFailure> {
    let is_stopped = hob_load::stop_at_signals().map_err(|error| CommandFailure {
        code: 1,
        text: error.to_string(),
    })?;
    let mut next = Instant::now();
    let mut taken = Some(Snapshot::take(hob, SnapshotSelection::ALL)?);
    loop {
        if let Some(snapshot) = taken
            && output::line(&escape::json(&snapshot.json())) == StdoutReader::Gone
        {
            return Ok(());
        }
        next = (next + options.delay).max(Instant::now());
        if options.once || !pause(next, &is_stopped) {
            return Ok(());
        }
        taken = match Snapshot::take(hob, SnapshotSelection::ALL) {
            Ok(snapshot) => Some(snapshot),
            Err(refusal) => {
                eprintln!("hob: {}", refusal.text);
                None
            }
        };
    }
}

/// Waits; false when a signal ended it.
fn pause(until: Instant, is_stopped: &AtomicBool) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if is_stopped.load(Ordering::Relaxed) {
            return false;
        }
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(PATIENCE));
    }
}
