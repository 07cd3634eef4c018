//! The spawner's loop: orders, packets, ends of children, time; then wait for the next of them.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hob_machine::OwnGroups;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{SocketType, sockopt};
use rustix::process::{
    DumpableBehavior, Pid, geteuid, set_child_subreaper, set_dumpable_behavior, setsid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::asked::HostSourceFiles;
use super::cgroup;
use super::ending::Endings;
use super::links::{ServerLink, ServerLinks, Whose};
use super::prepare::{self, PreparedProgram};
use super::refusals::Refusals;
use super::running::{RunningProgramId, RunningPrograms};
use super::starts::Refused;
use super::{LINKS_MAX, POLICIES_MAX, SLOTS_MAX, starts};
use crate::parcel::{Inbox, NotReceived, Outbox};
use crate::process::child::ChildSlot;
use crate::process::kernel;
use crate::process::message::{EndSignal, ProgramProcess, StartHead, Step, ToServer, ToSpawner};
use crate::process::orders::{self, SpawnerOrder, SpawnerReport};
use crate::process::packet::{self, Received};
use crate::process::policy::Policy;
use crate::{KeeperFailure, exec};

/// Packets taken from one link in one turn, so that each gets its turn.
const PACKETS_PER_TURN_MAX: usize = 32;
/// Events taken in one turn.
const EVENTS_MAX: usize = 64;
const OF_KEEPER: u64 = u64::MAX;
const OF_SIGNALS: u64 = u64::MAX - 1;
/// How long what is being killed may take when the spawner ends.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Runs a spawner until the keeper or all servers want no more of it.
///
/// # Errors
/// When this process was not started by a keeper, or cannot become a spawner.
pub fn run() -> Result<(), KeeperFailure> {
    if sockopt::socket_type(io::stdin()) != Ok(SocketType::SEQPACKET) {
        let text = "a spawner is started by `hob serve`, not by hand";
        return Err(KeeperFailure::System(text.to_owned()));
    }
    let _ = rustix::thread::set_name(c"hob-spawner");
    let begun = exec::take_stdin().and_then(Spawner::begin);
    let mut spawner = begun.map_err(|error| {
        KeeperFailure::System(format!("cannot begin to start programs: {error}"))
    })?;
    spawner.turn_until_done();
    Ok(())
}

/// How much sooner than the server programs are ended for want of memory, in thousandths of it.
const OOM_SCORE_ADJ: i32 = 200;

/// Has programs ended before the server when memory runs out: they inherit it from here. Told in
/// each child it would hold for us as well, whose memory they share. Nobody needs a right for it,
/// and where it cannot be told everything works all the same.
fn offer_programs_first() {
    let file = "/proc/self/oom_score_adj";
    let now = std::fs::read_to_string(file).ok();
    if let Some(now) = now.and_then(|text| text.trim().parse::<i32>().ok()) {
        let _ = std::fs::write(file, (now + OOM_SCORE_ADJ).min(1000).to_string());
    }
}

struct Spawner {
    /// The socket to the keeper, which sends policies and ends of servers.
    keeper: OwnedFd,
    /// What came from the keeper and is not whole yet.
    orders: Inbox,
    /// What the keeper is to be told and had no room for.
    words: Outbox,
    /// Nobody sends a policy any more: it ends when its servers are gone.
    is_keeper_gone: bool,
    /// It ends when its last server is gone.
    is_retired: bool,
    /// The epoll set: keeper, signals, links, children.
    watch: OwnedFd,
    /// SIGCHLD and the signals that ask it to end.
    signals: OwnedFd,
    /// A socket to each thread of each server, over which starts are asked for.
    links: ServerLinks,
    /// Newest last.
    policies: VecDeque<(u64, Vec<Rc<PreparedProgram>>)>,
    /// Policies that came so far: names their control groups apart.
    policy_count: u64,
    /// Programs that run, and for which link.
    running: RunningPrograms,
    /// Programs that were told to end, and when they are asked again or killed.
    endings: Endings,
    /// Control groups it may make groups for programs in.
    places: OwnGroups,
    /// Sources of hosts, which a server may name and not send.
    sources: HostSourceFiles,
    /// What was asked for and is not allowed, told at most so often.
    refusals: Refusals,
    /// Room for children between clone and exec: nobody waits for one in this turn.
    slots: Vec<ChildSlot>,
    /// For when all slots have a child on its way; it is only forked from.
    spare: ChildSlot,
    /// Links with something gathered.
    told: Vec<u64>,
}

impl Spawner {
    fn begin(keeper: OwnedFd) -> io::Result<Spawner> {
        // No terminal, a process group apart from hob's, and a session that names what programs
        // leave behind if this process is killed. Refused only to a leader, which we were made by
        // a test then.
        let _ = setsid();
        // The keeper has said what is lost where this is refused.
        let _ = set_child_subreaper(Pid::from_raw(1));
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        offer_programs_first();
        keep_capabilities()?;
        let signals = kernel::take_signals()?;
        let watch = epoll::create(CreateFlags::CLOEXEC)?;
        let (of_keeper, of_signals) = (
            EventData::new_u64(OF_KEEPER),
            EventData::new_u64(OF_SIGNALS),
        );
        epoll::add(&watch, &keeper, of_keeper, EventFlags::IN)?;
        epoll::add(&watch, &signals, of_signals, EventFlags::IN)?;
        let mut spawner = Spawner {
            keeper,
            orders: Inbox::new(orders::DESCRIPTORS_MAX),
            words: Outbox::default(),
            is_keeper_gone: false,
            is_retired: false,
            watch,
            signals,
            links: ServerLinks::default(),
            policies: VecDeque::new(),
            policy_count: 0,
            running: RunningPrograms::new()?,
            endings: Endings::default(),
            places: OwnGroups::find(),
            sources: HostSourceFiles::default(),
            refusals: Refusals::default(),
            slots: Vec::new(),
            spare: ChildSlot::spare(),
            told: Vec::new(),
        };
        cgroup::remove_stale(&spawner.places);
        spawner.say(&SpawnerReport::Ready);
        Ok(spawner)
    }

    fn turn_until_done(&mut self) {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let timeout = self.endings.due().map(|due| {
                let left = due.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
                Timespec::try_from(left).unwrap_or(Timespec {
                    tv_sec: 1,
                    tv_nsec: 0,
                })
            });
            events.clear();
            let buffer = rustix::buffer::spare_capacity(&mut events);
            // Interrupted or not, what follows looks at what there is.
            let _ = epoll::wait(&self.watch, buffer, timeout.as_ref());
            for event in &events {
                match event.data.u64() {
                    OF_KEEPER => self.take_orders(),
                    OF_SIGNALS => self.reap(),
                    number => self.handle_link(number, event.flags),
                }
            }
            if self.endings.due().is_some() {
                self.endings.look(Instant::now());
            }
            let is_wanted = !(self.is_keeper_gone || self.is_retired) || self.links.count() > 0;
            if !is_wanted {
                return self.end();
            }
        }
    }

    /// Nobody is left to start programs for: ends those that still run.
    fn end(&mut self) {
        let until = Instant::now() + END_LIMIT;
        for run in self.running.all() {
            self.endings.begin(run, EndSignal::Kill, Instant::now());
        }
        while !self.endings.is_done() && Instant::now() < until {
            self.reap();
            self.endings.look(Instant::now());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn say(&mut self, said: &SpawnerReport) {
        // A keeper that takes nothing or is gone shows when its channel is read.
        let _ = self.words.send(self.keeper.as_fd(), said.encode());
    }

    fn take_orders(&mut self) {
        while !self.is_keeper_gone {
            match self
                .orders
                .receive(self.keeper.as_fd())
                .map(SpawnerOrder::decode)
            {
                Ok(Ok(order)) => self.follow(order),
                Err(NotReceived::Nothing) => return,
                _ => {
                    self.is_keeper_gone = true;
                    let _ = epoll::delete(&self.watch, &self.keeper);
                }
            }
        }
    }

    fn follow(&mut self, order: SpawnerOrder) {
        match order {
            SpawnerOrder::Retire => self.is_retired = true,
            SpawnerOrder::Server(end) => self.add_link(ServerLink::new(end, Whose::Server)),
            SpawnerOrder::Policy(memory) => match Policy::from_memory(memory.as_fd()) {
                Ok(policy) => self.take_policy(&policy),
                Err(error) => self.say(&SpawnerReport::Trouble {
                    text: format!("the spawner cannot read its policy: {error}"),
                }),
            },
        }
    }

    fn take_policy(&mut self, policy: &Policy) {
        self.policy_count += 1;
        if self.policy_count == 1 {
            // Once: what was prepared knows our level.
            prepare::step_back(&policy.programs);
        }
        let mut trouble = Vec::new();
        let programs = policy.programs.iter().enumerate();
        let prepared = programs
            .map(|(index, rules)| {
                let name = format!("{}-{index}", self.policy_count);
                let mut note = |text| trouble.push(text);
                let with = (&self.places, &mut self.sources);
                Rc::new(PreparedProgram::of(rules, &name, with, &mut note))
            })
            .collect();
        // A generation that was refused by the server comes again with another content.
        self.policies
            .retain(|(generation, _)| *generation != policy.generation);
        self.policies.push_back((policy.generation, prepared));
        if self.policies.len() > POLICIES_MAX {
            self.policies.pop_front();
        }
        trouble.dedup();
        for text in trouble {
            self.say(&SpawnerReport::Trouble { text });
        }
    }

    fn add_link(&mut self, link: ServerLink) {
        if self.links.count() >= LINKS_MAX {
            return;
        }
        let number = self.links.add(link);
        if let Some(link) = self.links.get(number) {
            let data = EventData::new_u64(number);
            // A link that cannot be watched is as good as gone: its server notices.
            if epoll::add(&self.watch, &link.socket, data, EventFlags::IN).is_err() {
                self.links.remove(number);
            }
        }
    }

    fn handle_link(&mut self, number: u64, flags: EventFlags) {
        let Some(link) = self.links.get(number) else {
            return;
        };
        if flags.contains(EventFlags::OUT) {
            link.flush();
        }
        let whose = link.whose;
        for _ in 0..PACKETS_PER_TURN_MAX {
            let is_open = match whose {
                Whose::Server => self.take_thread(number),
                Whose::Thread => self.take_packet(number),
            };
            match is_open {
                Some(true) => {}
                Some(false) => break,
                None => {
                    self.lose(number);
                    break;
                }
            }
        }
        self.post();
        self.watch_output(number);
    }

    /// Takes the end of a thread; true when there may be more, `None` when the server is gone.
    fn take_thread(&mut self, number: u64) -> Option<bool> {
        let link = self.links.get(number)?;
        let mut buffer = [0; 64];
        match packet::receive(link.fd(), &mut buffer) {
            Received::Nothing => Some(false),
            Received::Gone | Received::Bare(_) => None,
            Received::Packet(len, [Some(end), None, ..])
                if ToSpawner::decode(&buffer[..len]) == Ok(ToSpawner::Thread) =>
            {
                self.add_link(ServerLink::new(end, Whose::Thread));
                Some(true)
            }
            Received::Packet(..) => None,
        }
    }

    /// Takes a packet of a thread; true when there may be more, `None` when it is gone.
    fn take_packet(&mut self, number: u64) -> Option<bool> {
        let place = self.free_slot();
        let link = self.links.get(number)?;
        let slot = at(&mut self.slots, &mut self.spare, place);
        let buffer = slot.buffer();
        let (len, descriptors) = match packet::receive(link.fd(), buffer) {
            Received::Nothing => return Some(false),
            Received::Gone => return None,
            Received::Packet(len, descriptors) => (len, descriptors),
            Received::Bare(len) => {
                let Ok(ToSpawner::Start(head, _)) = ToSpawner::decode(&buffer[..len]) else {
                    return None;
                };
                let (id, step, errno) = (head.id, Step::Descriptors, libc::EMFILE);
                self.tell(number, &ToServer::Failed { id, step, errno });
                return Some(true);
            }
        };
        match ToSpawner::decode(&buffer[..len]).ok()? {
            ToSpawner::Thread => None,
            ToSpawner::Kill { id, how, part } => {
                if let Some(run) = self.running.find(RunningProgramId { link: number, id }) {
                    let now = Instant::now();
                    match part {
                        None => self.endings.begin(run, how, now),
                        Some(part) => self.endings.begin_part(&run, part, how, now),
                    }
                }
                Some(true)
            }
            ToSpawner::Start(head, _) => {
                let name = RunningProgramId {
                    link: number,
                    id: head.id,
                };
                if self.running.has(name) {
                    return None;
                }
                let started = match self.prepared(head) {
                    None => Err((Step::Policy, libc::ENOENT).into()),
                    Some(prepared) => {
                        let slot = at(&mut self.slots, &mut self.spare, place);
                        starts::start(name, head, descriptors, &prepared, slot, &mut self.running)
                    }
                };
                let id = head.id;
                match started {
                    Err(refused) => {
                        let line = self.refusals.line(&refused, head.program, Instant::now());
                        if let Some(text) = line {
                            self.say(&SpawnerReport::Refused { text });
                        }
                        let Refused { step, errno, .. } = refused;
                        self.tell(number, &ToServer::Failed { id, step, errno });
                    }
                    Ok(pid) if head.has_channel => {
                        let pid = pid.cast_unsigned();
                        self.tell(number, &ToServer::Started { id, pid });
                    }
                    Ok(_) => {}
                }
                Some(true)
            }
        }
    }

    /// The program a start names. The keeper sends a policy before a server hears of it, so one
    /// that is unknown may be waiting.
    fn prepared(&mut self, head: StartHead) -> Option<Rc<PreparedProgram>> {
        let is_known = |spawner: &Spawner| {
            let mut newest = spawner.policies.iter().rev();
            let (_, programs) = newest.find(|(generation, _)| *generation == head.generation)?;
            programs.get(usize::from(head.program)).cloned()
        };
        if let Some(prepared) = is_known(self) {
            return Some(prepared);
        }
        self.take_orders();
        is_known(self)
    }

    /// A slot that no child uses; `None` is the spare one.
    fn free_slot(&mut self) -> Option<usize> {
        if let Some(index) = self.slots.iter().position(ChildSlot::is_free) {
            return Some(index);
        }
        if self.slots.len() >= SLOTS_MAX {
            return None;
        }
        self.slots.push(ChildSlot::new());
        Some(self.slots.len() - 1)
    }

    fn reap(&mut self) {
        // Emptied before looking: who ends meanwhile makes it readable again.
        let mut infos = [0; 1024];
        let _ = rustix::io::read(&self.signals, &mut infos[..]);
        while let Some(ended) = kernel::reap() {
            let was_asked = self.endings.forget_process(ended.pid);
            let Some((run, report)) = self.running.remove(ended.pid) else {
                continue;
            };
            let (RunningProgramId { link, id }, since_us) = (run.name, run.since_us);
            let goes_along = run.takes_along && report.is_none() && ended.code != Some(0);
            if was_asked || goes_along {
                self.endings.kill_rest(run, Instant::now());
            }
            let message = match report {
                Some((step, errno)) => ToServer::Failed { id, step, errno },
                None => ToServer::Exited {
                    id,
                    code: ended.code,
                    signal: ended.signal,
                    core: ended.core,
                    usage: ended.usage,
                    process: ProgramProcess {
                        pid: ended.pid.unsigned_abs(),
                        since_us,
                    },
                },
            };
            self.tell(link, &message);
        }
        self.post();
    }

    fn tell(&mut self, number: u64, message: &ToServer) {
        if let Some(link) = self.links.get(number)
            && link.gather(message)
        {
            self.told.push(number);
        }
    }

    /// Sends what was told. Together, because every packet wakes a thread of the server, which then
    /// often has the CPU before the next program is reaped.
    fn post(&mut self) {
        while let Some(number) = self.told.pop() {
            if let Some(link) = self.links.get(number) {
                link.post();
                self.watch_output(number);
            }
        }
    }

    fn watch_output(&mut self, number: u64) {
        let Some(link) = self.links.get(number) else {
            return;
        };
        if link.has_waiting() == link.is_watching_output {
            return;
        }
        let mut flags = EventFlags::IN;
        flags.set(EventFlags::OUT, link.has_waiting());
        let data = EventData::new_u64(number);
        if epoll::modify(&self.watch, &link.socket, data, flags).is_ok() {
            link.is_watching_output = link.has_waiting();
        }
    }

    /// A link is gone: what was started over it ends.
    fn lose(&mut self, number: u64) {
        // Closed with this, so epoll forgets it.
        if self.links.remove(number).is_none() {
            return;
        }
        let now = Instant::now();
        for run in self.running.of_link(number) {
            self.endings.begin(run, EndSignal::Kill, now);
        }
    }
}

fn at<'a>(
    slots: &'a mut [ChildSlot],
    spare: &'a mut ChildSlot,
    place: Option<usize>,
) -> &'a mut ChildSlot {
    match place.and_then(|index| slots.get_mut(index)) {
        Some(slot) => slot,
        None => spare,
    }
}

/// As root, only what starting and ending programs needs; else nothing, which ends what a service
/// manager gave for other reasons.
fn keep_capabilities() -> io::Result<()> {
    let mut kept = CapabilitySet::empty();
    if geteuid().is_root() {
        kept = CapabilitySet::CHOWN
            | CapabilitySet::DAC_OVERRIDE
            | CapabilitySet::DAC_READ_SEARCH
            | CapabilitySet::KILL
            | CapabilitySet::SETGID
            | CapabilitySet::SETUID
            | CapabilitySet::SYS_ADMIN
            | CapabilitySet::SYS_NICE
            | CapabilitySet::SYS_RESOURCE;
        // What this process may not do anyway cannot be kept.
        kept &= rustix::thread::capabilities(None)?.permitted;
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}
