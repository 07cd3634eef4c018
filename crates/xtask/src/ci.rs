//! `cargo xtask ci`: everything `make test` checks, in order, ending with one count.
//!
//! A step that fails does not stop the next, so that one run shows all there is to mend; without a
//! built program the steps that need it are left out. What a step printed is kept in target/ci.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::run;
use crate::tally::Tally;

/// One thing that is checked.
struct Step {
    name: &'static str,
    /// What is run: a command of this tool, or one of cargo's.
    call: Call,
    /// What must be there first.
    needs: Needs,
    limit: Duration,
}

enum Call {
    Xtask(&'static [&'static str]),
    Cargo(&'static [&'static str]),
}

#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    /// A subcommand of cargo, by the arguments that show it is there.
    Tool(&'static [&'static str]),
    /// The step `build` went well.
    Program,
}

const STEPS: &[Step] = &[
    Step {
        name: "tidy",
        call: Call::Xtask(&["tidy"]),
        needs: Needs::Nothing,
        limit: minutes(2),
    },
    Step {
        name: "fmt",
        call: Call::Cargo(&["fmt", "--all", "--check"]),
        needs: Needs::Tool(&["fmt", "--version"]),
        limit: minutes(2),
    },
    Step {
        name: "build",
        call: Call::Cargo(&["build", "--workspace", "--locked"]),
        needs: Needs::Nothing,
        limit: minutes(20),
    },
    Step {
        name: "clippy",
        call: Call::Cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "--deny",
            "warnings",
        ]),
        needs: Needs::Tool(&["clippy", "--version"]),
        limit: minutes(15),
    },
    Step {
        name: "deny",
        call: Call::Cargo(&["deny", "check", "bans", "licenses", "sources"]),
        needs: Needs::Tool(&["deny", "--version"]),
        limit: minutes(2),
    },
    Step {
        name: "test",
        call: Call::Cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]),
        needs: Needs::Program,
        limit: minutes(25),
    },
    Step {
        name: "over-tls",
        call: Call::Xtask(&["over", "tls"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    Step {
        name: "over-h2",
        call: Call::Xtask(&["over", "h2"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    Step {
        name: "over-h3",
        call: Call::Xtask(&["over", "h3"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    Step {
        name: "lang-c",
        call: Call::Xtask(&["lang", "c"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    Step {
        name: "lang-python",
        call: Call::Xtask(&["lang", "python"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    Step {
        name: "lang-perl",
        call: Call::Xtask(&["lang", "perl"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    Step {
        name: "lang-shell",
        call: Call::Xtask(&["lang", "shell"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    Step {
        name: "pages",
        call: Call::Xtask(&["pages"]),
        needs: Needs::Program,
        limit: minutes(8),
    },
    Step {
        name: "generated",
        call: Call::Xtask(&["generate", "--check"]),
        needs: Needs::Program,
        limit: minutes(2),
    },
    Step {
        name: "samples",
        call: Call::Xtask(&["samples"]),
        needs: Needs::Program,
        limit: minutes(2),
    },
    Step {
        name: "examples",
        call: Call::Xtask(&["examples"]),
        needs: Needs::Program,
        limit: minutes(5),
    },
    Step {
        name: "conformance",
        call: Call::Xtask(QUICK_JUDGES),
        needs: Needs::Program,
        limit: minutes(10),
    },
];

/// The judges that are done within a minute or so, and are left out where they cannot be had;
/// `make conformance` has them all.
const QUICK_JUDGES: &[&str] = &[
    "conformance",
    "--skip-missing",
    "curl",
    "h2spec",
    "hyper-h2",
    "nghttp2",
    "redbot",
    "slowhttptest",
];

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

/// Runs all steps; the last line is `N passed, M failed, K skipped`.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask ci".to_string());
    }
    let own = std::env::current_exe().map_err(|error| format!("finding xtask itself: {error}"))?;
    let logs = root.join("target/ci");
    let (mut sum, mut rows, mut is_built) = (Tally::default(), Vec::new(), true);
    for step in STEPS {
        let began = Instant::now();
        let (tally, note) = match step.missing(is_built) {
            Some(reason) => (Tally::SKIPPED, format!("skipped: {reason}")),
            None => {
                println!("\n== {}", step.name);
                (step.run(root, &own, &logs)?, String::new())
            }
        };
        is_built &= step.name != "build" || tally.failed == 0;
        sum += tally;
        let seconds = began.elapsed().as_secs();
        rows.push(format!(
            "{:<12} {seconds:>5} s  {}  {note}",
            step.name,
            in_columns(tally)
        ));
    }
    println!("\n== all steps; their output is in target/ci");
    rows.iter().for_each(|row| println!("{}", row.trim_end()));
    println!("{sum}");
    Ok(sum.is_good())
}

fn in_columns(tally: Tally) -> String {
    format!(
        "{:>5} passed {:>4} failed {:>4} skipped",
        tally.passed, tally.failed, tally.skipped
    )
}

impl Step {
    /// Why the step cannot run.
    fn missing(&self, is_built: bool) -> Option<String> {
        match self.needs {
            Needs::Program if !is_built => Some("the program was not built".to_string()),
            Needs::Tool(arguments) if !run::succeeds(run::cargo().args(arguments)) => {
                Some(format!("cargo {} is not installed", arguments[0]))
            }
            _ => None,
        }
    }

    /// Runs the step. One that prints no counts is one check.
    fn run(&self, root: &Path, own: &PathBuf, logs: &Path) -> Result<Tally, String> {
        let mut command = match self.call {
            Call::Xtask(arguments) => {
                let mut command = Command::new(own);
                command.args(arguments);
                command
            }
            Call::Cargo(arguments) => {
                let mut command = run::cargo();
                command.args(arguments);
                command
            }
        };
        let log = logs.join(format!("{}.log", self.name));
        let finished = run::shown(command.current_dir(root), &log, self.limit)?;
        let mut tally = Tally::of_text(&finished.text);
        if tally == Tally::default() {
            tally = Tally::of_check(finished.is_success);
        } else if !finished.is_success && tally.failed == 0 {
            tally += Tally::FAILED;
        }
        Ok(tally)
    }
}
