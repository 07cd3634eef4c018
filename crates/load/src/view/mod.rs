//! What is shown on standard error while a run goes on: nothing, lines, or a screen.

mod lines;
mod screen;

use std::time::{Duration, Instant};

use crate::conduct::View;
use crate::measure::Live;
use crate::plan::Plan;
use screen::Screen;

/// A look at a run that goes on.
pub(crate) struct Glance<'a> {
    pub(crate) plan: &'a Plan,
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
pub(crate) enum Shown {
    Nothing,
    Lines {
        period: Duration,
        next: Instant,
        /// The longest time without an answer since the last line.
        stalled: Duration,
    },
    Screen(Box<Screen>),
}

impl Shown {
    pub(crate) fn new(view: View) -> Shown {
        match view {
            View::Nothing => Shown::Nothing,
            View::Lines(period) => Shown::Lines {
                period,
                next: Instant::now() + period,
                stalled: Duration::ZERO,
            },
            View::Screen => match Screen::new() {
                Some(screen) => Shown::Screen(Box::new(screen)),
                None => Shown::Nothing,
            },
        }
    }

    /// Shows how far the run is, where it is time to.
    pub(crate) fn look(&mut self, glance: &Glance<'_>) {
        match self {
            Shown::Nothing => {}
            Shown::Lines {
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
            Shown::Screen(screen) => {
                if !screen.look(glance) {
                    self.clear();
                }
            }
        }
    }

    /// Takes away what must not stay.
    pub(crate) fn clear(&mut self) {
        if matches!(self, Shown::Screen(_)) {
            *self = Shown::Nothing;
        }
    }
}
