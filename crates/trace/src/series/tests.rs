//! Series: numbers by route, over threads and reloads, and their bound.

use std::collections::HashMap;
use std::sync::Arc;

use super::book::PLACES_MIN;
use super::*;
use crate::histogram::HistogramSnapshot;
use crate::record::{HandlerKind, Outcome, Record};

fn name(route: &str) -> SeriesName {
    SeriesName {
        site: "example.org".into(),
        route: route.into(),
        handler: HandlerKind::Cgi,
        program: String::new(),
    }
}

fn of(series: u16, total_us: u64) -> Record {
    Record {
        series,
        total_us,
        first_byte_us: total_us / 2,
        status: 200,
        ..Record::empty()
    }
}

#[test]
fn a_route_has_its_number_for_ever_and_there_is_an_end_to_them() {
    let series = SeriesRegistry::new(1);
    assert_eq!(series.number(name("/a")), 1);
    assert_eq!(series.number(name("/b")), 2);
    assert_eq!(series.number(name("/a")), 1);
    assert_eq!(series.names()[2].route, "/b");
    for index in 0..SERIES_MAX {
        series.number(name(&format!("/{index}")));
    }
    assert_eq!(series.number(name("/one/too/many")), 0);
    assert_eq!(series.names().len(), SERIES_MAX);
    assert_eq!(series.number(name("/b")), 2);
}

#[test]
fn threads_are_summed_and_times_are_apart() {
    let series = Arc::new(SeriesRegistry::new(2));
    let (a, b) = (series.number(name("/a")), series.number(name("/b")));
    let writers = [SeriesWriter::new(&series), SeriesWriter::new(&series)];
    for writer in &writers {
        writer.record(&of(a, 1_000));
    }
    writers[0].record(&Record {
        status: 502,
        queue_us: 30,
        start_us: 20,
        program_us: 500,
        cpu_us: 7,
        client_take_us: 300,
        handler: HandlerKind::Warm,
        bytes_in: 10,
        body_bytes_out: 5,
        started_unix_ms: 99,
        ..of(b, 1_000)
    });
    let sums: HashMap<u16, SeriesSum> = series.sums().into_iter().collect();
    assert_eq!(sums.len(), 2);
    let (first, second) = (&sums[&a], &sums[&b]);
    assert_eq!((first.requests, first.errors), (2, 0));
    assert_eq!((first.total.count(), first.queue.count()), (2, 0));
    assert_eq!(first.first_byte.max_us(), 500);
    assert_eq!((second.requests, second.errors), (1, 1));
    assert_eq!((second.bytes_in, second.bytes_out), (10, 5));
    assert_eq!(second.last_unix_ms, 99);
    let apart = (second.server_us, second.program_us, second.client_us);
    assert_eq!(apart, (30, 670, 300));
    let maxima = [&second.queue, &second.start, &second.cpu].map(HistogramSnapshot::max_us);
    assert_eq!(maxima, [30, 20, 7]);
    assert_eq!(series.all().requests, 3);
    let started = Record {
        handler: HandlerKind::Cgi,
        ..of(b, 1_000)
    };
    writers[0].record(&started);
    let counts = series.sums().into_iter().find(|(number, _)| *number == b);
    let counts = counts.map(|(_, sum)| (sum.queue.count(), sum.start.count()));
    assert_eq!(counts, Some((2, 1)), "when it ran is not known");
    assert_eq!(series.requests()[&a], 2);
}

#[test]
fn what_has_no_room_counts_as_other() {
    let series = Arc::new(SeriesRegistry::new(1_000_000));
    let numbers: Vec<u16> = (0..PLACES_MIN)
        .map(|index| series.number(name(&format!("/{index}"))))
        .collect();
    let writer = SeriesWriter::new(&series);
    numbers
        .iter()
        .for_each(|&number| writer.record(&of(number, 1)));
    writer.record(&of(u16::MAX, 1));
    let sums = series.sums();
    // One place is for all others: the last route, and what has no number.
    assert_eq!(sums.len(), PLACES_MIN);
    assert_eq!((sums[0].0, sums[0].1.requests), (0, 2));
}

#[test]
fn tunnels_are_counted_and_their_time_is_not() {
    let series = Arc::new(SeriesRegistry::new(1));
    let writer = SeriesWriter::new(&series);
    writer.record(&Record {
        status: 101,
        ..of(0, 3_600_000_000)
    });
    writer.record(&Record {
        outcome: Outcome::Broken,
        ..of(0, 5)
    });
    let all = series.all();
    assert_eq!((all.requests, all.errors), (2, 1));
    assert_eq!((all.total.count(), all.total.max_us()), (1, 5));
}

#[test]
fn blocks_of_many_routes_stay_within_a_few_mebibytes() {
    for threads in [1, 2, 4, 8] {
        let all = SeriesRegistry::new(threads).places_max * threads * block::BLOCK_BYTES_MAX;
        assert!(all <= BLOCKS_BYTES_MAX, "{threads}: {all}");
    }
}
