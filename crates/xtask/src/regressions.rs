//! `cargo xtask regressions --before PROGRAM`: shows that each fault that was mended had a test
//! that failed, by running it with the program of before, and with the one built here.
//!
//! `crates/hob/tests/regressions.txt` lists them. The end is a table in Markdown and one line with
//! counts; what each test printed is kept in target/regressions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::run;
use crate::tally::TestTally;

const LIST: &str = "crates/hob/tests/regressions.txt";

/// A test waits a minute for an event that never comes; one that takes longer than this hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// So many run at once: tests that fail spend their time waiting.
const AT_ONCE: usize = 4;

/// One line of the list.
#[derive(Debug, PartialEq, Eq)]
struct MendedFault {
    sentence: String,
    /// The file in `crates/hob/tests`, without its ending.
    target: String,
    /// The test's whole name in it.
    name: String,
}

/// What one run of a test came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestOutcome {
    Passes,
    Fails,
    /// It could not run here, and said so.
    Skipped,
    /// There is no test of that name.
    Unknown,
}

/// Runs what is listed; true when every test fails before and passes now.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let [option, before] = arguments else {
        return Err("usage: cargo xtask regressions --before PROGRAM".to_string());
    };
    if option != "--before" {
        return Err(format!("{option}? It is --before PROGRAM"));
    }
    let before = fs::canonicalize(before).map_err(|error| format!("{before}: {error}"))?;
    let text = fs::read_to_string(root.join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    let faults = faults(&text)?;
    build(root, &faults)?;
    let outcomes = run_all(root, &before, &faults)?;
    print!("{}", table(&faults, &outcomes));
    Ok(!faults.is_empty() && outcomes.iter().all(is_shown))
}

/// The lines `SENTENCE | TARGET | NAME` of a list; those that begin with `#` are for people.
fn faults(text: &str) -> Result<Vec<MendedFault>, String> {
    let lines = text.lines().enumerate();
    let told = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    told.map(|(index, line)| {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        match parts[..] {
            [sentence, target, name] if !parts.contains(&"") => Ok(MendedFault {
                sentence: sentence.to_string(),
                target: target.to_string(),
                name: name.to_string(),
            }),
            _ => Err(format!(
                "{LIST}:{}: a line is SENTENCE | TARGET | NAME",
                index + 1
            )),
        }
    })
    .collect()
}

/// Builds everything once, so that a fault of the build is not taken for one of a test.
fn build(root: &Path, faults: &[MendedFault]) -> Result<(), String> {
    let mut build = run::cargo();
    build.args(["test", "--locked", "--package", "hob", "--no-run"]);
    let mut targets: Vec<&str> = faults.iter().map(|fault| fault.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    for target in targets {
        build.args(["--test", target]);
    }
    match build.current_dir(root).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("the tests cannot be built".to_string()),
        Err(error) => Err(format!("starting cargo: {error}")),
    }
}

/// Both outcomes of each fault's test: before and now.
fn run_all(
    root: &Path,
    before: &Path,
    faults: &[MendedFault],
) -> Result<Vec<(TestOutcome, TestOutcome)>, String> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![]);
    let work = || {
        while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            let both = run_test(root, fault, Some(before))
                .and_then(|then| Ok((then, run_test(root, fault, None)?)));
            eprintln!("{}: {both:?}", fault.test());
            // A thread that panicked has added nothing.
            let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            done.push((fault.test(), both));
        }
    };
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let done = done.into_inner().unwrap_or_default();
    let of = |fault: &MendedFault| {
        let found = done.iter().find(|(test, _)| *test == fault.test());
        found.map_or(Err("a run got lost".to_string()), |(_, both)| both.clone())
    };
    faults.iter().map(of).collect()
}

/// Runs one test with a program of before, or with the one built here.
fn run_test(
    root: &Path,
    fault: &MendedFault,
    before: Option<&Path>,
) -> Result<TestOutcome, String> {
    let mut test = run::cargo();
    test.args(["test", "--locked", "--package", "hob"]);
    test.args(["--test", &fault.target, "--", "--show-output", "--exact"]);
    test.arg(&fault.name).current_dir(root);
    match before {
        Some(program) => test.env("HOB_PROGRAM", program),
        None => test.env_remove("HOB_PROGRAM"),
    };
    let finished = run::unshown(&mut test, &fault.log(root, before.is_some()), LIMIT)?;
    Ok(outcome(finished.is_success, &finished.text))
}

/// What cargo's output says of the one test that was to run.
fn outcome(is_success: bool, text: &str) -> TestOutcome {
    let tally = TestTally::of_text(text);
    if !text.lines().any(|line| line == "running 1 test") {
        TestOutcome::Unknown
    } else if !is_success {
        TestOutcome::Fails
    } else if tally.skipped > 0 {
        TestOutcome::Skipped
    } else {
        TestOutcome::Passes
    }
}

fn is_shown(both: &(TestOutcome, TestOutcome)) -> bool {
    *both == (TestOutcome::Fails, TestOutcome::Passes)
}

fn table(faults: &[MendedFault], outcomes: &[(TestOutcome, TestOutcome)]) -> String {
    let mut table = "| fault | test | before | now |\n| --- | --- | --- | --- |\n".to_string();
    for (fault, (before, now)) in faults.iter().zip(outcomes) {
        let (before, now) = (before.word(), now.word());
        table += &format!(
            "| {} | `{}` | {before} | {now} |\n",
            fault.sentence,
            fault.test()
        );
    }
    let shown = outcomes.iter().filter(|both| is_shown(both)).count();
    let others = outcomes.len() - shown;
    table + &format!("\n{shown} failed before and pass now, {others} do not show that\n")
}

impl MendedFault {
    fn test(&self) -> String {
        format!("{}::{}", self.target, self.name)
    }

    fn log(&self, root: &Path, is_before: bool) -> PathBuf {
        let time = if is_before { "before" } else { "now" };
        let test = self.test().replace("::", ".");
        root.join(format!("target/regressions/{test}.{time}.log"))
    }
}

impl TestOutcome {
    fn word(self) -> &'static str {
        match self {
            TestOutcome::Passes => "passes",
            TestOutcome::Fails => "fails",
            TestOutcome::Skipped => "**skipped**",
            TestOutcome::Unknown => "**there is no such test**",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_has_a_fault_on_each_line() {
        let fault = |sentence: &str, target: &str, name: &str| MendedFault {
            sentence: sentence.to_string(),
            target: target.to_string(),
            name: name.to_string(),
        };
        let text = "# for people\n\nIt breaks. | h2 | heads::one\nAgain | tls | two\n";
        let wanted = vec![
            fault("It breaks.", "h2", "heads::one"),
            fault("Again", "tls", "two"),
        ];
        assert_eq!(faults(text), Ok(wanted));
        let error = faults("one\n").unwrap_err();
        assert!(error.contains("regressions.txt:1"), "{error}");
        assert!(faults("a | | c\n").is_err());
    }

    #[test]
    fn committed_list_can_be_read_and_names_files_that_are_there() {
        let root = crate::repository();
        let text = fs::read_to_string(root.join(LIST)).unwrap();
        for fault in faults(&text).unwrap() {
            let file = root.join(format!("crates/hob/tests/{}.rs", fault.target));
            assert!(file.is_file(), "{}", fault.test());
        }
    }

    #[test]
    fn name_that_matches_nothing_is_no_success() {
        let ok = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed;\n";
        assert_eq!(outcome(true, ok), TestOutcome::Passes);
        let none = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 9 filtered out\n";
        assert_eq!(outcome(true, none), TestOutcome::Unknown);
        let bad = "running 1 test\ntest result: FAILED. 0 passed; 1 failed;\n";
        assert_eq!(outcome(false, bad), TestOutcome::Fails);
        let skipped = "running 1 test\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\n\
                       skipped: needs root\n\n\nsuccesses:\n    a\n\ntest result: ok. 1 passed;\n";
        assert_eq!(outcome(true, skipped), TestOutcome::Skipped);
    }

    #[test]
    fn table_ends_with_a_count() {
        let faults = faults("It breaks | h2 | one\nAgain | tls | two\n").unwrap();
        let outcomes = [
            (TestOutcome::Fails, TestOutcome::Passes),
            (TestOutcome::Passes, TestOutcome::Passes),
        ];
        assert_eq!(
            table(&faults, &outcomes),
            "| fault | test | before | now |\n| --- | --- | --- | --- |\n\
             | It breaks | `h2::one` | fails | passes |\n\
             | Again | `tls::two` | passes | passes |\n\
             \n1 failed before and pass now, 1 do not show that\n"
        );
    }
}
