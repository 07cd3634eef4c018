//! A worker that lies: every byte it can write is changed, and rings are filled with noise. The
//! server's end answers with a lie or with messages, in bounded time, and never with a panic; what
//! it holds stays its own.
//!
//! The worker's writes are made with `pwrite` into the region's memfd.
#![allow(clippy::unwrap_used)]

use std::os::fd::OwnedFd;

use hob_ipc::message::{LAST, MessageHead, MessageKind};
use hob_ipc::shm::region::Sizes;
use hob_ipc::shm::{ChunkHold, Gifts, ServerEnd, SlotRef, WorkerEnd, WorkerPayload};

const RING_TO_SERVER_AT: u64 = 8192 + 256 * 1024;
const TO_SERVER_TAIL: u64 = 192;

/// What a server did with what it found: bounded, whatever that was.
const POPS_MAX: usize = 20_000;

struct Region {
    end: ServerEnd,
    _worker: WorkerEnd,
    memory: OwnedFd,
    slots: Vec<SlotRef>,
}

/// A region in the middle of its work: requests handed over and started, messages and chunks under
/// way both ways.
fn busy() -> Region {
    let (mut end, gifts) = ServerEnd::create(Sizes::default()).unwrap();
    let memory = gifts.region.try_clone().unwrap();
    let mut worker = WorkerEnd::open(gifts).unwrap();
    let slots = (1..=4)
        .map(|request| end.hand(request, LAST, &[b'q'; 200]).unwrap())
        .collect();
    end.flush();
    let mut payload = Vec::new();
    for request in 1..=2 {
        let head = worker.pop(&mut payload).unwrap().unwrap();
        assert!(worker.start(&head));
        worker
            .push(
                MessageHead::new(MessageKind::Head, request).small(200),
                &[b"A: b\n"],
            )
            .unwrap();
        let mut chunk = worker.take_chunk().unwrap();
        chunk.fill(0, &[b'c'; 5000]);
        worker.push_chunk(request, 0, chunk, 5000).unwrap();
        worker
            .push(
                MessageHead::new(MessageKind::Data, request).flags(LAST),
                &[b"data"],
            )
            .unwrap();
    }
    worker.flush();
    Region {
        end,
        _worker: worker,
        memory,
        slots,
    }
}

fn read(memory: &OwnedFd, at: u64, bytes: &mut [u8]) {
    assert_eq!(
        rustix::io::pread(memory, &mut *bytes, at).unwrap(),
        bytes.len()
    );
}

fn write(memory: &OwnedFd, at: u64, bytes: &[u8]) {
    assert_eq!(rustix::io::pwrite(memory, bytes, at).unwrap(), bytes.len());
}

/// Everything a driver does. Says how many messages there were, and if there was a lie.
fn drive(region: &mut Region) -> (usize, bool) {
    let end = &mut region.end;
    let mut held: Vec<ChunkHold> = Vec::new();
    let (mut count, mut lied) = (0, false);
    for _ in 0..POPS_MAX {
        match end.pop() {
            Ok(Some(incoming)) => {
                count += 1;
                if let WorkerPayload::Chunk(chunk) = incoming.payload {
                    let mut copy = Vec::new();
                    chunk.copy_to(&mut copy);
                    assert_eq!(copy.len(), chunk.len());
                    held.push(chunk);
                }
            }
            Ok(None) => break,
            Err(lie) => {
                lied = true;
                assert!(!lie.to_string().is_empty());
                assert_eq!(end.pop().expect_err("a lie stays"), lie);
                break;
            }
        }
    }
    assert!(count < POPS_MAX, "no more messages than a ring holds");
    assert!(held.len() <= 32, "no chunk twice");
    for slot in region.slots.drain(..) {
        end.is_started(slot);
        if !end.take_back(slot) {
            end.release(slot);
        }
        assert!(!end.take_back(slot));
    }
    let mut handed = 0;
    while handed < 100 && end.hand(9, LAST, &[b'q'; 3000]).is_ok() {
        handed += 1;
    }
    assert!(handed <= 64);
    end.flush();
    end.fall_asleep();
    end.wake_up();
    drop(held);
    (count, lied)
}

#[test]
fn an_honest_worker_is_understood() {
    assert_eq!(drive(&mut busy()), (6, false));
}

#[test]
fn no_changed_byte_makes_the_server_panic_or_loop() {
    let words = (0..512).chain(1024..1024 + 2048).chain(4096..4096 + 4096);
    let words = words.filter(|at| at % 64 < 8);
    let mut tail = [0; 4];
    read(&busy().memory, TO_SERVER_TAIL, &mut tail);
    let ring = RING_TO_SERVER_AT..RING_TO_SERVER_AT + u64::from(u32::from_le_bytes(tail));
    let (mut lies, mut changes) = (0, 0);
    for at in words.chain(ring) {
        for change in [0x01, 0x08, 0x80, 0xff] {
            let mut region = busy();
            let mut byte = [0];
            read(&region.memory, at, &mut byte);
            write(&region.memory, at, &[byte[0] ^ change]);
            lies += usize::from(drive(&mut region).1);
            changes += 1;
        }
    }
    assert!(changes > 3000, "{changes} changes");
    assert!(lies > 200, "{lies} lies were noticed");
}

#[test]
fn every_position_a_tail_can_have_is_survived() {
    for tail in (0..256 * 1024 + 64)
        .step_by(1237)
        .chain([u32::MAX, 1 << 31, 12, 15])
    {
        for fill in [0u8, 0xff, 35] {
            let mut region = busy();
            write(&region.memory, RING_TO_SERVER_AT, &[fill; 4096]);
            write(&region.memory, TO_SERVER_TAIL, &tail.to_le_bytes());
            drive(&mut region);
        }
    }
}

#[test]
fn noise_in_ring_and_words_is_survived() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..400 {
        let mut region = busy();
        // Heads that are nearly good get further than noise.
        let mut noise = Vec::new();
        while noise.len() < 8192 {
            let kind = [35, 35, 34, 36, 39, 38, (random() % 64) as u8][(random() % 7) as usize];
            let flags = [0, 1, 8, 9, 16][(random() % 5) as usize];
            let len = [0, 8, 16, (random() % 70_000) as u32][(random() % 4) as usize];
            noise.extend_from_slice(&len.to_le_bytes());
            noise.extend_from_slice(&[kind, flags, 0, 0]);
            noise.extend_from_slice(&((random() % 4) as u32).to_le_bytes());
            noise.extend_from_slice(&((random() % 40) as u32).to_le_bytes());
            noise.extend_from_slice(&((random() % 40) as u32).to_le_bytes());
            noise.extend_from_slice(&((random() % 70_000) as u32).to_le_bytes());
        }
        write(&region.memory, RING_TO_SERVER_AT, &noise);
        let tail = (random() % 9000) as u32 & !7;
        write(&region.memory, TO_SERVER_TAIL, &tail.to_le_bytes());
        for _ in 0..round % 4 {
            let word = [128, 192, 256, 320, 384][(random() % 5) as usize];
            write(&region.memory, word, &(random() as u32).to_le_bytes());
        }
        drive(&mut region);
    }
}

#[test]
fn a_chunk_sent_twice_or_out_of_range_is_a_lie() {
    for (index, bytes, is_lie) in [(0u32, 5000u32, true), (31, 65_536, false), (32, 1, true)]
        .into_iter()
        .chain([(1, 0, true), (5, 65_537, true), (u32::MAX, u32::MAX, true)])
    {
        let (mut end, gifts) = ServerEnd::create(Sizes::default()).unwrap();
        let mut worker = WorkerEnd::open(gifts).unwrap();
        let head = MessageHead::new(MessageKind::Data, 1).flags(8);
        let good = [0u32.to_le_bytes(), 5000u32.to_le_bytes()].concat();
        let other = [index.to_le_bytes(), bytes.to_le_bytes()].concat();
        worker.push(head, &[&good]).unwrap();
        worker.push(head, &[&other]).unwrap();
        worker.flush();
        let first = end.pop().unwrap().unwrap().payload;
        let WorkerPayload::Chunk(held) = first else {
            panic!("a chunk");
        };
        assert_eq!(end.pop().is_err(), is_lie, "{index} {bytes}");
        drop(end);
        assert_eq!(held.len(), 5000, "what is held outlives the end");
        held.copy_to(&mut Vec::new());
    }
}

#[test]
fn a_region_that_is_none_is_refused_by_the_library() {
    let gifts_for = |change: &dyn Fn(&OwnedFd)| {
        let (_end, gifts) = ServerEnd::create(Sizes::default()).unwrap();
        change(&gifts.region);
        WorkerEnd::open(gifts)
    };
    assert!(gifts_for(&|_| {}).is_ok());
    for at in (0..40).step_by(4) {
        let flipped = gifts_for(&|memory| write(memory, at, &[0x5a]));
        assert!(flipped.is_err(), "header byte {at}");
    }
    let (_end, gifts) = ServerEnd::create(Sizes::default()).unwrap();
    let unsealed = Gifts {
        region: rustix::fs::memfd_create(c"x", rustix::fs::MemfdFlags::CLOEXEC).unwrap(),
        ..gifts
    };
    assert!(WorkerEnd::open(unsealed).is_err());
}

#[test]
fn a_worker_cannot_make_the_servers_bell_block() {
    let (mut end, gifts) = ServerEnd::create(Sizes::default()).unwrap();
    let bell = gifts.bell_to_worker.try_clone().unwrap();
    let mut worker = WorkerEnd::open(gifts).unwrap();
    rustix::fs::fcntl_setfl(&bell, rustix::fs::OFlags::empty()).unwrap();
    // Far more rings than the pipe holds, read by nobody.
    for request in 1..=6000 {
        assert!(worker.fall_asleep(hob_ipc::shm::How::OnBell, &[]));
        let slot = end.hand(request, LAST, b"").unwrap();
        end.flush();
        let head = worker.pop(&mut Vec::new()).unwrap().unwrap();
        assert!(worker.start(&head));
        end.release(slot);
    }
    assert_eq!(end.counters().wakes_sent, 6000);
}
