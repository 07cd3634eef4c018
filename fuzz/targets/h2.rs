//! An HTTP/2 connection with random frames and random answers: nothing panics, windows are kept,
//! frames out are whole, and bytes that come at once are read as those that come in pieces.
//!
//! The first byte says how the input is cut; the next eight how requests are answered, in turn. The
//! rest are frames: kind, flags, stream and length, a byte each, and the payload; or raw bytes.
#![no_main]

use std::collections::HashMap;
use std::rc::Rc;

use hob_http::date::DateLine;
use hob_http::h2::{AfterHead, Http2Connection, Http2ErrorCode, Http2Event, PREFACE};
use hob_http::limits::HttpLimits;
use hob_http::{Fields, RequestHead, ResponseHead};
use libfuzzer_sys::fuzz_target;

struct Run<'a> {
    core: Http2Connection,
    head: RequestHead,
    choices: &'a [u8],
    answered: usize,
    /// Bytes of bodies that are still to be sent.
    left: HashMap<u32, usize>,
    seen: Vec<u8>,
    out: Vec<u8>,
    is_over: bool,
}

impl Run<'_> {
    fn choice(&mut self) -> usize {
        self.answered += 1;
        usize::from(self.choices[self.answered % self.choices.len()])
    }

    fn feed(&mut self, input: &[u8]) -> usize {
        let mut used = 0;
        while !self.is_over {
            let (count, event) = self
                .core
                .read(&input[used..], &mut self.head, &mut self.out, 0);
            assert!(count <= input.len() - used);
            used += count;
            match event {
                Http2Event::NeedMore => break,
                Http2Event::Request(opened) => {
                    assert!(!self.head.method().is_empty() && !self.head.host().is_empty());
                    self.seen.extend_from_slice(self.head.target());
                    self.answer(opened.stream);
                }
                Http2Event::Refused(stream, refusal) => {
                    assert!((400..=505).contains(&refusal.status));
                    self.answer(stream);
                }
                Http2Event::Data(stream, len) => {
                    assert!(len > 0 && len <= count);
                    self.core.offer(stream, 65_536, &mut self.out);
                }
                Http2Event::Left(stream) | Http2Event::Broken(stream, _) => {
                    self.left.remove(&stream);
                    self.seen.push(b'-');
                }
                Http2Event::Malformed(reason) => self.seen.extend_from_slice(reason.as_bytes()),
                Http2Event::Over(failure) => {
                    self.seen.extend_from_slice(failure.reason.as_bytes());
                    self.is_over = true;
                }
                Http2Event::TooMany | Http2Event::BodyEnd(..) => self.seen.push(b'.'),
            }
            self.head = RequestHead::empty();
        }
        used
    }

    fn answer(&mut self, stream: u32) {
        let choice = self.choice();
        if choice & 3 == 3 {
            return self
                .core
                .break_off(stream, Http2ErrorCode::Cancel, &mut self.out);
        }
        let len = choice * 400;
        let head = ResponseHead::Fields([200, 404, 204, 500][choice >> 2 & 3], Fields::new());
        let body_len = (choice & 1 == 0).then_some(len as u64);
        let date = DateLine::new(std::time::Duration::ZERO);
        let sending = self
            .core
            .push_head(stream, &head, body_len, &date, &mut self.out);
        if sending == AfterHead::Body {
            self.left.insert(stream, len);
            self.core.set_ready(stream, true);
        }
    }

    fn fill(&mut self) {
        while let Some(turn) = self.core.next_turn() {
            let left = self
                .left
                .get_mut(&turn.stream)
                .expect("only those with a body are ready");
            let len = turn.bytes_max.min(*left);
            *left -= len;
            if len > 0 {
                let sending = self.core.push_data(turn.stream, len, &mut self.out);
                assert!(sending.is_some());
                self.out.resize(self.out.len() + len, 0);
            }
            if *left == 0 {
                self.left.remove(&turn.stream);
                assert!(self.core.push_end(turn.stream, None, &mut self.out));
            }
        }
    }
}

/// What was seen and written when the input comes in pieces of `step` bytes.
fn run(choices: &[u8], input: &[u8], step: usize) -> (Vec<u8>, Vec<u8>) {
    let limits = HttpLimits {
        target_bytes: 64,
        head_bytes: 512,
        header_count: 8,
        h2_connect_protocol: true,
        ..HttpLimits::default()
    };
    let mut out = Vec::new();
    let mut run = Run {
        core: Http2Connection::new(Rc::new(limits), 0, &mut out),
        head: RequestHead::empty(),
        choices,
        answered: 0,
        left: HashMap::new(),
        seen: Vec::new(),
        out,
        is_over: false,
    };
    let mut used = 0;
    let mut length = 0;
    while length < input.len() && !run.is_over {
        length = (length + step).min(input.len());
        used += run.feed(&input[used..length]);
    }
    run.fill();
    (run.seen, run.out)
}

/// Every frame is whole.
fn check_frames(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let len = usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]);
        assert!(len <= 16_384 && bytes.len() >= 9 + len);
        bytes = &bytes[9 + len..];
    }
}

/// Frames written shorter than they are sent.
fn frames(mut data: &[u8]) -> Vec<u8> {
    let mut input = PREFACE.to_vec();
    input.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    while let [kind, flags, stream, len, rest @ ..] = data {
        if *kind == 0xff {
            input.extend_from_slice(rest);
            break;
        }
        let (payload, after) = rest.split_at(rest.len().min(usize::from(*len)));
        let payload_len = payload.len() as u8;
        input.extend_from_slice(&[0, 0, payload_len, kind % 18, *flags, 0, 0, 0, *stream]);
        input.extend_from_slice(payload);
        data = after;
    }
    input
}

fuzz_target!(|data: &[u8]| {
    if data.len() < 10 {
        return;
    }
    let (choices, rest) = data[1..].split_at(8);
    let input = frames(rest);
    let whole = run(choices, &input, input.len());
    let pieces = run(choices, &input, usize::from(data[0]) % 16 + 1);
    check_frames(&whole.1);
    assert_eq!(
        pieces.0.escape_ascii().to_string(),
        whole.0.escape_ascii().to_string()
    );
    assert_eq!(pieces.1, whole.1);
});
