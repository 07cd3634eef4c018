//! Shared memory between two real processes: requests, bodies both ways, withdrawal, and a worker
//! that leaves.

mod pair;

use hob_ipc::message::{CHUNK, LAST, MessageHead, MessageKind};
use hob_ipc::shm::{RingFull, WorkerPayload};

use pair::Pair;

/// Not a test of its own: what the other process of each test runs.
#[test]
fn worker_process() {
    pair::run_if_worker();
}

#[test]
fn a_request_is_answered_by_the_other_process() {
    let mut pair = Pair::start("echo");
    let slot = pair.end.hand(7, LAST, b"block").unwrap();
    pair.end.flush();
    let (head, payload) = pair.next();
    assert_eq!(
        (head.kind, head.request, head.small),
        (MessageKind::Head, 7, 200)
    );
    assert_eq!(payload, b"Content-Type: text/plain\n");
    let (head, payload) = pair.next();
    assert_eq!(
        (head.kind, head.flags, &payload[..]),
        (MessageKind::Data, LAST, &b"block"[..])
    );
    assert!(pair.end.is_started(slot));
    assert!(
        !pair.end.take_back(slot),
        "a started request is the worker's"
    );
    pair.end.release(slot);
    pair.finish();
}

#[test]
fn bodies_of_any_size_travel_both_ways() {
    let mut pair = Pair::start("echo");
    let body: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let slot = pair.end.hand(1, 0, b"").unwrap();
    let mut back = Vec::new();
    let mut pieces = body.chunks(60_000).peekable();
    let mut is_over = false;
    while !is_over {
        while let Some(piece) = pieces.peek() {
            match pair
                .end
                .push(MessageHead::new(MessageKind::Body, 1), &[piece])
            {
                Ok(()) => drop(pieces.next()),
                Err(RingFull) => break,
            }
            if pieces.peek().is_none() {
                while pair
                    .end
                    .push(MessageHead::new(MessageKind::Body, 1).flags(LAST), &[])
                    .is_err()
                {
                    let (head, payload) = pair.next();
                    is_over |= pair::collect(&head, &payload, &mut back);
                }
            }
        }
        pair.end.flush();
        let (head, payload) = pair.next();
        is_over |= pair::collect(&head, &payload, &mut back);
    }
    assert!(back == body, "the body came back as it was");
    assert!(pair.end.counters().full > 0, "the ring was full at times");
    pair.end.release(slot);
    pair.finish();
}

#[test]
fn long_data_is_sent_from_the_region_and_the_chunk_comes_back() {
    let mut pair = Pair::start("chunks");
    for round in 0..20u32 {
        let slot = pair.end.hand(round + 1, LAST, b"").unwrap();
        pair.end.flush();
        let mut held = Vec::new();
        let mut count = 0;
        loop {
            pair.wait();
            let incoming = pair.end.pop().unwrap().expect("news");
            if let WorkerPayload::Chunk(chunk) = incoming.payload {
                assert!(incoming.head.has(CHUNK));
                let mut copy = Vec::new();
                chunk.copy_to(&mut copy);
                assert!(
                    copy == vec![count as u8; 65_536],
                    "chunk {count} of round {round}"
                );
                count += 1;
                held.push(chunk);
            }
            if incoming.head.is_last() {
                break;
            }
            // More than there are: the worker waits until some come back, on whichever thread.
            if held.len() == 32 {
                let half: Vec<_> = held.drain(..16).collect();
                std::thread::spawn(move || drop(half)).join().unwrap();
            }
        }
        assert_eq!(count, 100);
        pair.end.release(slot);
    }
    pair.finish();
}

#[test]
fn what_was_not_started_can_be_taken_back_and_its_slot_used_again() {
    let mut pair = Pair::start("echo");
    let (mut answered, mut taken_back) = (0, 0);
    for round in 0..200u32 {
        let slots: Vec<_> = (0..8)
            .map(|place| pair.end.hand(round * 8 + place + 1, LAST, b"x").unwrap())
            .collect();
        pair.end.flush();
        let mut waiting = 8;
        for slot in slots.iter().rev().take(usize::try_from(round % 9).unwrap()) {
            if pair.end.take_back(*slot) {
                taken_back += 1;
                waiting -= 1;
                assert!(!pair.end.take_back(*slot), "only once");
            }
        }
        while waiting > 0 {
            let (head, _) = pair.next();
            if head.is_last() {
                waiting -= 1;
                answered += 1;
            }
        }
        slots.into_iter().for_each(|slot| pair.end.release(slot));
    }
    assert_eq!(answered + taken_back, 1600);
    pair.finish();
}

#[test]
fn no_more_than_64_requests_are_handed_over() {
    let mut pair = Pair::start("echo");
    let slots: Vec<_> = (1..=64)
        .map(|request| pair.end.hand(request, LAST, b"").unwrap())
        .collect();
    assert_eq!(pair.end.hand(65, LAST, b""), Err(RingFull));
    assert!(pair.end.take_back(slots[5]), "nothing was published yet");
    let again = pair.end.hand(65, LAST, b"").unwrap();
    assert_ne!(again, slots[5], "another generation");
    assert!(
        !pair.end.take_back(slots[5]),
        "the old reference means nothing any more"
    );
    pair.end.flush();
    let mut last = Vec::new();
    while last.len() < 64 {
        let (head, _) = pair.next();
        if head.is_last() {
            last.push(head.request);
        }
    }
    assert_eq!(last, (1..=65).filter(|&n| n != 6).collect::<Vec<u32>>());
    pair.finish();
}

#[test]
fn a_busy_pair_wakes_the_worker_once_for_many_requests() {
    let mut pair = Pair::start("echo");
    for round in 0..300u32 {
        let hand = |place| pair.end.hand(round * 16 + place + 1, LAST, b"b").unwrap();
        let slots: Vec<_> = (0..16).map(hand).collect();
        pair.end.flush();
        let mut waiting = slots.len();
        while waiting > 0 {
            waiting -= usize::from(pair.next().0.is_last());
        }
        slots.into_iter().for_each(|slot| pair.end.release(slot));
    }
    let counters = pair.end.counters();
    assert!(counters.wakes_sent <= 301, "{counters:?}");
    pair.finish();
}
