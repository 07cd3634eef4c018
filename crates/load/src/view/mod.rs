//! What is shown on standard error while a run goes on: nothing, lines, or a screen.

mod lines;
mod screen;

use std::time::{Duration, Instant};

use crate::conduct::ProgressDisplay;
use crate::measure::Live;
use crate::plan::BenchPlan;
use screen::Screen;

/// A look at a run that goes on.
pub(crate) struct Glance<'a> {
    pub(crate) plan: &'a BenchPlan,
    /// Time since the run began.
    pub(crate) passed: Duration,
    /// Time since the last answer came, where requests wait for theirs.
    pub(crate) silent: Duration,
    pub(crate) live: &'a Live,
}

/// From when on a server that does not answer is said not to.
const SILENT: Duration = Duration::from_secs(1);

impl Glance<'_> {
    /// Says that no answers come, where that is so.
    fn silence(&self) -> Option<String> {
        let seconds = self.silent.as_secs();
        (self.silent >= SILENT).then(|| format!("no answer for {seconds} s"))
    }
}

/// What is shown.
pub(crate) enum DisplayState {
    Nothing,
    Lines {
        period: Duration,
        next: Instant,
        /// The longest time without an answer since the last line.
        stalled: Duration,
    },
    Screen(Box<Screen>),
}

impl DisplayState {
    pub(crate) fn new(view: ProgressDisplay) -> DisplayState {
        match view {
            ProgressDisplay::Nothing => DisplayState::Nothing,
            ProgressDisplay::Lines(period) => DisplayState::Lines {
                period,
                next: Instant::now() + period,
                stalled: Duration::ZERO,
            },
            ProgressDisplay::Screen => match Screen::new() {
                Some(screen) => DisplayState::Screen(Box::new(screen)),
                None => DisplayState::Nothing,
            },
        }
    }

    /// Shows how far the run is, where it is time to.
    pub(crate) fn look(&mut self, glance: &Glance<'_>) {
        match self {
            DisplayState::Nothing => {}
            DisplayState::Lines {
                period,
                next,
                stalled,
            } => {
                *stalled = glance.silent.max(*stalled);
                if Instant::now() >= *next {
                    lines::write(glance, std::mem::take(stalled));
                    *next += *period;
                }
            }
            DisplayState::Screen(screen) => {
                if !screen.look(glance) {
                    self.clear();
                }
            }
        }
    }

    /// Takes away what must not stay.
    pub(crate) fn clear(&mut self) {
        if matches!(self, DisplayState::Screen(_)) {
            *self = DisplayState::Nothing;
        }
    }
}
