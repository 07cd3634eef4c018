//! Frames of HTTP/3 on the streams of a server: answers, and what it says of the connection.

use crate::limits::HEAD_BYTES_MAX;
use crate::send::fields::{Arriving, TOO_LONG, Wrong};

use super::qpack::QpackContext;

/// Kinds of frames. //= rfc9114#7.2
const DATA: u64 = 0;
const HEADERS: u64 = 1;
const CANCEL_PUSH: u64 = 3;
const SETTINGS: u64 = 4;
const PUSH_PROMISE: u64 = 5;
const GOAWAY: u64 = 7;
const MAX_PUSH_ID: u64 = 13;
/// Kinds that HTTP/2 had and that may not come. //= rfc9114#7.2.8
const OLD: [u64; 4] = [2, 6, 8, 9];
/// Kinds of streams in one direction. //= rfc9114#6.2
const CONTROL: u64 = 0;
const PUSH: u64 = 1;
/// Bytes of a control frame that means something to us.
const CONTROL_BYTES_MAX: u64 = 1024;

/// How far the frames of a stream are read.
#[derive(Debug)]
enum FrameReadState {
    /// A kind and a length.
    Head,
    /// So many bytes of a frame that is read whole.
    Whole(u64, u64),
    /// So many bytes of a body.
    Data(u64),
    /// So many bytes of a frame that means nothing.
    Skipped(u64),
}

/// The frames of a stream.
#[derive(Debug)]
pub(super) struct Frames {
    step: FrameReadState,
    kept: Vec<u8>,
}

/// What a stream says next.
enum FrameContent<'a> {
    Whole(u64, &'a [u8]),
    Data(&'a [u8]),
}

impl Frames {
    pub(super) fn new() -> Frames {
        Frames {
            step: FrameReadState::Head,
            kept: Vec::new(),
        }
    }

    /// No frame is cut off.
    pub(super) fn is_between(&self) -> bool {
        matches!(self.step, FrameReadState::Head) && self.kept.is_empty()
    }

    /// Reads bytes; `is_whole` says which frames are wanted whole, and up to which length.
    fn read(
        &mut self,
        mut bytes: &[u8],
        most: impl Fn(u64) -> Result<Option<u64>, Wrong>,
        mut say: impl FnMut(FrameContent<'_>) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        while !bytes.is_empty() {
            match &mut self.step {
                FrameReadState::Head => {
                    // Two numbers have 16 bytes at most: they are taken one by one.
                    let (byte, rest) = (bytes[0], &bytes[1..]);
                    self.kept.push(byte);
                    bytes = rest;
                    let mut head = self.kept.as_slice();
                    let (Some(kind), Some(len)) = (number(&mut head), number(&mut head)) else {
                        continue;
                    };
                    self.kept.clear();
                    self.step = match (kind, most(kind)?) {
                        (DATA, Some(_)) if len > 0 => FrameReadState::Data(len),
                        (DATA, Some(_)) => {
                            say(FrameContent::Data(&[]))?;
                            FrameReadState::Head
                        }
                        (_, Some(most)) if len > most => return Err(TOO_LONG),
                        (_, Some(_)) if len == 0 => {
                            say(FrameContent::Whole(kind, &[]))?;
                            FrameReadState::Head
                        }
                        (_, Some(_)) => FrameReadState::Whole(kind, len),
                        (_, None) if len == 0 => FrameReadState::Head,
                        (_, None) => FrameReadState::Skipped(len),
                    };
                }
                FrameReadState::Data(left) | FrameReadState::Skipped(left) => {
                    let here = (*left).min(bytes.len() as u64);
                    let (data, rest) = bytes.split_at(here as usize);
                    bytes = rest;
                    *left -= here;
                    let is_over = *left == 0;
                    if matches!(self.step, FrameReadState::Data(_)) {
                        say(FrameContent::Data(data))?;
                    }
                    if is_over {
                        self.step = FrameReadState::Head;
                    }
                }
                FrameReadState::Whole(kind, len) => {
                    let (kind, len) = (*kind, *len as usize);
                    let (here, rest) = bytes.split_at(bytes.len().min(len - self.kept.len()));
                    bytes = rest;
                    if self.kept.is_empty() && here.len() == len {
                        say(FrameContent::Whole(kind, here))?;
                    } else {
                        self.kept.extend_from_slice(here);
                        if self.kept.len() < len {
                            continue;
                        }
                        say(FrameContent::Whole(kind, &self.kept))?;
                        self.kept.clear();
                    }
                    self.step = FrameReadState::Head;
                }
            }
        }
        Ok(())
    }
}

/// What is wrong: with the connection, or with one answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum H3Fault {
    Connection(Wrong),
    Answer(Wrong),
}

/// Reads a piece of an answer.
pub(super) fn answer(
    frames: &mut Frames,
    arriving: &mut Arriving,
    bytes: &[u8],
    known: &QpackContext,
) -> Result<(), H3Fault> {
    let most = |kind: u64| match kind {
        DATA | HEADERS => Ok(Some(HEAD_BYTES_MAX as u64)),
        PUSH_PROMISE => Err("the server pushes, which nobody allowed"),
        CANCEL_PUSH | SETTINGS | GOAWAY | MAX_PUSH_ID => Err("a frame is on the wrong stream"),
        kind if OLD.contains(&kind) => Err("a frame is one of HTTP/2"),
        _ => Ok(None),
    };
    let mut bad = None;
    let read = frames.read(bytes, most, |said| {
        let read = match said {
            FrameContent::Data(bytes) => arriving.data(bytes),
            FrameContent::Whole(_, block) => {
                let block = known.read(block)?;
                // Whether these are trailers shows in what came before; the end comes by itself.
                block.and_then(|mut block| arriving.fields(&mut block, arriving.has_head()))
            }
        };
        bad = bad.or(read.err());
        Ok(())
    });
    match (read, bad) {
        (Err(TOO_LONG), _) => Err(H3Fault::Answer(TOO_LONG)),
        (Err(why), _) => Err(H3Fault::Connection(why)),
        (Ok(()), Some(why)) => Err(H3Fault::Answer(why)),
        (Ok(()), None) => Ok(()),
    }
}

/// A stream on which only the server speaks.
#[derive(Debug)]
pub(super) struct Uni {
    kind: Option<u64>,
    frames: Frames,
    has_settings: bool,
}

impl Uni {
    pub(super) fn new() -> Uni {
        Uni {
            kind: None,
            frames: Frames::new(),
            has_settings: false,
        }
    }

    /// Reads a piece, and says from which stream on the server answers no requests, if it says so.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<Option<u64>, Wrong> {
        if self.kind.is_none() {
            while let Some((byte, rest)) = bytes.split_first() {
                self.frames.kept.push(*byte);
                bytes = rest;
                self.kind = number(&mut self.frames.kept.as_slice());
                if self.kind.is_some() {
                    self.frames.kept.clear();
                    break;
                }
            }
        }
        match self.kind {
            Some(CONTROL) => self.control(bytes),
            Some(PUSH) => Err("the server pushes, which nobody allowed"),
            // Tables that are not used, and kinds that nobody knows.
            _ => Ok(None),
        }
    }

    fn control(&mut self, bytes: &[u8]) -> Result<Option<u64>, Wrong> {
        let has_settings = std::cell::Cell::new(self.has_settings);
        let most = |kind: u64| match kind {
            SETTINGS if has_settings.get() => Err("SETTINGS come twice"),
            SETTINGS => {
                has_settings.set(true);
                Ok(Some(CONTROL_BYTES_MAX))
            }
            _ if !has_settings.get() => Err("the control stream does not begin with SETTINGS"),
            GOAWAY => Ok(Some(CONTROL_BYTES_MAX)),
            DATA | HEADERS | PUSH_PROMISE => Err("a frame is on the wrong stream"),
            MAX_PUSH_ID => Err("only clients say how much may be pushed"),
            kind if OLD.contains(&kind) => Err("a frame is one of HTTP/2"),
            _ => Ok(None),
        };
        let mut last = None;
        let read = self.frames.read(bytes, most, |said| {
            if let FrameContent::Whole(GOAWAY, mut payload) = said {
                last = Some(number(&mut payload).ok_or("a GOAWAY is malformed")?);
            }
            Ok(())
        });
        self.has_settings = has_settings.get();
        read?;
        Ok(last)
    }
}

/// A number of QUIC: the first two bits say how long it is. //= rfc9000#16
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let len = 1 << (first >> 6);
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    let low = taken[1..].iter();
    Some(low.fold(u64::from(first & 0x3f), |sum, byte| {
        sum << 8 | u64::from(*byte)
    }))
}

/// Appends such a number.
pub(super) fn write_number(number: u64, out: &mut Vec<u8>) {
    match number {
        0..0x40 => out.push(number as u8),
        0x40..0x4000 => out.extend_from_slice(&(number as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => {
            out.extend_from_slice(&(number as u32 | 0x8000_0000).to_be_bytes());
        }
        _ => out.extend_from_slice(&(number | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// What a request is before its body: its fields, and the head of the body's frame.
pub(super) fn request(block: &[u8], body_bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write_number(HEADERS, &mut out);
    write_number(block.len() as u64, &mut out);
    out.extend_from_slice(block);
    if body_bytes > 0 {
        write_number(DATA, &mut out);
        write_number(body_bytes, &mut out);
    }
    out
}

/// How our control stream begins: how long a head may be. //= rfc9114#7.2.4.1
pub(super) fn control() -> Vec<u8> {
    let mut settings = Vec::new();
    write_number(6, &mut settings);
    write_number(HEAD_BYTES_MAX as u64, &mut settings);
    let mut out = vec![CONTROL as u8, SETTINGS as u8, settings.len() as u8];
    out.extend_from_slice(&settings);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: &[u8] = b"\x01\x03\0\0\xd9";

    fn read(bytes: &[u8]) -> Result<(u16, u64), H3Fault> {
        let known = QpackContext::new(&[]);
        let run = |pieces: &[&[u8]]| {
            let (mut frames, mut arriving) = (Frames::new(), Arriving::NEW);
            for piece in pieces {
                answer(&mut frames, &mut arriving, piece, &known)?;
            }
            assert!(frames.is_between());
            let end = arriving.end(false).map_err(H3Fault::Answer)?;
            Ok((end.status, end.body_bytes))
        };
        let whole = run(&[bytes]);
        for cut in 0..bytes.len() {
            let (front, back) = bytes.split_at(cut);
            assert_eq!(run(&[front, back]), whole, "cut at {cut}");
        }
        whole
    }

    #[test]
    fn answer_is_a_head_data_and_trailers_with_unknown_frames_between() {
        let bytes = [
            ASKED,
            b"\x21\x02xx\0\x40\x05hello\0\x01!\x01\x06\0\0\x21a\x01b",
        ]
        .concat();
        assert_eq!(read(&bytes), Ok((200, 6)));
        let interim = [b"\x01\x03\0\0\xd8", ASKED].concat();
        assert_eq!(read(&interim), Ok((200, 0)));
    }

    #[test]
    fn what_may_not_come_is_refused() {
        for wrong in [
            b"\x05\x01\0".as_slice(),
            b"\x04\x00",
            b"\x06\x00",
            b"\x01\x01\x01",
        ] {
            assert!(
                matches!(read(wrong), Err(H3Fault::Connection(_))),
                "{wrong:?}"
            );
        }
        for wrong in [b"\0\x01x".as_slice(), b"\x01\x80\x01\x00\x01"] {
            let (mut frames, mut arriving) = (Frames::new(), Arriving::NEW);
            let read = answer(&mut frames, &mut arriving, wrong, &QpackContext::new(&[]));
            assert!(matches!(read, Err(H3Fault::Answer(_))), "{read:?}");
        }
    }

    #[test]
    fn control_stream_tells_of_the_end() {
        let mut uni = Uni::new();
        assert_eq!(uni.read(b"\0\x04\0"), Ok(None));
        assert_eq!(uni.read(b"\x07\x01"), Ok(None));
        assert_eq!(uni.read(b"\x08"), Ok(Some(8)));
        assert!(uni.read(b"\x04\0").is_err(), "settings twice");
        assert!(Uni::new().read(b"\0\x07\x01\x08").is_err(), "no settings");
        assert!(Uni::new().read(b"\x01").is_err(), "a push");
        assert_eq!(Uni::new().read(b"\x02anything"), Ok(None));
        for number in [0, 63, 64, 16_383, 16_384, 1 << 30, (1 << 62) - 1] {
            let mut out = Vec::new();
            write_number(number, &mut out);
            assert_eq!(super::number(&mut out.as_slice()), Some(number));
        }
    }
}
