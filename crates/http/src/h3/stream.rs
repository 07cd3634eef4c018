//! What comes over the stream of a request (RFC 9114 sections 4.1 and 7.1): HEADERS, DATA, perhaps
//! HEADERS again, and frames that nobody knows in between.
//!
//! ```text
//! Head --HEADERS--> Body --DATA--> Body --HEADERS--> After
//! ```

use crate::h3::conn::Http3ConnectionError;
use crate::h3::frame::{self, HeaderReader, Http3ErrorCode};
use crate::limits::H2_TINY_DATA_BYTES;

/// The frames of one stream, as they come in pieces of any size.
#[derive(Debug)]
pub struct Receiver {
    place: MessageProgress,
    header: HeaderReader,
    payload: Http3FrameState,
    /// The longest field section that is read, in bytes as it is sent.
    section_bytes_max: usize,
    /// The stream carries raw bytes of a tunnel in its DATA frames.
    is_tunnel: bool,
    /// A DATA frame has begun with little in it.
    has_tiny: bool,
}

/// How far the message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageProgress {
    Head,
    Body,
    After,
}

/// What is being read.
#[derive(Debug)]
enum Http3FrameState {
    Header,
    Section { left: u64, bytes: Vec<u8> },
    Data { left: u64 },
    Skip { left: u64 },
}

/// What bytes of a stream mean.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestStreamEvent {
    /// All bytes were used; more are needed.
    NeedMore,
    /// The request's field section.
    Head(Vec<u8>),
    /// Bytes of the body: the last ones used.
    Data(usize),
    /// The trailers' field section.
    Trailers(Vec<u8>),
    /// A field section is longer than what is read; what follows is passed over.
    TooLong,
    /// A frame that does nothing: an unknown one, or DATA without bytes.
    Idle,
    /// The connection must end.
    Broken(Http3ConnectionError),
}

impl Receiver {
    /// The begin of a stream.
    pub fn new(section_bytes_max: usize) -> Receiver {
        Receiver {
            place: MessageProgress::Head,
            header: HeaderReader::default(),
            payload: Http3FrameState::Header,
            section_bytes_max,
            is_tunnel: false,
            has_tiny: false,
        }
    }

    /// The message is one of CONNECT: nothing but DATA follows.
    //= rfc9114#4.4
    pub fn begin_tunnel(&mut self) {
        self.is_tunnel = true;
    }

    /// True once for each DATA frame with little in it.
    pub fn take_tiny(&mut self) -> bool {
        std::mem::take(&mut self.has_tiny)
    }

    /// Reads from the front of `input`; returns how many bytes were used.
    pub fn read(&mut self, input: &[u8]) -> (usize, RequestStreamEvent) {
        let mut rest = input;
        let event = self.advance(&mut rest);
        (input.len() - rest.len(), event)
    }

    /// The other side sends nothing more. An error when it ended within a frame.
    pub fn end(&self) -> Result<(), Http3ConnectionError> {
        match self.payload {
            Http3FrameState::Header if !self.header.is_begun() => Ok(()),
            Http3FrameState::Skip { left: 0 } => Ok(()),
            _ => Err(Http3ConnectionError::new(
                Http3ErrorCode::Frame,
                "a stream ended in the middle of a frame",
            )),
        }
    }

    /// True when so many bytes behind a head, to the end of the stream, are nothing but frames that
    /// do nothing: clients send such to see that they are passed over.
    //= rfc9114#7.2.8
    pub fn is_idle(mut input: &[u8]) -> bool {
        while !input.is_empty() {
            let mut header = HeaderReader::default();
            let Some((kind, len)) = header.read(&mut input) else {
                return false;
            };
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let is_skipped = !is_known(kind) || (kind == frame::DATA && len == 0);
            match input.split_at_checked(len) {
                Some((_, rest)) if is_skipped => input = rest,
                _ => return false,
            }
        }
        true
    }

    fn advance(&mut self, rest: &mut &[u8]) -> RequestStreamEvent {
        loop {
            match &mut self.payload {
                Http3FrameState::Header => {
                    let Some((kind, len)) = self.header.read(rest) else {
                        return RequestStreamEvent::NeedMore;
                    };
                    match self.begin(kind, len) {
                        Ok(None) => {}
                        Ok(Some(event)) => return event,
                        Err(failure) => return RequestStreamEvent::Broken(failure),
                    }
                }
                Http3FrameState::Section { left, bytes } => {
                    let taken = take(rest, left);
                    bytes.extend_from_slice(taken);
                    if *left > 0 {
                        return RequestStreamEvent::NeedMore;
                    }
                    let section = std::mem::take(bytes);
                    self.payload = Http3FrameState::Header;
                    return self.section(section);
                }
                Http3FrameState::Data { left } => {
                    if rest.is_empty() {
                        return RequestStreamEvent::NeedMore;
                    }
                    let len = take(rest, left).len();
                    if *left == 0 {
                        self.payload = Http3FrameState::Header;
                    }
                    return RequestStreamEvent::Data(len);
                }
                Http3FrameState::Skip { left } => {
                    take(rest, left);
                    if *left > 0 {
                        return RequestStreamEvent::NeedMore;
                    }
                    self.payload = Http3FrameState::Header;
                }
            }
        }
    }

    /// A frame begins.
    //= rfc9114#7.1
    fn begin(
        &mut self,
        kind: u64,
        len: u64,
    ) -> Result<Option<RequestStreamEvent>, Http3ConnectionError> {
        let unexpected = |reason| {
            Err(Http3ConnectionError::new(
                Http3ErrorCode::FrameUnexpected,
                reason,
            ))
        };
        match kind {
            frame::HEADERS if self.place == MessageProgress::After => {
                unexpected("HEADERS behind the trailers")
            }
            frame::HEADERS if self.is_tunnel => unexpected("HEADERS in a tunnel"),
            frame::HEADERS if len > self.section_bytes_max as u64 => {
                self.payload = Http3FrameState::Skip { left: len };
                self.place = match self.place {
                    // The body that may follow is no fault.
                    MessageProgress::Head => MessageProgress::Body,
                    MessageProgress::Body | MessageProgress::After => MessageProgress::After,
                };
                Ok(Some(RequestStreamEvent::TooLong))
            }
            frame::HEADERS => {
                // What was announced need not come: memory is taken for what does.
                let bytes = Vec::with_capacity((len as usize).min(1024));
                self.payload = Http3FrameState::Section { left: len, bytes };
                Ok(None)
            }
            frame::DATA if self.place != MessageProgress::Body => {
                unexpected("DATA without HEADERS before it")
            }
            frame::DATA if len == 0 => Ok(Some(RequestStreamEvent::Idle)),
            frame::DATA => {
                self.has_tiny |= len < H2_TINY_DATA_BYTES as u64;
                self.payload = Http3FrameState::Data { left: len };
                Ok(None)
            }
            kind if frame::is_of_http2(kind) => unexpected("a frame of HTTP/2"),
            kind if is_known(kind) => {
                unexpected("a frame of the control stream on the stream of a request")
            }
            //= rfc9114#9
            _ => {
                self.payload = Http3FrameState::Skip { left: len };
                Ok(Some(RequestStreamEvent::Idle))
            }
        }
    }

    fn section(&mut self, section: Vec<u8>) -> RequestStreamEvent {
        match self.place {
            MessageProgress::Head => {
                self.place = MessageProgress::Body;
                RequestStreamEvent::Head(section)
            }
            MessageProgress::Body | MessageProgress::After => {
                self.place = MessageProgress::After;
                RequestStreamEvent::Trailers(section)
            }
        }
    }
}

fn is_known(kind: u64) -> bool {
    let has_name = matches!(
        kind,
        frame::DATA
            | frame::HEADERS
            | frame::CANCEL_PUSH
            | frame::SETTINGS
            | frame::PUSH_PROMISE
            | frame::GOAWAY
            | frame::MAX_PUSH_ID
            | frame::PRIORITY_UPDATE
            | frame::PRIORITY_UPDATE_PUSH
    );
    has_name || frame::is_of_http2(kind)
}

fn take<'i>(rest: &mut &'i [u8], left: &mut u64) -> &'i [u8] {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
    let (taken, after) = rest.split_at(count);
    *rest = after;
    *left -= count as u64;
    taken
}
