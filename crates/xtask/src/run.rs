//! Running other programs: shown while they run, kept in a log, ended when they take too long.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How long output is awaited after its program has ended, in case a grandchild holds the pipe.
const DRAIN: Duration = Duration::from_secs(2);

/// What became of a program.
pub(crate) struct Finished {
    /// It ended by itself, with exit code 0.
    pub(crate) is_success: bool,
    /// What it printed, both streams in the order they came.
    pub(crate) text: String,
}

/// Runs `command`, shows what it prints, and keeps that in `log`. After `limit` it is killed with
/// everything it started.
pub(crate) fn shown(
    command: &mut Command,
    log: &Path,
    limit: Duration,
) -> Result<Finished, String> {
    watched(command, log, limit, |line| print!("{line}"))
}

/// The same without showing anything.
pub(crate) fn unshown(
    command: &mut Command,
    log: &Path,
    limit: Duration,
) -> Result<Finished, String> {
    watched(command, log, limit, |_| {})
}

fn watched(
    command: &mut Command,
    log: &Path,
    limit: Duration,
    show: impl Fn(&str),
) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut log_file = create(log)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("starting {name}: {error}"))?;
    let (lines, from_child) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        read_lines(stdout, lines.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        read_lines(stderr, lines);
    }

    let deadline = Instant::now() + limit;
    let mut text = String::new();
    let mut keep = |line: &str| {
        show(line);
        text.push_str(line);
        // A log that cannot be written does not change what the program did.
        let _ = log_file.write_all(line.as_bytes());
    };
    let mut is_late = false;
    copy_until(&from_child, deadline, &mut keep);
    let status = loop {
        if let Some(status) = child
            .try_wait()
            .map_err(|error| format!("{name}: {error}"))?
        {
            break status;
        }
        if Instant::now() >= deadline && !is_late {
            is_late = true;
            keep(&format!(
                "{name}: ended after {} seconds\n",
                limit.as_secs()
            ));
            kill_with_descendants(child.id());
        }
        thread::sleep(Duration::from_millis(20));
    };
    copy_until(&from_child, Instant::now() + DRAIN, &mut keep);
    Ok(Finished {
        is_success: status.success() && !is_late,
        text,
    })
}

/// Runs `command` silently and gives what it printed to standard output.
pub(crate) fn captured(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("starting {name}: {error}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!(
            "{name} ended with {}: {}",
            output.status,
            reason.trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Does this command run and succeed?
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Sends a signal to one process that we started.
pub(crate) fn signal(name: &str, pid: u32) {
    succeeds(Command::new("sh").args([
        "-c",
        "kill -s \"$1\" \"$2\"",
        "sh",
        name,
        &pid.to_string(),
    ]));
}

/// The `cargo` that runs us.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What `cargo` is told to build programs and libraries as `cargo test --workspace` has them: with
/// the features that tests want too. Other words would have it build libhob anew, back and forth,
/// while tests of another lane link with it.
pub(crate) const BUILD: &[&str] = &[
    "build",
    "--workspace",
    "--locked",
    "--lib",
    "--bins",
    "--example",
    "over",
];

/// Builds all programs and libraries of the workspace.
pub(crate) fn build(root: &Path) -> Result<(), String> {
    match succeeds(cargo().args(BUILD).arg("--quiet").current_dir(root)) {
        true => Ok(()),
        false => Err(format!(
            "`cargo {}` says why nothing can be done",
            BUILD.join(" ")
        )),
    }
}

/// A program that was built beside this one.
pub(crate) fn built(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("finding xtask itself: {error}"))?;
    let path = own.with_file_name(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is not built", path.display()))
    }
}

/// Writes a file, with the folders above it.
pub(crate) fn create(path: &Path) -> Result<File, String> {
    let named = |error: io::Error| format!("writing {}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(named)?;
    }
    File::create(path).map_err(named)
}

/// A folder of our own below the system's temporary one, gone with this value.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Result<Scratch, String> {
        let folder = std::env::temp_dir().join(format!("hob-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in the temporary folder, where the system clears up.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read_lines(from: impl Read + Send + 'static, to: Sender<String>) {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from
            .read_until(b'\n', &mut line)
            .is_ok_and(|count| count > 0)
        {
            if to
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
            line.clear();
        }
    });
}

/// Gives each line to `keep` until both streams are closed or it is time.
fn copy_until(lines: &Receiver<String>, deadline: Instant, keep: &mut impl FnMut(&str)) {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => keep(&line),
            Err(_) => return,
        }
    }
}

fn kill_with_descendants(pid: u32) {
    let parents = parents_of_all();
    let mut family = vec![pid];
    let mut at = 0;
    while at < family.len() {
        let parent = family[at];
        family.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(child, _)| *child),
        );
        at += 1;
    }
    for member in family {
        signal("KILL", member);
    }
}

/// Every process with its parent, from `/proc`.
fn parents_of_all() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let with_parent = pids.filter_map(|pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; after it come state and parent.
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        Some((pid, parent))
    });
    with_parent.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_kept_in_the_log() {
        let scratch = Scratch::new("run-log").unwrap();
        let log = scratch.0.join("below/log");
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; printf end"]);
        let finished = shown(&mut command, &log, Duration::from_secs(60)).unwrap();
        assert!(finished.is_success);
        let mut lines: Vec<&str> = finished.text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.concat().len(), "outerrend".len());
        assert_eq!(fs::read_to_string(&log).unwrap(), finished.text);
    }

    #[test]
    fn program_that_takes_too_long_is_ended_with_its_children() {
        let scratch = Scratch::new("run-late").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & wait"]);
        let log = scratch.0.join("log");
        let finished = shown(&mut command, &log, Duration::from_millis(200)).unwrap();
        assert!(!finished.is_success);
        assert!(finished.text.contains("ended after"), "{}", finished.text);
    }

    #[test]
    fn failure_is_told_with_what_was_said() {
        let error = captured(Command::new("sh").args(["-c", "echo no >&2; exit 3"])).unwrap_err();
        assert!(
            error.contains("exit status: 3") && error.ends_with("no"),
            "{error}"
        );
    }
}
