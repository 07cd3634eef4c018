//! System calls of a server for each request, counted by strace while it is asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::CostError;
use crate::limits::SETTLE_TIME_MAX;
use crate::private::{end, read_some};
use crate::stop::InterruptFlag;

/// How often each call is made, most first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Calls {
    pub(crate) total: f64,
    pub(crate) by_name: Vec<(String, f64)>,
}

/// A strace that counts.
pub(crate) struct Counting {
    child: Child,
    file: PathBuf,
}

impl Counting {
    /// Attaches to processes with all their threads; says why it cannot.
    pub(crate) fn start(
        strace: &Path,
        pids: &[u32],
        file: PathBuf,
        stop: &InterruptFlag,
    ) -> Result<Result<Counting, String>, CostError> {
        let mut command = Command::new(strace);
        command
            .arg("-c")
            .arg("-f")
            .arg("-U")
            .arg("calls,name")
            .arg("-o")
            .arg(&file);
        for pid in pids {
            command.arg("-p").arg(pid.to_string());
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ok(Err(format!("{}: {error}", strace.display()))),
        };
        let mut counting = Counting { child, file };
        let mut said = Vec::new();
        let begun = Instant::now();
        while !String::from_utf8_lossy(&said).contains(" attached") {
            stop.check()?;
            let is_over = read_some(counting.child.stderr.as_mut(), &mut said) == Some(0);
            if is_over || begun.elapsed() > SETTLE_TIME_MAX {
                let said = String::from_utf8_lossy(&said).trim().to_owned();
                return Ok(Err(format!(
                    "strace could not attach: {said} (it may as root, or with CAP_SYS_PTRACE)"
                )));
            }
        }
        Ok(Ok(counting))
    }

    /// Ends it and reads what was counted over so many requests.
    pub(crate) fn end(mut self, count: u64) -> Option<Calls> {
        let pid = Pid::from_raw(self.child.id() as i32)?;
        kill_process(pid, Signal::INT).ok()?;
        self.child.wait().ok()?;
        let calls = parse(&fs::read_to_string(&self.file).ok()?, count);
        let _ = fs::remove_file(&self.file);
        Some(calls)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Lines of a number and a name.
fn parse(text: &str, count: u64) -> Calls {
    let mut calls = Calls::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (number, name) = (words.next(), words.next());
        let number = number.and_then(|number| number.parse::<u64>().ok());
        if let (Some(number), Some(name)) = (number, name.filter(|name| *name != "total")) {
            let each = number as f64 / count.max(1) as f64;
            calls.total += each;
            calls.by_name.push((name.to_owned(), each));
        }
    }
    calls
        .by_name
        .sort_by(|one, other| other.1.total_cmp(&one.1));
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_table_of_strace() {
        let text = "    calls syscall\n--------- ----------------\n       20 read\n      100 \
                    epoll_wait\n--------- ----------------\n      120 total\n";
        let calls = parse(text, 20);
        assert_eq!(calls.total, 6.0);
        assert_eq!(calls.by_name[0], ("epoll_wait".to_owned(), 5.0));
        assert_eq!(calls.by_name.len(), 2);
        assert_eq!(parse("", 0), Calls::default());
    }

    #[test]
    fn strace_that_ends_before_it_is_attached_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("calls");
        // It knows these options too, and finds no file of the name that follows one of them.
        let other = Path::new("/bin/ls");
        let started = Counting::start(other, &[1], file, &InterruptFlag::never()).unwrap();
        let reason = started.err().unwrap();
        assert!(reason.starts_with("strace could not attach: "), "{reason}");
        assert!(reason.contains("calls,name") && reason.ends_with("CAP_SYS_PTRACE)"));
    }
}
