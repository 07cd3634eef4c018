//! Reads what a server says over HTTP/2: answers, resets, and why it ends the connection.

use std::collections::HashMap;

use hob_load::limits::HEAD_BYTES_MAX;
use hob_load::parts::Arriving;
use hob_load::parts::h2::frame::{
    H2FrameHeader, HEAD_BYTES, PAYLOAD_BYTES_MAX, code_name, flag, kind,
};
use hob_load::parts::h2::{ClientHpackTable, HpackContext};

use super::REQUEST_COUNT_MAX;
use crate::seen::{End, Seen};

/// Resets that are taken: no act sends more frames than that.
const RESET_COUNT_MAX: usize = 10_000;

/// What has come so far.
#[derive(Debug)]
pub(crate) struct H2 {
    /// A frame that has not come whole.
    kept: Vec<u8>,
    table: ClientHpackTable,
    known: HpackContext,
    /// A block of fields whose end has not come, with its stream and whether that ends with it.
    block: Option<(u32, bool, Vec<u8>)>,
    streams: HashMap<u32, Arriving>,
    /// Streams of which nothing has been heard that is to be.
    awaited: Vec<u32>,
    has_awaited: bool,
    statuses: Vec<u16>,
    resets: Vec<&'static str>,
    going_away: Option<&'static str>,
    is_ending: bool,
    bad: Option<&'static str>,
    bytes: u64,
}

impl H2 {
    pub(crate) fn new(awaited: &[u32]) -> H2 {
        H2 {
            kept: Vec::new(),
            table: ClientHpackTable::default(),
            known: HpackContext::default(),
            block: None,
            streams: HashMap::new(),
            awaited: awaited.to_vec(),
            has_awaited: !awaited.is_empty(),
            statuses: Vec::new(),
            resets: Vec::new(),
            going_away: None,
            is_ending: false,
            bad: None,
            bytes: 0,
        }
    }

    pub(crate) fn has_something(&self) -> bool {
        self.bytes > 0
    }

    pub(crate) fn is_bad(&self) -> bool {
        self.bad.is_some()
    }

    /// The server has ended the connection with an error, or said all that was waited for.
    pub(crate) fn is_done(&self) -> bool {
        self.is_ending || (self.has_awaited && self.awaited.is_empty())
    }

    /// Takes bytes as they came.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.kept.extend_from_slice(bytes);
        let mut kept = std::mem::take(&mut self.kept);
        let mut used = 0;
        while self.bad.is_none() {
            let rest = &kept[used..];
            let Some(head) = H2FrameHeader::read(rest) else {
                break;
            };
            if head.len > PAYLOAD_BYTES_MAX {
                self.bad = Some("a frame is longer than it may be");
                break;
            }
            let Some(payload) = rest.get(HEAD_BYTES..HEAD_BYTES + head.len) else {
                break;
            };
            if let Err(why) = self.frame(head, payload) {
                self.bad = Some(why);
            }
            used += HEAD_BYTES + head.len;
        }
        kept.drain(..used);
        self.kept = kept;
    }

    fn frame(&mut self, head: H2FrameHeader, payload: &[u8]) -> Result<(), &'static str> {
        let is_last = head.has(flag::END_STREAM);
        if self.block.is_some() && head.kind != kind::CONTINUATION {
            return Err("a frame stands within a block of fields");
        }
        match head.kind {
            kind::HEADERS => {
                if !is_asked(head.stream) {
                    return Err("an answer on a stream that nothing was asked on");
                }
                let fields = unpadded(head, payload).ok_or("padding is longer than its frame")?;
                self.block = Some((head.stream, is_last, fields.to_vec()));
                self.end_block(head)
            }
            kind::CONTINUATION => {
                let (stream, _, block) = self
                    .block
                    .as_mut()
                    .ok_or("a block of fields goes on that never began")?;
                if *stream != head.stream {
                    return Err("a block of fields goes on on another stream");
                }
                if block.len() + payload.len() > HEAD_BYTES_MAX {
                    return Err("a block of fields is longer than any head");
                }
                block.extend_from_slice(payload);
                self.end_block(head)
            }
            kind::DATA => {
                let bytes = unpadded(head, payload).ok_or("padding is longer than its frame")?;
                let stream = self
                    .streams
                    .get_mut(&head.stream)
                    .ok_or("a body without a head")?;
                stream.data(bytes)?;
                if is_last {
                    self.end_stream(head.stream)?;
                }
                Ok(())
            }
            kind::RST_STREAM => {
                let code = payload.first_chunk().copied().map(u32::from_be_bytes);
                if self.resets.len() == RESET_COUNT_MAX {
                    return Err("more streams are reset than there were");
                }
                self.resets.push(code_name(code.unwrap_or(u32::MAX)));
                self.heard(head.stream);
                Ok(())
            }
            kind::GOAWAY => {
                let code = payload
                    .get(4..8)
                    .and_then(|code| code.first_chunk().copied());
                let code = code.map_or(u32::MAX, u32::from_be_bytes);
                self.going_away = Some(code_name(code));
                self.is_ending = code != 0;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end_block(&mut self, head: H2FrameHeader) -> Result<(), &'static str> {
        if !head.has(flag::END_HEADERS) {
            return Ok(());
        }
        let Some((stream, is_last, block)) = self.block.take() else {
            return Ok(());
        };
        let mut block = self.table.read(&block, &self.known)??;
        let arriving = self.streams.entry(stream).or_insert(Arriving::NEW);
        arriving.fields(&mut block, is_last)?;
        if is_last {
            self.end_stream(stream)?;
        }
        Ok(())
    }

    fn end_stream(&mut self, stream: u32) -> Result<(), &'static str> {
        if let Some(mut arriving) = self.streams.remove(&stream) {
            if self.statuses.len() == REQUEST_COUNT_MAX {
                return Err("more answers than requests");
            }
            self.statuses.push(arriving.end(false)?.status);
        }
        self.heard(stream);
        Ok(())
    }

    fn heard(&mut self, stream: u32) {
        self.awaited.retain(|awaited| *awaited != stream);
    }

    /// What came, when nothing more does.
    pub(crate) fn seen(self, end: End) -> Seen {
        let mut said: Vec<String> = self
            .resets
            .iter()
            .map(|code| format!("RST {code}"))
            .collect();
        said.extend(self.going_away.map(|code| format!("GOAWAY {code}")));
        let end = match (self.bad, end) {
            (Some(why), _) => End::Malformed(why.to_owned()),
            (None, End::Left) if self.is_ending => End::Closed,
            (None, end) => end,
        };
        Seen {
            statuses: self.statuses,
            said,
            end,
            was_kept: false,
        }
    }
}

/// Can an act have sent a request on this stream?
fn is_asked(stream: u32) -> bool {
    stream % 2 == 1 && (stream as usize) < 2 * REQUEST_COUNT_MAX
}

/// A payload without padding and priority.
fn unpadded(head: H2FrameHeader, payload: &[u8]) -> Option<&[u8]> {
    let mut rest = payload;
    if head.has(flag::PADDED) {
        let (padding, more) = rest.split_first()?;
        rest = more.get(..more.len().checked_sub(usize::from(*padding))?)?;
    }
    if head.kind == kind::HEADERS && head.has(flag::PRIORITY) {
        rest = rest.get(5..)?;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::*;

    /// `:status: 200` of the static table.
    const GOOD: &[u8] = &[0x88];
    const WHOLE: u8 = flag::END_HEADERS | flag::END_STREAM;

    fn read(bytes: &[u8]) -> H2 {
        let mut reader = H2::new(&[]);
        reader.take(bytes);
        reader
    }

    #[test]
    fn block_of_fields_without_end_is_bad() {
        let mut reader = read(&frame(kind::HEADERS, 0, 1, GOOD));
        let more = frame(kind::CONTINUATION, 0, 1, &[0; PAYLOAD_BYTES_MAX]);
        let taken = (0..10).take_while(|_| {
            reader.take(&more);
            !reader.is_bad()
        });
        assert_eq!(taken.count(), 3);
    }

    #[test]
    fn answer_that_nobody_asked_for_is_bad() {
        for stream in [0, 2, 2 * REQUEST_COUNT_MAX as u32 + 1, 0x7fff_ffff] {
            assert!(read(&frame(kind::HEADERS, WHOLE, stream, GOOD)).is_bad());
        }
        let last = 2 * REQUEST_COUNT_MAX as u32 - 1;
        for stream in [1, last] {
            assert!(!read(&frame(kind::HEADERS, WHOLE, stream, GOOD)).is_bad());
        }
        let twice = frame(kind::HEADERS, WHOLE, 1, GOOD).repeat(REQUEST_COUNT_MAX + 1);
        assert!(read(&twice).is_bad());
        let begun = frame(kind::HEADERS, 0, 1, GOOD);
        let other = frame(kind::CONTINUATION, flag::END_HEADERS, 3, &[]);
        assert!(read(&[begun, other].concat()).is_bad());
    }

    #[test]
    fn resets_without_end_are_bad() {
        let reset = frame(kind::RST_STREAM, 0, 1, &[0; 4]);
        assert!(!read(&reset.repeat(RESET_COUNT_MAX)).is_bad());
        assert!(read(&reset.repeat(RESET_COUNT_MAX + 1)).is_bad());
    }
}
