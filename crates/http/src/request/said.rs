//! What a handler says of its request, beside the answer.

use std::cell::{Cell, OnceCell, Ref, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use hob_trace::ring::DETAIL_BYTES_MAX;

use crate::head::{Fields, Known};
use crate::request::Request;

/// What FIN from the client means while its answer is being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HalfClose {
    /// The client still reads: go on.
    #[default]
    Serve,
    /// The client has left: stop.
    Cancel,
}

/// What a request is at, as its handler says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandlerPhase {
    /// The server works on it itself.
    #[default]
    Server,
    /// It waits in a program's queue.
    Queued,
    /// A program works on it.
    Program,
}

/// Who knows what a request is at, better than the request: its exchange with a worker.
pub trait AtWork: Send + Sync {
    /// What it is at.
    fn phase(&self) -> HandlerPhase;
    /// The worker's process, once that is known.
    fn worker_pid(&self) -> Option<u32>;
}

/// What may still become known of a request when its answer has left: how its program ended.
pub trait Aftermath {
    /// Tells the record, once it is known or need not be waited for any more.
    fn poll_told(&self, cx: &mut Context<'_>, request: &Request) -> Poll<()>;
}

/// What a handler has said so far.
#[derive(Default)]
pub(crate) struct HandlerReport {
    detail: RefCell<Vec<u8>>,
    /// Of the answer's head, what its access log asks for.
    answer_values: RefCell<Vec<u8>>,
    /// Heads before the answer that the connection has not sent yet.
    pub(crate) interim: RefCell<Vec<(u16, Fields)>>,
    pub(crate) half_close: Cell<HalfClose>,
    phase: Cell<HandlerPhase>,
    shown: OnceCell<Box<TextsShown>>,
    at_work: RefCell<Option<Arc<dyn AtWork>>>,
    aftermath: RefCell<Option<Rc<dyn Aftermath>>>,
}

impl HandlerReport {
    /// Nothing yet, of the next request; the memory stays.
    pub(super) fn renew(&mut self) {
        self.detail.get_mut().clear();
        self.answer_values.get_mut().clear();
        self.interim.get_mut().clear();
        self.half_close.set(HalfClose::Serve);
        self.phase.set(HandlerPhase::Server);
        self.at_work.take();
        self.aftermath.take();
        self.shown.take();
    }
}

/// Texts of a request as people are shown them, where they hold what opens doors.
pub struct TextsShown {
    /// For the request target.
    pub target: Option<Box<[u8]>>,
    /// For `Referer`.
    pub referer: Option<Box<[u8]>>,
}

impl Request {
    /// People are shown these texts instead of those of its head. The first count.
    pub fn show_instead(&self, texts: TextsShown) {
        let _ = self.exchange.said.shown.set(Box::new(texts));
    }

    /// The target the client sent, as people are shown it.
    #[inline]
    pub fn shown_target(&self) -> &[u8] {
        let shown = self.exchange.said.shown.get();
        let target = shown.and_then(|shown| shown.target.as_deref());
        target.unwrap_or_else(|| self.sent_head().target())
    }

    /// Its `Referer`, as people are shown it.
    #[inline]
    pub fn shown_referer(&self) -> &[u8] {
        let shown = self.exchange.said.shown.get();
        let referer = shown.and_then(|shown| shown.referer.as_deref());
        let sent = || self.sent_head().value(Known::Referer);
        referer.or_else(sent).unwrap_or_default()
    }

    /// What an access log asks of its answer's head, as
    /// [`AskedValueWriter`](hob_trace::format::AskedValueWriter) writes it.
    pub fn answer_values(&self) -> Ref<'_, Vec<u8>> {
        self.exchange.said.answer_values.borrow()
    }

    /// The same, to be written.
    pub fn answer_values_mut(&self) -> RefMut<'_, Vec<u8>> {
        self.exchange.said.answer_values.borrow_mut()
    }

    /// Says what it is at, for who looks at running requests.
    pub fn set_phase(&self, phase: HandlerPhase) {
        self.exchange.said.phase.set(phase);
    }

    /// Has somebody else say what it is at, until `None` is set.
    pub fn set_at_work(&self, at_work: Option<Arc<dyn AtWork>>) {
        *self.exchange.said.at_work.borrow_mut() = at_work;
    }

    /// Its record is to wait for this when its answer has left.
    pub fn set_aftermath(&self, aftermath: Rc<dyn Aftermath>) {
        *self.exchange.said.aftermath.borrow_mut() = Some(aftermath);
    }

    /// What its record is to wait for. It is gone then: whoever takes it, waits.
    pub fn take_aftermath(&self) -> Option<Rc<dyn Aftermath>> {
        self.exchange.said.aftermath.take()
    }

    /// What it is at.
    pub fn phase(&self) -> HandlerPhase {
        let at_work = self.exchange.said.at_work.borrow();
        at_work
            .as_ref()
            .map_or(self.exchange.said.phase.get(), |at_work| at_work.phase())
    }

    /// The process of the worker that has it, as far as that is known.
    pub fn worker_pid(&self) -> Option<u32> {
        let at_work = self.exchange.said.at_work.borrow();
        at_work.as_ref().and_then(|at_work| at_work.worker_pid())
    }

    /// What is to be said beside the record's reason; empty when nothing is.
    pub fn detail(&self) -> Ref<'_, [u8]> {
        Ref::map(self.exchange.said.detail.borrow(), Vec::as_slice)
    }

    /// Says more than the record's reason does, in one text for the log. What was said before is
    /// forgotten.
    pub fn set_detail(&self, text: &[u8]) {
        let mut detail = self.exchange.said.detail.borrow_mut();
        detail.clear();
        detail.extend_from_slice(&text[..text.len().min(DETAIL_BYTES_MAX)]);
    }

    /// Says what FIN from the client means for this request; without it, [`HalfClose::Serve`].
    pub fn set_half_close(&self, meaning: HalfClose) {
        self.exchange.said.half_close.set(meaning);
    }

    /// Sends an interim answer (100 to 199, not 101) before the final one. Another status is not
    /// sent.
    pub fn interim(&self, status: u16, fields: Fields) {
        if !(100..200).contains(&status) || status == 101 {
            debug_assert!(false, "{status} is not an interim status");
            return;
        }
        self.exchange
            .said
            .interim
            .borrow_mut()
            .push((status, fields));
        self.exchange.notify();
    }
}
