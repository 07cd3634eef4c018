//! A thread's way to a host: runs go out, their ends come back. Nothing here waits.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use hob_http::Watched;
use hob_trace::metric::ThreadCounters;

use crate::handle::script::lives::Means;
use crate::handle::warm::RouteHosts;
use crate::handle::warm::host::{Broken, HostCommand, HostReadiness, WarmHost};
use crate::handle::warm::keep;
use crate::handle::warm::limits::{KILLS_MAX, RUNS_WAITING_MAX};
use crate::handle::warm::protocol::{self, FROM_HOST_BYTES_MAX, FromHost, ScriptStart};
use hob_keeper::memory;
use hob_keeper::process::packet::{self, PacketSendOutcome, Received};
use hob_keeper::process::{Awaited, EndSignal, Exit, ProgramRef, is_lack};

/// One thread's links, by the host they go to.
pub struct HostLinks {
    /// Where it begins to look among a route's hosts.
    number: usize,
    by_serial: Rc<RefCell<HashMap<u64, Rc<HostLink>>>>,
}

impl Default for HostLinks {
    fn default() -> HostLinks {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        HostLinks {
            number: THREADS.fetch_add(1, Ordering::Relaxed),
            by_serial: Rc::default(),
        }
    }
}

/// Why there is no way to a host.
pub(crate) enum NoWay {
    /// There is no host.
    Broken(Broken),
    /// There is no descriptor for a link to it.
    Lack(io::Error),
}

/// A link, and the host it goes to.
pub(crate) type Way = (Rc<HostLink>, Arc<WarmHost>);

/// A way to one host.
pub(crate) struct HostLink {
    /// Not kept alive by this: it ends when no route wants it.
    host: Weak<WarmHost>,
    socket: Watched,
    counters: Arc<ThreadCounters>,
    core: RefCell<HostLinkState>,
}

#[derive(Default)]
struct HostLinkState {
    runs: HashMap<u64, Awaited>,
    waiting: VecDeque<PendingRun>,
    /// The link's task.
    task: Option<Waker>,
    is_over: bool,
}

struct PendingRun {
    id: u64,
    packet: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// A script that was sent to a host.
pub(crate) struct Forked {
    link: Rc<HostLink>,
    host: Arc<WarmHost>,
    id: u64,
    entry: Awaited,
    /// How often it was to be ended by force.
    kills: Cell<u32>,
}

impl HostLinks {
    /// The host that has the fewest runs; threads do not all begin with the same.
    fn choose<'w>(&self, warm: &'w RouteHosts) -> &'w Arc<WarmHost> {
        let count = warm.hosts.len();
        let turns = (0..count).map(|turn| &warm.hosts[(self.number + turn) % count]);
        turns
            .min_by_key(|host| host.tally.load())
            .unwrap_or(&warm.hosts[0])
    }

    /// A link to a host, which is started if it has to be.
    pub(crate) fn poll_link(
        &self,
        cx: &mut Context<'_>,
        warm: &RouteHosts,
        program: ProgramRef,
        means: &Means,
    ) -> Poll<Result<Way, NoWay>> {
        let host = self.choose(warm);
        loop {
            match host.ask(cx) {
                HostReadiness::Wait => return Poll::Pending,
                HostReadiness::Broken(broken) => return Poll::Ready(Err(NoWay::Broken(broken))),
                HostReadiness::Start => {
                    host.set_program(program);
                    keep::start(host, means);
                }
                HostReadiness::Up(up) => {
                    if let Some(link) = self.by_serial.borrow().get(&up.serial) {
                        return Poll::Ready(Ok((Rc::clone(link), Arc::clone(host))));
                    }
                    let socket = up.link().and_then(|end| means.reactor.watch(end));
                    let socket = match socket {
                        Ok(socket) => socket,
                        Err(error) if error.raw_os_error().is_some_and(is_lack) => {
                            return Poll::Ready(Err(NoWay::Lack(error)));
                        }
                        // It has died, and is not known to have yet.
                        Err(error) => {
                            let reason = format!("the warm interpreter cannot be reached: {error}");
                            return Poll::Ready(Err(NoWay::Broken(Broken(reason.into()))));
                        }
                    };
                    let link = self.add(host, socket, up.serial, means);
                    return Poll::Ready(Ok((link, Arc::clone(host))));
                }
            }
        }
    }

    fn add(
        &self,
        host: &Arc<WarmHost>,
        socket: Watched,
        serial: u64,
        means: &Means,
    ) -> Rc<HostLink> {
        let link = Rc::new(HostLink {
            host: Arc::downgrade(host),
            socket,
            counters: Arc::clone(&means.counters),
            core: RefCell::default(),
        });
        self.by_serial.borrow_mut().insert(serial, Rc::clone(&link));
        let (all, own) = (Rc::clone(&self.by_serial), Rc::clone(&link));
        means.reactor.spawn_standing(async move {
            poll_fn(|cx| own.poll(cx)).await;
            all.borrow_mut().remove(&serial);
        });
        link
    }
}

impl HostLink {
    /// Has a script run. Every outcome is told through what this returns.
    pub(crate) fn run(
        self: &Rc<HostLink>,
        host: &Arc<WarmHost>,
        script: &ScriptStart<'_>,
        standard: [OwnedFd; 3],
    ) -> Forked {
        let id = host.next_run();
        host.tally.note_fork();
        self.counters.warm_forks.add(1);
        let entry = Awaited::default();
        let forked = Forked {
            link: Rc::clone(self),
            host: Arc::clone(host),
            id,
            entry: entry.clone(),
            kills: Cell::new(0),
        };
        let (packet, strings) = protocol::run(id, script);
        let mut descriptors = Vec::from(standard);
        if let Some(strings) = strings {
            match memory::sealed("hob-strings", &strings) {
                Ok(memory) => descriptors.push(memory),
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::ENOMEM);
                    entry.finish(not_sent(errno));
                    return forked;
                }
            }
        }
        let mut core = self.core.borrow_mut();
        if core.is_over {
            drop(core);
            entry.finish(Exit::HostGone);
        } else if core.waiting.len() >= RUNS_WAITING_MAX {
            drop(core);
            entry.finish(Exit::Busy);
        } else {
            core.runs.insert(id, entry);
            core.waiting.push_back(PendingRun {
                id,
                packet,
                descriptors,
            });
            drop(core);
            self.send_waiting();
        }
        forked
    }

    /// Sends what waits, as far as the socket takes it; the rest is the task's.
    fn send_waiting(&self) {
        let mut core = self.core.borrow_mut();
        while let Some(next) = core.waiting.front() {
            match packet::send(self.socket.fd(), &next.packet, &next.descriptors) {
                PacketSendOutcome::Yes => drop(core.waiting.pop_front()),
                // A link that is gone shows when it is read.
                PacketSendOutcome::Full | PacketSendOutcome::Gone => {
                    self.socket.clear_writable();
                    let task = core.task.take();
                    drop(core);
                    task.into_iter().for_each(Waker::wake);
                    return;
                }
                PacketSendOutcome::Refused(errno) => {
                    let refused = core.waiting.pop_front();
                    let entry = refused.and_then(|refused| core.runs.remove(&refused.id));
                    drop(core);
                    if let Some(entry) = entry {
                        entry.finish(not_sent(errno.raw_os_error()));
                    }
                    core = self.core.borrow_mut();
                }
            }
        }
    }

    /// The link's task: ready when the link is over.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut buffer = [0; FROM_HOST_BYTES_MAX];
        while self.socket.poll_readable(cx).is_ready() {
            match packet::receive(self.socket.fd(), &mut buffer) {
                Received::Nothing => self.socket.clear_readable(),
                Received::Packet(len, _) => match FromHost::decode(&buffer[..len]) {
                    Ok(FromHost::Over(id, exit)) => {
                        let entry = self.core.borrow_mut().runs.remove(&id);
                        if let Some(entry) = entry {
                            self.note_end();
                            entry.finish(exit);
                        }
                    }
                    Ok(FromHost::Ready(_)) | Err(_) => {
                        tracing::error!("a warm interpreter makes no sense");
                        if let Some(host) = self.host.upgrade() {
                            host.order(HostCommand::EndAll);
                        }
                        return self.end();
                    }
                },
                Received::Gone | Received::Bare(_) => return self.end(),
            }
        }
        while !self.core.borrow().waiting.is_empty() && self.socket.poll_writable(cx).is_ready() {
            self.send_waiting();
        }
        self.core.borrow_mut().task = Some(cx.waker().clone());
        Poll::Pending
    }

    fn note_end(&self) {
        self.counters.warm_ends.add(1);
        if let Some(host) = self.host.upgrade() {
            host.tally.ends.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What ran over it is gone.
    fn end(&self) -> Poll<()> {
        let mut core = self.core.borrow_mut();
        core.is_over = true;
        core.waiting.clear();
        let runs = std::mem::take(&mut core.runs);
        drop(core);
        for entry in runs.values() {
            entry.finish(Exit::HostGone);
        }
        Poll::Ready(())
    }
}

impl Forked {
    /// How it ended, once it has. One task may wait.
    pub(crate) fn poll_exit(&self, cx: &mut Context<'_>) -> Poll<Exit> {
        self.entry.poll_exit(cx)
    }

    /// Ends it with everything it started. When that was asked for by force too often, the host is
    /// ended with everything: it does not say that its children have ended.
    pub(crate) fn end(&self, how: EndSignal) {
        let mut withdrawn = None;
        {
            let mut core = self.link.core.borrow_mut();
            if let Some(index) = core.waiting.iter().position(|one| one.id == self.id) {
                withdrawn = core.waiting.remove(index);
                core.runs.remove(&self.id);
            }
        }
        if withdrawn.is_some() {
            return self.entry.finish(not_sent(libc::ECANCELED));
        }
        let is_over = self.entry.exit().is_some();
        if how == EndSignal::Kill && !is_over {
            self.kills.set(self.kills.get() + 1);
        }
        let order = match self.kills.get() > KILLS_MAX && !is_over {
            true => HostCommand::EndAll,
            false => HostCommand::EndRun(self.id, how),
        };
        self.host.order(order);
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        self.host.tally.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn not_sent(errno: i32) -> Exit {
    Exit::NotStarted {
        step: "send it to the warm interpreter",
        errno,
    }
}
