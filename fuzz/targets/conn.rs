//! A connection with random bytes and random answers: nothing panics, answers are whole, and bytes
//! that come at once are read as those that come in pieces.
//!
//! The first byte says how the input is cut; the next eight how requests are answered, in turn.
#![no_main]

use std::rc::Rc;

use hob_http::date::DateLine;
use hob_http::h1::{AfterAnswer, Http1Connection, Http1Event, ResponseFraming};
use hob_http::limits::HttpLimits;
use hob_http::{Fields, RequestHead, ResponseHead};
use libfuzzer_sys::fuzz_target;

const STATUSES: [u16; 8] = [200, 204, 304, 404, 500, 200, 206, 413];

struct Run<'a> {
    core: Http1Connection,
    head: RequestHead,
    choices: &'a [u8],
    answered: usize,
    /// The request being read has its answer already.
    is_answered: bool,
    seen: Vec<u8>,
    out: Vec<u8>,
    body: Vec<u8>,
    now_ms: u64,
}

/// What reading comes to.
enum Reads {
    On,
    Over,
}

impl Run<'_> {
    fn choice(&self) -> u8 {
        self.choices[self.answered % self.choices.len()]
    }

    /// Feeds what is there; returns how much was used.
    fn feed(&mut self, input: &[u8]) -> (usize, Reads) {
        let mut used = 0;
        self.now_ms += 1;
        loop {
            let (count, event) = self.core.read(&input[used..], &mut self.head, self.now_ms);
            assert!(count <= input.len() - used);
            used += count;
            let (deadline_ms, _) = self.core.deadline();
            assert!(deadline_ms > self.now_ms);
            match event {
                Http1Event::NeedMore => return (used, Reads::On),
                Http1Event::Request(_) => {
                    self.seen.extend_from_slice(self.head.method());
                    self.seen.extend_from_slice(self.head.target());
                    self.seen.extend_from_slice(self.head.host());
                    if self.choice() & 0x40 != 0 {
                        self.core.limit_body(u64::from(self.choice()));
                    }
                    if self.choice() & 0x80 != 0 {
                        self.core.continue_now(&mut self.out);
                    }
                    // Some answers come before the body.
                    if (self.choice() & 0x20 != 0 || !self.core.body_is_open())
                        && let Reads::Over = self.answer()
                    {
                        return (used, Reads::Over);
                    }
                }
                Http1Event::Data(len) => {
                    assert!(len > 0 && len <= count);
                    self.body.extend_from_slice(&input[used - len..used]);
                }
                Http1Event::BodyEnd(_) => {
                    self.seen.append(&mut self.body);
                    // Of a body that was dropped, or of one that was read.
                    let over = if self.is_answered {
                        self.end()
                    } else {
                        self.answer()
                    };
                    if let Reads::Over = over {
                        return (used, Reads::Over);
                    }
                }
                Http1Event::Refused(refusal) => {
                    assert!((400..=505).contains(&refusal.status));
                    self.seen.extend_from_slice(refusal.reason.as_bytes());
                    if !self.is_answered {
                        self.answer();
                    }
                    return (used, Reads::Over);
                }
                Http1Event::Busy => panic!("an answered request is read on, or over"),
            }
        }
    }

    fn answer(&mut self) -> Reads {
        let choice = self.choice();
        let status = STATUSES[usize::from(choice & 7)];
        let body = &b"hello, good day"[..usize::from(choice >> 1 & 15)];
        let len = (choice & 8 == 0).then_some(body.len() as u64);
        let head = ResponseHead::Fields(status, Fields::new());
        let date = DateLine::new(std::time::Duration::ZERO);
        let sending = self
            .core
            .push_head(&head, len, choice & 16 != 0, &date, &mut self.out);
        if sending != ResponseFraming::Nothing && !body.is_empty() {
            assert!(
                self.core
                    .push_data_prefix(body.len() as u64, &mut self.out)
                    .is_some()
            );
            self.out.extend_from_slice(body);
            self.core.push_data_suffix(&mut self.out);
        }
        self.is_answered = true;
        assert!(
            self.core.push_end(None, &mut self.out),
            "a whole body is whole"
        );
        self.end()
    }

    fn end(&mut self) -> Reads {
        let next = self.core.finish();
        self.core.wrote_all(self.now_ms);
        match next {
            AfterAnswer::Request => {
                self.answered += 1;
                self.is_answered = false;
                self.head = RequestHead::empty();
                self.seen.push(b'\n');
                Reads::On
            }
            AfterAnswer::Discard => {
                self.core.wait_for_body(self.now_ms);
                Reads::On
            }
            AfterAnswer::Linger | AfterAnswer::Close => {
                self.seen.extend_from_slice(if next == AfterAnswer::Close {
                    b"close"
                } else {
                    b"linger"
                });
                Reads::Over
            }
        }
    }
}

/// What was seen and written when the input comes in pieces of `step` bytes.
fn run(choices: &[u8], input: &[u8], step: usize) -> (Vec<u8>, Vec<u8>) {
    // Small, so that inputs reach them.
    let limits = HttpLimits {
        target_bytes: 64,
        head_bytes: 512,
        header_count: 8,
        ..HttpLimits::default()
    };
    let mut run = Run {
        core: Http1Connection::new(Rc::new(limits), 0),
        head: RequestHead::empty(),
        choices,
        answered: 0,
        is_answered: false,
        seen: Vec::new(),
        out: Vec::new(),
        body: Vec::new(),
        now_ms: 0,
    };
    let mut used = 0;
    let mut length = 0;
    while length < input.len() {
        length = (length + step).min(input.len());
        let (count, reads) = run.feed(&input[used..length]);
        used += count;
        if let Reads::Over = reads {
            break;
        }
    }
    (run.seen, run.out)
}

fuzz_target!(|data: &[u8]| {
    if data.len() < 10 {
        return;
    }
    let (choices, input) = data[1..].split_at(8);
    let whole = run(choices, input, input.len());
    let pieces = run(choices, input, usize::from(data[0]) % 16 + 1);
    assert_eq!(
        pieces.0.escape_ascii().to_string(),
        whole.0.escape_ascii().to_string()
    );
    assert_eq!(
        pieces.1.escape_ascii().to_string(),
        whole.1.escape_ascii().to_string()
    );
});
