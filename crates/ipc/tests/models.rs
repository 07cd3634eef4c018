//! Every order in which two threads can run the protocols of shared memory, by loom: no wake-up is
//! lost, a request has one owner, and a ring's reader sees whole messages only.
//!
//! The code is the very one that runs over shared memory; only words and bytes are loom's.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::Ordering;

use hob_ipc::message::{MessageHead, MessageKind, MessageSender};
use hob_ipc::shm::ring::{RingReader, RingWriter};
use hob_ipc::shm::slot;
use hob_ipc::shm::wake::{self, ASLEEP, AWAKE, WANTS_ROOM};
use hob_ipc::shm::word::{Bytes, Word};
use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU32;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// A word that loom watches.
struct Watched(AtomicU32);

impl Watched {
    fn new(value: u32) -> Watched {
        Watched(AtomicU32::new(value))
    }
}

impl Word for Watched {
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    fn replace(&self, current: u32, new: u32) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.0
            .compare_exchange(current, new, success, failure)
            .is_ok()
    }

    fn fence() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// What a sleeper sleeps on: rung once, it ends one sleep, also one that begins later.
struct Bell {
    is_rung: Mutex<bool>,
    rings: Condvar,
}

impl Bell {
    fn new() -> Bell {
        Bell {
            is_rung: Mutex::new(false),
            rings: Condvar::new(),
        }
    }

    fn ring(&self) {
        *self.is_rung.lock().unwrap() = true;
        self.rings.notify_one();
    }

    /// If nobody ever rings, loom says that the model is stuck.
    fn sleep_on(&self) {
        let mut is_rung = self.is_rung.lock().unwrap();
        while !*is_rung {
            is_rung = self.rings.wait(is_rung).unwrap();
        }
        *is_rung = false;
    }
}

#[test]
fn a_request_is_started_or_taken_back_never_both() {
    loom::model(|| {
        let word = Arc::new(Watched::new(0));
        slot::hand(&*word, 7);
        let theirs = word.clone();
        let worker = thread::spawn(move || slot::start(&*theirs, 7));
        let is_back = slot::take_back(&*word, 7);
        assert_ne!(is_back, worker.join().unwrap());
        assert!(slot::is_started(&*word, 7));
    });
}

#[test]
fn an_old_message_starts_nothing_in_a_slot_that_is_used_again() {
    loom::model(|| {
        let word = Arc::new(Watched::new(0));
        slot::hand(&*word, 7);
        let theirs = word.clone();
        let worker = thread::spawn(move || slot::start(&*theirs, 7));
        if slot::take_back(&*word, 7) {
            slot::hand(&*word, 8);
            assert!(!worker.join().unwrap());
            assert!(
                slot::start(&*word, 8),
                "the new request is there to be started"
            );
        }
    });
}

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let (word, news) = (Arc::new(Watched::new(AWAKE)), Arc::new(Watched::new(0)));
        let bell = Arc::new(Bell::new());
        let (their_word, their_news, their_bell) = (word.clone(), news.clone(), bell.clone());
        let waker = thread::spawn(move || {
            their_news.store(1, Ordering::Release);
            if wake::must_wake(&*their_word, u32::MAX) != AWAKE {
                their_bell.ring();
            }
        });
        if wake::fall_asleep(&*word, ASLEEP, || news.load(Ordering::Acquire) == 1) {
            bell.sleep_on();
        }
        assert_eq!(news.load(Ordering::Acquire), 1);
        waker.join().unwrap();
    });
}

#[test]
fn of_two_wakers_one_wakes_and_the_sleeper_misses_neither() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let word = Arc::new(Watched::new(AWAKE));
        let news = [(); 2].map(|()| Arc::new(Watched::new(0)));
        let bell = Arc::new(Bell::new());
        let wakers = news.clone().map(|news| {
            let (word, bell) = (word.clone(), bell.clone());
            thread::spawn(move || {
                news.store(1, Ordering::Release);
                if wake::must_wake(&*word, WANTS_ROOM) != AWAKE {
                    bell.ring();
                }
            })
        });
        let count = || {
            news.iter()
                .filter(|n| n.load(Ordering::Acquire) == 1)
                .count()
        };
        let mut seen = count();
        while seen < 2 {
            if wake::fall_asleep(&*word, ASLEEP | WANTS_ROOM, || count() > seen) {
                bell.sleep_on();
            }
            word.store(AWAKE, Ordering::Relaxed);
            seen = count();
        }
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

/// Bytes that loom watches for being read and written at once.
struct Cells(Vec<UnsafeCell<u8>>);

impl Bytes for Cells {
    fn copy_in(&self, at: u32, bytes: &[u8]) {
        for (cell, byte) in self.0[at as usize..].iter().zip(bytes) {
            cell.with_mut(|place| set(place, *byte));
        }
    }

    fn copy_out(&self, at: u32, count: u32, out: &mut Vec<u8>) {
        let cells = &self.0[at as usize..][..count as usize];
        out.extend(cells.iter().map(|cell| cell.with(get)));
    }

    fn eight(&self, at: u32) -> [u8; 8] {
        std::array::from_fn(|n| self.0[at as usize + n].with(get))
    }
}

#[allow(unsafe_code)]
fn set(place: *mut u8, byte: u8) {
    // SAFETY: loom has just said that nobody else uses the cell.
    unsafe { place.write(byte) }
}

#[allow(unsafe_code)]
fn get(place: *const u8) -> u8 {
    // SAFETY: as above.
    unsafe { place.read() }
}

#[test]
fn a_reader_sees_whole_messages_in_their_order_however_the_ring_wraps() {
    const SIZE: u32 = 64;
    const COUNT: u32 = 3;
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let cells = (0..SIZE).map(|_| UnsafeCell::new(0)).collect();
        let ring = Arc::new((Cells(cells), Watched::new(0), Watched::new(0)));
        let theirs = ring.clone();
        let writing = thread::spawn(move || {
            let (bytes, head, tail) = &*theirs;
            let mut writer = RingWriter::new(SIZE);
            for number in 1..=COUNT {
                while !writer.has_room(head, 5).unwrap() {
                    thread::yield_now();
                }
                let message = MessageHead::new(MessageKind::Body, number);
                writer
                    .push(bytes, message, &[b"ab", &[number as u8; 3]])
                    .unwrap();
                writer.publish(tail);
            }
        });
        let (bytes, head, tail) = &*ring;
        let mut reader = RingReader::new(SIZE);
        let mut payload = Vec::new();
        for number in 1..=COUNT {
            let message = loop {
                match reader
                    .pop(tail, bytes, MessageSender::Server, &mut payload)
                    .unwrap()
                {
                    Some(message) => break message,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(message.request, number);
            assert_eq!(
                payload,
                [b'a', b'b', number as u8, number as u8, number as u8]
            );
            reader.release(head);
        }
        writing.join().unwrap();
    });
}
