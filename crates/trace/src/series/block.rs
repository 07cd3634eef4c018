//! What is counted of one series on one thread.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use super::book::{OTHER, SERIES_MAX, SeriesRegistry};
use crate::histogram::{Histogram, HistogramSnapshot};
use crate::metric::CounterCell;
use crate::record::{Outcome, ProgramLife, Record};
use crate::verdict::Split;

/// One series on one thread. Written by that thread, read by any.
#[derive(Debug, Default)]
struct SeriesBlock {
    requests: CounterCell,
    errors: CounterCell,
    bytes_in: CounterCell,
    bytes_out: CounterCell,
    last_unix_ms: CounterCell,
    server_us: CounterCell,
    program_us: CounterCell,
    client_us: CounterCell,
    run_cpu_us: CounterCell,
    total: Histogram,
    first_byte: Histogram,
    /// There once a program has answered.
    program: OnceLock<Box<ProgramBlock>>,
}

/// What only programs have.
#[derive(Debug, Default)]
struct ProgramBlock {
    queue: Histogram,
    start: Histogram,
    cpu: Histogram,
}

/// The largest a series can get on one thread, in bytes.
pub(super) const BLOCK_BYTES_MAX: usize = size_of::<SeriesBlock>() + size_of::<ProgramBlock>();

/// What was counted of a series on all threads.
#[derive(Clone, Debug, Default)]
pub struct SeriesSum {
    /// Requests.
    pub requests: u64,
    /// Of them, those answered with 500 and above, and those whose answer broke off.
    pub errors: u64,
    /// Bytes of requests.
    pub bytes_in: u64,
    /// Bytes of answers.
    pub bytes_out: u64,
    /// When the last one began, as Unix time in milliseconds.
    pub last_unix_ms: u64,
    /// Time the server spent on them, queues and its disk included, in microseconds.
    pub server_us: u64,
    /// Time programs spent on them, their start included, in microseconds.
    pub program_us: u64,
    /// Time waited for clients, in microseconds.
    pub client_us: u64,
    /// CPU time of processes that ran for one request each, in microseconds.
    pub run_cpu_us: u64,
    /// From start to end; what became a tunnel is left out.
    pub total: HistogramSnapshot,
    /// From start to the answer's head.
    pub first_byte: HistogramSnapshot,
    /// Waits for a program, of those that a program answered.
    pub queue: HistogramSnapshot,
    /// Until the program ran, of those for which it is known.
    pub start: HistogramSnapshot,
    /// CPU time of programs, of those for which it is known.
    pub cpu: HistogramSnapshot,
}

impl SeriesSum {
    /// Adds those of another series.
    pub fn merge(&mut self, other: &SeriesSum) {
        for (sum, more) in [
            (&mut self.requests, other.requests),
            (&mut self.errors, other.errors),
            (&mut self.bytes_in, other.bytes_in),
            (&mut self.bytes_out, other.bytes_out),
            (&mut self.server_us, other.server_us),
            (&mut self.program_us, other.program_us),
            (&mut self.client_us, other.client_us),
            (&mut self.run_cpu_us, other.run_cpu_us),
        ] {
            *sum = sum.wrapping_add(more);
        }
        self.last_unix_ms = self.last_unix_ms.max(other.last_unix_ms);
        self.total.merge(&other.total);
        self.first_byte.merge(&other.first_byte);
        self.queue.merge(&other.queue);
        self.start.merge(&other.start);
        self.cpu.merge(&other.cpu);
    }
}

impl SeriesBlock {
    #[inline]
    fn record(&self, record: &Record) {
        self.requests.add(1);
        if record.status >= 500 || record.outcome == Outcome::Broken {
            self.errors.add(1);
        }
        self.bytes_in.add(record.bytes_in);
        self.bytes_out
            .add(record.head_bytes_out + record.body_bytes_out);
        self.last_unix_ms.raise(record.started_unix_ms);
        if record.status == SWITCHED {
            return;
        }
        let is_program = record.handler.runs_program();
        if is_program {
            self.record_program(record);
        } else {
            let client_us = record.client_take_us + record.client_body_us;
            let client_us = client_us.min(record.total_us);
            self.client_us.add(client_us);
            self.server_us.add(record.total_us - client_us);
        }
        self.total.record(record.total_us);
        self.first_byte.record(record.first_byte_us);
    }

    fn record_program(&self, record: &Record) {
        let split = Split::of(record);
        self.client_us.add(split.take_us + split.body_us);
        self.program_us.add(split.start_us + split.program_us);
        self.server_us.add(split.server_us() + split.disk_us);
        let program = self.program.get_or_init(Box::default);
        program.queue.record(record.queue_us);
        if record.is_start_known() {
            program.start.record(record.start_us);
        }
        if record.cpu_us > 0 {
            program.cpu.record(record.cpu_us);
        }
        if record.handler.program() != Some(ProgramLife::Kept) {
            self.run_cpu_us.add(record.cpu_us);
        }
    }

    fn add_to(&self, sum: &mut SeriesSum) {
        for (sum, cell) in [
            (&mut sum.requests, &self.requests),
            (&mut sum.errors, &self.errors),
            (&mut sum.bytes_in, &self.bytes_in),
            (&mut sum.bytes_out, &self.bytes_out),
            (&mut sum.server_us, &self.server_us),
            (&mut sum.program_us, &self.program_us),
            (&mut sum.client_us, &self.client_us),
            (&mut sum.run_cpu_us, &self.run_cpu_us),
        ] {
            *sum = sum.wrapping_add(cell.value());
        }
        sum.last_unix_ms = sum.last_unix_ms.max(self.last_unix_ms.value());
        self.total.add_to(&mut sum.total);
        self.first_byte.add_to(&mut sum.first_byte);
        if let Some(program) = self.program.get() {
            program.queue.add_to(&mut sum.queue);
            program.start.add_to(&mut sum.start);
            program.cpu.add_to(&mut sum.cpu);
        }
    }
}

/// 101: how long the tunnel then stood is no latency.
const SWITCHED: u16 = 101;

/// All blocks of one thread.
#[derive(Debug)]
pub struct ThreadSeries {
    places: Box<[OnceLock<Box<SeriesBlock>>]>,
}

impl ThreadSeries {
    pub(super) fn new(places_max: usize) -> ThreadSeries {
        ThreadSeries {
            places: (0..places_max).map(|_| OnceLock::new()).collect(),
        }
    }

    pub(super) fn add_to(&self, place: usize, sum: &mut SeriesSum) {
        if let Some(block) = self.places.get(place).and_then(OnceLock::get) {
            block.add_to(sum);
        }
    }

    pub(super) fn requests(&self, place: usize) -> u64 {
        let block = self.places.get(place).and_then(OnceLock::get);
        block.map_or(0, |block| block.requests.value())
    }
}

/// The end of a thread's blocks that counts; stays on the thread.
#[derive(Debug)]
pub struct SeriesWriter {
    series: Arc<SeriesRegistry>,
    blocks: Arc<ThreadSeries>,
    /// Places by series; those not asked for yet are [`UNKNOWN`].
    places: RefCell<Vec<u16>>,
}

const UNKNOWN: u16 = u16::MAX;
const _: () = assert!(SERIES_MAX < UNKNOWN as usize);

impl SeriesWriter {
    /// Counts into blocks of its own.
    pub fn new(series: &Arc<SeriesRegistry>) -> SeriesWriter {
        SeriesWriter {
            series: Arc::clone(series),
            blocks: series.new_thread(),
            places: RefCell::default(),
        }
    }

    /// Counts a finished request. The first one of a series on a thread allocates its block.
    #[inline]
    pub fn record(&self, record: &Record) {
        let known = self
            .places
            .borrow()
            .get(usize::from(record.series))
            .copied();
        let place = match known {
            Some(place) if place != UNKNOWN => place,
            _ => self.learn(record.series),
        };
        if let Some(block) = self.blocks.places.get(usize::from(place)) {
            block.get_or_init(Box::default).record(record);
        }
    }

    #[cold]
    fn learn(&self, series: u16) -> u16 {
        let index = usize::from(series);
        if index >= SERIES_MAX {
            return OTHER;
        }
        let mut places = self.places.borrow_mut();
        if places.len() <= index {
            places.resize(index + 1, UNKNOWN);
        }
        places[index] = self.series.place(series);
        places[index]
    }
}
