//! A connection to a member that speaks HTTP/2. A task drives it: it reads what comes and gives it
//! to the streams, and writes what they leave. Streams write nothing themselves, so that what many
//! requests have to say in one turn of the loop leaves together.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hob_http::h2::client::{Http2AnswerHead, Http2Client, Http2ClientEvent, Http2StreamFault};
use hob_http::reactor::Timer;
use hob_http::tls::peer::{PeerFault, PeerTerms};
use hob_http::{Bytes, Fields, Reactor};
use hob_trace::metric::ThreadCounters;

use crate::handle::upstream::http2::Http2Stream;
use crate::handle::upstream::kept::{ConnectionAge, KeptConnections};
use crate::handle::upstream::stream::MemberStream;

/// Bytes read at a time: at first, and where so many come.
const READ_BYTES_MIN: usize = 16 * 1024;
const READ_BYTES_MAX: usize = 64 * 1024;
/// Bytes of bodies that wait to be written, of all streams.
const WRITTEN_BYTES_MAX: usize = 64 * 1024;

/// What comes of an answer.
#[derive(Debug)]
pub(crate) enum StreamPart {
    Interim(u16, Fields),
    Head(Http2AnswerHead),
    Body(Bytes),
    /// It has ended, with these trailers.
    End(Fields),
}

/// Why no more of an answer comes.
#[derive(Clone, Debug)]
pub(crate) enum Http2Broken {
    /// The member has not looked at the request.
    Refused,
    /// It broke the stream off, with this code.
    Reset(u32),
    /// What came is no answer, or no HTTP/2.
    Wire(&'static str),
    /// The connection ended.
    Closed,
    /// The connection broke.
    Broken(Rc<str>),
    /// There is no more TLS.
    Tls(PeerFault),
}

impl Http2Broken {
    fn of(error: io::Error) -> Http2Broken {
        match error.kind() {
            // It has closed; perhaps it has not said that it ends.
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
                Http2Broken::Closed
            }
            _ => match error.downcast() {
                Ok(fault) => Http2Broken::Tls(fault),
                Err(error) => Http2Broken::Broken(error.to_string().into()),
            },
        }
    }
}

/// A connection.
pub(crate) struct SharedConnection {
    stream: MemberStream,
    reactor: Reactor,
    pub(super) state: RefCell<ConnectionState>,
    /// It serves one request: nothing waits for another.
    is_single: bool,
    head_bytes_max: usize,
    io: RefCell<ConnectionIo>,
    read_bytes: Cell<usize>,
    /// It has had a request.
    was_used: Cell<bool>,
    /// How often something has come.
    reads: Cell<u64>,
    /// A request was waited for in vain, and nothing at all has come meanwhile: perhaps the other
    /// side is no more.
    is_silent: Cell<bool>,
    age: RefCell<ConnectionAge>,
    /// It has served as much as it may.
    is_retired: Cell<bool>,
    /// The clock for another one runs.
    is_resting: Cell<bool>,
}

pub(super) struct ConnectionState {
    pub(super) core: Http2Client,
    /// What is to be written.
    pub(super) out: Vec<u8>,
    /// Streams of ours.
    sides: Vec<StreamSide>,
    driver: Option<Waker>,
    greeted: Vec<Waker>,
    /// It is over.
    broken: Option<Http2Broken>,
}

/// What has come for a stream.
struct StreamSide {
    id: u32,
    parts: VecDeque<StreamPart>,
    broken: Option<Http2Broken>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Default)]
struct ConnectionIo {
    input: Vec<u8>,
    writing: Vec<u8>,
    written: usize,
}

impl SharedConnection {
    /// Begins to speak over a connection that is there; a task of its own drives it from now on.
    pub(super) fn start(
        stream: MemberStream,
        reactor: &Reactor,
        (head_bytes_max, is_single): (usize, bool),
        (age, rest_max): (ConnectionAge, Duration),
    ) -> Rc<SharedConnection> {
        let mut out = Vec::new();
        let core = Http2Client::new(head_bytes_max, reactor.now_ms(), &mut out);
        let connection = Rc::new(SharedConnection {
            stream,
            reactor: reactor.clone(),
            state: RefCell::new(ConnectionState {
                core,
                out,
                sides: Vec::new(),
                driver: None,
                greeted: Vec::new(),
                broken: None,
            }),
            is_single,
            head_bytes_max,
            io: RefCell::default(),
            read_bytes: Cell::new(READ_BYTES_MIN),
            was_used: Cell::new(false),
            reads: Cell::new(0),
            is_silent: Cell::new(false),
            age: RefCell::new(age),
            is_retired: Cell::new(false),
            is_resting: Cell::new(false),
        });
        let driven = Rc::clone(&connection);
        reactor.spawn_standing(async move {
            let idle = driven.reactor.timer();
            let why = poll_fn(|cx| driven.poll_drive(cx, &idle, rest_max)).await;
            driven.end(&why);
        });
        connection
    }

    /// Ready once the other side has told what it allows.
    pub(super) fn poll_greeted(&self, cx: &Context<'_>) -> Poll<Result<(), Http2Broken>> {
        let mut state = self.state.borrow_mut();
        match &state.broken {
            Some(broken) => Poll::Ready(Err(broken.clone())),
            None if state.core.is_greeted() => Poll::Ready(Ok(())),
            None => {
                state.greeted.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// One more request may go over it now; `for_tunnel` one for a tunnel.
    pub(super) fn may_open(&self, for_tunnel: bool) -> bool {
        let state = self.state.borrow();
        let is_fit = !for_tunnel || state.core.allows_connect();
        is_fit && !self.is_silent.get() && state.broken.is_none() && state.core.may_open()
    }

    /// Requests may go over it, now or when others have ended.
    pub(super) fn is_lasting(&self) -> bool {
        let state = self.state.borrow();
        let is_good = !self.is_silent.get() && !self.is_retired.get();
        is_good && state.broken.is_none() && state.core.is_lasting()
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads.get()
    }

    /// Nothing has come for too long. Other requests take another connection, until something does.
    pub(super) fn fall_silent(&self) {
        self.is_silent.set(true);
    }

    /// Whether it may have one more request; it ends else, once it has none.
    pub(super) fn may_go_on(&self, kept: &KeptConnections, counters: &ThreadCounters) -> bool {
        if kept.may_go_on(&self.age.borrow(), counters) {
            self.age.borrow_mut().use_again();
            return true;
        }
        self.is_retired.set(true);
        self.wake_driver();
        false
    }

    /// Whether a tunnel may be asked for.
    pub(super) fn allows_tunnels(&self) -> bool {
        self.state.borrow().core.allows_connect()
    }

    /// It was made for answers with such heads, and on these terms.
    pub(super) fn is_on(&self, head_bytes_max: usize, terms: Option<&PeerTerms>) -> bool {
        self.head_bytes_max == head_bytes_max && self.stream.is_on(terms)
    }

    /// TLS is spoken below it.
    pub(crate) fn is_secure(&self) -> bool {
        self.stream.is_secure()
    }

    /// Nothing is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.state.borrow().core.open_count() == 0
    }

    /// Looks whether the other side has ended it, so that what must not be sent twice is not sent
    /// in vain.
    pub(super) fn look(&self) {
        self.stream.mark_readable();
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(why) = self.poll_io(&mut cx) {
            self.fail(&why);
        }
        self.wake_driver();
    }

    /// Nobody waits for it any more.
    pub(super) fn give_up(&self) {
        self.fail(&Http2Broken::Closed);
        self.stream.hang_up();
        self.wake_driver();
    }

    pub(super) fn add_side(&self, id: u32) {
        self.was_used.set(true);
        self.state.borrow_mut().sides.push(StreamSide {
            id,
            parts: VecDeque::new(),
            broken: None,
            reader: None,
            writer: None,
        });
    }

    pub(super) fn wake_driver(&self) {
        if let Some(driver) = &self.state.borrow().driver {
            driver.wake_by_ref();
        }
    }

    /// What comes next of a stream.
    pub(super) fn poll_part(
        &self,
        id: u32,
        cx: &Context<'_>,
    ) -> Poll<Result<StreamPart, Http2Broken>> {
        let mut state = self.state.borrow_mut();
        let all = state.broken.clone();
        let Some(side) = state.side(id) else {
            return Poll::Ready(Err(Http2Broken::Closed));
        };
        if let Some(part) = side.parts.pop_front() {
            return Poll::Ready(Ok(part));
        }
        match side.broken.clone().or(all) {
            Some(broken) => Poll::Ready(Err(broken)),
            None => {
                note(&mut side.reader, cx);
                Poll::Pending
            }
        }
    }

    /// How much may be sent on a stream now; none where nobody takes more.
    pub(super) fn poll_room(&self, id: u32, cx: &Context<'_>) -> Poll<Option<usize>> {
        let writing = self.io.borrow().writing.len();
        let mut state = self.state.borrow_mut();
        if state.broken.is_some() {
            return Poll::Ready(None);
        }
        let waiting = state.out.len() + writing;
        match state.core.room(id) {
            None => Poll::Ready(None),
            Some(room) if room > 0 && waiting < WRITTEN_BYTES_MAX => Poll::Ready(Some(room)),
            Some(_) => {
                if let Some(side) = state.side(id) {
                    note(&mut side.writer, cx);
                }
                Poll::Pending
            }
        }
    }

    /// Nobody wants more of a stream.
    pub(super) fn forget(&self, id: u32) {
        let mut state = self.state.borrow_mut();
        if let Some(at) = state.sides.iter().position(|side| side.id == id) {
            let side = state.sides.swap_remove(at);
            side.writer.into_iter().for_each(Waker::wake);
        }
        let ConnectionState { core, out, .. } = &mut *state;
        let is_told = core.cancel(id, out);
        let is_last = state.sides.is_empty();
        drop(state);
        if is_told || is_last {
            self.wake_driver();
        }
    }

    /// Ready when the connection is over, and why.
    fn poll_drive(
        &self,
        cx: &mut Context<'_>,
        idle: &Timer,
        rest_max: Duration,
    ) -> Poll<Http2Broken> {
        note(&mut self.state.borrow_mut().driver, cx);
        if let Some(broken) = &self.state.borrow().broken {
            return Poll::Ready(broken.clone());
        }
        let done = self.poll_io(cx);
        if done.is_ready() {
            return done;
        }
        let state = self.state.borrow();
        let is_idle = {
            let io = self.io.borrow();
            let is_written = io.writing.len() == io.written;
            is_written && state.sides.is_empty() && state.core.is_greeted() && state.out.is_empty()
        };
        let is_done = self.is_single && self.was_used.get()
            || self.is_silent.get()
            || self.is_retired.get()
            || !state.core.is_lasting();
        if is_idle && is_done {
            return Poll::Ready(Http2Broken::Closed);
        }
        match (is_idle, self.is_resting.replace(is_idle)) {
            (true, false) => {
                // An idle connection holds no buffer, but for a part of a frame.
                let mut io = self.io.borrow_mut();
                io.input.shrink_to_fit();
                (io.writing, io.written) = (Vec::new(), 0);
                drop(io);
                self.read_bytes.set(READ_BYTES_MIN);
                idle.set(rest_max);
            }
            (false, true) => idle.clear(),
            _ => {}
        }
        match is_idle {
            true => idle.poll_elapsed(cx).map(|()| Http2Broken::Closed),
            false => Poll::Pending,
        }
    }

    /// Reads what has come and writes what there is to write.
    fn poll_io(&self, cx: &mut Context<'_>) -> Poll<Http2Broken> {
        let mut io = self.io.borrow_mut();
        while self.stream.poll_readable(cx).is_ready() {
            let room = self.read_bytes.get();
            io.input.reserve(room);
            match self.stream.poll_read_behind(cx, &mut io.input) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Poll::Ready(Http2Broken::Closed),
                Poll::Ready(Err(error)) => return Poll::Ready(Http2Broken::of(error)),
                Poll::Ready(Ok(count)) => {
                    self.reads.set(self.reads.get() + 1);
                    self.is_silent.set(false);
                    if count >= room {
                        self.read_bytes.set(READ_BYTES_MAX);
                    }
                    let input = std::mem::take(&mut io.input);
                    io.input = match self.take_in(input) {
                        Ok(left) => left,
                        Err(reason) => return Poll::Ready(Http2Broken::Wire(reason)),
                    };
                }
            }
        }
        self.poll_write(cx, &mut io)
    }

    fn poll_write(&self, cx: &mut Context<'_>, io: &mut ConnectionIo) -> Poll<Http2Broken> {
        loop {
            if io.written == io.writing.len() {
                io.writing.clear();
                io.written = 0;
                let mut state = self.state.borrow_mut();
                if state.out.is_empty() {
                    return Poll::Pending;
                }
                std::mem::swap(&mut state.out, &mut io.writing);
                // There is room again.
                state.wake_writers();
            }
            match self.stream.poll_write(cx, &io.writing[io.written..]) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(count)) => io.written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Http2Broken::of(error)),
            }
        }
    }

    /// Gives what came to the streams. Returns what is left, a part of a frame. Long pieces of a
    /// body stay where they were read; of short ones that would hold too much.
    fn take_in(&self, input: Vec<u8>) -> Result<Vec<u8>, &'static str> {
        let capacity = input.capacity();
        let input = Bytes::from(input);
        let mut state = self.state.borrow_mut();
        let now_ms = self.reactor.now_ms();
        let mut used = 0;
        loop {
            let ConnectionState { core, out, .. } = &mut *state;
            let (count, event) = core.read(&input[used..], out, now_ms);
            used += count;
            match event {
                Http2ClientEvent::NeedMore => break,
                Http2ClientEvent::Data(id, len) => {
                    let piece = used - len..used;
                    let piece = match len * 4 >= capacity {
                        true => input.slice(piece),
                        false => Bytes::copy_from_slice(&input[piece]),
                    };
                    state.give(id, StreamPart::Body(piece));
                }
                Http2ClientEvent::Head(id, head) => state.give(id, StreamPart::Head(head)),
                Http2ClientEvent::Interim(id, status, fields) => {
                    state.give(id, StreamPart::Interim(status, fields));
                }
                Http2ClientEvent::End(id, trailers) => state.give(id, StreamPart::End(trailers)),
                Http2ClientEvent::Broken(id, fault) => state.break_off(id, fault),
                Http2ClientEvent::Settings => state.greet(),
                Http2ClientEvent::Window(0) => state.wake_writers(),
                Http2ClientEvent::Window(id) => state.wake_writer(id),
                Http2ClientEvent::Leaving(last) => state.leave_after(last),
                Http2ClientEvent::Over(error) => return Err(error.reason),
            }
        }
        drop(state);
        let left = input.slice(used..);
        Ok(match (left.is_empty(), input.try_into_mut()) {
            // Nobody holds a piece of it: it is read into again.
            (true, Ok(mut whole)) => {
                whole.clear();
                whole.into()
            }
            _ => left.to_vec(),
        })
    }

    /// The connection is over: so are its streams.
    fn fail(&self, why: &Http2Broken) {
        let mut state = self.state.borrow_mut();
        state.broken.get_or_insert_with(|| why.clone());
        for side in &mut state.sides {
            wake(&mut side.reader);
            wake(&mut side.writer);
        }
        state.greet();
    }

    /// Takes leave, as far as that goes at once.
    fn end(&self, why: &Http2Broken) {
        self.fail(why);
        let mut out = Vec::new();
        {
            let mut state = self.state.borrow_mut();
            let ConnectionState {
                core, out: left, ..
            } = &mut *state;
            if matches!(why, Http2Broken::Closed) {
                core.leave(left);
            }
            std::mem::swap(left, &mut out);
        }
        let mut cx = Context::from_waker(Waker::noop());
        if !matches!(why, Http2Broken::Broken(_) | Http2Broken::Tls(_))
            && self.io.borrow().writing.is_empty()
        {
            let _ = self.stream.poll_write(&mut cx, &out);
        }
        let _ = self.stream.poll_end(&mut cx);
    }
}

impl ConnectionState {
    fn side(&mut self, id: u32) -> Option<&mut StreamSide> {
        self.sides.iter_mut().find(|side| side.id == id)
    }

    fn give(&mut self, id: u32, part: StreamPart) {
        if let Some(side) = self.side(id) {
            side.parts.push_back(part);
            wake(&mut side.reader);
        }
    }

    fn break_off(&mut self, id: u32, fault: Http2StreamFault) {
        if let Some(side) = self.side(id) {
            side.broken = Some(match fault {
                Http2StreamFault::Refused => Http2Broken::Refused,
                Http2StreamFault::Reset(code) => Http2Broken::Reset(code),
                Http2StreamFault::Malformed(reason) => Http2Broken::Wire(reason),
            });
            wake(&mut side.reader);
            wake(&mut side.writer);
        }
    }

    fn leave_after(&mut self, last: u32) {
        let above = self.sides.iter().map(|side| side.id);
        for id in above.filter(|id| *id > last).collect::<Vec<_>>() {
            self.break_off(id, Http2StreamFault::Refused);
        }
    }

    fn greet(&mut self) {
        self.greeted.drain(..).for_each(Waker::wake);
        self.wake_writers();
    }

    fn wake_writer(&mut self, id: u32) {
        if let Some(side) = self.side(id) {
            wake(&mut side.writer);
        }
    }

    fn wake_writers(&mut self) {
        for side in &mut self.sides {
            wake(&mut side.writer);
        }
    }
}

/// A stream on a connection that [`SharedConnection::may_open`] one.
pub(super) fn opened(connection: &Rc<SharedConnection>, id: u32) -> Rc<Http2Stream> {
    connection.add_side(id);
    connection.wake_driver();
    Http2Stream::new(connection, id)
}

fn note(waker: &mut Option<Waker>, cx: &Context<'_>) {
    if !waker
        .as_ref()
        .is_some_and(|known| known.will_wake(cx.waker()))
    {
        *waker = Some(cx.waker().clone());
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
