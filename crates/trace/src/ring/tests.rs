//! Tests of the ring: order, wraparound, cuts, loss, waking. They also run under Miri, with fewer
//! rounds.

use std::time::{Duration, Instant};

use super::*;

/// Long enough to never pass in a test that goes well.
const LONG: Duration = Duration::from_secs(20);

fn record(request: u32) -> Record {
    Record {
        request,
        status: 200,
        reason: Some("because"),
        ..Record::empty()
    }
}

fn push(producer: &mut Producer, request: u32, target: &[u8]) -> bool {
    producer.push(
        &record(request),
        &Texts {
            method: b"GET",
            target,
            ..Texts::default()
        },
    )
}

/// Numbers that look random, from a seed.
fn next_random(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// A target whose length and bytes follow from the request's number.
fn target_of(request: u32) -> Vec<u8> {
    let length = next_random(&mut (u64::from(request) + 1)) % 300;
    (0..length).map(|i| (request as usize + i) as u8).collect()
}

#[test]
fn entry_comes_out_as_it_went_in() {
    let (mut producer, mut consumer) = ring(0);
    let texts = Texts {
        method: b"POST",
        target: b"/a?b",
        host: b"example.org",
        referer: b"",
        user_agent: b"agent \xff\0",
        user: b"u",
        detail: b"d e",
        asked: b"as ked",
    };
    let sent = Record {
        total_us: 5,
        client_port: 99,
        reason: Some("why"),
        ..Record::empty()
    };
    assert!(producer.push(&sent, &texts));
    let mut seen = Vec::new();
    let count =
        consumer.drain(|record, got| seen.push((format!("{record:?}"), format!("{got:?}"))));
    assert_eq!(
        (count, seen),
        (1, vec![(format!("{sent:?}"), format!("{texts:?}"))])
    );
    assert_eq!(consumer.drain(|_, _| ()), 0);
}

#[test]
fn texts_longer_than_their_limits_are_cut() {
    let (mut producer, mut consumer) = ring(0);
    let long = vec![b'x'; 100_000];
    let texts = Texts {
        method: &long,
        target: &long,
        host: &long,
        referer: &long,
        user_agent: &long,
        user: &long,
        detail: &long,
        asked: &long,
    };
    assert!(producer.push(&record(0), &texts));
    consumer.drain(|_, got| {
        let texts = [
            got.method,
            got.target,
            got.host,
            got.referer,
            got.user_agent,
            got.user,
            got.detail,
            got.asked,
        ];
        assert_eq!(
            texts.map(<[u8]>::len),
            [32, 2048, 256, 1024, 512, 128, 1024, 4096]
        );
        assert!(
            texts
                .iter()
                .all(|text| text.iter().all(|byte| *byte == b'x'))
        );
    });
}

#[test]
fn largest_entry_fits_an_empty_ring_at_every_offset() {
    let (mut producer, mut consumer) = ring(RING_BYTES_MIN);
    let long = vec![b'y'; 5000];
    let largest = Texts {
        method: &long,
        target: &long,
        host: &long,
        referer: &long,
        user_agent: &long,
        user: &long,
        detail: &long,
        asked: &long,
    };
    // Steps of 8 bytes differing from the capacity's divisors, so that laps start at ever other
    // offsets.
    let laps = if cfg!(miri) { 60 } else { 10_000 };
    for lap in 0..laps {
        assert!(push(&mut producer, lap, &long[..lap as usize % 64 * 8]));
        assert!(producer.push(&record(lap), &largest), "lap {lap}");
        let mut requests = Vec::new();
        consumer.drain(|record, _| requests.push(record.request));
        assert_eq!(requests, [lap, lap]);
    }
    assert_eq!(producer.dropped(), 0);
}

#[test]
fn full_ring_refuses_counts_and_goes_on_when_drained() {
    let (mut producer, mut consumer) = ring(RING_BYTES_MIN);
    let mut accepted = 0;
    while push(&mut producer, accepted, b"/some/target") {
        accepted += 1;
    }
    assert!(!push(&mut producer, u32::MAX, b""), "still full");
    assert_eq!((producer.dropped(), consumer.dropped()), (2, 2));
    let mut expected = 0;
    consumer.drain(|record, texts| {
        assert_eq!(
            (record.request, texts.target),
            (expected, &b"/some/target"[..])
        );
        expected += 1;
    });
    assert_eq!(expected, accepted);
    assert!(push(&mut producer, 1, b""));
    assert_eq!((consumer.drain(|_, _| ()), consumer.dropped()), (1, 2));
}

#[test]
fn ring_holds_what_its_size_promises() {
    let (mut producer, _consumer) = ring(64 * 1024);
    let entry = (size_of::<RingEntryHeader>() + 3 + 13).next_multiple_of(8);
    let held = (0..)
        .take_while(|n| push(&mut producer, *n, b"/thirteen/byt"))
        .count();
    assert!(
        held >= 64 * 1024 / entry - 1,
        "{held} entries of {entry} bytes"
    );
}

#[test]
fn everything_accepted_arrives_in_order_between_two_threads() {
    let total: u32 = if cfg!(miri) { 300 } else { 400_000 };
    let (mut producer, mut consumer) = ring(RING_BYTES_MIN);
    let pushing = std::thread::spawn(move || {
        let mut refused = 0;
        for request in 0..total {
            let target = target_of(request);
            while !push(&mut producer, request, &target) {
                refused += 1;
                std::thread::yield_now();
            }
        }
        refused
    });
    let mut expected = 0;
    while !consumer.is_finished() {
        let count = consumer.drain(|record, texts| {
            assert_eq!(record.request, expected);
            assert_eq!(texts.target, target_of(expected));
            assert_eq!(
                (texts.method, record.reason),
                (&b"GET"[..], Some("because"))
            );
            expected += 1;
        });
        if count == 0 {
            std::thread::yield_now();
        }
    }
    assert_eq!(expected, total);
    assert_eq!(consumer.dropped(), pushing.join().unwrap());
}

#[test]
fn push_wakes_an_armed_reader_each_time() {
    let rounds = if cfg!(miri) { 5 } else { 1_000 };
    let (mut producer, mut consumer) = ring(0);
    let reader = std::thread::current();
    consumer.attach(reader);
    let (ask, asked) = std::sync::mpsc::channel();
    let pushing = std::thread::spawn(move || {
        for request in asked {
            assert!(push(&mut producer, request, b"/"));
        }
    });
    for round in 0..rounds {
        consumer.arm();
        ask.send(round).unwrap();
        let started = Instant::now();
        while consumer.drain(|record, _| assert_eq!(record.request, round)) == 0 {
            std::thread::park_timeout(LONG);
            assert!(
                started.elapsed() < LONG,
                "round {round}: nobody woke the reader"
            );
        }
    }
    drop(ask);
    pushing.join().unwrap();
}

#[test]
fn arm_tells_whether_a_push_has_disarmed() {
    let (mut producer, consumer) = ring(0);
    consumer.attach(std::thread::current());
    assert!(!consumer.arm());
    assert!(consumer.arm());
    assert!(push(&mut producer, 0, b"/"));
    assert!(!consumer.arm(), "the push disarmed it");
    consumer.disarm();
    assert!(!consumer.arm());
}

#[test]
fn half_full_ring_wakes_a_reader_that_is_not_armed() {
    let (mut producer, consumer) = ring(RING_BYTES_MIN);
    consumer.attach(std::thread::current());
    let entry = (size_of::<RingEntryHeader>() + 4).next_multiple_of(8);
    let past_half = RING_BYTES_MIN / 2 / entry + 1;
    (0..past_half).for_each(|n| assert!(push(&mut producer, n as u32, b"/")));
    let started = Instant::now();
    std::thread::park_timeout(LONG);
    assert!(started.elapsed() < LONG, "not woken when half full");
}

#[test]
fn ring_is_finished_once_the_producer_is_gone_and_all_is_drained() {
    let (mut producer, mut consumer) = ring(0);
    assert!(push(&mut producer, 0, b"/"));
    assert!(!consumer.is_finished());
    drop(producer);
    assert!(!consumer.is_finished(), "one entry is left");
    consumer.drain(|_, _| ());
    assert!(consumer.is_finished());
}

#[test]
fn producer_outlives_its_consumer() {
    let (mut producer, consumer) = ring(0);
    drop(consumer);
    while push(&mut producer, 0, b"/") {}
    assert_eq!(producer.dropped(), 1);
}

#[test]
#[cfg_attr(miri, ignore = "there is no resident memory under Miri")]
fn unused_ring_costs_no_memory() {
    let resident_bytes = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * rustix::param::page_size()
    };
    let before = resident_bytes();
    let (mut producer, _consumer) = ring(512 << 20);
    assert!(push(&mut producer, 0, b"/"));
    // Other tests run beside this one; they use a few MiB at most.
    assert!(resident_bytes() < before + (64 << 20));
}
