//! The process between a comparison and one server: it starts the server's programs, adopts what
//! they leave, and ends all of it when it is told to, or when the comparison is gone for whatever
//! reason (then it removes the folder too).
//!
//! It hears through standard input and tells through standard output, a line at a time:
//!
//! ```text
//! in   {"programs": [...], ...}   one line, what to start (see `SupervisorOrder`)
//!      usage                      asks for CPU time from /proc
//!      reach ADDRESS:PORT         asks whether somebody takes a connection there
//!      stop                       an orderly end: what follows is the end of the input
//! out  started                    all programs were started
//!      usage NANOSECONDS LEFT     of everything below the supervisor; what the CPU did besides
//!      reached yes                or no
//!      ended NAME HOW             a program ended by itself
//!      refused WHY                nothing was started
//! ```

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_child_subreaper,
    setpriority_process, setsid,
};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::{Value, json};

use crate::account::ServerCgroup;
use crate::fuse;
use crate::limits::{GRACE, REACH};
use crate::mounts::MountOrder;
use crate::stray::Strays;
use crate::tree;

/// How often orphans that ended are waited for, so that `/proc` counts them.
const REAP_PERIOD: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// One program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramCommand {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

/// What a supervisor starts, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SupervisorOrder {
    pub(crate) programs: Vec<ProgramCommand>,
    /// What is mounted before they are; then the supervisor has a mount namespace of its own.
    pub(crate) mounts: Vec<MountOrder>,
    pub(crate) cpu: usize,
    pub(crate) nice: i32,
    pub(crate) group: Option<ServerCgroup>,
    /// Where programs run and what they print is written, in `NAME.out`.
    pub(crate) folder: PathBuf,
    /// What is removed when the comparison is gone without a word.
    pub(crate) whole: PathBuf,
}

/// Runs a supervisor to its end. Standard input and output are the comparison's.
pub fn supervise() -> Result<(), String> {
    let mut input = BufReader::new(io::stdin());
    let mut first = String::new();
    input
        .read_line(&mut first)
        .map_err(|error| format!("cannot read what to start: {error}"))?;
    let order =
        SupervisorOrder::parse(&first).ok_or("standard input says nothing that can be started")?;
    // A terminal's Ctrl-C is for the comparison, which then says `stop`.
    let _ = setsid();
    let begun = set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("cannot become a subreaper: {error}"))
        .and_then(|()| begin(&order));
    let end = match begun {
        Ok(children) => {
            say("started");
            let end = watch(children, order.cpu, &mut input);
            tree::end_all_below();
            end
        }
        Err(text) => {
            tree::end_all_below();
            say(&format!("refused {text}"));
            wait_for_end(&mut input)
        }
    };
    order.mounts.iter().for_each(MountOrder::unmount);
    if let Some(group) = &order.group {
        group.remove();
    }
    if end == SupervisionEnd::Abandoned {
        // Other keepers of the same comparison do this too: the last one finds nobody writing.
        let _ = fs::remove_dir_all(&order.whole);
    }
    Ok(())
}

/// How it came to an end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SupervisionEnd {
    Asked,
    Abandoned,
}

/// A program that runs, and a descriptor that tells of its end.
struct SupervisedProgram {
    name: String,
    child: Child,
    pidfd: OwnedFd,
}

fn begin(order: &SupervisorOrder) -> Result<Vec<SupervisedProgram>, String> {
    if let Some(group) = &order.group {
        let entered = group.enter();
        entered.map_err(|error| format!("cannot enter {}: {error}", group.folder.display()))?;
    }
    let mut set = CpuSet::new();
    set.set(order.cpu);
    sched_setaffinity(None, &set)
        .map_err(|error| format!("cannot be bound to CPU {}: {error}", order.cpu))?;
    if order.nice != 0 {
        setpriority_process(None, order.nice)
            .map_err(|error| format!("cannot take nice level {}: {error}", order.nice))?;
    }
    let mut running = vec![];
    for order_of_mount in &order.mounts {
        if let Some(device) = order_of_mount.mount()? {
            let daemon = daemon(&order_of_mount.source);
            running.push(start(&daemon, &order.folder, device.into())?);
        }
    }
    for program in &order.programs {
        running.push(start(program, &order.folder, Stdio::null())?);
    }
    Ok(running)
}

/// This program, answering for a file system that passes everything on to a folder.
fn daemon(folder: &Path) -> ProgramCommand {
    let words = ["/proc/self/exe", "compare-fuse"].map(str::to_owned);
    ProgramCommand {
        name: "fuse".to_owned(),
        command: words
            .into_iter()
            .chain([folder.display().to_string()])
            .collect(),
        environment: vec![],
    }
}

/// Answers for a file system that passes everything on to a folder. Standard input is what the
/// kernel asks by.
pub fn serve_folder(folder: &Path) -> Result<(), String> {
    let answered = fuse::answer_for(folder, rustix::stdio::stdin());
    answered.map_err(|error| format!("standard input is no open /dev/fuse: {error}"))
}

fn start(
    program: &ProgramCommand,
    folder: &Path,
    input: Stdio,
) -> Result<SupervisedProgram, String> {
    let tell = |error: io::Error| format!("cannot start {}: {error}", program.command[0]);
    let output = File::create(folder.join(format!("{}.out", program.name))).map_err(tell)?;
    let errors = output.try_clone().map_err(tell)?;
    let mut command = Command::new(&program.command[0]);
    command.args(&program.command[1..]).current_dir(folder);
    command.envs(program.environment.iter().cloned());
    // What a service manager handed to the comparison is none of a server's business.
    for name in [
        "LISTEN_FDS",
        "LISTEN_PID",
        "LISTEN_FDNAMES",
        "NOTIFY_SOCKET",
    ] {
        command.env_remove(name);
    }
    command.stdin(input).stdout(output).stderr(errors);
    let child = command.spawn().map_err(tell)?;
    let pid = Pid::from_child(&child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| tell(error.into()))?;
    Ok(SupervisedProgram {
        name: program.name.clone(),
        child,
        pidfd,
    })
}

/// Answers until the input ends, then asks the programs to end.
fn watch(
    mut running: Vec<SupervisedProgram>,
    cpu: usize,
    input: &mut BufReader<io::Stdin>,
) -> SupervisionEnd {
    let own = std::process::id();
    let mut strays = Strays::new(cpu, own);
    let mut end = SupervisionEnd::Abandoned;
    loop {
        let mut ready = vec![false; running.len() + 1];
        {
            let stdin = input.get_ref().as_fd();
            let mut watched = vec![PollFd::new(&stdin, PollFlags::IN)];
            let ends = running.iter();
            watched.extend(ends.map(|program| PollFd::new(&program.pidfd, PollFlags::IN)));
            if poll(&mut watched, Some(&REAP_PERIOD)).is_ok() {
                for (ready, watched) in ready.iter_mut().zip(&watched) {
                    *ready = !watched.revents().is_empty();
                }
            }
        }
        for index in (0..running.len()).rev() {
            if ready[index + 1] {
                let mut ended = running.remove(index);
                let how = ended
                    .child
                    .wait()
                    .map_or_else(|error| error.to_string(), |status| status.to_string());
                say(&format!("ended {} {how}", ended.name));
            }
        }
        if !ready[0] {
            // Children of ours were waited for above: only orphans are left to reap.
            if !ready.contains(&true) {
                tree::reap();
            }
            continue;
        }
        match next_word(input).as_deref() {
            Some("usage") => {
                tree::reap();
                let used_ns = tree::below_cpu_ns(own);
                say(&format!("usage {used_ns} {}", strays.look(own, used_ns)));
            }
            Some("stop") => end = SupervisionEnd::Asked,
            Some(word) => {
                if let Some(address) = word.strip_prefix("reach ") {
                    say(&format!(
                        "reached {}",
                        if reaches(address) { "yes" } else { "no" }
                    ));
                }
            }
            None => break,
        }
    }
    ask_to_end(&running);
    end
}

/// Does somebody take a connection there?
fn reaches(address: &str) -> bool {
    let address = address.parse();
    address.is_ok_and(|address| TcpStream::connect_timeout(&address, REACH).is_ok())
}

fn wait_for_end(input: &mut BufReader<io::Stdin>) -> SupervisionEnd {
    let mut end = SupervisionEnd::Abandoned;
    while let Some(word) = next_word(input) {
        if word == "stop" {
            end = SupervisionEnd::Asked;
        }
    }
    end
}

/// The next line. Lines are short and written at once: none is in the buffer behind another.
fn next_word(input: &mut BufReader<io::Stdin>) -> Option<String> {
    let mut line = String::new();
    match input.by_ref().take(1024).read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}

/// SIGTERM, so that servers can remove what they made, and a while to do so.
fn ask_to_end(running: &[SupervisedProgram]) {
    for program in running {
        let _ = pidfd_send_signal(&program.pidfd, Signal::TERM);
    }
    let begun = Instant::now();
    for program in running {
        let left = GRACE.saturating_sub(begun.elapsed());
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut watched = [PollFd::new(&program.pidfd, PollFlags::IN)];
        let _ = poll(&mut watched, Some(&left));
    }
}

/// Tells the comparison; when that is gone, the input says so.
fn say(line: &str) {
    let mut output = io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

impl SupervisorOrder {
    pub(crate) fn text(&self) -> String {
        let programs = self.programs.iter().map(|program| {
            json!({
                "name": program.name,
                "command": program.command,
                "environment": program.environment,
            })
        });
        let group = self.group.as_ref();
        let group = group.map(|group| json!({ "folder": group.folder, "home": group.home }));
        json!({
            "programs": programs.collect::<Vec<_>>(),
            "mounts": self.mounts,
            "cpu": self.cpu,
            "nice": self.nice,
            "group": group,
            "folder": self.folder,
            "whole": self.whole,
        })
        .to_string()
    }

    pub(crate) fn parse(text: &str) -> Option<SupervisorOrder> {
        let value: Value = serde_json::from_str(text).ok()?;
        let texts = |value: &Value| -> Option<Vec<String>> {
            let all = value.as_array()?.iter();
            all.map(|text| Some(text.as_str()?.to_owned())).collect()
        };
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let program = |value: &Value| {
            let pairs = value["environment"].as_array()?.iter().map(texts);
            let environment = pairs.map(|pair| {
                let [name, value] = <[String; 2]>::try_from(pair?).ok()?;
                Some((name, value))
            });
            Some(ProgramCommand {
                name: value["name"].as_str()?.to_owned(),
                command: texts(&value["command"]).filter(|command| !command.is_empty())?,
                environment: environment.collect::<Option<_>>()?,
            })
        };
        let group = |value: &Value| {
            Some(ServerCgroup {
                folder: path(&value["folder"])?,
                home: path(&value["home"])?,
            })
        };
        Some(SupervisorOrder {
            programs: value["programs"]
                .as_array()?
                .iter()
                .map(program)
                .collect::<Option<_>>()?,
            mounts: serde_json::from_value(value["mounts"].clone()).ok()?,
            cpu: value["cpu"].as_u64()? as usize,
            nice: value["nice"].as_i64()? as i32,
            group: group(&value["group"]),
            folder: path(&value["folder"])?,
            whole: path(&value["whole"])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::FileSystem;

    #[test]
    fn order_survives_the_pipe() {
        let order = SupervisorOrder {
            programs: vec![ProgramCommand {
                name: "nginx".to_owned(),
                command: vec!["/usr/sbin/nginx".to_owned(), "-c".to_owned()],
                environment: vec![("HOME".to_owned(), "/tmp".to_owned())],
            }],
            mounts: vec![MountOrder {
                kind: FileSystem::Tmpfs,
                source: "/tmp/a/stored".into(),
                at: "/tmp/a/b/store".into(),
            }],
            cpu: 1,
            nice: -5,
            group: Some(ServerCgroup {
                folder: "/sys/a/b".into(),
                home: "/sys/a".into(),
            }),
            folder: "/tmp/a/b".into(),
            whole: "/tmp/a".into(),
        };
        assert_eq!(SupervisorOrder::parse(&order.text()), Some(order));
        assert_eq!(SupervisorOrder::parse("{}"), None);
        assert_eq!(SupervisorOrder::parse(""), None);
    }
}
