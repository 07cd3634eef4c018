//! Connections that stay open between requests.
//!
//! Where a process behind one may serve nobody else meanwhile, they belong to the server and not to
//! a thread: whoever needs one gets any that rests, and none rests while a new one waits to be
//! taken. Else they rest with the thread that used them, in its epoll set, which costs less.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hob_http::{Reactor, Watched};
use hob_trace::Mutex;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// A connection that has rested for so long is closed; within twice that, it is looked whether one
/// has.
const REST_MAX: Duration = Duration::from_secs(60);

/// The connections to one member that rest.
#[derive(Debug)]
pub(crate) struct KeptConnections {
    /// Most that rest.
    max: usize,
    /// Told from all others, of this config and of those before.
    number: u64,
    /// How many rest with threads.
    with_threads: AtomicUsize,
    resting: Mutex<Resting>,
    /// Requests without a connection, or with a new one over which nothing has come yet: perhaps
    /// nobody has taken it.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Resting {
    /// The one that rested last is taken first.
    connections: Vec<RestingConnection>,
    /// A task closes those that have rested for too long.
    is_looked_after: bool,
}

/// A request without a connection, or with a new one over which nothing has come yet.
#[derive(Debug)]
pub(crate) struct WaitingConnection(Arc<KeptConnections>);

impl Drop for WaitingConnection {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct RestingConnection {
    socket: OwnedFd,
    since: Instant,
}

/// A connection that rests with a thread.
struct RestingHere {
    socket: Watched,
    since: Instant,
    place: RestingPlace,
}

/// Its place among those of all threads.
struct RestingPlace(Weak<KeptConnections>);

impl Drop for RestingPlace {
    fn drop(&mut self) {
        if let Some(of) = self.0.upgrade() {
            of.with_threads.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Those of a thread, by whose they are.
#[derive(Default)]
struct Here {
    resting: HashMap<u64, Vec<RestingHere>, RandomState>,
    /// A task closes those that have rested for too long.
    is_looked_after: bool,
}

thread_local! {
    static HERE: RefCell<Here> = RefCell::default();
}

impl Here {
    /// Closes those that have rested for too long, or whose member is no more in the config; false
    /// when none is left to look after.
    fn close_old(&mut self) -> bool {
        self.resting.retain(|_, all| {
            all.retain(|one| one.since.elapsed() < REST_MAX && one.place.0.strong_count() > 0);
            !all.is_empty()
        });
        self.is_looked_after = !self.resting.is_empty();
        self.is_looked_after
    }
}

impl KeptConnections {
    /// None yet; at most so many will rest.
    pub(crate) fn new(max: usize) -> Arc<KeptConnections> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Arc::new(KeptConnections {
            max,
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            with_threads: AtomicUsize::new(0),
            resting: Mutex::default(),
            waiting: AtomicUsize::new(0),
        })
    }

    /// True when connections are to stay open.
    pub(crate) fn is_any(&self) -> bool {
        self.max > 0
    }

    /// A connection that the other side had not closed by now.
    pub(crate) fn take(&self) -> Option<OwnedFd> {
        if self.max == 0 {
            return None;
        }
        loop {
            let resting = self.resting.lock().connections.pop()?;
            if is_open(&resting.socket) {
                return Some(resting.socket);
            }
        }
    }

    /// A connection that rests with this thread, and of whose end nothing was heard. With
    /// `is_sure`, it is looked whether it was closed just now.
    pub(crate) fn take_here(&self, is_sure: bool) -> Option<Watched> {
        if self.max == 0 {
            return None;
        }
        HERE.with(|here| {
            let mut here = here.borrow_mut();
            let all = here.resting.get_mut(&self.number)?;
            loop {
                let socket = all.pop()?.socket;
                // What comes is its end.
                if !socket.is_readable() && (!is_sure || is_open(&socket.fd())) {
                    return Some(socket);
                }
            }
        })
    }

    /// Leaves a connection over which nothing is under way with this thread.
    pub(crate) fn put_here(self: &Arc<Self>, socket: Watched, reactor: &Reactor) {
        if self.with_threads.fetch_add(1, Ordering::Relaxed) >= self.max {
            self.with_threads.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        // All that was to come has come; what comes now is heard.
        socket.clear_readable();
        let resting = RestingHere {
            socket,
            since: Instant::now(),
            place: RestingPlace(Arc::downgrade(self)),
        };
        let is_looked_after = HERE.with(|here| {
            let mut here = here.borrow_mut();
            here.resting.entry(self.number).or_default().push(resting);
            std::mem::replace(&mut here.is_looked_after, true)
        });
        if !is_looked_after {
            let own = reactor.clone();
            reactor.spawn_standing(async move {
                let timer = own.timer();
                loop {
                    timer.set(REST_MAX);
                    timer.elapsed().await;
                    if !HERE.with(|here| here.borrow_mut().close_old()) {
                        return;
                    }
                }
            });
        }
    }

    /// A request has no connection yet, or a new one that waits for its first byte.
    pub(crate) fn begin_to_wait(self: &Arc<Self>) -> WaitingConnection {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingConnection(Arc::clone(self))
    }

    /// A connection over which nothing is under way. It is closed where a new one waits: the
    /// process behind it may be the one that is to take that.
    pub(crate) fn put(self: &Arc<Self>, socket: OwnedFd, reactor: &Reactor) {
        let resting = RestingConnection {
            socket,
            since: Instant::now(),
        };
        let mut all = self.resting.lock();
        if all.connections.len() >= self.max || self.waiting.load(Ordering::Relaxed) > 0 {
            return;
        }
        all.connections.push(resting);
        let is_looked_after = std::mem::replace(&mut all.is_looked_after, true);
        drop(all);
        if !is_looked_after {
            let (kept, own) = (Arc::downgrade(self), reactor.clone());
            reactor.spawn_standing(async move {
                let timer = own.timer();
                loop {
                    timer.set(REST_MAX);
                    timer.elapsed().await;
                    // Gone where another config is in force.
                    if !kept.upgrade().is_some_and(|kept| kept.close_old()) {
                        return;
                    }
                }
            });
        }
    }

    /// Closes those that have rested for too long; false when none is left to look after.
    fn close_old(&self) -> bool {
        let mut all = self.resting.lock();
        all.connections.retain(|one| one.since.elapsed() < REST_MAX);
        all.is_looked_after = !all.connections.is_empty();
        all.is_looked_after
    }
}

/// Whether a connection over which nothing is to come is open: what comes is its end.
fn is_open(socket: &impl AsFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(recv(socket, &mut [0_u8; 1], flags), Err(Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_connections_that_are_open_and_silent_are_taken() {
        let kept = KeptConnections::new(4);
        let (open, _other) = UnixStream::pair().unwrap();
        let (closed, _) = UnixStream::pair().unwrap();
        let (loud, mut speaks) = UnixStream::pair().unwrap();
        speaks.write_all(b"x").unwrap();
        for socket in [open, closed, loud] {
            rest(&kept, socket, Duration::ZERO);
        }
        assert!(kept.take().is_some());
        assert!(kept.take().is_none() && kept.resting.lock().connections.is_empty());
        assert!(KeptConnections::new(0).take().is_none());
    }

    fn rest(kept: &KeptConnections, socket: UnixStream, time: Duration) {
        kept.resting.lock().connections.push(RestingConnection {
            socket: socket.into(),
            since: Instant::now() - time,
        });
    }

    #[test]
    fn what_has_rested_for_too_long_is_closed() {
        let kept = KeptConnections::new(4);
        let (old, mut of_old) = UnixStream::pair().unwrap();
        let (young, _of_young) = UnixStream::pair().unwrap();
        rest(&kept, old, REST_MAX);
        rest(&kept, young, Duration::ZERO);
        assert!(kept.close_old());
        assert_eq!(of_old.read(&mut [0]).unwrap(), 0);
        assert!(kept.take().is_some() && kept.take().is_none());
        assert!(!kept.close_old());
    }
}
