//! Connections that stay open between requests. They belong to the server: whoever needs one gets
//! any that rests, best one that its own thread has left. Where a process behind one may serve
//! nobody else meanwhile, none rests while a new one waits to be taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hob_http::Reactor;
use hob_http::tls::peer::PeerTerms;
use hob_trace::Mutex;

use crate::handle::upstream::stream::{MemberStream, RestingStream};

/// A connection that has rested for so long is closed; within twice that, it is looked whether one
/// has.
pub(crate) const REST_MAX: Duration = Duration::from_secs(60);

/// The connections to one member that rest.
#[derive(Debug)]
pub(crate) struct KeptConnections {
    /// Most that rest.
    max: AtomicUsize,
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
    stream: RestingStream,
    since: Instant,
}

impl KeptConnections {
    /// None yet; at most so many will rest.
    pub(crate) fn new(max: usize) -> Arc<KeptConnections> {
        Arc::new(KeptConnections {
            max: AtomicUsize::new(max),
            resting: Mutex::default(),
            waiting: AtomicUsize::new(0),
        })
    }

    /// How many rest.
    pub(crate) fn count(&self) -> usize {
        self.resting.lock().connections.len()
    }

    /// True when connections are to stay open.
    pub(crate) fn is_any(&self) -> bool {
        self.max() > 0
    }

    fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// At most so many rest from now on; others are closed.
    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
        let mut all = self.resting.lock();
        let surplus = all.connections.len().saturating_sub(max);
        let closed: Vec<_> = all.connections.drain(..surplus).collect();
        // They may say good-bye.
        drop((all, closed));
    }

    /// A connection that the other side has not closed, as far as that is known. With `is_sure` the
    /// kernel is asked. TLS is spoken on these terms.
    pub(crate) fn take(
        &self,
        reactor: &Reactor,
        is_sure: bool,
        terms: Option<&PeerTerms>,
    ) -> Option<MemberStream> {
        if self.max() == 0 {
            return None;
        }
        loop {
            let stream = {
                let mut all = self.resting.lock();
                let own = all
                    .connections
                    .iter()
                    .rposition(|one| one.stream.is_of(reactor));
                match own {
                    Some(at) => all.connections.remove(at).stream,
                    None => all.connections.pop()?.stream,
                }
            };
            if let Some(stream) = stream.take(reactor, is_sure, terms) {
                return Some(stream);
            }
        }
    }

    /// A request has no connection yet, or a new one that waits for its first byte.
    pub(crate) fn begin_to_wait(self: &Arc<Self>) -> WaitingConnection {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingConnection(Arc::clone(self))
    }

    /// A connection over which nothing is under way. It is closed where a new one waits: the
    /// process behind it may be the one that is to take that.
    pub(crate) fn put(self: &Arc<Self>, stream: MemberStream, reactor: &Reactor) {
        let Some(stream) = stream.rest() else { return };
        let resting = RestingConnection {
            stream,
            since: Instant::now(),
        };
        let mut all = self.resting.lock();
        if all.connections.len() >= self.max() || self.waiting.load(Ordering::Relaxed) > 0 {
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
