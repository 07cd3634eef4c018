//! What an HTTP/2 server sends, frame by frame. What ends the connection is the error; what ends a
//! request is an event.

use super::frame::{
    H2FrameHeader, HEAD_BYTES, PAYLOAD_BYTES_MAX, code, code_name, flag, kind, setting,
};
use super::session::{Common, H2ClientSession, WINDOW};
use crate::limits::HEAD_BYTES_MAX;
use crate::send::event::AnswerEvent;
use crate::send::fields::{TOO_LONG, Wrong};

/// Used bytes after which a window is opened again.
const WINDOW_USED_MAX: u32 = WINDOW / 2;

impl H2ClientSession {
    /// Takes what was read. After an error the connection is of no use any more.
    pub(crate) fn receive(
        &mut self,
        mut bytes: &[u8],
        common: &Common,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), Wrong> {
        while !bytes.is_empty() {
            if let Some((head, left, padding)) = self.data.take() {
                bytes = self.go_on(head, left, padding, bytes, common, events)?;
                continue;
            }
            if self.kept.is_empty() {
                let used = self.frame(bytes, common, events)?;
                if used == 0 {
                    self.kept.extend_from_slice(bytes);
                    break;
                }
                bytes = &bytes[used..];
                continue;
            }
            // The rest of a frame's head, or of the frame.
            let wanted = match H2FrameHeader::read(&self.kept) {
                None => HEAD_BYTES,
                Some(head) if head.kind == kind::DATA => {
                    HEAD_BYTES + usize::from(head.has(flag::PADDED))
                }
                Some(head) => HEAD_BYTES + checked(head)?.len,
            };
            let (more, rest) = bytes.split_at(bytes.len().min(wanted - self.kept.len()));
            self.kept.extend_from_slice(more);
            bytes = rest;
            let mut kept = std::mem::take(&mut self.kept);
            let used = self.frame(&kept, common, events)?;
            debug_assert!(used == 0 || used == kept.len());
            if used > 0 {
                kept.clear();
            }
            self.kept = kept;
        }
        if self.is_flooded() {
            return Err("the server sends frames that must be answered and reads no answers");
        }
        Ok(())
    }

    /// Takes the frame at the front and says how many bytes it took; 0 while it is not whole. Of a
    /// DATA frame only the head must be there.
    fn frame(
        &mut self,
        bytes: &[u8],
        common: &Common,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<usize, Wrong> {
        let Some(head) = H2FrameHeader::read(bytes) else {
            return Ok(0);
        };
        checked(head)?;
        if self.block.is_some() && head.kind != kind::CONTINUATION {
            return Err("a block of fields is interrupted by another frame");
        }
        if !self.has_settings && head.kind != kind::SETTINGS {
            return Err("the server does not begin with SETTINGS: it may not speak HTTP/2");
        }
        if head.kind == kind::DATA {
            return self.begin_data(head, bytes, common, events);
        }
        let Some(payload) = bytes.get(HEAD_BYTES..HEAD_BYTES + head.len) else {
            return Ok(0);
        };
        match head.kind {
            kind::HEADERS => self.headers(head, payload, common, events)?,
            kind::CONTINUATION => self.continuation(head, payload, common, events)?,
            kind::RST_STREAM => self.reset_by_server(head, payload, events)?,
            kind::SETTINGS => self.settings(head, payload, common)?,
            kind::PUSH_PROMISE => return Err("the server pushes, which it was told not to"),
            kind::PING if payload.len() != 8 || head.stream != 0 => {
                return Err("a PING is malformed");
            }
            kind::PING if !head.has(flag::ACK) => self.acknowledge(kind::PING, payload),
            kind::GOAWAY => self.going_away(payload, events)?,
            kind::WINDOW_UPDATE => self.window_update(head, payload, events)?,
            // PRIORITY means nothing to a client; unknown kinds are to be ignored.
            _ => {}
        }
        Ok(HEAD_BYTES + head.len)
    }

    fn begin_data(
        &mut self,
        head: H2FrameHeader,
        bytes: &[u8],
        common: &Common,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<usize, Wrong> {
        self.must_be_begun(head.stream)?;
        let (padding, padding_head) = if head.has(flag::PADDED) {
            let Some(padding) = bytes.get(HEAD_BYTES) else {
                return Ok(0);
            };
            (usize::from(*padding), 1)
        } else {
            (0, 0)
        };
        let left = (head.len).checked_sub(padding_head + padding);
        let left = left.ok_or("a frame's padding is longer than the frame")?;
        //= rfc9113#6.9.1: padding counts.
        self.use_window(head.stream, head.len as u32);
        let taken = HEAD_BYTES + padding_head;
        // What is there already needs no second turn.
        let here = (bytes.len() - taken).min(left + padding);
        self.go_on(
            head,
            left,
            padding,
            &bytes[taken..taken + here],
            common,
            events,
        )?;
        Ok(taken + here)
    }

    /// Counts the data of a frame, skips its padding, and gives back what follows.
    fn go_on<'a>(
        &mut self,
        head: H2FrameHeader,
        left: usize,
        padding: usize,
        bytes: &'a [u8],
        common: &Common,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<&'a [u8], Wrong> {
        let data = left.min(bytes.len());
        let skipped = padding.min(bytes.len() - data);
        let (left, padding) = (left - data, padding - skipped);
        if let Some(at) = self.place(head.stream) {
            let came = self.streams[at].arriving.data(&bytes[..data]);
            match came {
                Err(why) => self.malformed(at, why, events),
                Ok(()) if self.streams[at].is_due_to_break() => self.break_off(at, events),
                Ok(()) if left + padding == 0 && head.has(flag::END_STREAM) => {
                    self.end(at, common, events);
                }
                Ok(()) => {}
            }
        }
        if left + padding > 0 {
            self.data = Some((head, left, padding));
        }
        Ok(&bytes[data + skipped..])
    }

    /// Opens windows again before the server has used them up.
    fn use_window(&mut self, id: u32, bytes: u32) {
        self.used += bytes;
        if self.used > WINDOW_USED_MAX {
            let used = std::mem::take(&mut self.used);
            self.give_window(0, used);
        }
        if let Some(at) = self.place(id) {
            let stream = &mut self.streams[at];
            stream.used += bytes;
            if stream.used > WINDOW_USED_MAX {
                let used = std::mem::take(&mut stream.used);
                self.give_window(id, used);
            }
        }
    }

    fn headers(
        &mut self,
        head: H2FrameHeader,
        mut payload: &[u8],
        common: &Common,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), Wrong> {
        self.must_be_begun(head.stream)?;
        let short = "a HEADERS frame is too short";
        if head.has(flag::PADDED) {
            let (padding, rest) = payload.split_first().ok_or(short)?;
            let len = rest.len().checked_sub(usize::from(*padding)).ok_or(short)?;
            payload = &rest[..len];
        }
        if head.has(flag::PRIORITY) {
            payload = payload.get(5..).ok_or(short)?;
        }
        if head.has(flag::END_HEADERS) {
            return self.fields(head, payload, common, events);
        }
        self.block = Some((head, payload.to_vec()));
        Ok(())
    }

    fn continuation(
        &mut self,
        head: H2FrameHeader,
        payload: &[u8],
        common: &Common,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), Wrong> {
        let begun = self
            .block
            .take()
            .filter(|(begun, _)| begun.stream == head.stream);
        let (begun, mut block) = begun.ok_or("a CONTINUATION continues nothing")?;
        if block.len() + payload.len() > HEAD_BYTES_MAX {
            return Err(TOO_LONG);
        }
        block.extend_from_slice(payload);
        if head.has(flag::END_HEADERS) {
            return self.fields(begun, &block, common, events);
        }
        self.block = Some((begun, block));
        Ok(())
    }

    /// A whole block of fields.
    fn fields(
        &mut self,
        head: H2FrameHeader,
        block: &[u8],
        common: &Common,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), Wrong> {
        // Also those of a request that was given up: the table must follow.
        let read = self.table.read(block, &common.known)?;
        let Some(at) = self.place(head.stream) else {
            return Ok(());
        };
        let is_last = head.has(flag::END_STREAM);
        let arriving = &mut self.streams[at].arriving;
        match read.and_then(|mut block| arriving.fields(&mut block, is_last)) {
            Err(why) => self.malformed(at, why, events),
            Ok(()) if self.streams[at].is_due_to_break() => self.break_off(at, events),
            Ok(()) if is_last => self.end(at, common, events),
            Ok(()) => {}
        }
        Ok(())
    }

    /// The server has ended a stream.
    fn end(&mut self, at: usize, common: &Common, events: &mut Vec<AnswerEvent>) {
        let stream = &mut self.streams[at];
        let (id, lane, left) = (stream.id, stream.lane, stream.left);
        let is_head = common.asks[stream.kind as usize].is_head;
        let answer = match stream.arriving.end(is_head) {
            Err(why) => return self.malformed(at, why, events),
            Ok(answer) => *answer,
        };
        let kept = stream.arriving.take_kept();
        events.push(AnswerEvent::Answered { lane, answer, kept });
        // Nobody reads the rest of the request. //= rfc9113#8.1
        if left > 0 {
            self.reset(id, code::NONE);
        }
        self.free(at);
    }

    fn malformed(&mut self, at: usize, why: Wrong, events: &mut Vec<AnswerEvent>) {
        let (id, lane) = (self.streams[at].id, self.streams[at].lane);
        self.reset(id, code::PROTOCOL);
        self.free(at);
        events.push(AnswerEvent::Malformed { lane, why });
    }

    /// The client has seen enough of an answer, also where its end has come in the same piece: it
    /// has not looked at that yet.
    fn break_off(&mut self, at: usize, events: &mut Vec<AnswerEvent>) {
        let (id, lane) = (self.streams[at].id, self.streams[at].lane);
        self.reset(id, code::CANCEL);
        self.free(at);
        events.push(AnswerEvent::BrokenOff { lane });
    }

    fn reset_by_server(
        &mut self,
        head: H2FrameHeader,
        payload: &[u8],
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), Wrong> {
        self.must_be_begun(head.stream)?;
        let code = u32::from_be_bytes(
            payload
                .try_into()
                .map_err(|_| "a RST_STREAM is malformed")?,
        );
        if let Some(at) = self.place(head.stream) {
            let lane = self.streams[at].lane;
            self.free(at);
            //= rfc9113#8.7: what was refused was not begun.
            events.push(match code {
                code::REFUSED => AnswerEvent::Again { lane },
                _ => AnswerEvent::Reset {
                    lane,
                    why: code_name(code),
                },
            });
        }
        Ok(())
    }

    fn settings(
        &mut self,
        head: H2FrameHeader,
        payload: &[u8],
        common: &Common,
    ) -> Result<(), Wrong> {
        if head.stream != 0 || !payload.len().is_multiple_of(6) {
            return Err("a SETTINGS frame is malformed");
        }
        if head.has(flag::ACK) {
            return Ok(());
        }
        self.has_settings = true;
        for six in payload.chunks_exact(6) {
            let name = u16::from_be_bytes([six[0], six[1]]);
            let value = u32::from_be_bytes([six[2], six[3], six[4], six[5]]);
            match name {
                setting::TABLE_BYTES => self.resize_table(value as usize, common),
                setting::STREAM_COUNT => self.allowed = Some(value as usize),
                setting::WINDOW if value > WINDOW => {
                    return Err("a window is larger than any may be");
                }
                setting::WINDOW => {
                    let more = i64::from(value) - self.window_new;
                    self.window_new = i64::from(value);
                    for stream in &mut self.streams {
                        stream.window += more;
                    }
                }
                setting::PAYLOAD_BYTES if !(16_384..=0xff_ffff).contains(&value) => {
                    return Err("the longest payload is out of its range");
                }
                // Longer ones would save nothing.
                _ => {}
            }
        }
        self.acknowledge(kind::SETTINGS, &[]);
        Ok(())
    }

    fn going_away(&mut self, payload: &[u8], events: &mut Vec<AnswerEvent>) -> Result<(), Wrong> {
        let last = payload.first_chunk::<4>().ok_or("a GOAWAY is too short")?;
        let last = u32::from_be_bytes(*last) & 0x7fff_ffff;
        self.is_going_away = true;
        for at in 0..self.streams.len() {
            let (id, lane) = (self.streams[at].id, self.streams[at].lane);
            if id > last {
                self.free(at);
                events.push(AnswerEvent::Again { lane });
            }
        }
        Ok(())
    }

    fn window_update(
        &mut self,
        head: H2FrameHeader,
        payload: &[u8],
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), Wrong> {
        let more = payload
            .try_into()
            .map_err(|_| "a WINDOW_UPDATE is malformed")?;
        let more = i64::from(u32::from_be_bytes(more) & 0x7fff_ffff);
        if head.stream == 0 {
            self.window += more;
            let is_good = more > 0 && self.window <= i64::from(WINDOW);
            return is_good
                .then_some(())
                .ok_or("the connection's window cannot be so");
        }
        self.must_be_begun(head.stream)?;
        if let Some(at) = self.place(head.stream) {
            let stream = &mut self.streams[at];
            stream.window += more;
            if more == 0 || stream.window > i64::from(WINDOW) {
                self.malformed(at, "the stream's window cannot be so", events);
            }
        }
        Ok(())
    }

    /// Frames of streams that were never begun end the connection. //= rfc9113#5.1
    fn must_be_begun(&self, id: u32) -> Result<(), Wrong> {
        match id % 2 == 1 && id < self.next_id {
            true => Ok(()),
            false => Err("a frame belongs to a stream that was never begun"),
        }
    }
}

fn checked(head: H2FrameHeader) -> Result<H2FrameHeader, Wrong> {
    match head.len > PAYLOAD_BYTES_MAX {
        true => Err("a frame is longer than allowed: the server may not speak HTTP/2"),
        false => Ok(head),
    }
}
