//! The history's ring file: what outlives the server, and a start of hob.
//!
//! ```text
//! 0        512                                                         bytes_max
//! [head][frame][frame]...[frame][what is left of older frames][frame][frame].....|
//!                               ^ position: the next frame goes here
//! frame   0 u32 magic | 4 u32 CRC-32 of the rest | 8 u64 sequence | 16 u64 base, Unix ms
//!         24 u64 run | 32 u64 server | 40 u32 bytes of entries | 44 u32 bytes of names
//!         48 entries of a segment, then the names of their series
//! head    0 u32 magic | 4 u32 CRC-32 of the rest | 8 u64 position | 16 u64 sequence
//! name    u16 series, u8 handler, then site, route and program, each u16 and bytes
//! ```
//!
//! A frame begins at a multiple of 512 bytes; the magic has a zero byte, which no text of a request
//! has. What a crash tore, and what a newer frame has begun to cover, has a wrong sum and is passed
//! over. Only a background thread comes here. Every write happens under a lock of the file, and
//! reads the head anew, so that the server that drains and its successor can both append.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::Crc;
use rustix::fs::{FlockOperation, flock};

use super::segment::{HistorySegment, SEGMENT_BYTES, SegmentOrigin};
use super::{RequestHistory, Retention};
use crate::record::HandlerKind;
use crate::series::{SeriesName, SeriesRegistry};

/// The smallest file, in bytes.
pub const FILE_BYTES_MIN: u64 = 1 << 20;
const ALIGN: u64 = 512;
const FRAME_MAGIC: [u8; 4] = [b'h', 0, 0xfb, b'F'];
const HEAD_MAGIC: [u8; 4] = [b'h', 0, 0xfb, b'1'];
const FRAME_HEAD_BYTES: usize = 48;
const HEAD_BYTES: usize = 24;
/// Bytes of all names of a frame.
const NAMES_BYTES_MAX: usize = 256 * 1024;
/// Bytes of one part of a name that are kept.
const NAME_BYTES_MAX: usize = 1024;
const _: () = assert!((SEGMENT_BYTES + NAMES_BYTES_MAX) as u64 * 2 < FILE_BYTES_MIN);

/// The ring file of a history.
#[derive(Debug)]
pub struct HistoryFile {
    file: File,
    bytes_max: u64,
}

/// What was found in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Requests that are in the history now.
    pub requests: u64,
    /// Frames that could not be read: torn by a crash, or changed.
    pub damaged: u64,
}

/// Where the next frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameCursor {
    position: u64,
    sequence: u64,
}

/// A frame whose sum is right.
#[derive(Clone, Copy, Debug)]
struct HistoryFrame {
    position: u64,
    sequence: u64,
    bytes: usize,
}

impl HistoryFile {
    /// A file, of this size at most.
    pub fn new(file: File, bytes_max: u64) -> HistoryFile {
        let bytes_max = bytes_max.max(FILE_BYTES_MIN);
        HistoryFile { file, bytes_max }
    }

    /// Puts what the file has, and the history still wants, before all that it holds.
    pub fn load(
        &self,
        history: &RequestHistory,
        series: &SeriesRegistry,
        now_unix_ms: u64,
    ) -> io::Result<Loaded> {
        let (mut frames, damaged) = self.frames()?;
        let mut loaded = Loaded {
            requests: 0,
            damaged,
        };
        frames.sort_by_key(|frame| frame.sequence);
        let Retention {
            bytes_max,
            time_max,
        } = history.state.lock().retention;
        let time_ms = u64::try_from(time_max.as_millis()).unwrap_or(u64::MAX);
        let since_ms = now_unix_ms.saturating_sub(time_ms);
        let mut segments = Vec::new();
        let mut bytes = 0;
        for frame in frames.iter().rev() {
            let Some(segment) = self.segment(*frame, series)? else {
                loaded.damaged += 1;
                continue;
            };
            bytes += segment.memory_bytes();
            if bytes > bytes_max || segment.extent.last_unix_ms < since_ms {
                break;
            }
            loaded.requests += u64::from(segment.extent.count);
            segments.push(segment);
        }
        segments.reverse();
        history.put_before(segments);
        Ok(loaded)
    }

    /// Appends what the history has and the file has not.
    ///
    /// # Errors
    /// The file takes nothing: a full disk, for one. What was not written is tried again next time.
    pub fn append(&self, history: &RequestHistory, series: &SeriesRegistry) -> io::Result<()> {
        let new = history.unwritten_segments();
        if new.is_empty() {
            return Ok(());
        }
        let names = series.names();
        flock(&self.file, FlockOperation::LockExclusive)?;
        let written = self.append_locked(&new, &names, history);
        flock(&self.file, FlockOperation::Unlock)?;
        written
    }

    fn append_locked(
        &self,
        new: &[Arc<HistorySegment>],
        names: &[Arc<SeriesName>],
        history: &RequestHistory,
    ) -> io::Result<()> {
        let mut head = match self.head()? {
            Some(head) => head,
            None => self.head_of_frames()?,
        };
        for segment in new {
            let frame = encode(segment, names, head.sequence);
            if head.position + frame.len() as u64 > self.bytes_max {
                head.position = ALIGN;
            }
            self.file.write_all_at(&frame, head.position)?;
            head.position += (frame.len() as u64).next_multiple_of(ALIGN);
            head.sequence += 1;
            self.file.write_all_at(&head.encode(), 0)?;
            history.set_written(segment.number);
        }
        Ok(())
    }

    fn head(&self) -> io::Result<Option<FrameCursor>> {
        let mut bytes = [0; HEAD_BYTES];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {
                Ok(FrameCursor::decode(&bytes).filter(|head| head.position <= self.bytes_max))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where the newest frame ends.
    fn head_of_frames(&self) -> io::Result<FrameCursor> {
        let (frames, _) = self.frames()?;
        let newest = frames.into_iter().max_by_key(|frame| frame.sequence);
        Ok(newest.map_or(
            FrameCursor {
                position: ALIGN,
                sequence: 1,
            },
            |newest| FrameCursor {
                position: newest.position + (newest.bytes as u64).next_multiple_of(ALIGN),
                sequence: newest.sequence + 1,
            },
        ))
    }

    /// Every frame whose sum is right, and how many are wrong.
    fn frames(&self) -> io::Result<(Vec<HistoryFrame>, u64)> {
        let file_bytes = self.file.metadata()?.len();
        let (mut frames, mut damaged) = (Vec::new(), 0);
        let mut position = ALIGN;
        let mut buffer = Vec::new();
        while position + FRAME_HEAD_BYTES as u64 <= file_bytes {
            match self.frame_at(position, &mut buffer)? {
                ScannedFrame::Frame(frame) => {
                    frames.push(frame);
                    position += (frame.bytes as u64).next_multiple_of(ALIGN);
                    continue;
                }
                ScannedFrame::Damaged => damaged += 1,
                ScannedFrame::Nothing => {}
            }
            position += ALIGN;
        }
        Ok((frames, damaged))
    }

    fn frame_at(&self, position: u64, buffer: &mut Vec<u8>) -> io::Result<ScannedFrame> {
        let mut head = [0; FRAME_HEAD_BYTES];
        if !self.read(&mut head, position)? || head[..4] != FRAME_MAGIC {
            return Ok(ScannedFrame::Nothing);
        }
        let (entries, names) = (u32_at(&head, 40) as usize, u32_at(&head, 44) as usize);
        if entries > SEGMENT_BYTES || names > NAMES_BYTES_MAX {
            return Ok(ScannedFrame::Damaged);
        }
        buffer.clear();
        buffer.resize(FRAME_HEAD_BYTES + entries + names, 0);
        if !self.read(buffer, position)? || sum_of(&buffer[8..]) != u32_at(&head, 4) {
            return Ok(ScannedFrame::Damaged);
        }
        Ok(ScannedFrame::Frame(HistoryFrame {
            position,
            sequence: u64_at(&head, 8),
            bytes: buffer.len(),
        }))
    }

    /// False where the file ends before.
    fn read(&self, bytes: &mut [u8], position: u64) -> io::Result<bool> {
        match self.file.read_exact_at(bytes, position) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn segment(
        &self,
        frame: HistoryFrame,
        series: &SeriesRegistry,
    ) -> io::Result<Option<HistorySegment>> {
        let mut bytes = vec![0; frame.bytes];
        if !self.read(&mut bytes, frame.position)? {
            return Ok(None);
        }
        Ok(decode(&bytes, |name| series.number(name)))
    }
}

enum ScannedFrame {
    Frame(HistoryFrame),
    /// It says it is one, and is not.
    Damaged,
    Nothing,
}

impl FrameCursor {
    fn encode(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&HEAD_MAGIC);
        bytes[8..16].copy_from_slice(&self.position.to_le_bytes());
        bytes[16..].copy_from_slice(&self.sequence.to_le_bytes());
        let sum = sum_of(&bytes[8..]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEAD_BYTES]) -> Option<FrameCursor> {
        let head = FrameCursor {
            position: u64_at(bytes, 8),
            sequence: u64_at(bytes, 16),
        };
        let is_right = bytes[..4] == HEAD_MAGIC && u32_at(bytes, 4) == sum_of(&bytes[8..]);
        (is_right && head.position >= ALIGN && head.position.is_multiple_of(ALIGN)).then_some(head)
    }
}

fn encode(segment: &HistorySegment, names: &[Arc<SeriesName>], sequence: u64) -> Vec<u8> {
    let mut frame = vec![0; FRAME_HEAD_BYTES];
    frame.extend_from_slice(&segment.bytes);
    let mut used: Vec<u16> = segment
        .entries()
        .map(|(_, finished)| finished.record.series)
        .collect();
    used.sort_unstable();
    used.dedup();
    let names_at = frame.len();
    for series in used {
        let Some(name) = names.get(usize::from(series)) else {
            continue;
        };
        if frame.len() - names_at + 3 * (NAME_BYTES_MAX + 2) + 3 > NAMES_BYTES_MAX {
            break;
        }
        frame.extend_from_slice(&series.to_le_bytes());
        frame.push(name.handler as u8);
        for text in [&name.site, &name.route, &name.program] {
            let mut end = text.len().min(NAME_BYTES_MAX);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            frame.extend_from_slice(&(end as u16).to_le_bytes());
            frame.extend_from_slice(&text.as_bytes()[..end]);
        }
    }
    let names_bytes = frame.len() - names_at;
    frame[..4].copy_from_slice(&FRAME_MAGIC);
    for (at, value) in [
        (8, sequence),
        (16, segment.extent.base_unix_ms),
        (24, segment.origin.run),
        (32, segment.origin.server),
    ] {
        frame[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    frame[40..44].copy_from_slice(&(segment.bytes.len() as u32).to_le_bytes());
    frame[44..48].copy_from_slice(&(names_bytes as u32).to_le_bytes());
    let sum = sum_of(&frame[8..]);
    frame[4..8].copy_from_slice(&sum.to_le_bytes());
    frame
}

/// A segment out of a frame whose sum is right; `number` gives its series the numbers they have
/// here.
fn decode(frame: &[u8], number: impl Fn(SeriesName) -> u16) -> Option<HistorySegment> {
    let (head, rest) = frame.split_first_chunk::<FRAME_HEAD_BYTES>()?;
    let (entries, mut names) = rest.split_at_checked(u32_at(head, 40) as usize)?;
    let origin = SegmentOrigin {
        run: u64_at(head, 24),
        server: u64_at(head, 32),
    };
    let mut segment = HistorySegment::check(entries.to_vec(), u64_at(head, 16), origin)?;
    let mut numbers = std::collections::HashMap::new();
    while !names.is_empty() {
        let (series, rest) = names.split_first_chunk()?;
        let (handler, rest) = rest.split_first()?;
        names = rest;
        let mut text = || {
            let (len, rest) = names.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
            names = rest;
            String::from_utf8(text.to_vec()).ok()
        };
        let name = SeriesName {
            site: text()?,
            route: text()?,
            handler: *HandlerKind::ALL.get(usize::from(*handler))?,
            program: text()?,
        };
        numbers.insert(u16::from_le_bytes(*series), number(name));
    }
    segment.renumber(|series| numbers.get(&series).copied().unwrap_or(0));
    Some(segment)
}

/// Whether a frame is one that is understood, its sum aside: for the fuzzer.
pub fn is_frame(bytes: &[u8]) -> bool {
    decode(bytes, |_| 0).is_some()
}

fn sum_of(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |four| u32::from_le_bytes(*four))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |eight| u64::from_le_bytes(*eight))
}
