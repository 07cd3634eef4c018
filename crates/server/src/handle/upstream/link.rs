//! A connection to a member while a request has it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hob_http::{Reactor, Request};
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::RequestStage;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::script::gate::Permit;
use crate::handle::upstream::connect::{self, ConnectError};
use crate::handle::upstream::fail::{TimeLimit, UpstreamFailure};
use crate::handle::upstream::kept::{ConnectionAge, WaitingConnection};
use crate::handle::upstream::members::MemberUse;
use crate::handle::upstream::proxy_protocol;
use crate::handle::upstream::stream::MemberStream;

/// A connection for a request.
pub(crate) struct Link {
    pub(crate) stream: Rc<MemberStream>,
    pub(crate) used: MemberUse,
    /// Held for as long as the request is.
    permit: Permit,
    /// It had rested.
    pub(crate) is_kept: bool,
    age: ConnectionAge,
    /// It is new, nothing has come over it, and none is to rest meanwhile.
    waiting: Option<WaitingConnection>,
}

/// Which connection a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// One that rests, if there is one.
    Any,
    /// A new one.
    New,
}

/// What a connection needs to be known.
#[derive(Clone, Copy)]
pub(crate) struct LinkTerms<'a> {
    pub(crate) connect: Duration,
    /// A process behind a resting connection may be the one that is to take a new one.
    pub(crate) holds_process: bool,
    /// Looks names up.
    pub(crate) pool: &'a DiskThreads,
}

/// Whether what a request asks for may be done twice: it does the same (RFC 9110 section 9.2.2).
pub(crate) fn may_be_twice(request: &Request) -> bool {
    const IDEMPOTENT: [&[u8]; 5] = [b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"];
    IDEMPOTENT.contains(&request.head().method())
}

impl Link {
    /// Takes a connection, one that rests if it may. Where there is none, who was to use it gets
    /// back what it came with.
    pub(crate) async fn open(
        used: MemberUse,
        permit: Permit,
        request: &Request,
        counters: &ThreadCounters,
        (terms, connection): (LinkTerms<'_>, Connection),
    ) -> Result<Link, (UpstreamFailure, MemberUse, Permit)> {
        let reactor = request.reactor();
        let member = used.member();
        // Before it is looked for one that rests: what begins to rest now is closed for this one.
        let waiting = terms.holds_process.then(|| member.kept.begin_to_wait());
        let tls = used.terms();
        let tls = tls.as_ref().map(|tls| &tls.terms);
        let resting = match connection {
            // What must not be sent again goes over one that was just looked at.
            Connection::Any => member.kept.take(reactor, !may_be_twice(request), tls),
            Connection::New => None,
        };
        let is_kept = resting.is_some();
        let stream = match resting {
            Some(resting) => {
                if let Some(name) = &member.name {
                    name.keep_current(reactor, terms.pool);
                }
                Ok(resting)
            }
            None => {
                let version = used.settings().proxy_protocol;
                let opening = proxy_protocol::opening(version, Some(request.facts()));
                let seat = member.seat();
                let on = (reactor, terms.pool);
                let made = connect::to((member, tls), on, terms.connect, &opening).await;
                made.map(|stream| {
                    let place = member.name.as_ref().and_then(|_| stream.place());
                    (stream, ConnectionAge::new(place, seat))
                })
            }
        };
        let (stream, age) = match stream {
            Ok((stream, age)) => (Rc::new(stream), age),
            Err(ConnectError::Timeout) => {
                TimeLimit::Connect.count(counters);
                return Err((UpstreamFailure::Time(TimeLimit::Connect), used, permit));
            }
            Err(ConnectError::Refused(error)) => {
                return Err((UpstreamFailure::Unreachable(error), used, permit));
            }
            Err(ConnectError::Tls(fault)) => {
                return Err((UpstreamFailure::of_tls(fault, counters), used, permit));
            }
        };
        let (count, how) = match is_kept {
            true => (&counters.upstream_reuses, "goes on"),
            false => (&counters.upstream_connects, "is new"),
        };
        count.add(1);
        if let (MemberStream::Tls(stream), false) = (&*stream, is_kept) {
            counters.upstream_tls_handshakes.add(1);
            let resumed = u64::from(stream.is_resumed());
            counters.upstream_tls_resumed.add(resumed);
        }
        request.tell(
            RequestStage::Program,
            format_args!("the connection to {} {how}", member.text),
        );
        Ok(Link {
            stream,
            used,
            permit,
            is_kept,
            age,
            waiting: waiting.filter(|_| !is_kept),
        })
    }

    /// Something has come over it.
    pub(crate) fn hear(&mut self) {
        self.waiting = None;
    }

    /// Gives it up, and its place among the connections to another try.
    pub(crate) fn into_permit(self) -> Permit {
        self.hang_up();
        self.permit
    }

    pub(crate) fn hang_up(&self) {
        self.stream.hang_up();
    }

    /// Nothing is under way any more, and it may serve no other request.
    pub(crate) fn close(self) {
        match Rc::try_unwrap(self.stream) {
            Ok(stream) => stream.close(),
            Err(stream) => stream.hang_up(),
        }
    }

    /// Nothing is under way any more: it may serve another request.
    pub(crate) fn rest(self, reactor: &Reactor, counters: &Arc<ThreadCounters>) {
        let Link {
            stream,
            used,
            permit,
            age,
            ..
        } = self;
        let kept = &used.member().kept;
        match Rc::try_unwrap(stream) {
            Ok(stream) if kept.is_any() => kept.put((stream, age), reactor, counters),
            Ok(stream) => stream.close(),
            // A body is still sent, of which the other side has read enough.
            Err(stream) => stream.hang_up(),
        }
        // Who waits for it finds the connection.
        drop(permit);
    }
}
