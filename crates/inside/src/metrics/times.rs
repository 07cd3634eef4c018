//! Times of requests as histograms of Prometheus.

use std::collections::BTreeMap;

use hob_trace::exposition::{Exposition, Family, SampleValue, Spread};
use hob_trace::histogram::HistogramSnapshot;
use hob_trace::series::SeriesSum;

use super::families;
use hob_server::serve::ServerState;

/// Upper bounds of all histograms, in microseconds. What is recorded is finer; a time near a bound
/// may be counted with those above it.
const BOUNDS_US: [u64; 15] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000, 60_000_000,
];

/// Histograms of one handler, those of programs where there are some.
#[derive(Default)]
struct OfHandler {
    first_byte: HistogramSnapshot,
    queue: HistogramSnapshot,
    start: HistogramSnapshot,
    cpu: HistogramSnapshot,
}

impl OfHandler {
    fn add(&mut self, sum: &SeriesSum) {
        self.first_byte.merge(&sum.first_byte);
        self.queue.merge(&sum.queue);
        self.start.merge(&sum.start);
        self.cpu.merge(&sum.cpu);
    }
}

/// Puts all of them.
pub(super) fn put(all: &mut Exposition, shared: &ServerState) {
    let names = shared.series.names();
    let mut totals: BTreeMap<(String, &str), HistogramSnapshot> = BTreeMap::new();
    let mut handlers: BTreeMap<&str, OfHandler> = BTreeMap::new();
    let sums = shared.series.sums();
    for (number, sum) in &sums {
        let Some(name) = names.get(usize::from(*number)) else {
            continue;
        };
        let handler = name.handler.word();
        let site = shared.counts.tallies.label(&name.site);
        totals.entry((site, handler)).or_default().merge(&sum.total);
        handlers.entry(handler).or_default().add(sum);
    }
    for ((site, handler), times) in &totals {
        put_one(all, &families::DURATION, &[site, handler], times);
    }
    let parts: [(&Family, Part); 4] = [
        (&families::FIRST_BYTE, |one| &one.first_byte),
        (&families::QUEUE_WAIT, |one| &one.queue),
        (&families::PROGRAM_START, |one| &one.start),
        (&families::PROGRAM_CPU, |one| &one.cpu),
    ];
    for (family, part) in parts {
        for (handler, times) in &handlers {
            put_one(all, family, &[handler], part(times));
        }
    }
}

/// Times of one part of requests.
type Part = fn(&OfHandler) -> &HistogramSnapshot;

fn put_one(all: &mut Exposition, family: &Family, labels: &[&str], times: &HistogramSnapshot) {
    if times.count() > 0 {
        all.put(family, labels, SampleValue::Spread(spread(times)));
    }
}

fn spread(times: &HistogramSnapshot) -> Spread {
    let mut counts = [0; BOUNDS_US.len()];
    for (largest_us, count) in times.buckets() {
        let bound = BOUNDS_US.iter().position(|bound| largest_us <= *bound);
        if let Some(bound) = bound {
            counts[bound] += count;
        }
    }
    let bounds = BOUNDS_US.iter().map(|bound| *bound as f64 / 1.0e6);
    Spread {
        sum: times.sum_us() as f64 / 1.0e6,
        count: times.count(),
        buckets: bounds.zip(counts).collect(),
    }
}

#[cfg(test)]
mod tests {
    use hob_trace::histogram::Histogram;

    use super::*;

    #[test]
    fn times_are_counted_below_their_bounds() {
        let histogram = Histogram::default();
        for time_us in [100, 700, 700, 3_000, 100_000_000] {
            histogram.record(time_us);
        }
        let mut times = HistogramSnapshot::default();
        histogram.add_to(&mut times);
        let spread = spread(&times);
        assert_eq!((spread.count, spread.sum), (5, 100.0045));
        let filled = spread.buckets.into_iter().filter(|(_, count)| *count > 0);
        let filled: Vec<_> = filled.collect();
        assert_eq!(filled, [(0.00025, 1), (0.001, 2), (0.005, 1)]);
    }
}
