//! `dns-01` by a program of the operator's: it is called to set a record, and again to remove it.
//!
//! ```text
//! PROGRAM [ARGUMENTS] add    _acme-challenge.example.org VALUE
//! PROGRAM [ARGUMENTS] remove _acme-challenge.example.org VALUE
//! ```
//!
//! It has done its work when it ends with 0. What it prints on standard error is told when not.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::acme::trouble::one_line;

/// The program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its file.
    pub program: PathBuf,
    /// Arguments before those that say what to do.
    pub arguments: Vec<String>,
    /// It is killed after this.
    pub time_max: Duration,
}

/// What the program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Set the record, beside others of that name.
    Add,
    /// Take it away.
    Remove,
}

/// What is kept of what it prints, in bytes.
const PRINTED_BYTES_MAX: u64 = 4096;

impl Hook {
    /// Runs the program to its end.
    ///
    /// # Errors
    /// When it does not start, does not end in time, or ends with anything but 0: in words.
    pub async fn run(&self, action: Action, name: &str, value: &str) -> Result<(), String> {
        let word = match action {
            Action::Add => "add",
            Action::Remove => "remove",
        };
        let shown = format!("{} {word} {name}", self.program.display());
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args([word, name, value]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            format!("the program of `acme.dns` did not start: {shown}: {error}")
        })?;
        let mut printed = Vec::new();
        let stderr = child.stderr.take();
        let work = async {
            if let Some(mut stderr) = stderr {
                // What it prints beyond is taken as well, so that it does not wait for us.
                let _ = (&mut stderr)
                    .take(PRINTED_BYTES_MAX)
                    .read_to_end(&mut printed)
                    .await;
                let mut room = [0; 1024];
                while stderr.read(&mut room).await.is_ok_and(|count| count > 0) {}
            }
            child.wait().await
        };
        let ended = tokio::time::timeout(self.time_max, work).await;
        let reason = match ended {
            Ok(Ok(status)) if status.success() => return Ok(()),
            Ok(Ok(status)) => format!("ended with {status}"),
            Ok(Err(error)) => format!("was lost: {error}"),
            Err(_) => format!(
                "did not end within {} s (`timeout` of `acme.dns`)",
                self.time_max.as_secs()
            ),
        };
        let said = one_line(&String::from_utf8_lossy(&printed));
        let said = match said.is_empty() {
            true => String::new(),
            false => format!(": {said}"),
        };
        Err(format!("the program of `acme.dns` {reason}: {shown}{said}"))
    }
}
