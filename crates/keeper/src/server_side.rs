//! The server process's side of the channel: it is given what it serves, drops its privileges, and
//! hears and says everything else through one descriptor to poll and a handful of calls.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use hob_http::acme::{CHALLENGES_MAX, Challenge};
use hob_http::thread::Crew;
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::net::{SocketType, sockopt};
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_setaffinity};
use signal_hook::consts::SIGTERM;

use super::channel::{
    ChannelEnd, KEPT_BANS, Outfit, Resets, ToKeeper, ToServer, VisitSockets, Wish,
};
use super::key_files::KeyFiles;
use super::papers::{KeeperFacts, Papers};
use super::parcel::NotReceived;
use super::signals::{self, RegisteredSignals};
use super::wire::WireReader;
use super::{KeeperFailure, exec, localhost, memory, privileges};
use crate::acme::message::take_challenge;
use crate::acme::{CertificateState, state};
use hob_config::{Config, ConfigSources, Handlers, TrustedDisk, Warnings, load_with};

/// Everything that one generation of the config is served with.
#[derive(Debug)]
pub struct Generation<H: Handlers> {
    /// Counts loads, from 1.
    pub number: u64,
    /// The config.
    pub config: Arc<Config<H>>,
    /// What is allowed and probably not meant.
    pub warnings: Warnings,
    /// What the config was made from.
    pub sources: ConfigSources,
    /// Listening sockets, by index of `Config::listeners`. A listener that stays has the same
    /// socket under another number.
    pub listeners: Vec<OwnedFd>,
    /// Sockets for HTTP/3, by index of `Config::listeners`: a relay's two ends and those for UDP.
    pub datagrams: Vec<Vec<OwnedFd>>,
    /// Open log files, by index of `Config::logs`; none for a log to standard output.
    pub logs: Vec<Option<OwnedFd>>,
    /// The file in which the history outlives the server.
    pub history_file: Option<OwnedFd>,
    /// The file in which activity does.
    pub activity_file: Option<OwnedFd>,
    /// The file of sites that are down for maintenance.
    pub maintenance_file: Option<OwnedFd>,
    /// The file of clients that are banned.
    pub bans_file: Option<OwnedFd>,
    /// Certificates and private keys.
    pub keys: KeyFiles,
    /// Proofs that are answered from the first request on.
    pub challenges: Vec<Challenge>,
    /// The listening control socket.
    pub control: Option<OwnedFd>,
    /// What only the keeper knows.
    pub facts: KeeperFacts,
    /// Of the first generation: how connections end that an earlier server had.
    pub(crate) resets: Option<Resets>,
    /// Likewise: where this server is asked for its visits, and where it asks.
    pub visits: VisitSockets,
}

impl<H: Handlers> Generation<H> {
    /// Tells threads that have not begun which server they are of, and which others there are.
    pub fn tell(&self, crew: &Crew) {
        crew.set_generation(self.facts.servers_started);
        if let Some(resets) = &self.resets {
            crew.set_resets(resets.secret.clone(), &resets.living);
        }
    }
}

/// What a server is told.
#[derive(Debug)]
pub enum KeeperEvent<H: Handlers> {
    /// Serve this from now on, then say `reloaded` or `reload_failed`.
    Reload(Box<Generation<H>>),
    /// Take no more connections, finish what there is, say `drained`, and end.
    Drain {
        /// After this, what is unfinished is cut off. A second drain may be shorter.
        deadline: Duration,
        /// Idle connections may stay this long, because a request may be on its way. Zero where no
        /// other server takes over.
        grace: Duration,
    },
    /// A log was opened again; write to this file from now on.
    LogFile {
        /// Index in `Config::logs`.
        index: usize,
        /// The file.
        file: OwnedFd,
    },
    /// The answer to an `ask`.
    Answer {
        /// What `ask` returned.
        request: u64,
        /// Whether it was done.
        is_ok: bool,
        /// What happened, or why not.
        text: String,
    },
    /// Programs are started over this end from now on.
    Spawner {
        /// Process id of the spawner.
        pid: u32,
        /// The server's own end to it.
        end: OwnedFd,
    },
    /// Something the operator should know has come up.
    Note {
        /// One sentence.
        text: String,
    },
    /// Certificates have changed; serve with these from now on.
    Keys(KeyFiles),
    /// Answer these proofs from now on, then say `challenged`.
    Challenges {
        /// What to say.
        number: u64,
        /// All of them.
        challenges: Vec<Challenge>,
    },
    /// How it stands with certificates that come from an authority.
    Certificates(Vec<CertificateState>),
    /// Which other servers live, by the last eight bits of their numbers.
    Servers(Vec<u8>),
    /// Nobody holds the sockets any more: drain quickly and end.
    KeeperGone,
}

/// The server's life as far as the keeper has a part in it.
pub struct ServerLife<H: Handlers> {
    /// The channel to the keeper.
    end: ChannelEnd,
    /// Those it handles: SIGTERM drains it, others are swallowed.
    signals: RegisteredSignals,
    /// Watches the channel and the signals, so that there is one descriptor to poll.
    watch: OwnedFd,
    /// Something waits for room in the channel, and `watch` tells when there is some.
    is_watching_output: bool,
    /// The channel has ended: the server drains.
    is_keeper_gone: bool,
    /// A message waits until there are descriptors for it.
    lacks_room: bool,
    /// Reloads that came before the start was finished, and the like.
    events: VecDeque<KeeperEvent<H>>,
    /// How long answers under way may take, by the config in force.
    drain: Duration,
    /// The number of the last wish to the keeper.
    last_request: u64,
}

impl<H: Handlers> ServerLife<H> {
    /// Takes the channel from standard input, where the keeper put it.
    ///
    /// # Errors
    /// When this process was not started by a keeper.
    pub fn from_stdin() -> Result<ServerLife<H>, KeeperFailure> {
        let is_channel = sockopt::socket_type(io::stdin()) == Ok(SocketType::SEQPACKET);
        if !is_channel {
            return Err(KeeperFailure::System(
                "a server is started by `hob serve`, not by hand".to_owned(),
            ));
        }
        // Executed by way of /proc/self/exe, which would make it `exe` in every list of processes.
        let _ = rustix::thread::set_name(c"hob-server");
        let life = exec::take_stdin().and_then(ServerLife::from_channel);
        life.map_err(|error| {
            KeeperFailure::System(format!("cannot use the keeper's channel: {error}"))
        })
    }

    /// Takes the server's end of a channel, and from now on handles or swallows the signals that
    /// reach a server.
    pub fn from_channel(channel: OwnedFd) -> io::Result<ServerLife<H>> {
        let signals = RegisteredSignals::register(signals::OF_SERVER)?;
        let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(0);
        epoll::add(&watch, signals.as_fd(), data, epoll::EventFlags::IN)?;
        epoll::add(&watch, &channel, data, epoll::EventFlags::IN)?;
        Ok(ServerLife {
            end: ChannelEnd::of_server(channel),
            signals,
            watch,
            is_watching_output: false,
            is_keeper_gone: false,
            lacks_room: false,
            events: VecDeque::new(),
            drain: Duration::ZERO,
            last_request: 0,
        })
    }

    /// Waits for what to serve, drops privileges, loads the config, in this order. To be called
    /// once, while the process has one thread. The keeper hears of a failure.
    pub fn start(&mut self) -> Result<Generation<H>, KeeperFailure> {
        let result = self.try_start();
        if let Err(failure) = &result {
            self.start_failed(&failure.to_string());
        }
        result
    }

    fn try_start(&mut self) -> Result<Generation<H>, KeeperFailure> {
        let (outfit, resets, visits) = self.wait_for_start()?;
        let papers = Papers::from_memory(outfit.papers.as_fd())
            .map_err(|error| KeeperFailure::System(format!("cannot read the papers: {error}")))?;
        take_place(&papers).map_err(KeeperFailure::Config)?;
        let dropped = match &papers.identity {
            Some(identity) => privileges::become_identity(identity),
            None => privileges::close_the_door(),
        };
        dropped
            .map_err(|error| KeeperFailure::System(format!("cannot drop privileges: {error}")))?;
        let mut generation = generation(outfit, papers)?;
        generation.resets = Some(resets);
        generation.visits = visits;
        self.drain = generation.config.drain;
        Ok(generation)
    }

    fn wait_for_start(&mut self) -> Result<(Outfit, Resets, VisitSockets), KeeperFailure> {
        loop {
            match self.end.receive().map(ToServer::decode) {
                Ok(Ok(ToServer::Start(outfit, resets, visits))) => {
                    return Ok((outfit, resets, visits));
                }
                Ok(Ok(other)) => {
                    return Err(KeeperFailure::System(format!(
                        "expected a start, got {other:?}"
                    )));
                }
                Ok(Err(malformed)) => return Err(KeeperFailure::System(malformed.to_string())),
                Err(NotReceived::Nothing) => {
                    // No deadline: the keeper has one and ends us.
                    let mut polled = [PollFd::from_borrowed_fd(self.end.socket(), PollFlags::IN)];
                    let _ = poll(&mut polled, None);
                }
                Err(reason) => {
                    return Err(KeeperFailure::System(format!(
                        "no start from the keeper: {reason:?}"
                    )));
                }
            }
        }
    }

    /// Readable when `next` may have an event. Works level-triggered and, when `next` is called
    /// until it has nothing more, edge-triggered.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// A message waits for descriptors, which nobody tells of: `next` is to be called now and then,
    /// and `fd` not to be waited for meanwhile.
    pub fn lacks_room(&self) -> bool {
        self.lacks_room
    }

    /// The next event, if there is one. Never waits.
    #[allow(clippy::should_implement_trait)] // It ends and begins again; it is no iterator.
    pub fn next(&mut self) -> Option<KeeperEvent<H>> {
        if self.signals.take().contains(&SIGTERM) {
            self.say(ToKeeper::Leaving);
            let deadline = self.drain;
            self.events.push_back(KeeperEvent::Drain {
                deadline,
                grace: Duration::ZERO,
            });
        }
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if self.is_keeper_gone {
            return None;
        }
        let _ = self.end.flush();
        self.watch_output();
        loop {
            match self.end.receive().map(ToServer::decode) {
                Ok(Ok(message)) => {
                    self.lacks_room = false;
                    if let Some(event) = self.event(message) {
                        return Some(event);
                    }
                }
                Err(NotReceived::Nothing) => return None,
                Err(NotReceived::NoRoom) => {
                    if !std::mem::replace(&mut self.lacks_room, true) {
                        tracing::warn!(
                            "out of descriptors, a message of the keeper waits (LimitNOFILE= of a \
                             service, `ulimit -Hn`)"
                        );
                    }
                    return None;
                }
                Ok(Err(malformed)) | Err(NotReceived::Malformed(malformed)) => {
                    tracing::error!(%malformed, "the keeper's message makes no sense");
                    return Some(self.lose_keeper());
                }
                Err(NotReceived::Gone) => return Some(self.lose_keeper()),
            }
        }
    }

    fn lose_keeper(&mut self) -> KeeperEvent<H> {
        self.is_keeper_gone = true;
        let _ = epoll::delete(&self.watch, self.end.socket());
        KeeperEvent::KeeperGone
    }

    fn event(&mut self, message: ToServer) -> Option<KeeperEvent<H>> {
        match message {
            ToServer::Start(..) => {
                tracing::error!("a second start from the keeper");
                None
            }
            ToServer::Reload(outfit) => self.reload(outfit),
            ToServer::Drain { deadline, grace } => Some(KeeperEvent::Drain { deadline, grace }),
            ToServer::LogFile { index, file } => Some(KeeperEvent::LogFile {
                index: usize::from(index),
                file,
            }),
            ToServer::Answer {
                request,
                is_ok,
                text,
            } => Some(KeeperEvent::Answer {
                request,
                is_ok,
                text,
            }),
            ToServer::Servers { living } => Some(KeeperEvent::Servers(living)),
            ToServer::Spawner { pid, end } => Some(KeeperEvent::Spawner { pid, end }),
            ToServer::Note { text } => Some(KeeperEvent::Note { text }),
            ToServer::Keys { memory } => match KeyFiles::from_memory(memory.as_fd()) {
                Ok(keys) => Some(KeeperEvent::Keys(keys)),
                Err(error) => {
                    tracing::error!(%error, "changed certificates could not be read");
                    None
                }
            },
            ToServer::Challenges { number, memory } => match read_challenges(&memory) {
                Ok(challenges) => Some(KeeperEvent::Challenges { number, challenges }),
                Err(error) => {
                    tracing::error!(%error, "challenges could not be read");
                    None
                }
            },
            ToServer::Certificates { memory } => match state::from_memory(memory.as_fd()) {
                Ok(states) => Some(KeeperEvent::Certificates(states)),
                Err(error) => {
                    tracing::error!(%error, "states of certificates could not be read");
                    None
                }
            },
        }
    }

    fn reload(&mut self, outfit: Outfit) -> Option<KeeperEvent<H>> {
        let papers = Papers::from_memory(outfit.papers.as_fd());
        let papers = papers.map_err(|error| KeeperFailure::System(error.to_string()));
        match papers.and_then(|papers| generation(outfit, papers)) {
            Ok(generation) => {
                self.drain = generation.config.drain;
                Some(KeeperEvent::Reload(Box::new(generation)))
            }
            Err(failure) => {
                self.reload_failed(&failure.to_string());
                None
            }
        }
    }

    /// Everything listens and is loaded.
    pub fn ready(&mut self) {
        self.say(ToKeeper::Ready);
    }

    /// It cannot start; the process should end with an error.
    pub fn start_failed(&mut self, text: &str) {
        self.say(ToKeeper::StartFailed {
            text: text.to_owned(),
        });
    }

    /// The generation with this number is served.
    pub fn reloaded(&mut self, number: u64) {
        self.say(ToKeeper::Reloaded { generation: number });
    }

    /// The last generation cannot be served; the one before still is.
    pub fn reload_failed(&mut self, text: &str) {
        self.say(ToKeeper::ReloadFailed {
            text: text.to_owned(),
        });
    }

    /// Asks the keeper for something on behalf of the control socket. An `Answer` with the
    /// returned number comes, unless the keeper goes.
    pub fn ask(&mut self, wish: Wish) -> u64 {
        self.last_request += 1;
        self.say(ToKeeper::Ask {
            wish,
            request: self.last_request,
        });
        self.last_request
    }

    /// A log has reached its limit; a `LogFile` comes.
    pub fn rotate(&mut self, index: usize) {
        if let Ok(index) = u16::try_from(index) {
            self.say(ToKeeper::Rotate { index });
        }
    }

    /// The proofs of this number are answered.
    pub fn challenged(&mut self, number: u64) {
        self.say(ToKeeper::Challenged { number });
    }

    /// Nothing is left to finish; the process ends.
    pub fn drained(&mut self) {
        self.say(ToKeeper::Drained);
    }

    fn say(&mut self, message: ToKeeper) {
        // A keeper that is gone shows when the channel is read; one that takes nothing for that
        // long is as good as gone.
        if let Err(reason) = self.end.send(message.encode()) {
            tracing::warn!(?reason, "message to the keeper lost");
        }
        self.watch_output();
    }

    /// Wakes up for room in the channel only while something waits for it.
    fn watch_output(&mut self) {
        let is_waiting = self.end.has_waiting();
        if is_waiting == self.is_watching_output || self.is_keeper_gone {
            return;
        }
        let mut events = epoll::EventFlags::IN;
        events.set(epoll::EventFlags::OUT, is_waiting);
        let data = epoll::EventData::new_u64(0);
        if epoll::modify(&self.watch, self.end.socket(), data, events).is_ok() {
            self.is_watching_output = is_waiting;
        }
    }
}

fn read_challenges(memory: &OwnedFd) -> io::Result<Vec<Challenge>> {
    let bytes = memory::read(memory.as_fd())?;
    let mut reader = WireReader::new(&bytes, "challenges");
    let count = reader.count(CHALLENGES_MAX).map_err(io::Error::other)?;
    let all = (0..count).map(|_| take_challenge(&mut reader).map_err(io::Error::other));
    let all = all.collect::<io::Result<_>>()?;
    reader.end().map_err(io::Error::other)?;
    Ok(all)
}

/// Nice level and CPUs, while the privileges for them are there.
fn take_place(papers: &Papers) -> Result<(), String> {
    if papers.nice != 0 {
        setpriority_process(None, papers.nice).map_err(|errno| {
            format!(
                "cannot set nice = {}: {errno}; below 0 needs root",
                papers.nice
            )
        })?;
    }
    if papers.cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in &papers.cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(format!("cpus: there is no CPU {cpu}"));
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set)
        .map_err(|errno| format!("cannot run on cpus {:?}: {errno}", papers.cpus))
}

fn generation<H: Handlers>(outfit: Outfit, papers: Papers) -> Result<Generation<H>, KeeperFailure> {
    let sources = ConfigSources::decode(&papers.sources)
        .ok_or_else(|| KeeperFailure::System("malformed sources from the keeper".to_owned()))?;
    // The keeper looked at the disk, with rights that may be gone here.
    let (mut config, warnings) = load_with(&sources, &TrustedDisk)
        .map_err(|errors| KeeperFailure::Config(errors.to_string()))?;
    localhost::drop_absent(&mut config.listeners, &outfit.listeners);
    let listener_count = config.listeners.len();
    if outfit.listeners.len() != listener_count {
        return Err(KeeperFailure::System(format!(
            "{} sockets for {listener_count} listeners; the config reads differently here",
            outfit.listeners.len()
        )));
    }
    let mut logs: Vec<Option<OwnedFd>> = config.logs.iter().map(|_| None).collect();
    for (index, file) in outfit.logs {
        match logs.get_mut(usize::from(index)) {
            Some(log) => *log = Some(file),
            None => {
                return Err(KeeperFailure::System(format!(
                    "a file for log {index}, unknown here"
                )));
            }
        }
    }
    let mut datagrams: Vec<Vec<OwnedFd>> = config.listeners.iter().map(|_| Vec::new()).collect();
    for (index, socket) in outfit.datagrams {
        // A parcel names no listener that is not in it.
        if let Some(sockets) = datagrams.get_mut(usize::from(index)) {
            sockets.push(socket);
        }
    }
    let mut kept = [const { None }; KEPT_BANS as usize + 1];
    for (index, file) in outfit.kept {
        // An outfit has no others.
        kept[usize::from(index.min(KEPT_BANS))] = Some(file);
    }
    let [history_file, activity_file, maintenance_file, bans_file] = kept;
    let keys = match &outfit.keys {
        Some(keys) => KeyFiles::from_memory(keys.as_fd()),
        None => Ok(KeyFiles::default()),
    };
    let challenges = outfit.challenges.as_ref().map(read_challenges);
    let challenges = challenges.transpose();
    let unread = |what: &str, error: io::Error| {
        KeeperFailure::System(format!("cannot read the {what}: {error}"))
    };
    Ok(Generation {
        number: outfit.generation,
        config: Arc::new(config),
        warnings,
        sources,
        listeners: outfit.listeners,
        datagrams,
        logs,
        history_file,
        activity_file,
        maintenance_file,
        bans_file,
        keys: keys.map_err(|error| unread("keys", error))?,
        challenges: challenges
            .map_err(|error| unread("challenges", error))?
            .unwrap_or_default(),
        control: outfit.control,
        facts: papers.facts,
        resets: None,
        visits: VisitSockets::default(),
    })
}

#[cfg(test)]
mod tests;
