//! Keys, crowds and places over threads.

use std::future::Future;
use std::pin::Pin;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Waker};

use super::*;

fn gates(keys: usize, limits: (usize, usize)) -> Arc<KeyGates> {
    Arc::new(KeyGates::new(keys, limits))
}

/// A place at the gate of a key; `None` where there is none at once.
fn place(gates: &Arc<KeyGates>, key: &[u8]) -> Option<(Permit, GateSeat)> {
    let (seat, _) = gates.seat(key, b"");
    match seat.gate.enter() {
        GateAdmission::Permit(permit) => Some((permit, seat)),
        _ => None,
    }
}

#[test]
fn each_key_has_a_gate_while_somebody_is_there() {
    let gates = gates(100, (1, 0));
    let one = place(&gates, b"a").unwrap();
    assert!(place(&gates, b"a").is_none());
    let other = place(&gates, b"b").unwrap();
    assert_eq!(gates.known(), 2);
    drop(one);
    assert_eq!(gates.known(), 1);
    let again = place(&gates, b"a").unwrap();
    drop((other, again));
    assert_eq!(gates.known(), 0);
    assert!(gates.shards.iter().all(|shard| shard.lock().is_empty()));
}

#[test]
fn keys_beyond_those_that_may_be_share_the_gate_of_their_crowd() {
    let gates = gates(2, (1, 0));
    let known = (place(&gates, b"a").unwrap(), place(&gates, b"b").unwrap());
    let (first, is_alone) = gates.seat(b"c", b"net");
    assert!(!is_alone);
    let GateAdmission::Permit(permit) = first.gate.enter() else {
        panic!("the crowd's place is free");
    };
    let (second, _) = gates.seat(b"d", b"net");
    assert!(matches!(second.gate.enter(), GateAdmission::Full));
    // Those who are known keep gates of their own, and one that is given up is another's.
    let (_, is_alone) = gates.seat(b"a", b"net");
    assert!(is_alone);
    drop(known);
    let (_, is_alone) = gates.seat(b"d", b"net");
    assert!(is_alone);
    drop((permit, first, second));
    assert_eq!(gates.known(), 0);
}

#[test]
fn keys_one_after_the_other_leave_nothing() {
    let gates = gates(10_000_000, (1, 0));
    for key in 0_u32..200_000 {
        let place = place(&gates, &key.to_be_bytes());
        assert!(place.is_some(), "{key}");
    }
    assert_eq!(gates.known(), 0);
    // A map keeps what it once needed, which is one place.
    let room: usize = gates.shards.iter().map(|one| one.lock().capacity()).sum();
    assert!(room <= SHARDS * 8, "{room}");
}

#[test]
fn keys_that_are_held_take_no_more_gates_than_may_be() {
    let gates = gates(1000, (1, 0));
    let held: Vec<_> = (0_u32..5000)
        .map(|key| gates.seat(key.to_be_bytes(), &key.to_be_bytes()[3..]))
        .collect();
    let alone = held.iter().filter(|(_, is_alone)| *is_alone).count();
    assert_eq!((alone, gates.known()), (1000, 1000));
    let all: usize = gates.shards.iter().map(|one| one.lock().len()).sum();
    assert!(all <= 1000 + 256, "{all}");
    drop(held);
    assert_eq!(gates.known(), 0);
}

#[test]
fn threads_together_have_no_more_inside_than_may_be() {
    const INSIDE_MAX: usize = 3;
    let gates = gates(100, (INSIDE_MAX, 0));
    let (inside, most, went_in) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let (start, is_over_full) = (Barrier::new(4), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..20_000 {
                    let Some(place) = place(&gates, b"a") else {
                        continue;
                    };
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    if now > INSIDE_MAX {
                        is_over_full.store(true, Ordering::SeqCst);
                    }
                    went_in.fetch_add(1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(place);
                }
            });
        }
    });
    assert!(!is_over_full.load(Ordering::SeqCst), "{most:?}");
    assert!(went_in.load(Ordering::SeqCst) > 0);
    assert_eq!(gates.known(), 0);
}

#[test]
fn new_limits_hold_for_who_waits() {
    let gates = gates(100, (1, 5));
    let _first = place(&gates, b"a").unwrap();
    let (seat, _) = gates.seat(b"a", b"");
    let GateAdmission::Queued(mut waiter) = seat.gate.enter() else {
        panic!("it waits");
    };
    let mut poll = || {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(&mut waiter).poll(&mut cx)
    };
    assert!(poll().is_pending());
    gates.set_limits((2, 5));
    assert!(matches!(poll(), Poll::Ready(_)));
    // And for gates that are made later.
    let _other = (place(&gates, b"b").unwrap(), place(&gates, b"b").unwrap());
    assert!(place(&gates, b"b").is_none());
}
