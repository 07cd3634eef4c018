//! How the operator hears of a start that the policy does not allow: a server that works asks for
//! none. One line in a while, whoever asks how often.

use std::time::{Duration, Instant};

use super::starts::Refused;
use crate::process::message::Step;

/// Between two lines.
const PAUSE: Duration = Duration::from_secs(10);
/// Longest part of what was asked for that is told.
const WHAT_BYTES_MAX: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Refusals {
    told: Option<Instant>,
    untold: u64,
}

impl Refusals {
    /// The line for this refusal, if it is one for the operator and there has been none of late.
    pub(super) fn line(&mut self, refused: &Refused, program: u16, now: Instant) -> Option<String> {
        let is_of_policy = matches!(
            refused.step,
            Step::Path | Step::Folder | Step::Arguments | Step::Variables
        );
        if !is_of_policy {
            return None;
        }
        let told = self.told.map(|told| now.saturating_duration_since(told));
        if told.is_some_and(|ago| ago < PAUSE) {
            self.untold += 1;
            return None;
        }
        self.told = Some(now);
        let what = &refused.what[..refused.what.len().min(WHAT_BYTES_MAX)];
        let others = match std::mem::take(&mut self.untold) {
            0 => String::new(),
            count => format!("; {count} more since the last such line"),
        };
        Some(format!(
            "a server asked for a start that the config does not allow: program {program}: cannot \
             {}: \"{}\"{others}",
            refused.step.text(),
            what.escape_ascii(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_with_what_was_asked_for_and_at_a_rate() {
        let mut refusals = Refusals::default();
        let refused = |step, what: &[u8]| Refused {
            step,
            errno: libc::EACCES,
            what: what.to_vec(),
        };
        let begin = Instant::now();
        let variable = refused(Step::Variables, b"LD_\nPRELOAD");
        let line = refusals.line(&variable, 3, begin).unwrap();
        assert!(
            line.contains("program 3") && line.contains("\"LD_\\nPRELOAD\""),
            "{line}"
        );
        for _ in 0..5 {
            assert_eq!(refusals.line(&variable, 3, begin + PAUSE / 2), None);
        }
        let busy = refused(Step::Room, b"");
        assert_eq!(
            refusals.line(&busy, 3, begin + PAUSE),
            None,
            "not the server's fault"
        );
        let long = refused(Step::Path, &[b'x'; 5000]);
        let line = refusals.line(&long, 0, begin + PAUSE).unwrap();
        assert!(
            line.len() < 300 && line.ends_with("5 more since the last such line"),
            "{line}"
        );
    }
}
