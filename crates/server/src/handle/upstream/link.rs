//! A connection to a member while a request has it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hob_http::tls::peer::PeerVersions;
use hob_http::{Reactor, Request};
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::RequestStage;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::script::gate::Permit;
use crate::handle::upstream::connect::{self, ConnectError};
use crate::handle::upstream::fail::UpstreamFailure;
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
    /// What is offered over TLS to be spoken, where nothing has to be found out.
    pub(crate) versions: PeerVersions,
    /// Looks names up.
    pub(crate) pool: &'a DiskThreads,
}

/// Whether what a request asks for may be done twice: it does the same (RFC 9110 section 9.2.2).
pub(crate) fn may_be_twice(request: &Request) -> bool {
    const IDEMPOTENT: [&[u8]; 5] = [b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"];
    IDEMPOTENT.contains(&request.head().method())
}

/// Connects to a member, and counts that. Over TLS these versions of HTTP are offered.
///
/// # Errors
/// Why there is no connection.
pub(crate) async fn connect(
    used: &MemberUse,
    request: &Request,
    counters: &ThreadCounters,
    (terms, versions): (LinkTerms<'_>, PeerVersions),
) -> Result<(MemberStream, ConnectionAge), UpstreamFailure> {
    let member = used.member();
    let tls = used.terms();
    let tls = tls.as_ref().map(|tls| (&tls.terms, versions));
    let version = used.settings().proxy_protocol;
    let opening = proxy_protocol::opening(version, Some(request.facts()));
    let on = (request.reactor(), terms.pool);
    let seat = member.seat();
    let stream = match connect::to((member, tls), on, terms.connect, &opening).await {
        Ok(stream) => stream,
        Err(ConnectError::Timeout) => return Err(UpstreamFailure::late_to_connect(counters)),
        Err(ConnectError::Refused(error)) => return Err(UpstreamFailure::Unreachable(error)),
        Err(ConnectError::Tls(fault)) => return Err(UpstreamFailure::of_tls(fault, counters)),
    };
    counters.upstream_connects.add(1);
    if let MemberStream::Tls(stream) = &stream {
        counters.upstream_tls_handshakes.add(1);
        let resumed = u64::from(stream.is_resumed());
        counters.upstream_tls_resumed.add(resumed);
    }
    request.tell(
        RequestStage::Program,
        format_args!("the connection to {} is new", member.text),
    );
    let age = ConnectionAge::of(&stream, member, seat);
    Ok((stream, age))
}

/// What a request has of a member.
pub(crate) trait MemberLink {
    fn used(&self) -> &MemberUse;

    /// It had served others before.
    fn is_kept(&self) -> bool;

    /// Gives it up, and its place among the connections to another try.
    fn into_permit(self) -> Permit;
}

impl MemberLink for Link {
    fn used(&self) -> &MemberUse {
        &self.used
    }

    fn is_kept(&self) -> bool {
        self.is_kept
    }

    fn into_permit(self) -> Permit {
        self.hang_up();
        self.permit
    }
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
        let (stream, age) = match resting {
            Some(resting) => {
                if let Some(name) = &member.name {
                    name.keep_current(reactor, terms.pool);
                }
                resting
            }
            None => {
                let made = connect(&used, request, counters, (terms, terms.versions)).await;
                match made {
                    Ok(made) => made,
                    Err(failure) => return Err((failure, used, permit)),
                }
            }
        };
        if is_kept {
            counters.upstream_reuses.add(1);
            let text = &used.member().text;
            request.tell(
                RequestStage::Program,
                format_args!("the connection to {text} goes on"),
            );
        }
        Ok(Link {
            stream: Rc::new(stream),
            used,
            permit,
            is_kept,
            age,
            waiting: waiting.filter(|_| !is_kept),
        })
    }

    /// A new one, that nobody has used.
    pub(crate) fn of(
        (stream, age): (MemberStream, ConnectionAge),
        used: MemberUse,
        permit: Permit,
    ) -> Link {
        Link {
            stream: Rc::new(stream),
            age,
            used,
            permit,
            is_kept: false,
            waiting: None,
        }
    }

    /// Something has come over it.
    pub(crate) fn hear(&mut self) {
        self.waiting = None;
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
