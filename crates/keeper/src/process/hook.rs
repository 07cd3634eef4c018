//! The program that sets records for `dns-01`: called to set one, and again to remove it, by the
//! process that gets certificates and with its rights.
//!
//! ```text
//! PROGRAM [ARGUMENTS] add    _acme-challenge.example.org VALUE
//! PROGRAM [ARGUMENTS] remove _acme-challenge.example.org VALUE
//! ```
//!
//! It has done its work when it ends with 0. What it prints on standard error is told when not.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;

use hob_http::acme::one_line;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};

/// The program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hook {
    /// Its file.
    pub(crate) program: PathBuf,
    /// Arguments before those that say what to do.
    pub arguments: Vec<String>,
    /// It is killed after this.
    pub(crate) time_max: Duration,
}

/// What the program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Set the record, beside others of that name.
    Add,
    /// Take it away.
    Remove,
}

/// What is kept of what it prints, in bytes.
const PRINTED_BYTES_MAX: usize = 4096;
/// How long after its end what it printed is waited for: what it started may hold its end open.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Hook {
    /// Runs the program to its end. To be called within a `LocalSet`.
    ///
    /// # Errors
    /// When it does not start, does not end in time, or ends with anything but 0: in words.
    pub(crate) async fn run(&self, action: Action, name: &str, value: &str) -> Result<(), String> {
        let word = match action {
            Action::Add => "add",
            Action::Remove => "remove",
        };
        let shown = format!("{} {word} {name}", self.program.display());
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args([word, name, value]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().map_err(|error| {
            format!("the program of `acme.dns` did not start: {shown}: {error}")
        })?;
        let mut running = HookProcess(child);
        let printed = Rc::new(RefCell::new(Vec::new()));
        let stderr = running.0.stderr.take();
        let listening = tokio::task::spawn_local(listen(stderr, Rc::clone(&printed)));
        let ended = tokio::time::timeout(self.time_max, running.0.wait()).await;
        let reason = match ended {
            Ok(Ok(status)) if status.success() => return Ok(()),
            Ok(Ok(status)) => format!("ended with {status}"),
            Ok(Err(error)) => format!("was lost: {error}"),
            Err(_) => {
                let seconds = self.time_max.as_secs();
                format!("did not end within {seconds} s (`timeout` of `acme.dns`)")
            }
        };
        drop(running);
        // What is left unsaid then stays so.
        let _ = tokio::time::timeout(LAST_WORDS, listening).await;
        let said = one_line(&String::from_utf8_lossy(&printed.borrow()));
        let said = match said.is_empty() {
            true => String::new(),
            false => format!(": {said}"),
        };
        Err(format!("the program of `acme.dns` {reason}: {shown}{said}"))
    }
}

/// Takes what is printed, and keeps its begin.
async fn listen(stderr: Option<ChildStderr>, printed: Rc<RefCell<Vec<u8>>>) {
    let Some(mut stderr) = stderr else {
        return;
    };
    let mut room = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut room).await {
        let mut printed = printed.borrow_mut();
        let left = PRINTED_BYTES_MAX.saturating_sub(printed.len());
        printed.extend_from_slice(&room[..count.min(left)]);
    }
}

/// A program that does not outlive the interest in it, nor does what it started.
struct HookProcess(Child);

impl Drop for HookProcess {
    fn drop(&mut self) {
        // Without a number it has been waited for.
        let number = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = number.and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
