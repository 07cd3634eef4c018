//! How long a request is waited for.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hob_http::Reactor;
use hob_http::reactor::Timer;

use crate::handle::config::tree::Section;
use crate::handle::upstream::fail::TimeLimit;

/// Limits of time; zero is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamTimeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until there is a head.
    pub first_byte: Duration,
    /// Until the end.
    pub total: Duration,
    /// Between two pieces.
    pub progress: Duration,
    /// Between two pieces of a stream of events.
    pub events: Duration,
}

impl UpstreamTimeouts {
    /// As a table of them says.
    pub(crate) fn read(timeout: &Section) -> UpstreamTimeouts {
        UpstreamTimeouts {
            connect: timeout.time("connect"),
            first_byte: timeout.time("first_byte"),
            total: timeout.time("total"),
            progress: timeout.time("progress"),
            events: timeout.time("events"),
        }
    }
}

/// The limits of a request that has been sent.
pub(crate) struct Patience {
    timeouts: UpstreamTimeouts,
    /// Nothing may come for so long, and which limit that is.
    silence: Rc<Timer>,
    limit: Rc<Cell<TimeLimit>>,
    total: Timer,
}

/// Tells that a request is still on its way: its answer need not begin before it is there.
pub(crate) struct SendingNotice {
    silence: Rc<Timer>,
    limit: Rc<Cell<TimeLimit>>,
    first_byte: Duration,
}

impl SendingNotice {
    /// More of it was sent.
    pub(crate) fn tell(&self) {
        if self.limit.get() == TimeLimit::FirstByte {
            set(&self.silence, self.first_byte);
        }
    }
}

impl Patience {
    /// From now on its head is waited for.
    pub(crate) fn new(reactor: &Reactor, timeouts: UpstreamTimeouts) -> Patience {
        let (silence, total) = (Rc::new(reactor.timer()), reactor.timer());
        set(&silence, timeouts.first_byte);
        set(&total, timeouts.total);
        Patience {
            timeouts,
            silence,
            limit: Rc::new(Cell::new(TimeLimit::FirstByte)),
            total,
        }
    }

    /// For who sends the rest of the request.
    pub(crate) fn notice(&self) -> SendingNotice {
        SendingNotice {
            silence: Rc::clone(&self.silence),
            limit: Rc::clone(&self.limit),
            first_byte: self.timeouts.first_byte,
        }
    }

    /// Something has come.
    pub(crate) fn hear(&self) {
        match self.limit.get() {
            TimeLimit::Progress => set(&self.silence, self.timeouts.progress),
            TimeLimit::Events => set(&self.silence, self.timeouts.events),
            TimeLimit::FirstByte | TimeLimit::Connect | TimeLimit::Total => {}
        }
    }

    /// The head has come: from now on pieces may not be too far apart.
    pub(crate) fn has_head(&self) {
        self.limit.set(TimeLimit::Progress);
        self.hear();
    }

    /// It has so long from now on, instead of `total`.
    pub(crate) fn set_total(&self, total: Duration) {
        set(&self.total, total);
    }

    /// The answer is a stream of events, which has no end that could be waited for.
    pub(crate) fn begin_events(&self, has_total: bool) {
        if !has_total {
            self.total.clear();
        }
        self.limit.set(TimeLimit::Events);
        self.hear();
    }

    /// Raw bytes flow both ways: these limits hold no more.
    pub(crate) fn begin_tunnel(&self) {
        self.silence.clear();
        self.total.clear();
    }

    /// Ready when a limit is reached.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<TimeLimit> {
        if self.total.poll_elapsed(cx).is_ready() {
            return Poll::Ready(TimeLimit::Total);
        }
        ready!(self.silence.poll_elapsed(cx));
        Poll::Ready(self.limit.get())
    }
}

/// Sets a limit; zero is none.
pub(crate) fn set(timer: &Timer, limit: Duration) {
    match limit.is_zero() || limit == Duration::MAX {
        true => timer.clear(),
        false => timer.set(limit),
    }
}
