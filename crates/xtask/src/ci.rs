//! `cargo xtask ci`: everything `make test` checks, in order, ending with one count.
//!
//! A step that fails does not stop the next, so that one run shows all there is to mend; without a
//! built program the steps that need it are left out. The last steps come in two lanes, side by
//! side, which wait for servers and browsers as much as they compute: tests, and what belongs to
//! the program, of which what a step printed is shown when it has ended. The lane that is through
//! takes what is left of the tests. All of it is kept in target/ci.

use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::{self, Finished};
use crate::tally::{self, TestTally};

/// One thing that is checked.
struct CiStep {
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

const STEPS: &[CiStep] = &[
    CiStep {
        name: "tidy",
        call: Call::Xtask(&["tidy"]),
        needs: Needs::Nothing,
        limit: minutes(2),
    },
    CiStep {
        name: "fmt",
        call: Call::Cargo(&["fmt", "--all", "--check"]),
        needs: Needs::Tool(&["fmt", "--version"]),
        limit: minutes(2),
    },
    CiStep {
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
    CiStep {
        name: "teapot",
        call: Call::Xtask(&["teapot"]),
        needs: Needs::Nothing,
        limit: minutes(10),
    },
    CiStep {
        name: "dependencies",
        call: Call::Xtask(&["dependencies"]),
        needs: Needs::Nothing,
        limit: minutes(5),
    },
    CiStep {
        name: "build",
        call: Call::Cargo(run::BUILD),
        needs: Needs::Nothing,
        limit: minutes(20),
    },
    CiStep {
        name: "build-tests",
        call: Call::Cargo(&["test", "--workspace", "--locked", "--no-run"]),
        needs: Needs::Program,
        limit: minutes(15),
    },
];

/// What comes after that, beside `PARTS`: the tests, and those of features once more over what else
/// a client may speak. Neither lane builds anything.
const TESTS: &[CiStep] = &[
    CiStep {
        name: "test",
        call: Call::Xtask(&["test"]),
        needs: Needs::Program,
        limit: minutes(50),
    },
    CiStep {
        name: "over-tls",
        call: Call::Xtask(&["over", "tls"]),
        needs: Needs::Program,
        limit: minutes(20),
    },
    CiStep {
        name: "over-h2",
        call: Call::Xtask(&["over", "h2"]),
        needs: Needs::Program,
        limit: minutes(20),
    },
    CiStep {
        name: "over-h3",
        call: Call::Xtask(&["over", "h3"]),
        needs: Needs::Program,
        limit: minutes(20),
    },
    CiStep {
        name: "over-proxy",
        call: Call::Xtask(&["over", "proxy"]),
        needs: Needs::Program,
        limit: minutes(20),
    },
    CiStep {
        name: "over-proxy-h2",
        call: Call::Xtask(&["over", "proxy-h2"]),
        needs: Needs::Program,
        limit: minutes(20),
    },
];

/// What belongs to the program: languages, pages, texts, packages, and how others judge it.
const PARTS: &[CiStep] = &[
    CiStep {
        name: "lang-c",
        call: Call::Xtask(&["lang", "c"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    CiStep {
        name: "lang-python",
        call: Call::Xtask(&["lang", "python"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    CiStep {
        name: "lang-perl",
        call: Call::Xtask(&["lang", "perl"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    CiStep {
        name: "lang-shell",
        call: Call::Xtask(&["lang", "shell"]),
        needs: Needs::Program,
        limit: minutes(10),
    },
    CiStep {
        name: "pages",
        call: Call::Xtask(&["pages"]),
        needs: Needs::Program,
        limit: minutes(20),
    },
    CiStep {
        name: "generated",
        call: Call::Xtask(&["generate", "--check"]),
        needs: Needs::Program,
        limit: minutes(2),
    },
    CiStep {
        name: "samples",
        call: Call::Xtask(&["samples"]),
        needs: Needs::Program,
        limit: minutes(2),
    },
    CiStep {
        name: "examples",
        call: Call::Xtask(&["examples"]),
        needs: Needs::Program,
        limit: minutes(5),
    },
    CiStep {
        name: "package",
        call: Call::Xtask(&["dist", "--check"]),
        needs: Needs::Program,
        limit: minutes(20),
    },
    CiStep {
        name: "conformance",
        call: Call::Xtask(QUICK_JUDGES),
        needs: Needs::Program,
        limit: minutes(20),
    },
];

/// The judges that are done within a minute or so, and are left out where they cannot be had;
/// `make conformance` has them all.
const QUICK_JUDGES: &[&str] = &[
    "conformance",
    "--skip-missing",
    "curl",
    "django",
    "grpc",
    "h2spec",
    "h2spec-proxy",
    "hyper-h2",
    "mischief",
    "nghttp2",
    "redbot",
    "slowhttptest",
    "sqlmap-few",
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
    let mut run = CiRun {
        root,
        own,
        is_built: true,
    };
    let mut reports = Vec::new();
    for step in STEPS {
        println!("\n== {}", step.name);
        let report = run.report(step, run::shown)?;
        run.is_built &= step.name != "build" || report.tally.failed == 0;
        reports.push(report);
    }
    let tests = Mutex::new(TESTS.iter());
    let next = || {
        let mut tests = tests.lock().unwrap_or_else(PoisonError::into_inner);
        tests.next()
    };
    let (tests, parts) = thread::scope(|scope| {
        let parts = scope.spawn(|| {
            let steps = PARTS.iter().chain(iter::from_fn(next));
            let reports = steps.map(|step| {
                let report = run.report(step, run::unshown)?;
                println!("\n== {}\n{}", step.name, report.text);
                Ok(report)
            });
            reports.collect::<Result<Vec<CiStepReport>, String>>()
        });
        let tests = iter::from_fn(next).map(|step| {
            println!("\n== {}", step.name);
            run.report(step, run::shown)
        });
        let tests = tests.collect::<Result<Vec<CiStepReport>, String>>();
        (
            tests,
            parts.join().expect("the lane of parts ends in order"),
        )
    });
    reports.extend(tests?);
    reports.extend(parts?);
    Ok(tell(&reports))
}

/// Prints what failed, a row for each step, why something was skipped, what failed in a line each,
/// and the sum.
fn tell(reports: &[CiStepReport]) -> bool {
    let failed = reports.iter().filter(|report| report.tally.failed > 0);
    let failures = failed.flat_map(|report| tally::failures(&report.text));
    let failures: Vec<String> = failures.collect();
    failures.iter().for_each(|failure| println!("\n{failure}"));
    println!("\n== all steps; their output is in target/ci");
    let mut sum = TestTally::default();
    for report in reports {
        sum += report.tally;
        let (name, seconds) = (report.name, report.took.as_secs());
        let row = format!("{name:<12} {seconds:>5} s  {}", in_columns(report.tally));
        println!("{row}  {}", report.missing.as_deref().unwrap_or_default());
    }
    let skipped = reports
        .iter()
        .flat_map(|report| tally::reasons(&report.text));
    skipped.for_each(|reason| println!("skipped: {reason}"));
    // Once more, for whoever has only the end of a long log.
    for failure in &failures {
        println!("failed: {}", tally::in_a_line(failure));
    }
    println!("{sum}");
    sum.is_good()
}

/// A run of the steps.
struct CiRun<'a> {
    root: &'a Path,
    /// This program.
    own: PathBuf,
    is_built: bool,
}

/// How a step went.
struct CiStepReport {
    name: &'static str,
    tally: TestTally,
    took: Duration,
    /// What it printed.
    text: String,
    /// Why it did not run.
    missing: Option<String>,
}

fn in_columns(tally: TestTally) -> String {
    format!(
        "{:>5} passed {:>4} failed {:>4} skipped",
        tally.passed, tally.failed, tally.skipped
    )
}

impl CiStep {
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
}

impl CiRun<'_> {
    /// Runs a step, if it can. One that prints no counts is one check.
    fn report(&self, step: &CiStep, run: Runner) -> Result<CiStepReport, String> {
        let began = Instant::now();
        let missing = step.missing(self.is_built);
        let (tally, text) = match &missing {
            Some(_) => (TestTally::SKIPPED, String::new()),
            None => self.run(step, run)?,
        };
        Ok(CiStepReport {
            name: step.name,
            tally,
            took: began.elapsed(),
            text,
            missing: missing.map(|reason| format!("skipped: {reason}")),
        })
    }

    /// The step's counts and what it printed.
    fn run(&self, step: &CiStep, run: Runner) -> Result<(TestTally, String), String> {
        let mut command = match step.call {
            Call::Xtask(arguments) => {
                let mut command = Command::new(&self.own);
                command.args(arguments);
                command
            }
            Call::Cargo(arguments) => {
                let mut command = run::cargo();
                command.args(arguments);
                command
            }
        };
        let log = self
            .root
            .join("target/ci")
            .join(format!("{}.log", step.name));
        let finished = run(command.current_dir(self.root), &log, step.limit)?;
        let mut tally = TestTally::of_text(&finished.text);
        if tally == TestTally::default() {
            tally = TestTally::of_check(finished.is_success);
        } else if !finished.is_success && tally.failed == 0 {
            tally += TestTally::FAILED;
        }
        Ok((tally, finished.text))
    }
}

/// How a program is run: shown, or not.
type Runner = fn(&mut Command, &Path, Duration) -> Result<Finished, String>;
