//! What a serving thread does: gives requests their trace, and sampled ones to the exporter.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use hob_http::{Request, RequestHead};
use hob_trace::ring::Producer;
use hob_trace::traceparent::{Caller, Trace};
use hob_trace::{Record, Texts};

use super::export::Exporter;
use hob_config::{Otlp, Parent};

/// One thread's end of an exporter.
pub(crate) struct Tracer {
    exporter: Arc<Exporter>,
    ring: RefCell<Producer>,
    ids: TraceIdGenerator,
}

/// Numbers that do not come twice; not secret.
struct TraceIdGenerator {
    low: Cell<u64>,
    high: Cell<u64>,
}

impl Tracer {
    /// A tracer for one more thread.
    pub(crate) fn new(exporter: &Arc<Exporter>) -> Tracer {
        Tracer {
            exporter: Arc::clone(exporter),
            ring: RefCell::new(exporter.new_ring()),
            ids: TraceIdGenerator::new(),
        }
    }

    /// It gives to this exporter.
    pub(crate) fn is_of(&self, exporter: &Arc<Exporter>) -> bool {
        Arc::ptr_eq(&self.exporter, exporter)
    }

    /// Gives a request its trace.
    pub(crate) fn begin(&self, request: &Request) {
        let settings = self.exporter.settings();
        let caller = match settings.parent {
            Parent::Ignore => None,
            Parent::Follow | Parent::Join => caller(request.head()),
        };
        let trace = self.trace(settings, caller);
        request.record_mut().trace = trace;
    }

    fn trace(&self, settings: &Otlp, caller: Option<Caller>) -> Trace {
        let is_sampled = match (caller, settings.parent) {
            (Some(caller), Parent::Follow) => caller.is_sampled,
            _ => {
                let one_in = u64::from(settings.one_in);
                one_in > 0 && self.ids.next().is_multiple_of(one_in)
            }
        };
        let (id, parent) = match caller {
            Some(caller) => (caller.trace, caller.span),
            None if is_sampled => (self.ids.trace(), [0; 8]),
            None => return Trace::NONE,
        };
        let span = if is_sampled { self.ids.span() } else { [0; 8] };
        Trace {
            id,
            span,
            parent,
            is_sampled,
        }
    }

    /// A request is over; a sampled one is exported.
    #[inline]
    pub(crate) fn finished(&self, record: &Record, texts: &Texts<'_>) {
        if record.trace.is_sampled {
            // A full ring counts what it refuses.
            self.ring.borrow_mut().push(record, texts);
        }
    }
}

/// Who calls, as the only `traceparent` of a request says.
//= w3c-trace-context#traceparent-header
fn caller(head: &RequestHead) -> Option<Caller> {
    let mut values = head.values(b"traceparent");
    match (values.next(), values.next()) {
        (Some(one), None) => Caller::parse(one.trim_ascii()),
        _ => None,
    }
}

impl TraceIdGenerator {
    /// From the kernel's random numbers.
    fn new() -> TraceIdGenerator {
        let mut seed = [0; 16];
        // It does not fail for so few bytes; without it, ids would still differ by thread and time.
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
        let (low, high) = seed.split_at(8);
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        TraceIdGenerator {
            low: Cell::new(number(low) ^ time.tv_nsec.unsigned_abs()),
            high: Cell::new(number(high)),
        }
    }

    /// SplitMix64.
    fn next_of(state: &Cell<u64>) -> u64 {
        state.set(state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut z = state.get();
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn next(&self) -> u64 {
        TraceIdGenerator::next_of(&self.low)
    }

    fn trace(&self) -> [u8; 16] {
        let (high, low) = (TraceIdGenerator::next_of(&self.high), self.next());
        // Zeros would be no trace.
        (u128::from(high) << 64 | u128::from(low.max(1))).to_be_bytes()
    }

    fn span(&self) -> [u8; 8] {
        self.next().max(1).to_be_bytes()
    }
}
