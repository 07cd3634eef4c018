//! A hob of our own: started in a temporary folder that nobody else can list, on loopback ports
//! that the kernel picks, and ended with everything it started when it is dropped. Should we die
//! without that, it is sent SIGTERM by the kernel.

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use tempfile::TempDir;

use crate::error::CostError;
use crate::limits::{LOOK_PERIOD, MESSAGE_BYTES_MAX, SERVER_TIME_MAX, SETTLE_TIME_MAX};
use crate::processes::Family;
use crate::stop::InterruptFlag;

/// Looks in which nothing changes, after which nothing runs any more.
const RESTING_LOOKS: u32 = 3;
/// The account of programs where this runs as root: that of nobody, by number.
pub(crate) const NOBODY: u32 = 65534;

/// A temporary folder; it goes when it is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
}

impl TemporaryFolder {
    /// Makes one that only this user can enter. Where this is root, the accounts of the server and
    /// of programs can enter what is in it, but list nothing.
    pub(crate) fn new() -> Result<TemporaryFolder, CostError> {
        let failed = |error| CostError::system("cannot make a temporary folder")(error);
        let folder = tempfile::Builder::new()
            .prefix("hob-cost-")
            .permissions(Permissions::from_mode(if is_root() {
                0o711
            } else {
                0o700
            }))
            .tempdir()
            .map_err(failed)?;
        for (name, mode) in [("run", 0o700), ("site", 0o755), ("programs", 0o755)] {
            let path = folder.path().join(name);
            fs::create_dir(&path).map_err(failed)?;
            fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(failed)?;
        }
        Ok(TemporaryFolder { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a program.
    pub(crate) fn program(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, CostError> {
        let path = self.path("programs").join(name);
        let failed = || CostError::system(format!("cannot write {}", path.display()));
        fs::write(&path, bytes).map_err(failed())?;
        fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(failed())?;
        Ok(path)
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A running hob.
#[derive(Debug)]
pub(crate) struct Private {
    child: Child,
    pub(crate) family: Family,
    pub(crate) control: PathBuf,
    /// Ports of its listeners, in the order of the config.
    pub(crate) ports: Vec<u16>,
}

impl Private {
    /// Starts it with a config that has so many listeners, and waits until all listen.
    pub(crate) fn start(
        program: &Path,
        folder: &TemporaryFolder,
        config: &str,
        listeners: usize,
        stop: &InterruptFlag,
    ) -> Result<Private, CostError> {
        let file = folder.path("run/hob.toml");
        let messages = folder.path("run/messages");
        let control = folder.path("run/control");
        fs::write(&file, config).map_err(CostError::system("cannot write a config"))?;
        let failed = || CostError::system("cannot start a hob to measure with");
        let stderr = File::create(&messages).map_err(failed())?;
        let mut command = Command::new(program);
        command
            .arg("cost-serve")
            .arg(std::process::id().to_string())
            .arg(&file)
            .arg(&control)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr);
        for variable in [
            "NOTIFY_SOCKET",
            "LISTEN_PID",
            "LISTEN_FDS",
            "LISTEN_FDNAMES",
        ] {
            command.env_remove(variable);
        }
        // Its ends are told apart from ours: Ctrl-C on a terminal is for this process alone.
        command.env("HOB_LOG", "warn").process_group(0);
        let mut starting = Starting {
            child: command.spawn().map_err(failed())?,
            messages,
        };
        let ports = starting.listeners(listeners, stop)?;
        let family = Family::find(starting.child.id())
            .ok_or_else(|| starting.failed("its server process is not there"))?;
        let Starting { child, .. } = starting;
        Ok(Private {
            child,
            family,
            control,
            ports,
        })
    }

    /// The address of a listener.
    pub(crate) fn url(&self, listener: usize, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports[listener])
    }

    /// The same, over TLS.
    pub(crate) fn secure_url(&self, listener: usize, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.ports[listener])
    }

    /// How many processes of programs there are when none runs for a request: waits until their
    /// number has stayed the same.
    pub(crate) fn resting_programs(&self) -> usize {
        let begun = Instant::now();
        let mut known = self.family.program_count();
        let mut same = 0;
        while same < RESTING_LOOKS && begun.elapsed() < SETTLE_TIME_MAX {
            std::thread::sleep(LOOK_PERIOD);
            let now = self.family.program_count();
            same = if now == known { same + 1 } else { 0 };
            known = now;
        }
        known
    }

    /// Waits until no more than so many processes of programs are left: what answered has ended.
    pub(crate) fn settle(&self, programs: usize) {
        let begun = Instant::now();
        while self.family.program_count() > programs && begun.elapsed() < SETTLE_TIME_MAX {
            std::thread::sleep(LOOK_PERIOD);
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A hob that may still fail to start.
struct Starting {
    child: Child,
    messages: PathBuf,
}

impl Starting {
    /// The ports in what it prints.
    fn listeners(&mut self, count: usize, stop: &InterruptFlag) -> Result<Vec<u16>, CostError> {
        let mut text = Vec::new();
        let begun = Instant::now();
        loop {
            let ports = ports(&String::from_utf8_lossy(&text));
            if ports.len() >= count {
                return Ok(ports);
            }
            if stop.is_set() {
                end(&mut self.child);
                return Err(CostError::Interrupted);
            }
            if begun.elapsed() > SERVER_TIME_MAX {
                return Err(self.failed("it was not ready in time"));
            }
            if read_some(self.child.stdout.as_mut(), &mut text) == Some(0) {
                return Err(self.failed("it ended"));
            }
        }
    }

    fn failed(&mut self, what: &str) -> CostError {
        end(&mut self.child);
        let said = said(&self.messages);
        CostError::Server(format!("the hob to measure with: {what}: {said}"))
    }
}

/// Reads what there is within a tenth of a second; nothing when there is nothing yet.
pub(crate) fn read_some(
    from: Option<&mut (impl Read + std::os::fd::AsFd)>,
    to: &mut Vec<u8>,
) -> Option<usize> {
    let from = from?;
    let tenth = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    let ready = poll(&mut [PollFd::new(&*from, PollFlags::IN)], Some(&tenth)).ok()?;
    if ready == 0 {
        return None;
    }
    let mut piece = [0; 64 * 1024];
    let count = from.read(&mut piece).ok()?;
    to.extend_from_slice(&piece[..count]);
    Some(count)
}

fn ports(text: &str) -> Vec<u16> {
    let lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let port = |line: &str| {
        let address = line
            .strip_prefix("listening on ")?
            .split_whitespace()
            .next()?;
        address
            .rsplit(':')
            .next()?
            .trim_end_matches('/')
            .parse()
            .ok()
    };
    lines.filter_map(port).collect()
}

fn said(messages: &Path) -> String {
    let text = fs::read_to_string(messages).unwrap_or_default();
    let text = text.trim();
    let mut begin = text.len().saturating_sub(MESSAGE_BYTES_MAX);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    text[begin..].to_owned()
}

/// Asks a process to end, waits, and makes it.
pub(crate) fn end(child: &mut Child) {
    if let Some(pid) = Pid::from_raw(child.id() as i32)
        && matches!(child.try_wait(), Ok(None))
    {
        let _ = kill_process(pid, Signal::TERM);
    }
    let begun = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if begun.elapsed() > SETTLE_TIME_MAX {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(LOOK_PERIOD);
    }
}

/// The hidden command `cost-serve`: becomes `hob serve`, which ends when its parent does.
/// Returns only what went wrong.
pub fn serve(program: &Path, parent: u32, config: &Path, control: &Path) -> CostError {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        return CostError::system("cannot ask for a signal")(error.into());
    }
    // It may have died before that.
    if getppid().map(|pid| pid.as_raw_nonzero().get() as u32) != Some(parent) {
        return CostError::Interrupted;
    }
    let mut command = Command::new(program);
    command.arg("serve").arg("--config").arg(config);
    command.arg("--unlisted").arg("--control").arg(control);
    CostError::system("cannot start hob serve")(command.exec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_whole_lines() {
        let text = "listening on http://127.0.0.1:42765\nlistening on https://127.0.0.1:5/ (h2)\n";
        assert_eq!(ports(text), [42765, 5]);
        assert_eq!(ports("listening on http://127.0.0.1:427"), [0u16; 0]);
    }

    #[test]
    fn folder_is_closed_to_others_and_goes() {
        let folder = TemporaryFolder::new().unwrap();
        let path = folder.path("");
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if is_root() { 0o711 } else { 0o700 });
        folder.program("a", b"x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
