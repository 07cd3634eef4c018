//! Activity over restarts: a file of fixed size, a slot for each second and minute that is kept.
//!
//! ```text
//! 0    512                                512 + SECONDS_KEPT * 100
//! [head][slot of second % SECONDS_KEPT]...[slot of minute % MINUTES_KEPT]...
//! head  0 "hob activity 1\n" | the rest zero
//! slot  0 u64 time, in seconds or minutes since 1970 | 8 u32 CRC-32 of time and row | 12 row
//! ```
//!
//! Two slots are written in each second that had a server. A slot that a crash tore has a wrong sum
//! and is a hole.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use flate2::Crc;

use super::row::{ActivityRow, ROW_BYTES};
use super::rows::{Activity, ActivityRing, Changed, MINUTES_KEPT, SECONDS_KEPT};

const MAGIC: &[u8; 15] = b"hob activity 1\n";
const HEAD_BYTES: u64 = 512;
const SLOT_BYTES: usize = 12 + ROW_BYTES;
const MINUTES_AT: u64 = HEAD_BYTES + SECONDS_KEPT * SLOT_BYTES as u64;
/// Size of the file once all of it is used, in bytes.
pub const ACTIVITY_FILE_BYTES: u64 = MINUTES_AT + MINUTES_KEPT * SLOT_BYTES as u64;
/// Slots read at a time.
const SLOTS_AT_ONCE: u64 = 1024;

/// The file.
#[derive(Debug)]
pub struct ActivityFile {
    file: File,
}

impl ActivityFile {
    /// A file that is empty, or was one of these.
    ///
    /// # Errors
    /// It is something else, which is left as it is.
    pub fn open(file: File) -> io::Result<ActivityFile> {
        let mut head = [0; MAGIC.len()];
        match file.read_exact_at(&mut head, 0) {
            Ok(()) if head == *MAGIC => {}
            Ok(()) => return Err(io::Error::other("it holds something else than activity")),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                file.write_all_at(MAGIC, 0)?;
            }
            Err(error) => return Err(error),
        }
        Ok(ActivityFile { file })
    }

    /// Takes over what was recorded, and writes what this server has recorded so far; says how many
    /// rows were damaged.
    ///
    /// # Errors
    /// The file cannot be read, or takes nothing.
    pub fn load(&self, activity: &Activity) -> io::Result<u64> {
        let mut rows = activity.rows.lock();
        let rows = &mut *rows;
        let seconds = self.load_ring(&mut rows.seconds, HEAD_BYTES)?;
        Ok(seconds + self.load_ring(&mut rows.minutes, MINUTES_AT)?)
    }

    fn load_ring(&self, ring: &mut ActivityRing, at: u64) -> io::Result<u64> {
        let file_bytes = self.file.metadata()?.len();
        let count = ring.count;
        let mut damaged = 0;
        let mut buffer = vec![0; SLOTS_AT_ONCE as usize * SLOT_BYTES];
        for first in (0..count).step_by(SLOTS_AT_ONCE as usize) {
            let from = at + first * SLOT_BYTES as u64;
            let wanted = (count - first).min(SLOTS_AT_ONCE) * SLOT_BYTES as u64;
            let there = wanted.min(file_bytes.saturating_sub(from)) as usize;
            // A hole of the file is read as zeros, which are no row.
            self.file.read_exact_at(&mut buffer[..there], from)?;
            buffer[there..].fill(0);
            let slots = buffer[..wanted as usize].as_chunks::<SLOT_BYTES>().0;
            for (slot, index) in slots.iter().zip(first..) {
                let is_recorded = match decode(slot) {
                    DecodedSlot::Row(time, row) if time % count == index => {
                        ring.take_over(time, &row)
                    }
                    slot => {
                        damaged += u64::from(!matches!(slot, DecodedSlot::Nothing));
                        true
                    }
                };
                if let Some(row) = ring.recorded(index).filter(|_| is_recorded) {
                    let at = at + index * SLOT_BYTES as u64;
                    self.file.write_all_at(&encode(*row), at)?;
                }
            }
        }
        Ok(damaged)
    }

    /// Writes what has changed.
    ///
    /// # Errors
    /// The file takes nothing: a full disk, for one.
    pub fn write(&self, changed: &Changed) -> io::Result<()> {
        let (second, minute) = (changed.second, changed.minute);
        let place = |at: u64, time: u64, count: u64| at + time % count * SLOT_BYTES as u64;
        let at = place(HEAD_BYTES, second.0, SECONDS_KEPT);
        self.file.write_all_at(&encode(second), at)?;
        let at = place(MINUTES_AT, minute.0, MINUTES_KEPT);
        self.file.write_all_at(&encode(minute), at)
    }
}

enum DecodedSlot {
    Row(u64, ActivityRow),
    Damaged,
    Nothing,
}

fn encode((time, row): (u64, ActivityRow)) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(&time.to_le_bytes());
    slot[12..].copy_from_slice(&row.encode());
    let sum = sum_of(&slot);
    slot[8..12].copy_from_slice(&sum.to_le_bytes());
    slot
}

fn decode(slot: &[u8; SLOT_BYTES]) -> DecodedSlot {
    if slot.iter().all(|byte| *byte == 0) {
        return DecodedSlot::Nothing;
    }
    let (Some(time), Some(sum)) = (slot.first_chunk(), slot[8..].first_chunk()) else {
        return DecodedSlot::Damaged;
    };
    let row = slot[12..].first_chunk().map(ActivityRow::decode);
    match row {
        Some(row) if u32::from_le_bytes(*sum) == sum_of(slot) => {
            DecodedSlot::Row(u64::from_le_bytes(*time), row)
        }
        _ => DecodedSlot::Damaged,
    }
}

fn sum_of(slot: &[u8; SLOT_BYTES]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&slot[..8]);
    crc.update(&slot[12..]);
    crc.sum()
}

/// Whether a slot holds a row: for the fuzzer.
pub fn is_slot(bytes: &[u8]) -> bool {
    let slot = bytes.first_chunk();
    slot.is_some_and(|slot| matches!(decode(slot), DecodedSlot::Row(..)))
}
