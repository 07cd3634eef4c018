//! What those are told who watch a request.

use std::cell::Cell;
use std::fmt;

use hob_trace::watch::{BODY_BYTES_MAX, DUMP_BYTES_MAX, RequestStage, Trail};

use crate::clock::clock_us;
use crate::request::Request;

/// Who watches a request.
#[derive(Default)]
pub(super) struct WatchMarks {
    /// Bits of those whom it matches, and of those for whom its end decides; see [`Trail`].
    pub(super) bits: Cell<(u32, u32)>,
    /// The station's generation they are of.
    generation: Cell<u64>,
}

impl Request {
    /// Somebody watches it, or may turn out to.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.exchange.marks.bits.get() != (0, 0)
    }

    /// Who watches it.
    pub fn trail(&self) -> Trail {
        let (live, held) = self.exchange.marks.bits.get();
        let record = self.record();
        Trail {
            connection: record.connection,
            request: record.request,
            live,
            held,
            generation: self.exchange.marks.generation.get(),
            started_us: record.started_us,
        }
    }

    /// Has it watched by those of these bits: whom it matches, and for whom its end decides.
    pub fn set_marks(&self, live: u32, held: u32) {
        self.exchange.marks.bits.set((live, held));
        self.exchange
            .marks
            .generation
            .set(self.exchange.reactor.station().generation());
        self.record_mut().timed = live | held != 0;
    }

    /// Tells those who watch it what happens, in words. Costs a branch when nobody does.
    #[inline]
    pub fn tell(&self, stage: RequestStage, text: fmt::Arguments<'_>) {
        if self.is_traced() {
            self.tell_watchers(stage, text);
        }
    }

    #[cold]
    fn tell_watchers(&self, stage: RequestStage, text: fmt::Arguments<'_>) {
        let station = self.exchange.reactor.station();
        station.tell(&self.trail(), stage, clock_us(), |pen, _| {
            pen.format("text", text);
        });
    }

    /// Shows those who watch bodies a piece of one, of which `before` bytes were seen already.
    #[cold]
    pub fn tell_body(&self, stage: RequestStage, before: u64, bytes: &[u8]) {
        let station = self.exchange.reactor.station();
        let trail = self.trail();
        if before >= BODY_BYTES_MAX || !station.shows_body(&trail) {
            return;
        }
        station.tell(&trail, stage, clock_us(), |pen, _| {
            pen.number("offset", before);
            pen.dump(bytes, DUMP_BYTES_MAX);
        });
    }
}
