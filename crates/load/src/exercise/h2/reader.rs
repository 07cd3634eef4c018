//! Reads what a server says over HTTP/2: answers, resets, and why it ends the connection.

use std::collections::HashMap;

use crate::exercise::seen::{End, Seen};
use crate::send::fields::Arriving;
use crate::send::h2::frame::{HEAD_BYTES, Head, PAYLOAD_BYTES_MAX, code_name, flag, kind};
use crate::send::h2::{Known, Table};

/// What has come so far.
#[derive(Debug)]
pub(crate) struct H2 {
    /// A frame that has not come whole.
    kept: Vec<u8>,
    table: Table,
    known: Known,
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
            table: Table::new(),
            known: Known::new(&[]),
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
            let Some(head) = Head::read(rest) else { break };
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

    fn frame(&mut self, head: Head, payload: &[u8]) -> Result<(), &'static str> {
        let is_last = head.has(flag::END_STREAM);
        if self.block.is_some() && head.kind != kind::CONTINUATION {
            return Err("a frame stands within a block of fields");
        }
        match head.kind {
            kind::HEADERS => {
                let fields = unpadded(head, payload).ok_or("padding is longer than its frame")?;
                self.block = Some((head.stream, is_last, fields.to_vec()));
                self.end_block(head)
            }
            kind::CONTINUATION => {
                let (_, _, block) = self
                    .block
                    .as_mut()
                    .ok_or("a block of fields goes on that never began")?;
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

    fn end_block(&mut self, head: Head) -> Result<(), &'static str> {
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

/// A payload without padding and priority.
fn unpadded(head: Head, payload: &[u8]) -> Option<&[u8]> {
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
