//! The report of a look at the machine: each fault once, however many routes share what it is of.

use std::collections::HashSet;

use hob_config::{Faults, Spot};

use super::libraries;

/// What is told, beside what the config itself says wrongly.
pub struct PreflightReport<'f, 's> {
    faults: &'f mut Faults<'s>,
    seen: HashSet<(usize, usize, String)>,
}

impl<'f, 's> PreflightReport<'f, 's> {
    pub(super) fn new(faults: &'f mut Faults<'s>) -> PreflightReport<'f, 's> {
        PreflightReport {
            faults,
            seen: HashSet::new(),
        }
    }

    /// What hob does not start with.
    pub fn error(&mut self, spot: Spot, message: &str, hint: &str) {
        if self.is_new(spot, message) {
            self.faults.error(spot, message).hint(hint);
        }
    }

    /// What it serves with all the same.
    pub fn warn(&mut self, spot: Spot, message: &str, hint: &str) {
        if self.is_new(spot, message) {
            self.faults.warn(spot, message).hint(hint);
        }
    }

    /// A library of C that is loaded when it is needed, and how one gets it.
    pub fn loads(&mut self, library: &str, hint: &str, spot: Spot) {
        if !libraries::is_there(library) {
            let message = format!("this needs {library}, which is not on this machine");
            self.error(spot, &message, hint);
        }
    }

    /// An error in one sentence, what to do behind its semicolon.
    pub(super) fn sentence(&mut self, spot: Spot, text: &str) {
        let (message, hint) = text.split_once("; ").unwrap_or((text, ""));
        self.error(spot, message, hint);
    }

    /// Something is told of what stands there.
    pub fn has(&self, spot: Spot) -> bool {
        let mut seen = self.seen.iter();
        seen.any(|(source, start, _)| (*source, *start) == (spot.source, spot.start))
    }

    fn is_new(&mut self, spot: Spot, message: &str) -> bool {
        self.seen
            .insert((spot.source, spot.start, message.to_owned()))
    }
}
