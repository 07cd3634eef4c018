//! A ring whose writer lies: whatever its tail says and its bytes are, the reader gives messages
//! that lie in the ring, or a lie; and it comes to an end.
#![no_main]

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use hob_ipc::message::MessageSender;
use hob_ipc::shm::ring::{RingReader, RingWriter};
use hob_ipc::shm::word::Bytes;
use libfuzzer_sys::fuzz_target;

const SIZE: usize = 4096;

struct Memory(RefCell<[u8; SIZE]>);

impl Bytes for Memory {
    fn copy_in(&self, at: u32, bytes: &[u8]) {
        self.0.borrow_mut()[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn copy_out(&self, at: u32, count: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.borrow()[at as usize..][..count as usize]);
    }

    fn eight(&self, at: u32) -> [u8; 8] {
        *self.0.borrow()[at as usize..]
            .first_chunk()
            .expect("eight bytes in the ring")
    }
}

fuzz_target!(|input: &[u8]| {
    let memory = Memory(RefCell::new([0; SIZE]));
    let (tail, head) = (AtomicU32::new(0), AtomicU32::new(0));
    let mut reader = RingReader::new(SIZE as u32);
    let mut writer = RingWriter::new(SIZE as u32);
    let mut payload = Vec::new();
    // Each step of the input: a new tail and head, and bytes written somewhere.
    for step in input.chunks(64) {
        let Some((words, bytes)) = step.split_first_chunk::<10>() else {
            return;
        };
        let number = |at: usize| {
            u32::from_le_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]])
        };
        tail.store(number(0), Ordering::Relaxed);
        head.store(number(4), Ordering::Relaxed);
        let at = usize::from(u16::from_le_bytes([words[8], words[9]])) % (SIZE - 64);
        memory.copy_in(at as u32, bytes);
        let _ = writer.has_room(&head, number(4) % SIZE as u32);
        for _ in 0..=SIZE / 16 {
            match reader.pop(&tail, &memory, MessageSender::Worker, &mut payload) {
                Ok(Some(popped)) => assert_eq!(payload.len(), popped.len as usize),
                Ok(None) => break,
                Err(_) => return,
            }
            reader.release(&head);
        }
        let is_done = reader.pop(&tail, &memory, MessageSender::Worker, &mut payload);
        assert!(
            !matches!(is_done, Ok(Some(_))),
            "no more messages than a ring holds"
        );
    }
});
