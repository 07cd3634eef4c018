//! Field blocks among the frames: a request's head or trailers, in one frame or several.

use crate::fields_coding::head::{Sound, Wrong};
use crate::fields_coding::hpack;
use crate::h2::budget::Flood;
use crate::h2::conn::{
    FrameReadContext, Given, Http2Connection, Http2ConnectionError, Http2Event, OpenedStream,
};
use crate::h2::frame::{self, Header, Http2ErrorCode};
use crate::h2::stream::{Http2StreamState, Receiving};
use crate::limits::{H2_BLOCK_FRAMES_MAX, H2_STREAMS_MAX};

/// A field block of which more is to come.
#[derive(Debug)]
pub(super) struct PartialFieldBlock {
    pub(super) stream: u32,
    pub(super) ends: bool,
    depends_on_itself: bool,
    pub(super) bytes: Vec<u8>,
    frame_count: u32,
}

impl PartialFieldBlock {
    /// It begins with this fragment.
    pub(super) fn new(stream: u32, ends: bool, fragment: &[u8]) -> PartialFieldBlock {
        PartialFieldBlock {
            stream,
            ends,
            depends_on_itself: false,
            bytes: fragment.to_vec(),
            frame_count: 1,
        }
    }

    /// Adds a CONTINUATION frame to the block that is under way, and gives it once it is whole.
    //= rfc9113#6.10
    pub(super) fn go_on(
        under_way: &mut Option<Box<PartialFieldBlock>>,
        header: Header,
        payload: &[u8],
        bytes_max: usize,
    ) -> Result<Option<Box<PartialFieldBlock>>, Http2ConnectionError> {
        let Some(block) = under_way else {
            return Err(Http2ConnectionError::protocol(
                "CONTINUATION without HEADERS before it",
            ));
        };
        if block.stream != header.stream {
            return Err(Http2ConnectionError::protocol(
                "CONTINUATION of another stream's block",
            ));
        }
        block.frame_count += 1;
        if block.frame_count > H2_BLOCK_FRAMES_MAX || block.bytes.len() + payload.len() > bytes_max
        {
            return Err(Flood::Continuation.into());
        }
        block.bytes.extend_from_slice(payload);
        Ok(match header.has(frame::END_HEADERS) {
            true => under_way.take(),
            false => None,
        })
    }
}

/// What a HEADERS frame says besides its block.
#[derive(Clone, Copy)]
struct Flags {
    ends: bool,
    depends_on_itself: bool,
}

impl Http2Connection {
    //= rfc9113#6.2
    pub(super) fn handle_headers(
        &mut self,
        header: Header,
        payload: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        let id = header.stream;
        if id.is_multiple_of(2) {
            return Err(Http2ConnectionError::protocol(
                "HEADERS on a stream no client may open",
            ));
        }
        let mut fragment = strip_padding(header, payload)?;
        let mut depends_on_itself = false;
        if header.has(frame::WITH_PRIORITY) {
            let Some((priority, rest)) = fragment.split_at_checked(5) else {
                return Err(Http2ConnectionError::size(
                    "HEADERS has no room for its priority",
                ));
            };
            //= rfc9113#5.3.1
            depends_on_itself = frame::number(priority) & frame::STREAM_MAX == id;
            fragment = rest;
        }
        let flags = Flags {
            ends: header.has(frame::END_STREAM),
            depends_on_itself,
        };
        if header.has(frame::END_HEADERS) {
            return self.handle_block(id, flags, fragment, desk);
        }
        self.block = Some(Box::new(PartialFieldBlock {
            depends_on_itself,
            ..PartialFieldBlock::new(id, flags.ends, fragment)
        }));
        Ok(None)
    }

    pub(super) fn handle_continuation(
        &mut self,
        header: Header,
        payload: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        let bytes_max = self.limits.head_bytes;
        let whole = PartialFieldBlock::go_on(&mut self.block, header, payload, bytes_max)?;
        let Some(block) = whole else {
            return Ok(None);
        };
        let flags = Flags {
            ends: block.ends,
            depends_on_itself: block.depends_on_itself,
        };
        self.handle_block(block.stream, flags, &block.bytes, desk)
    }

    /// A whole block: of trailers, of a new request, or of a stream that is over.
    fn handle_block(
        &mut self,
        id: u32,
        flags: Flags,
        block: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        if self.streams.find(id).is_some() {
            return self.handle_trailers(id, flags.ends, block, desk);
        }
        if id > self.last_stream {
            return self.handle_request(id, flags, block, desk);
        }
        hpack::pass_over(&mut self.decoder, block)?;
        //= rfc9113#5.1
        match () {
            () if self.streams.was_reset(id) || self.is_beyond(id) => {
                self.budgets.take(Flood::Empty, desk.now_ms)?;
                Ok(None)
            }
            () if self.streams.was_left(id) => {
                self.reset_by_fault(id, Http2ErrorCode::StreamClosed, desk)?;
                Ok(None)
            }
            () if self.streams.was_ended(id) => Err(Http2ConnectionError::of(
                Http2ErrorCode::StreamClosed,
                "HEADERS on a stream that is over",
            )),
            //= rfc9113#5.1.1
            () => Err(Http2ConnectionError::protocol(
                "streams are not opened in their order",
            )),
        }
    }

    fn handle_request(
        &mut self,
        id: u32,
        flags: Flags,
        block: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        let is_beyond = self.is_beyond(id);
        self.last_stream = id;
        let is_full = self.streams.len() >= H2_STREAMS_MAX;
        if is_beyond || is_full || flags.depends_on_itself {
            hpack::pass_over(&mut self.decoder, block)?;
            if is_beyond {
                self.budgets.take(Flood::Empty, desk.now_ms)?;
                return Ok(None);
            }
            //= rfc9113#5.1.2
            let code = match is_full {
                true => Http2ErrorCode::Refused,
                false => Http2ErrorCode::Protocol,
            };
            self.reset_by_fault(id, code, desk)?;
            return Ok(is_full.then_some(Http2Event::TooMany));
        }
        let limits = std::rc::Rc::clone(&self.limits);
        let read = hpack::read_head(&mut self.decoder, block, desk.head, &limits)?;
        let mut stream = Http2StreamState::new(id, self.peer_window_bytes);
        stream.is_head_method = desk.head.method() == b"HEAD";
        let mut early = self.take_early_priority(id);
        match read {
            //= rfc9113#8.1.1
            Ok(sound) if flags.ends && sound.length.is_some_and(|length| length > 0) => {
                self.reset_by_fault(id, Http2ErrorCode::Protocol, desk)?;
                Ok(Some(Http2Event::Malformed(
                    "the announced body does not come",
                )))
            }
            Ok(sound) => {
                let opened = open(&mut stream, sound, flags.ends);
                stream.priority = early.take().unwrap_or(sound.priority);
                self.open_stream(stream);
                Ok(Some(Http2Event::Request(opened)))
            }
            Err(Wrong::Refused(refusal)) => {
                if !flags.ends {
                    stream.receiving = Receiving::Body(None);
                }
                self.open_stream(stream);
                Ok(Some(Http2Event::Refused(id, refusal)))
            }
            Err(Wrong::Malformed(reason)) => {
                self.reset_by_fault(id, Http2ErrorCode::Protocol, desk)?;
                Ok(Some(Http2Event::Malformed(reason)))
            }
        }
    }

    //= rfc9113#8.1
    fn handle_trailers(
        &mut self,
        id: u32,
        ends: bool,
        block: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        let limits = std::rc::Rc::clone(&self.limits);
        let trailers = hpack::read_trailers(&mut self.decoder, block, &limits)?;
        let Some(stream) = self.streams.find(id) else {
            return Ok(None);
        };
        let (code, reason) = match (stream.receiving, trailers) {
            (Receiving::Ended, _) => (
                Http2ErrorCode::StreamClosed,
                "HEADERS after the end of the request",
            ),
            (_, Err(reason)) => (Http2ErrorCode::Protocol, reason),
            (_, Ok(_)) if !ends => (Http2ErrorCode::Protocol, "trailers do not end the request"),
            (Receiving::Body(Some(1..)) | Receiving::Unread(Some(1..)), _) => (
                Http2ErrorCode::Protocol,
                "the body has not the size that was announced",
            ),
            (Receiving::Unread(_), Ok(_)) => {
                self.end_request(id);
                return Ok(None);
            }
            (Receiving::Body(_), Ok(trailers)) => {
                self.end_request(id);
                return Ok(Some(Http2Event::BodyEnd(id, trailers)));
            }
        };
        self.reset_by_fault(id, code, desk)?;
        Ok(Some(Http2Event::Broken(id, reason)))
    }
}

fn open(stream: &mut Http2StreamState, sound: Sound, ends: bool) -> OpenedStream {
    stream.is_tunnel = sound.is_tunnel;
    let mut length = Some(0);
    if !ends && sound.length != Some(0) {
        length = sound.length;
    }
    if !ends {
        stream.receiving = Receiving::Body(sound.length);
        stream.continue_is_due = sound.expects_continue;
    }
    OpenedStream {
        stream: stream.id,
        length,
    }
}

pub(super) fn strip_padding(header: Header, payload: &[u8]) -> Result<&[u8], Http2ConnectionError> {
    if !header.has(frame::PADDED) {
        return Ok(payload);
    }
    let Some((&padding, rest)) = payload.split_first() else {
        return Err(Http2ConnectionError::size("padded HEADERS is too short"));
    };
    let Some(len) = rest.len().checked_sub(usize::from(padding)) else {
        return Err(Http2ConnectionError::protocol(
            "HEADERS has more padding than bytes",
        ));
    };
    Ok(&rest[..len])
}
