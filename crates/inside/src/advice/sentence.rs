//! What one rung up the ladder would save: the arithmetic, and the words `hob cost` has for it.
//!
//! A script that is started pays for the start of its interpreter with every request. Warm, it pays
//! for a fork instead; as a program that stays, for neither. What the script itself does is not
//! touched, and modules it loads are left where they are: warm can load them ahead, which saves
//! more than is said here. So the saving is at most what a bare start costs.

use hob_config::Language;

/// Runs of today below which nothing is said: the mean of fewer, and their rate, mean little.
pub(crate) const RUNS_MIN: u64 = 20;
/// Less than this share of the CPU time is nothing to move a script for, in percent.
const SHARE_PERCENT_MIN: u64 = 5;
/// CPU time of a warm fork in percent of that of a start, whole requests compared: Python 763 of
/// 14,651 us, Perl 488 of 4,321 us (`bench/results/resident.md`).
const FORK_PERCENT_PYTHON: u64 = 6;
const FORK_PERCENT_PERL: u64 = 12;

/// A script as it runs today.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What people call it.
    pub(crate) name: String,
    /// It is forked from a warm interpreter, not started.
    pub(crate) is_warm: bool,
    /// Runs of today.
    pub(crate) runs: u64,
    /// CPU time of a run, on the average, in microseconds.
    pub(crate) run_us: u64,
    /// Runs a second, since today's count began.
    pub(crate) rate_s: f64,
    /// What runs it, in words.
    pub(crate) runner: String,
    /// Its language, if scripts in it can be forked.
    pub(crate) language: Option<Language>,
    /// CPU time of a bare start of what runs it, in microseconds.
    pub(crate) start_us: u64,
}

/// What a move would save.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Saving {
    /// The rung it would move to.
    pub(crate) to: &'static str,
    /// CPU time of a request, in microseconds.
    pub(crate) saved_us: u64,
    /// CPUs, at today's rate.
    pub(crate) cores: f64,
    /// All of it in words.
    pub(crate) text: String,
}

impl Case {
    /// What one rung up would save.
    ///
    /// # Errors
    /// Why nothing is advised, in words.
    pub(crate) fn saving(&self) -> Result<Saving, String> {
        if self.runs < RUNS_MIN {
            return Err(format!("fewer than {RUNS_MIN} requests today"));
        }
        // A script may need less than a bare start: its first line can have options.
        let start_us = match self.is_warm {
            true => self.start_us,
            false => self.start_us.min(self.run_us),
        };
        let fork_us = self.language.map(|language| fork_us(language, start_us));
        let fork_us = fork_us.map(|fork_us| fork_us.min(self.run_us));
        let (to, saved_us) = match (self.is_warm, fork_us) {
            (false, Some(fork_us)) => ("warm", start_us - fork_us),
            (false, None) => ("resident", start_us),
            (true, fork_us) => ("resident", fork_us.unwrap_or(0)),
        };
        if saved_us == 0 || saved_us * 100 < self.run_us * SHARE_PERCENT_MIN {
            return Err(format!(
                "moving it to {to} would save nothing worth it: {} of {} of CPU time a request",
                time_us(saved_us),
                time_us(self.run_us),
            ));
        }
        let cores = saved_us as f64 * self.rate_s / 1e6;
        Ok(Saving {
            to,
            saved_us,
            cores,
            text: self.text(to, saved_us, fork_us, cores),
        })
    }

    fn text(&self, to: &'static str, saved_us: u64, fork_us: Option<u64>, cores: f64) -> String {
        let Case {
            name, runner, runs, ..
        } = self;
        let (run, saved) = (time_us(self.run_us), time_us(saved_us));
        let start = time_us(self.start_us);
        let percent = saved_us * 100 / self.run_us.max(1);
        let gain = format!(
            "{saved} of {run} of CPU time a request ({percent} %); at today's {} requests a second \
             that is {} of a CPU.",
            rate(self.rate_s),
            cpus(cores),
        );
        let measured = format!("Measured: {run}, the mean of {runs} runs today");
        let fork = time_us(fork_us.unwrap_or(0));
        match (to, self.is_warm) {
            ("warm", _) => format!(
                "Moving {name} from cgi to warm would save about {gain} {measured}, and {start} \
                 for a bare start of {runner}. Estimated: {fork} for a fork in its place."
            ),
            (_, false) => format!(
                "Written to stay (resident), {name} would save up to {gain} {measured}, and \
                 {start} for a bare start of {runner}. Estimated: that nothing of a start is left."
            ),
            (_, true) => format!(
                "Written to stay (resident), {name} would save up to {gain} {measured}. Estimated: \
                 that {fork} of it are the fork, by the {start} for a bare start of {runner}."
            ),
        }
    }
}

/// What a fork costs in place of a start.
fn fork_us(language: Language, start_us: u64) -> u64 {
    let percent = match language {
        Language::Python => FORK_PERCENT_PYTHON,
        Language::Perl => FORK_PERCENT_PERL,
    };
    start_us * percent / 100
}

/// A time with the digits that matter: `87 us`, `1.35 ms`, `12.3 ms`, `1.20 s`.
pub(crate) fn time_us(us: u64) -> String {
    let us = us as f64;
    match us {
        us if us < 1e3 => format!("{us:.0} us"),
        us if us < 1e4 => format!("{:.2} ms", us / 1e3),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

fn rate(rate_s: f64) -> String {
    match rate_s {
        rate if rate < 0.095 => format!("{rate:.4}"),
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate => format!("{rate:.0}"),
    }
}

/// A part of the machine's CPU time.
pub(crate) fn cpus(cores: f64) -> String {
    match cores {
        few if few < 0.01 => format!("{few:.4}"),
        some => format!("{some:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python() -> Case {
        Case {
            name: "a.py".to_owned(),
            is_warm: false,
            runs: 341,
            run_us: 12_000,
            rate_s: 3.1,
            runner: "python3".to_owned(),
            language: Some(Language::Python),
            start_us: 11_000,
        }
    }

    #[test]
    fn a_start_is_saved_but_for_a_fork_and_told_with_what_was_measured() {
        let saving = python().saving().unwrap();
        assert_eq!((saving.to, saving.saved_us), ("warm", 11_000 - 660));
        assert!((saving.cores - 10_340.0 * 3.1 / 1e6).abs() < 1e-9);
        assert_eq!(
            saving.text,
            "Moving a.py from cgi to warm would save about 10.3 ms of 12.0 ms of CPU time a \
             request (86 %); at today's 3.10 requests a second that is 0.03 of a CPU. Measured: \
             12.0 ms, the mean of 341 runs today, and 11.0 ms for a bare start of python3. \
             Estimated: 660 us for a fork in its place."
        );
    }

    #[test]
    fn what_cannot_be_forked_would_have_to_stay() {
        let shell = Case {
            runner: "sh".to_owned(),
            language: None,
            run_us: 900,
            start_us: 500,
            ..python()
        };
        let saving = shell.saving().unwrap();
        assert_eq!((saving.to, saving.saved_us), ("resident", 500));
        let text = saving.text;
        assert!(
            text.starts_with("Written to stay (resident), a.py would save up to 500 us of 900 us")
        );
        let warm = Case {
            is_warm: true,
            run_us: 1500,
            ..python()
        };
        let saving = warm.saving().unwrap();
        assert_eq!((saving.to, saving.saved_us), ("resident", 660));
    }

    #[test]
    fn nothing_is_advised_for_few_runs_or_little_gain() {
        let few = Case {
            runs: RUNS_MIN - 1,
            ..python()
        };
        assert_eq!(few.saving(), Err("fewer than 20 requests today".to_owned()));
        let busy = Case {
            run_us: 3_000_000,
            ..python()
        };
        let why = busy.saving().unwrap_err();
        assert!(
            why.contains("would save nothing worth it: 10.3 ms of 3.00 s"),
            "{why}"
        );
        let nothing = Case {
            start_us: 0,
            ..python()
        };
        nothing.saving().unwrap_err();
        let idle = Case {
            run_us: 0,
            ..python()
        };
        idle.saving().unwrap_err();
    }
}
