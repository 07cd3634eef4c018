//! A server that runs: its ports, its supervisor, and what it has used.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hob_machine::Processes;
use hob_machine::process::threads;
use hob_machine::text::cpu_time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};
use serde::{Deserialize, Serialize};

use crate::account::{Account, ServerCgroup};
use crate::limits::{PRINTED_BYTES_MAX, RETRY_PAUSE, SETTLE_PERIOD, SETTLE_SHARE, START};
use crate::link::{ComparisonLink, FrameCounter, LinkSettings, LinkedMachine};
use crate::noise::RunQueueWaits;
use crate::onlooker::Onlookers;
use crate::server::{
    CONTROL, Door, Extra, Ground, Installed, OtherMachine, Ports, ServerTuning, Setup,
};
use crate::site::ComparisonSite;
use crate::supervisor::{ProgramCommand, SupervisorOrder};

/// What a server is started with, the same for all of a comparison.
pub(crate) struct LaunchContext<'a> {
    /// The program whose hidden command is the supervisor.
    pub(crate) program: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) site: &'a ComparisonSite,
    pub(crate) settings: ServerTuning,
    /// Where servers listen, where no link says it.
    pub(crate) address: Ipv4Addr,
    /// Of servers.
    pub(crate) cpu: usize,
    /// Of links, on which packets wait.
    pub(crate) link_cpu: usize,
    /// What client and servers are joined by, where that is not the loopback.
    pub(crate) link: Option<&'a ComparisonLink>,
    pub(crate) is_stopped: &'a AtomicBool,
    /// Control groups that were made, for whoever removes what is left.
    pub(crate) groups: &'a RefCell<Vec<ServerCgroup>>,
}

impl LaunchContext<'_> {
    /// Where servers listen.
    fn host(&self) -> Ipv4Addr {
        self.link.map_or(self.address, ComparisonLink::address)
    }

    /// Words before a command that is to run where servers do, with mounts of its own where it has
    /// some.
    fn enter(&self, setup: &Setup) -> Vec<String> {
        let enter = self.link.map(|link| link.servers().enter());
        let mut enter = enter.unwrap_or_default();
        if !setup.mounts.is_empty() {
            enter.extend(OWN_MOUNTS.map(str::to_owned));
        }
        enter
    }

    /// The machine of programs, where they are on another one that takes a while to reach.
    fn other_machine(&self, extra: Extra) -> Result<Option<LinkedMachine>, String> {
        let Extra::Away(Some(round_trip)) = extra else {
            return Ok(None);
        };
        let settings = LinkSettings {
            bits_per_second: None,
            round_trip,
        };
        let from = self.link.map(ComparisonLink::servers);
        LinkedMachine::make(settings, self.link_cpu, from).map(Some)
    }
}

/// A running server. When it is dropped, it ends with all that it started.
pub(crate) struct Instance {
    /// Where it listens.
    pub(crate) host: Ipv4Addr,
    pub(crate) ports: Ports,
    /// Where the files are that are asked for.
    pub(crate) root: PathBuf,
    /// The configuration as the report shows it.
    pub(crate) shown: String,
    pub(crate) account: Account,
    /// On which it runs.
    pub(crate) cpu: usize,
    /// Counts the frames of the link to the client, where there is one.
    pub(crate) frames: Option<Arc<FrameCounter>>,
    /// Gone before the server is.
    _onlookers: Onlookers,
    supervisor: Supervisor,
    /// There until what runs on it has ended.
    _machine: Option<LinkedMachine>,
    /// Sockets that hold the ports: nobody else gets them.
    _held: [OwnedFd; 3],
}

impl Instance {
    /// Starts a server and waits until it takes connections. The error says why it does not.
    pub(crate) fn start(
        place: &LaunchContext<'_>,
        server: &Installed,
        extra: Extra,
        name: &str,
    ) -> Result<Instance, String> {
        let folder = place.folder.join(name);
        let made = fs::create_dir(&folder);
        made.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let [(clear, held), (secure, held_too), (away, held_there)] = {
            let free = || free_port(place.address);
            [free()?, free()?, free()?]
        };
        let ports = Ports {
            clear,
            secure,
            away,
        };
        let machine = place.other_machine(extra)?;
        let other = OtherMachine::of(machine.as_ref());
        let host = place.host();
        let program = server.program.display().to_string();
        let front = server
            .front
            .as_ref()
            .map(|front| front.display().to_string());
        let setup = server.kind.setup(&Ground {
            program: &program,
            front: front.as_deref().unwrap_or_default(),
            folder: folder.clone(),
            site: place.site,
            host,
            ports,
            other: &other,
            settings: place.settings,
            extra,
            is_root: rustix::process::geteuid().is_root(),
        });
        write_setup(&setup, &folder)?;
        let shown = setup.shown();
        let account = Account::make(&format!("hob-compare-{}-{name}", std::process::id()));
        place.groups.borrow_mut().extend(account.group().cloned());
        let enter = place.enter(&setup);
        let order = SupervisorOrder {
            programs: setup.programs,
            mounts: setup.mounts,
            cpu: place.cpu,
            nice: 0,
            group: account.group().cloned(),
            folder,
            whole: place.folder.to_owned(),
        };
        let mut supervisor = Supervisor::start(enter, place.program, &order)?;
        let control = extra.is_looked_at().then_some(Door::Socket(CONTROL));
        let doors = std::iter::once(Door::Port(ports.clear)).chain(setup.doors);
        for door in doors.chain(control) {
            supervisor.wait_for(&door, host, &order, place.is_stopped)?;
        }
        let _onlookers = Onlookers::new(extra, &order.folder.join(CONTROL))?;
        let mut instance = Instance {
            host,
            ports,
            root: place.site.root.clone(),
            shown,
            account,
            cpu: place.cpu,
            frames: place.link.map(ComparisonLink::counter),
            _onlookers,
            supervisor,
            _machine: machine,
            _held: [held, held_too, held_there],
        };
        instance.settle(place.is_stopped)?;
        Ok(instance)
    }

    /// Waits until it has nothing more to do: some open their port first and then start
    /// interpreters, whose CPU time belongs to no request.
    fn settle(&mut self, is_stopped: &AtomicBool) -> Result<(), String> {
        let begun = Instant::now();
        let mut before = self.usage()?.counted_ns;
        while begun.elapsed() < START && !is_stopped.load(Ordering::Relaxed) {
            // Nothing is said while all is well: this is a wait with an early end.
            if self.supervisor.has_word(SETTLE_PERIOD) {
                return Ok(());
            }
            let now = self.usage()?.counted_ns;
            if now - before < SETTLE_PERIOD.as_nanos() as u64 / SETTLE_SHARE {
                return Ok(());
            }
            before = now;
        }
        Ok(())
    }

    /// How long each of its threads has waited for a CPU up to now.
    pub(crate) fn waits(&self) -> RunQueueWaits {
        let of_group = self.account.threads();
        RunQueueWaits::of(of_group.unwrap_or_else(|| {
            let below = Processes::now().below(self.supervisor.child.id());
            below.into_iter().flat_map(threads).collect()
        }))
    }

    /// CPU time of all its processes up to now.
    pub(crate) fn usage(&mut self) -> Result<Usage, String> {
        let counted = self.account.usage_ns();
        match counted.map_err(|error| format!("cannot read its CPU time: {error}"))? {
            Some(counted_ns) => Ok(Usage {
                counted_ns,
                left_over_ns: 0,
                machine: None,
            }),
            None => self.supervisor.usage(),
        }
    }
}

/// Words before a command that has a mount namespace of its own: what it mounts is seen by nobody
/// else, and gone with it.
const OWN_MOUNTS: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];

/// What a server finds in its folder. The error says what cannot be had here, or written.
fn write_setup(setup: &Setup, folder: &Path) -> Result<(), String> {
    let lack = setup.mounts.iter().find_map(|mount| mount.kind.lack());
    lack.map_or(Ok(()), Err)?;
    let write = || -> io::Result<()> {
        for name in &setup.folders {
            DirBuilder::new().mode(0o700).create(folder.join(name))?;
        }
        let mut files = setup.files.iter();
        files.try_for_each(|(name, text)| fs::write(folder.join(name), text))
    };
    write().map_err(|error| format!("cannot write into {}: {error}", folder.display()))
}

/// CPU time up to a moment, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    /// Of processes that are there, and of those that somebody has waited for.
    pub(crate) counted_ns: u64,
    /// What the CPU did besides, as far as nobody else is known to have done it.
    pub(crate) left_over_ns: i64,
    /// What the CPUs of the server's machine did up to then, where that is not this one.
    pub(crate) machine: Option<MachineTicks>,
}

/// Time of all CPUs of a machine, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MachineTicks {
    all: u64,
    /// Given to others by the host.
    stolen: u64,
}

impl Usage {
    /// Together with what the CPUs of this machine did.
    pub(crate) fn with_machine(self) -> Usage {
        let time = cpu_time(&hob_machine::read("/proc/stat"), "cpu");
        let machine = time.map(|time| MachineTicks {
            all: time.all,
            stolen: time.stolen,
        });
        Usage { machine, ..self }
    }

    /// How much of the CPU time of the server's machine its host has given to others since, in
    /// percent; 0 where that is this machine.
    pub(crate) fn steal_percent_since(&self, before: &Usage) -> f64 {
        let Some((now, before)) = self.machine.zip(before.machine) else {
            return 0.0;
        };
        let all = now.all.saturating_sub(before.all);
        let stolen = now.stolen.saturating_sub(before.stolen);
        match all {
            0 => 0.0,
            all => stolen as f64 * 100.0 / all as f64,
        }
    }
}

/// The process that holds the server; see [`crate::supervisor`].
struct Supervisor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Supervisor {
    /// Starts it, behind words that have a command run elsewhere.
    fn start(
        enter: Vec<String>,
        program: &Path,
        order: &SupervisorOrder,
    ) -> Result<Supervisor, String> {
        let mut words = enter.iter().map(OsStr::new).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg("compare-supervisor");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn();
        let mut child = child.map_err(|error| format!("cannot start its supervisor: {error}"))?;
        let input = child.stdin.take();
        let Some(output) = child.stdout.take() else {
            return Err("its supervisor has no output".to_owned());
        };
        let mut supervisor = Supervisor {
            child,
            input,
            output: BufReader::new(output),
        };
        supervisor.say(&order.text())?;
        match supervisor.hear()?.split_once(' ') {
            None => Ok(supervisor),
            Some((_, why)) => Err(why.to_owned()),
        }
    }

    /// Asks at a door until somebody is there, a program has ended, or the time is up.
    fn wait_for(
        &mut self,
        door: &Door,
        host: Ipv4Addr,
        order: &SupervisorOrder,
        is_stopped: &AtomicBool,
    ) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let is_open = match door {
                Door::Away(address) => self.reaches(address)?,
                door => is_open(door, host, &order.folder),
            };
            if is_open {
                return Ok(());
            }
            let printed = || printed(&order.folder, &order.programs);
            if self.has_word(RETRY_PAUSE) {
                let word = self.hear()?;
                let word = word.strip_prefix("ended ").unwrap_or(&word);
                return Err(format!("ended at once: {word}{}", printed()));
            }
            if is_stopped.load(Ordering::Relaxed) {
                return Err("was not waited for: interrupted".to_owned());
            }
            if begun.elapsed() > START {
                let seconds = START.as_secs();
                let door = match door {
                    Door::Port(port) => format!("port {port}"),
                    Door::Away(address) => address.to_string(),
                    Door::Socket(name) => (*name).to_owned(),
                };
                return Err(format!(
                    "took no connection on {door} within {seconds} s{}",
                    printed()
                ));
            }
        }
    }

    /// Does somebody take a connection at this address, coming from where the server is?
    fn reaches(&mut self, address: &SocketAddr) -> Result<bool, String> {
        self.say(&format!("reach {address}"))?;
        match self.hear()?.as_str() {
            "reached yes" => Ok(true),
            "reached no" => Ok(false),
            word => Err(match word.strip_prefix("ended ") {
                Some(word) => format!("ended at once: {word}"),
                None => format!("its supervisor says {word:?}"),
            }),
        }
    }

    fn usage(&mut self) -> Result<Usage, String> {
        self.say("usage")?;
        loop {
            let word = self.hear()?;
            match word.split_once(' ') {
                Some(("usage", usage)) => {
                    let read = || {
                        let (counted, left_over) = usage.split_once(' ')?;
                        Some(Usage {
                            counted_ns: counted.parse().ok()?,
                            left_over_ns: left_over.parse().ok()?,
                            machine: None,
                        })
                    };
                    return read().ok_or_else(|| format!("its supervisor says {word:?}"));
                }
                // Told again when the next request fails.
                Some(("ended", _)) => {}
                _ => return Err(format!("its supervisor says {word:?}")),
            }
        }
    }

    fn say(&mut self, line: &str) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("its supervisor is told to end")?;
        let said = input.write_all(format!("{line}\n").as_bytes());
        said.map_err(|error| format!("its supervisor does not listen: {error}"))
    }

    fn hear(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err("its supervisor has ended".to_owned()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(format!("its supervisor cannot be heard: {error}")),
        }
    }

    /// Is there a line, at the latest after this time?
    fn has_word(&self, limit: Duration) -> bool {
        if !self.output.buffer().is_empty() {
            return true;
        }
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        let output = self.output.get_ref().as_fd();
        let mut watched = [PollFd::new(&output, PollFlags::IN)];
        matches!(poll(&mut watched, Some(&limit)), Ok(1..))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.say("stop");
        self.input = None;
        // It ends once everything below it has.
        let _ = self.child.wait();
    }
}

/// Does somebody take a connection there?
fn is_open(door: &Door, host: Ipv4Addr, folder: &Path) -> bool {
    match door {
        Door::Port(port) => {
            let address = SocketAddr::from((host, *port));
            TcpStream::connect_timeout(&address, START).is_ok()
        }
        // The supervisor is asked: from where the client is, it need not be reached.
        Door::Away(_) => false,
        Door::Socket(name) => UnixStream::connect(folder.join(name)).is_ok(),
    }
}

/// The end of what the programs printed, and of their error logs.
fn printed(folder: &Path, programs: &[ProgramCommand]) -> String {
    let files = programs.iter().flat_map(|program| {
        ["out", "err"].map(|ending| folder.join(format!("{}.{ending}", program.name)))
    });
    let mut text = String::new();
    for file in files {
        let bytes = fs::read(file).unwrap_or_default();
        let from = bytes.len().saturating_sub(PRINTED_BYTES_MAX);
        let tail = String::from_utf8_lossy(&bytes[from..]);
        if !tail.trim().is_empty() {
            text = format!("{text}\n{}", tail.trim());
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("; it printed:{text}"),
    }
}

/// A port of an address of this machine that is free, and a socket that keeps it so: bound and not
/// listening, it lets a server that reuses addresses have the port, and nobody else by chance.
fn free_port(address: Ipv4Addr) -> Result<(u16, OwnedFd), String> {
    let find = || -> io::Result<(u16, OwnedFd)> {
        let held = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        sockopt::set_socket_reuseaddr(&held, true)?;
        rustix::io::fcntl_setfd(&held, rustix::io::FdFlags::CLOEXEC)?;
        bind(&held, &SocketAddr::from((address, 0)))?;
        let address: SocketAddr = getsockname(&held)?.try_into()?;
        Ok((address.port(), held))
    };
    find().map_err(|error| format!("cannot find a free port: {error}"))
}
