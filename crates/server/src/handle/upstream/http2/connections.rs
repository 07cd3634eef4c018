//! The connections that a thread has to members that speak HTTP/2. Who finds none with room makes
//! one; others wait for that meanwhile, as it has room for many.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use hob_http::Request;
use hob_http::tls::peer::PeerVersions;
use hob_trace::metric::ThreadCounters;

use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::http2::connection::{Http2Broken, SharedConnection};
use crate::handle::upstream::kept::ConnectionAge;
use crate::handle::upstream::link::{Connection, LinkTerms, connect, may_be_twice};
use crate::handle::upstream::member::Member;
use crate::handle::upstream::members::MemberUse;
use crate::handle::upstream::stream::MemberStream;

/// Which versions of HTTP are spoken with members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersions {
    /// Over TLS what both sides agree on, else HTTP/1.1.
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without asking.
    Http2,
}

impl HttpVersions {
    /// What is offered over TLS.
    pub(crate) fn offered(self) -> PeerVersions {
        match self {
            HttpVersions::Auto => PeerVersions::Either,
            HttpVersions::Http1 => PeerVersions::Http1,
            HttpVersions::Http2 => PeerVersions::Http2,
        }
    }
}

/// How long it holds that a member has not agreed on HTTP/2, in milliseconds of loop time.
const HTTP1_HOLDS_MS: u64 = 60_000;

/// Those of a thread.
#[derive(Default)]
pub(crate) struct Http2Connections {
    members: RefCell<Vec<MemberConnections>>,
}

/// Those to one member.
struct MemberConnections {
    member: std::sync::Weak<Member>,
    open: Vec<Weak<SharedConnection>>,
    /// Somebody makes one.
    is_sought: bool,
    /// The last one that was sought is there.
    was_found: bool,
    waiting: Vec<Waker>,
}

/// So many connections are made for a request, where each ends at once.
const CONNECT_TRIES: usize = 3;

/// What a request needs of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Http2Wish<'a> {
    pub(crate) request: &'a Request,
    pub(crate) counters: &'a ThreadCounters,
    pub(crate) terms: LinkTerms<'a>,
    pub(crate) versions: HttpVersions,
    pub(crate) connection: Connection,
    /// It is to become a tunnel.
    pub(crate) for_tunnel: bool,
    /// Longest head of an answer, in bytes.
    pub(crate) head_bytes_max: usize,
}

/// What there is for a request.
pub(crate) enum Http2Found {
    /// A connection with room for it; true where it had served others.
    Shared(Rc<SharedConnection>, bool),
    /// A new one, on which HTTP/1.1 was agreed.
    Http1(MemberStream, ConnectionAge),
    /// The member speaks HTTP/1.1.
    Nothing,
}

impl Http2Connections {
    /// A connection for a request.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn find(
        &self,
        used: &MemberUse,
        wish: Http2Wish<'_>,
    ) -> Result<Http2Found, UpstreamFailure> {
        let member = used.member_arc();
        let tls = used.terms();
        let settings = used.settings();
        // Who waits for a connection that serves one request waits for all before it.
        let is_shared = settings.keep > 0
            && settings.proxy_protocol.is_none()
            && settings.keep_limits.requests != 1;
        if wish.versions == HttpVersions::Auto
            && (tls.is_none() || wish.for_tunnel || is_http1(member, wish.request))
        {
            return Ok(Http2Found::Nothing);
        }
        let terms = tls.as_ref().map(|tls| &tls.terms);
        if !is_shared {
            return self.make(used, wish, None).await;
        }
        let mut connection = wish.connection;
        let seeking = loop {
            let fits = |one: &SharedConnection| {
                one.is_on(wish.head_bytes_max, terms) && one.may_open(wish.for_tunnel)
            };
            if connection == Connection::Any
                && let Some(found) = self.with(member, |known| known.find(fits))
            {
                if !may_be_twice(wish.request) && found.is_quiet() {
                    found.look();
                    if !found.may_open(wish.for_tunnel) {
                        continue;
                    }
                }
                if !found.may_go_on(&member.kept, wish.counters) {
                    continue;
                }
                if let Some(name) = &member.name {
                    name.keep_current(wish.request.reactor(), wish.terms.pool);
                }
                wish.counters.upstream_reuses.add(1);
                return Ok(Http2Found::Shared(found, true));
            }
            match Seeking::begin(self, member) {
                Some(seeking) => break Some(seeking),
                None => {
                    if !self.await_other(member).await {
                        // Each finds out for itself then, and none after the other.
                        break None;
                    }
                    // That one is new, too.
                    connection = Connection::Any;
                    if wish.versions == HttpVersions::Auto && is_http1(member, wish.request) {
                        return Ok(Http2Found::Nothing);
                    }
                }
            }
        };
        let made = self.make(used, wish, Some(member)).await;
        if let Some(seeking) = seeking {
            seeking.end(made.is_ok());
        }
        made
    }

    /// Makes a connection; where it is for others, too, they find it. One that ends before a
    /// request may go over it was taken by a server that is about to end: there may be another in
    /// its place.
    async fn make(
        &self,
        used: &MemberUse,
        wish: Http2Wish<'_>,
        shared_by: Option<&Arc<Member>>,
    ) -> Result<Http2Found, UpstreamFailure> {
        for _ in 0..CONNECT_TRIES {
            if let Some(found) = self.try_make(used, wish, shared_by).await? {
                return Ok(found);
            }
        }
        let why = "it closed the connection before it took a request over HTTP/2";
        Err(UpstreamFailure::Unreachable(why.to_owned()))
    }

    /// The same; nothing where the connection ends before a request may go over it.
    async fn try_make(
        &self,
        used: &MemberUse,
        wish: Http2Wish<'_>,
        shared_by: Option<&Arc<Member>>,
    ) -> Result<Option<Http2Found>, UpstreamFailure> {
        let Http2Wish {
            request,
            counters,
            terms,
            ..
        } = wish;
        let versions = wish.versions.offered();
        let (stream, age) = connect(used, request, counters, (terms, versions)).await?;
        let reactor = request.reactor();
        if versions == PeerVersions::Either && !stream.is_h2() {
            used.member()
                .http1_until_ms
                .store(reactor.now_ms() + HTTP1_HOLDS_MS, Ordering::Relaxed);
            return Ok(Some(Http2Found::Http1(stream, age)));
        }
        let how = (wish.head_bytes_max, shared_by.is_none());
        let times = (age, used.member().kept.idle_max());
        let made = SharedConnection::start(stream, reactor, how, times);
        let limit = reactor.timer();
        limit.set(terms.connect);
        let greeted = poll_fn(|cx| match made.poll_greeted(cx) {
            Poll::Ready(greeted) => Poll::Ready(Some(greeted)),
            Poll::Pending => limit.poll_elapsed(cx).map(|()| None),
        });
        match greeted.await {
            Some(Ok(())) => {}
            Some(Err(Http2Broken::Wire(reason))) => {
                return Err(UpstreamFailure::Unreachable(reason.to_owned()));
            }
            Some(Err(Http2Broken::Broken(error))) => {
                return Err(UpstreamFailure::Unreachable(error.to_string()));
            }
            Some(Err(Http2Broken::Tls(fault))) => {
                return Err(UpstreamFailure::of_tls(fault, counters));
            }
            Some(Err(_)) => return Ok(None),
            None => {
                made.give_up();
                return Err(UpstreamFailure::late_to_connect(counters));
            }
        }
        if !made.is_lasting() {
            return Ok(None);
        }
        if wish.for_tunnel && !made.allows_tunnels() {
            let why = "it takes no tunnels over HTTP/2 (RFC 8441)";
            return Err(UpstreamFailure::Unreachable(why.to_owned()));
        }
        if !made.may_open(false) {
            let why = "it allows no streams over HTTP/2";
            return Err(UpstreamFailure::Unreachable(why.to_owned()));
        }
        if let Some(member) = shared_by {
            self.with(member, |known| known.open.push(Rc::downgrade(&made)));
        }
        Ok(Some(Http2Found::Shared(made, false)))
    }

    /// Waits for another request's connection; false where there came none of it.
    async fn await_other(&self, member: &Arc<Member>) -> bool {
        let mut is_first = true;
        poll_fn(|cx| {
            self.with(member, |known| {
                if !std::mem::replace(&mut is_first, false) || !known.is_sought {
                    return Poll::Ready(known.is_sought || known.was_found);
                }
                known.waiting.push(cx.waker().clone());
                Poll::Pending
            })
        })
        .await
    }

    fn with<T>(&self, member: &Arc<Member>, take: impl FnOnce(&mut MemberConnections) -> T) -> T {
        let mut members = self.members.borrow_mut();
        let own = Arc::as_ptr(member);
        let at = members
            .iter()
            .position(|known| known.member.as_ptr() == own);
        let at = at.unwrap_or_else(|| {
            // Those of a config that is no more.
            members.retain(|known| known.member.strong_count() > 0);
            members.push(MemberConnections {
                member: Arc::downgrade(member),
                open: Vec::new(),
                is_sought: false,
                was_found: true,
                waiting: Vec::new(),
            });
            members.len() - 1
        });
        take(&mut members[at])
    }
}

impl MemberConnections {
    /// One over which a request may go that fits. Those that take none any more are forgotten.
    fn find(&mut self, fits: impl Fn(&SharedConnection) -> bool) -> Option<Rc<SharedConnection>> {
        let mut found = None;
        self.open.retain(|one| {
            let Some(one) = one.upgrade().filter(|one| one.is_lasting()) else {
                return false;
            };
            if found.is_none() && fits(&one) {
                found = Some(one);
            }
            true
        });
        found
    }
}

/// It is known to speak HTTP/1.1 alone.
fn is_http1(member: &Member, request: &Request) -> bool {
    request.reactor().now_ms() < member.http1_until_ms.load(Ordering::Relaxed)
}

/// Somebody makes a connection; others hear when that is done, or given up.
struct Seeking<'a> {
    connections: &'a Http2Connections,
    member: &'a Arc<Member>,
    was_found: bool,
}

impl<'a> Seeking<'a> {
    /// `None` where somebody else does.
    fn begin(connections: &'a Http2Connections, member: &'a Arc<Member>) -> Option<Seeking<'a>> {
        let is_other = connections.with(member, |known| {
            std::mem::replace(&mut known.is_sought, true)
        });
        (!is_other).then(|| Seeking {
            connections,
            member,
            // Who gives it up leaves it to the next one.
            was_found: true,
        })
    }

    fn end(mut self, was_found: bool) {
        self.was_found = was_found;
    }
}

impl Drop for Seeking<'_> {
    fn drop(&mut self) {
        let waiting = self.connections.with(self.member, |known| {
            known.is_sought = false;
            known.was_found = self.was_found;
            std::mem::take(&mut known.waiting)
        });
        waiting.into_iter().for_each(Waker::wake);
    }
}
