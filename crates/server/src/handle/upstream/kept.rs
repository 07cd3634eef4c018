//! Connections that stay open between requests. They belong to the server: whoever needs one gets
//! any that rests, best one that its own thread has left. Where a process behind one may serve
//! nobody else meanwhile, none rests while a new one waits to be taken. One that has served as many
//! requests as it may, is as old as it may be, or has rested for too long is closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hob_http::Reactor;
use hob_http::tls::peer::PeerTerms;
use hob_trace::Mutex;
use hob_trace::metric::ThreadCounters;

use crate::handle::upstream::member::Member;
use crate::handle::upstream::run::socket::RunSeat;
use crate::handle::upstream::stream::{MemberStream, RestingStream};

/// After so long at most it is looked whether one has rested for too long: limits may have changed.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// What one connection may serve, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepLimits {
    /// Requests; 0 is any number.
    pub requests: u64,
    /// From when it was made; zero is for ever.
    pub time: Duration,
    /// Without a request.
    pub idle: Duration,
}

/// What a connection has been through.
#[derive(Debug)]
pub(crate) struct ConnectionAge {
    made: Instant,
    /// Where it leads, if that was told by a name.
    place: Option<SocketAddr>,
    /// Its place with a program that hob runs.
    seat: Option<RunSeat>,
    /// Requests it was used for, with the one that has it.
    requests: u64,
}

impl ConnectionAge {
    /// Of one that was made now, for a request; `seat` is from before it was made.
    pub(crate) fn of(
        stream: &MemberStream,
        member: &Member,
        seat: Option<RunSeat>,
    ) -> ConnectionAge {
        ConnectionAge {
            made: Instant::now(),
            place: member.name.as_ref().and_then(|_| stream.place()),
            seat,
            requests: 1,
        }
    }

    /// It leads to processes whose places others have taken.
    fn has_left(&self) -> bool {
        self.seat.as_ref().is_some_and(RunSeat::is_left)
    }

    /// The same with a further request.
    fn used_again(mut self) -> ConnectionAge {
        self.use_again();
        self
    }

    pub(crate) fn use_again(&mut self) {
        self.requests += 1;
    }
}

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

#[derive(Debug)]
struct Resting {
    limits: KeepLimits,
    /// Where the member's name leads now; empty where it has none, or that is not known yet.
    places: Vec<SocketAddr>,
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
    age: ConnectionAge,
    since: Instant,
}

/// Which limit ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeepEnd {
    Requests,
    Time,
    Idle,
}

impl KeepEnd {
    fn count(self, counters: &ThreadCounters) {
        let counter = match self {
            KeepEnd::Requests => &counters.limit_upstream_keep_requests,
            KeepEnd::Time => &counters.limit_upstream_keep_time,
            KeepEnd::Idle => &counters.limit_upstream_keep_idle,
        };
        counter.add(1);
    }
}

impl KeepLimits {
    /// Why a connection is to rest no more that was used until now.
    fn end_of_use(&self, age: &ConnectionAge, now: Instant) -> Option<KeepEnd> {
        match () {
            () if self.requests > 0 && age.requests >= self.requests => Some(KeepEnd::Requests),
            () if self.is_past(age, now) => Some(KeepEnd::Time),
            () => None,
        }
    }

    fn is_past(&self, age: &ConnectionAge, now: Instant) -> bool {
        !self.time.is_zero() && now.duration_since(age.made) >= self.time
    }

    /// For how long it may go on to rest.
    fn left(&self, age: &ConnectionAge, since: Instant, now: Instant) -> Result<Duration, KeepEnd> {
        let rests = now.duration_since(since);
        if rests >= self.idle {
            return Err(KeepEnd::Idle);
        }
        let idle_left = self.idle - rests;
        match (self.is_past(age, now), self.time.is_zero()) {
            (true, _) => Err(KeepEnd::Time),
            (_, true) => Ok(idle_left),
            _ => Ok(idle_left.min(self.time - now.duration_since(age.made))),
        }
    }
}

impl KeptConnections {
    /// None yet; at most so many will rest, within these limits.
    pub(crate) fn new(max: usize, limits: KeepLimits) -> Arc<KeptConnections> {
        Arc::new(KeptConnections {
            max: AtomicUsize::new(max),
            resting: Mutex::new(Resting {
                limits,
                places: Vec::new(),
                connections: Vec::new(),
                is_looked_after: false,
            }),
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

    /// At most so many rest from now on, within these limits; others are closed.
    pub(crate) fn set_limits(&self, max: usize, limits: KeepLimits) {
        self.max.store(max, Ordering::Relaxed);
        let mut all = self.resting.lock();
        all.limits = limits;
        let surplus = all.connections.len().saturating_sub(max);
        let closed: Vec<_> = all.connections.drain(..surplus).collect();
        // They may say good-bye.
        drop((all, closed));
    }

    /// The member's name leads to these places from now on: connections to others are closed.
    pub(crate) fn lead_to(&self, places: &[SocketAddr]) {
        let mut all = self.resting.lock();
        all.places = places.to_vec();
        let left = |one: &mut RestingConnection| {
            let place = one.age.place;
            place.is_some_and(|place| !places.contains(&place))
        };
        let closed: Vec<_> = all.connections.extract_if(.., left).collect();
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
    ) -> Option<(MemberStream, ConnectionAge)> {
        if self.max() == 0 {
            return None;
        }
        loop {
            let RestingConnection { stream, age, .. } = {
                let mut all = self.resting.lock();
                let own = all
                    .connections
                    .iter()
                    .rposition(|one| one.stream.is_of(reactor));
                match own {
                    Some(at) => all.connections.remove(at),
                    None => all.connections.pop()?,
                }
            };
            if age.has_left() {
                continue;
            }
            if let Some(stream) = stream.take(reactor, is_sure, terms) {
                return Some((stream, age.used_again()));
            }
        }
    }

    /// How long one may rest.
    pub(crate) fn idle_max(&self) -> Duration {
        self.resting.lock().limits.idle
    }

    /// Whether a connection that is not one's own may have one more request; else what ends that is
    /// counted.
    pub(crate) fn may_go_on(&self, age: &ConnectionAge, counters: &ThreadCounters) -> bool {
        let all = self.resting.lock();
        let is_elsewhere = age.place.is_some_and(|place| !all.places.contains(&place));
        if is_elsewhere || age.has_left() {
            return false;
        }
        let end = all.limits.end_of_use(age, Instant::now());
        if let Some(end) = end {
            end.count(counters);
        }
        end.is_none()
    }

    /// A request has no connection yet, or a new one that waits for its first byte.
    pub(crate) fn begin_to_wait(self: &Arc<Self>) -> WaitingConnection {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingConnection(Arc::clone(self))
    }

    /// A connection over which nothing is under way. It is closed where a new one waits: the
    /// process behind it may be the one that is to take that.
    pub(crate) fn put(
        self: &Arc<Self>,
        (stream, age): (MemberStream, ConnectionAge),
        reactor: &Reactor,
        counters: &Arc<ThreadCounters>,
    ) {
        let Some(stream) = stream.rest() else { return };
        let since = Instant::now();
        let mut all = self.resting.lock();
        let is_elsewhere = age.place.is_some_and(|place| !all.places.contains(&place));
        if is_elsewhere || age.has_left() {
            return;
        }
        if all.connections.len() >= self.max() || self.waiting.load(Ordering::Relaxed) > 0 {
            return;
        }
        if let Some(end) = all.limits.end_of_use(&age, since) {
            return end.count(counters);
        }
        let first = all.limits.left(&age, since, since).unwrap_or_default();
        all.connections
            .push(RestingConnection { stream, age, since });
        let is_looked_after = std::mem::replace(&mut all.is_looked_after, true);
        drop(all);
        if !is_looked_after {
            self.look_after(first, reactor, counters);
        }
    }

    /// Has a task close those that rest for too long; the first may be one after this time.
    fn look_after(
        self: &Arc<Self>,
        first: Duration,
        reactor: &Reactor,
        counters: &Arc<ThreadCounters>,
    ) {
        let (kept, own, counters) = (Arc::downgrade(self), reactor.clone(), Arc::clone(counters));
        reactor.spawn_standing(async move {
            let timer = own.timer();
            let mut next = first;
            loop {
                timer.set(next.min(LOOK_MAX));
                timer.elapsed().await;
                // Gone where another config is in force.
                let Some(kept) = kept.upgrade() else { return };
                match kept.close_old(&counters) {
                    Some(after) => next = after,
                    None => return,
                }
            }
        });
    }

    /// Closes those that have rested for too long. Returns after how long the next one will have;
    /// `None` when none is left to look after.
    fn close_old(&self, counters: &ThreadCounters) -> Option<Duration> {
        let now = Instant::now();
        let mut all = self.resting.lock();
        let limits = all.limits;
        let mut next = None;
        let is_over = |one: &mut RestingConnection| match limits.left(&one.age, one.since, now) {
            _ if one.age.has_left() => true,
            Ok(left) => {
                next = Some(next.map_or(left, |next: Duration| next.min(left)));
                false
            }
            Err(end) => {
                end.count(counters);
                true
            }
        };
        let closed: Vec<_> = all.connections.extract_if(.., is_over).collect();
        all.is_looked_after = next.is_some();
        // They may say good-bye.
        drop((all, closed));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn connection_ends_with_the_first_limit_it_meets() {
        let limits = KeepLimits {
            requests: 3,
            time: 10 * SECOND,
            idle: 4 * SECOND,
        };
        let made = Instant::now();
        let used = |requests| ConnectionAge {
            made,
            place: None,
            seat: None,
            requests,
        };
        let after = |seconds: u32| made + seconds * SECOND;
        let ended = |requests, seconds| limits.end_of_use(&used(requests), after(seconds));
        assert_eq!(ended(2, 9), None);
        assert_eq!(ended(3, 9), Some(KeepEnd::Requests));
        assert_eq!(ended(2, 10), Some(KeepEnd::Time));
        let left = |since, now| limits.left(&used(1), after(since), after(now));
        assert_eq!(left(0, 1), Ok(3 * SECOND));
        assert_eq!(left(8, 9), Ok(SECOND));
        assert_eq!(left(0, 5), Err(KeepEnd::Idle));
        assert_eq!(left(8, 10), Err(KeepEnd::Time));
    }

    #[test]
    fn no_limit_of_requests_or_time_is_never_met() {
        let limits = KeepLimits {
            requests: 0,
            time: Duration::ZERO,
            idle: SECOND,
        };
        let made = Instant::now();
        let age = ConnectionAge {
            made,
            place: None,
            seat: None,
            requests: u64::MAX,
        };
        let later = made + 1_000_000 * SECOND;
        assert_eq!(limits.end_of_use(&age, later), None);
        assert_eq!(limits.left(&age, later, later), Ok(SECOND));
    }
}
