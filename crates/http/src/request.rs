//! A request as handlers see it: its head, its body as it arrives, and the line back to the client.
//!
//! A [`Request`] is a counted handle that stays on its thread. When the last handle goes, its
//! memory is used for the next request of the thread.
//!
//! - `held` what it keeps from others while it is under way
//! - `incoming` its body on the way to the handler
//! - `said` what its handler says beside the answer
//! - `watched` what those are told who watch it

mod held;
mod incoming;
mod said;
mod watched;

use std::cell::{Cell, OnceCell, Ref, RefCell, RefMut};
use std::fmt;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use hob_trace::{Record, TlsVersion};

use crate::body::BodyError;
use crate::clock::clock_us;
use crate::head::{Known, RequestHead};
use crate::reactor::Reactor;
use crate::tls::{ClientCertificate, ShownCertificates};

use held::HeldPlaces;
pub use incoming::BodyPiece;
pub(crate) use incoming::{Incoming, IncomingState};
use said::HandlerReport;
pub use said::{Aftermath, AtWork, HalfClose, HandlerPhase, TextsShown};
use watched::WatchMarks;

/// What is known of a connection: data, not a socket.
#[derive(Clone, Debug)]
pub struct ConnectionFacts {
    /// The client; `None` over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address the connection came to; `None` over a Unix socket.
    pub local: Option<SocketAddr>,
    /// User of the process at the other end of a Unix socket.
    pub peer_uid: Option<u32>,
    /// Index of the listener that took the connection.
    pub listener: u16,
    /// A number of the connection, unique in this process.
    pub number: u64,
    /// What the TLS handshake gave; `None` in clear text.
    pub tls: Option<Rc<TlsFacts>>,
    /// What who connected said of the client, where that is believed: `peer` is what it said then.
    pub told: Option<ToldOfClient>,
}

/// What was said of a client by who passed its request on.
#[derive(Clone, Debug)]
pub struct ToldOfClient {
    /// Whether the client spoke TLS, where that was said.
    pub is_secure: Option<bool>,
    /// The field in which it was said, in lower case; empty where the connection began with it.
    pub field: Rc<str>,
    /// Names and values that programs are told as they were said; `None` where none are.
    pub variables: Option<ToldVariables>,
}

/// Names and values that were said of a request.
pub type ToldVariables = Arc<[(Box<[u8]>, Box<[u8]>)]>;

impl ConnectionFacts {
    /// The client spoke TLS: with this server, or with one in front of it that is believed.
    pub fn is_secure(&self) -> bool {
        let told = self.told.as_ref().and_then(|told| told.is_secure);
        told.unwrap_or(self.tls.is_some())
    }
}

/// What the TLS handshake gave.
#[derive(Clone, Debug)]
pub struct TlsFacts {
    /// Server name asked for (SNI).
    pub server_name: Option<String>,
    /// Protocol version.
    pub version: TlsVersion,
    /// Cipher suite by its IANA name.
    pub suite: &'static str,
    /// The client came back with a ticket.
    pub is_resumed: bool,
    /// The number of the rule for certificates of clients that it was made under
    /// ([`ClientRule::number`](crate::tls::ClientRule::number)).
    pub rule: u64,
    /// The client's certificate, if it has shown one. It was checked.
    pub client: Option<ClientCertificate>,
    /// The same as it came, to be checked again.
    pub(crate) shown: ShownCertificates,
    /// The rule under which it was found good since.
    pub(crate) admitted: Cell<u64>,
    /// From the connection's begin until the handshake was done, in microseconds.
    pub handshake_us: u64,
}

/// What becomes of conditions and ranges when a request is answered for another target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preconditions {
    /// They hold for what is at the new target.
    Kept,
    /// They were not meant for it.
    Dropped,
}

/// A request. Cloning counts; everything stays on the thread that read it.
#[derive(Clone)]
pub struct Request {
    pub(crate) exchange: Rc<Exchange>,
}

/// Who has signed in, and how.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The name; empty where it is not known, and where a route asks and nobody has to say.
    pub user: Arc<str>,
    /// The scheme, as programs are told it: `Basic`; empty where there is none.
    pub scheme: &'static str,
    /// What else programs are told of them: fields by their names in lower case, which take the
    /// place of the request's own; those without values are none.
    pub fields: ToldVariables,
    /// Cookies that the answer takes along: values of `Set-Cookie`.
    pub cookies: Vec<Box<[u8]>>,
}

/// The memory behind a [`Request`].
pub(crate) struct Exchange {
    /// As it came.
    pub(crate) head: RequestHead,
    /// The request as it goes on after a handler has sent it elsewhere.
    detour: OnceCell<Box<Detour>>,
    /// What a site made of its path, in normal form.
    rewritten_path: OnceCell<Box<[u8]>>,
    /// What a route made of its query.
    rewritten_query: OnceCell<Box<[u8]>>,
    /// What is known of its connection.
    pub(crate) facts: Rc<ConnectionFacts>,
    /// The same with what was said of the client, where that is believed.
    told: OnceCell<Rc<ConnectionFacts>>,
    /// The two letters of its client's country, where programs are told it.
    country: Cell<Option<[u8; 2]>>,
    /// Who sends it, where a route has asked.
    signed_in: RefCell<Option<SignedIn>>,
    /// Opened before anything is decided, closed when the last byte is out.
    pub(crate) record: RefCell<Record>,
    /// What comes of its body, and who waits for that.
    pub(crate) body: RefCell<Incoming>,
    /// Longest body, in bytes: the route may have changed it.
    pub(crate) body_limit: Cell<u64>,
    /// The client is gone, or will not hear the answer.
    pub(crate) left: Cell<bool>,
    /// Of the thread that drives it.
    pub(crate) reactor: Reactor,
    /// Of its connection, by which a waker finds it.
    pub(crate) key: Cell<u64>,
    /// Up to where its answer's head goes, of what its connection sends; 0 before there is one,
    /// and where a connection carries one answer at a time.
    pub(crate) head_until: Cell<u64>,
    /// What the handler says besides its answer.
    pub(crate) said: HandlerReport,
    /// What others wait for until its answer has left.
    held: HeldPlaces,
    /// Who watches it.
    marks: WatchMarks,
}

/// One of the heads that take the place of a request's own, and the one that takes its place.
struct Detour {
    head: RequestHead,
    rewritten_query: OnceCell<Box<[u8]>>,
    next: OnceCell<Box<Detour>>,
}

impl Request {
    /// The head: the client's, or that of the last [`Request::detour`].
    #[inline]
    pub fn head(&self) -> &RequestHead {
        match self.exchange.detour.get() {
            None => &self.exchange.head,
            Some(detour) => &detour.last().head,
        }
    }

    /// The query as programs are to see it: that of the head, or what the route makes of it.
    pub fn query(&self) -> Option<&[u8]> {
        let rewritten = self.rewritten_query().get();
        rewritten
            .map(|query| &**query)
            .or_else(|| self.head().query())
    }

    /// From here on [`Request::query`] is this one, until a [`Request::detour`]. The first counts.
    pub fn rewrite_query(&self, query: &[u8]) {
        self.rewritten_query().get_or_init(|| query.into());
    }

    /// Notes the path in normal form that its site answers instead of its own. The first counts.
    pub fn rewrite_path(&self, path: &[u8]) {
        self.exchange.rewritten_path.get_or_init(|| path.into());
    }

    /// That path, until a [`Request::detour`].
    pub fn rewritten_path(&self) -> Option<&[u8]> {
        let path = self.exchange.rewritten_path.get();
        path.filter(|_| !self.is_on_detour()).map(|path| &**path)
    }

    fn rewritten_query(&self) -> &OnceCell<Box<[u8]>> {
        match self.exchange.detour.get() {
            None => &self.exchange.rewritten_query,
            Some(detour) => &detour.last().rewritten_query,
        }
    }

    /// The head as the client sent it, whatever became of the request since.
    #[inline]
    pub fn sent_head(&self) -> &RequestHead {
        &self.exchange.head
    }

    /// From here on the request is one for another target, without a body: a GET, or a HEAD when it
    /// is one. Record, connection and the other fields stay.
    pub fn detour(&self, target: &[u8], preconditions: Preconditions) {
        let method: &[u8] = match self.head().method() {
            b"HEAD" => b"HEAD",
            _ => b"GET",
        };
        self.go_on_as(method, target, preconditions);
    }

    /// As [`Request::detour`], for an answer that is read here and not sent: a GET in any case,
    /// whose conditions are none of the client's.
    pub fn call(&self, target: &[u8]) {
        self.go_on_as(b"GET", target, Preconditions::Dropped);
    }

    fn go_on_as(&self, method: &[u8], target: &[u8], preconditions: Preconditions) {
        let before = self.head();
        let is_dropped = |known| preconditions == Preconditions::Dropped && is_condition(known);
        let detour = Box::new(Detour {
            head: before.detour(method, target, is_dropped),
            rewritten_query: OnceCell::new(),
            next: OnceCell::new(),
        });
        let last = match self.exchange.detour.get() {
            None => &self.exchange.detour,
            Some(detour) => &detour.last().next,
        };
        let is_first = last.set(detour).is_ok();
        debug_assert!(is_first, "the last one has none after it");
    }

    fn is_on_detour(&self) -> bool {
        self.exchange.detour.get().is_some()
    }

    /// The connection it came over.
    pub fn facts(&self) -> &ConnectionFacts {
        self.exchange.told.get().unwrap_or(&self.exchange.facts)
    }

    /// Believes what was said of the client: from now on that is where the request comes from. It
    /// is said once.
    pub fn believe(&self, client: Option<IpAddr>, told: ToldOfClient) {
        let mut facts = ConnectionFacts::clone(&self.exchange.facts);
        if let Some(client) = client {
            facts.peer = Some(SocketAddr::new(client, 0));
            let mut record = self.record_mut();
            (record.client, record.client_port) = (client, 0);
        }
        facts.told = Some(told);
        let _ = self.exchange.told.set(Rc::new(facts));
    }

    /// The two letters of its client's country, where one is known and programs are told it.
    pub fn country(&self) -> Option<[u8; 2]> {
        self.exchange.country.get()
    }

    /// Has programs told the two letters of its client's country.
    pub fn set_country(&self, code: Option<[u8; 2]>) {
        self.exchange.country.set(code);
    }

    /// Who has signed in with it, where a route asks for that.
    pub fn signed_in(&self) -> Ref<'_, Option<SignedIn>> {
        self.exchange.signed_in.borrow()
    }

    /// Somebody has signed in with it; the last counts. Cookies of those before are kept, except
    /// where this one has some of the same names.
    pub fn sign_in(&self, mut user: SignedIn) {
        let name = |cookie: &[u8]| cookie.iter().position(|byte| *byte == b'=');
        let mut kept = self.take_cookies();
        if !kept.is_empty() {
            kept.retain(|old| {
                let old = name(old).map(|end| &old[..end]);
                let mut newer = user.cookies.iter();
                !newer.any(|new| name(new).map(|end| &new[..end]) == old)
            });
            user.cookies.splice(..0, kept);
        }
        *self.exchange.signed_in.borrow_mut() = Some(user);
    }

    /// The cookies of who has signed in, which nobody has taken along yet.
    pub fn take_cookies(&self) -> Vec<Box<[u8]>> {
        let mut signed_in = self.exchange.signed_in.borrow_mut();
        let taken = signed_in.as_mut().map(|who| mem::take(&mut who.cookies));
        taken.unwrap_or_default()
    }

    /// The loop of the thread it is answered on: descriptors, timers and tasks to wait with.
    pub fn reactor(&self) -> &Reactor {
        &self.exchange.reactor
    }

    /// What is known about the request so far.
    pub fn record(&self) -> Ref<'_, Record> {
        self.exchange.record.borrow()
    }

    /// The record, to note who answers and why.
    pub fn record_mut(&self) -> RefMut<'_, Record> {
        self.exchange.record.borrow_mut()
    }

    /// How long it has been under way, in microseconds. Reads the clock.
    pub fn age_us(&self) -> u64 {
        clock_us().saturating_sub(self.record().started_us)
    }

    /// True when the client is known to be gone.
    pub fn has_left(&self) -> bool {
        self.exchange.left.get()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head().fmt(f)
    }
}

impl Detour {
    fn last(&self) -> &Detour {
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = next;
        }
        last
    }
}

fn is_condition(known: Known) -> bool {
    matches!(
        known,
        Known::IfMatch
            | Known::IfModifiedSince
            | Known::IfNoneMatch
            | Known::IfRange
            | Known::IfUnmodifiedSince
            | Known::Range
    )
}

impl Exchange {
    pub(crate) fn new(facts: Rc<ConnectionFacts>, reactor: Reactor) -> Exchange {
        Exchange {
            head: RequestHead::empty(),
            detour: OnceCell::new(),
            rewritten_path: OnceCell::new(),
            rewritten_query: OnceCell::new(),
            facts,
            told: OnceCell::new(),
            country: Cell::new(None),
            signed_in: RefCell::default(),
            record: RefCell::new(Record::empty()),
            body: RefCell::default(),
            body_limit: Cell::new(u64::MAX),
            left: Cell::new(false),
            reactor,
            key: Cell::new(0),
            head_until: Cell::new(0),
            said: HandlerReport::default(),
            held: HeldPlaces::default(),
            marks: WatchMarks::default(),
        }
    }

    /// Makes it fit for the next request; the memory stays.
    pub(crate) fn renew(&mut self, facts: &Rc<ConnectionFacts>) {
        self.head.clear();
        self.detour.take();
        self.rewritten_path.take();
        self.rewritten_query.take();
        self.told.take();
        self.country.set(None);
        *self.signed_in.get_mut() = None;
        if !Rc::ptr_eq(&self.facts, facts) {
            self.facts = Rc::clone(facts);
        }
        *self.record.get_mut() = Record::empty();
        self.said.renew();
        self.held.let_go();
        let body = self.body.get_mut();
        if body.is_wanted || body.announced != Some(0) || !body.pieces.is_empty() {
            *body = Incoming::default();
        }
        body.state = IncomingState::Ended;
        body.waker = None;
        (body.wait_since_us, body.shown_bytes, body.is_tunnel) = (0, 0, false);
        self.left.set(false);
        self.head_until.set(0);
        self.marks.bits.set((0, 0));
    }

    pub(crate) fn notify(&self) {
        self.reactor.ready().push(self.key.get());
    }

    /// The client is gone: everyone who waits is told.
    pub(crate) fn leave(&self) {
        self.left.set(true);
        let mut body = self.body.borrow_mut();
        if body.state == IncomingState::Open {
            body.break_off(BodyError::ClientLeft);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HttpLimits;

    #[test]
    fn detour_is_a_get_for_another_target_without_a_body() {
        let head = b"POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nRange: bytes=0-1\r\n\
                     Content-Type: x/y\r\nCookie: c=1\r\ncookie: d=2\r\n\r\n";
        let request = Request::offline(head, &HttpLimits::default()).unwrap();
        request.rewrite_query(b"c");
        assert_eq!(request.query(), Some(&b"c"[..]));
        request.detour(b"/one", Preconditions::Kept);
        assert_eq!(request.query(), None);
        assert_eq!(request.head().value(Known::Range), Some(&b"bytes=0-1"[..]));
        request.detour(b"/two?q=%20", Preconditions::Dropped);
        let now = request.head();
        assert_eq!(now.method(), b"GET");
        assert_eq!(
            (now.target(), now.path()),
            (&b"/two?q=%20"[..], &b"/two"[..])
        );
        assert_eq!(now.query(), Some(&b"q=%20"[..]));
        assert_eq!(now.host(), b"h");
        let fields: Vec<_> = now.fields().map(|(name, _)| name).collect();
        assert_eq!(fields, [&b"Host"[..], b"Cookie", b"cookie"]);
        assert_eq!(now.joined(Known::Cookie).as_deref(), Some(&b"c=1, d=2"[..]));
        assert_eq!(now.value(Known::ContentLength), None);
        assert_eq!(request.body_len(), Some(0));
        assert_eq!(request.sent_head().target(), b"/a?b");
        assert_eq!(
            request.sent_head().value(Known::ContentLength),
            Some(&b"3"[..])
        );
    }

    #[test]
    fn head_request_stays_one_on_a_detour() {
        let request = Request::offline(
            b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
            &HttpLimits::default(),
        )
        .unwrap();
        request.detour(b"/one", Preconditions::Kept);
        assert_eq!(
            (request.head().method(), request.head().query()),
            (&b"HEAD"[..], None)
        );
        request.call(b"/two?a=1");
        assert_eq!(
            (request.head().method(), request.head().query()),
            (&b"GET"[..], Some(&b"a=1"[..]))
        );
    }
}
