//! The control API as its clients use it: objects, and a stream of events.
#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::time::Instant;

use serde_json::Value;

use crate::harness::client::{Answer, Connection};
use crate::harness::{DEADLINE, Place};

/// An answer of the control API.
pub(crate) fn control(place: &Place, target: &str) -> Answer {
    let mut connection = Connection::open_unix(&place.path("run/hob/control.sock")).unwrap();
    connection.send_ask("GET", target, "");
    connection.read_last("GET")
}

/// The object it answers with.
pub(crate) fn object(place: &Place, target: &str) -> Value {
    let answer = control(place, target);
    assert_eq!(answer.status, 200, "{target}: {answer:?}");
    serde_json::from_slice(&answer.body).unwrap()
}

/// The same once it is as it should be.
pub(crate) fn object_when(place: &Place, target: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + DEADLINE;
    loop {
        let told = object(place, target);
        if is_it(&told) {
            return told;
        }
        assert!(Instant::now() < until, "{target}: {told:#}");
        std::thread::yield_now();
    }
}

/// The history once so many of its requests are found.
pub(crate) fn history_of(place: &Place, query: &str, count: u64) -> Value {
    object_when(place, &format!("/v1/history?{query}"), |history| {
        history["requests"].as_array().unwrap().len() as u64 == count
    })
}

/// Someone who watches.
pub(crate) struct Watcher {
    connection: Connection,
    /// What was read of the body, its chunks taken off.
    text: String,
    /// What was read and belongs to a chunk that is not whole.
    raw: Vec<u8>,
}

impl Watcher {
    /// Watches from now on.
    pub(crate) fn begin(place: &Place, query: &str) -> Watcher {
        let mut watcher = Watcher::ask(place, query);
        watcher.read_until(": watching\n\n");
        watcher
    }

    /// Has asked to watch, and reads nothing yet.
    pub(crate) fn ask(place: &Place, query: &str) -> Watcher {
        let mut connection = Connection::open_unix(&place.path("run/hob/control.sock")).unwrap();
        let head = format!("GET /v1/watch?{query} HTTP/1.1\r\nHost: x\r\n\r\n");
        connection.send(head.as_bytes()).unwrap();
        let (status, headers) = connection.read_head().unwrap();
        assert_eq!(status, 200, "{query}");
        let media_type = headers.iter().find(|(name, _)| name == "content-type");
        assert_eq!(media_type.unwrap().1, "text/event-stream");
        Watcher {
            connection,
            text: String::new(),
            raw: Vec::new(),
        }
    }

    /// The next event, and what it is.
    pub(crate) fn next_of_any_kind(&mut self) -> (String, Value) {
        loop {
            let block = self.read_until("\n\n");
            let mut kind = String::from("message");
            let mut data = String::new();
            for line in block.lines() {
                if let Some(text) = line.strip_prefix("event: ") {
                    kind = text.to_owned();
                } else if let Some(text) = line.strip_prefix("data: ") {
                    data = text.to_owned();
                }
            }
            if !data.is_empty() {
                let value = serde_json::from_str(&data).unwrap_or_else(|error| {
                    panic!("{error}: {data}");
                });
                return (kind, value);
            }
        }
    }

    /// The next event of a request.
    pub(crate) fn next(&mut self) -> Value {
        let (kind, value) = self.next_of_any_kind();
        assert_eq!(kind, "message", "{value}");
        value
    }

    /// All events up to the first that is `stage`.
    pub(crate) fn until(&mut self, stage: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next();
            let is_last = event["stage"] == stage;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    fn read_until(&mut self, end: &str) -> String {
        let by = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.text.find(end) {
                let rest = self.text.split_off(at + end.len());
                return std::mem::replace(&mut self.text, rest);
            }
            // The stream says now and then that it is still there.
            assert!(Instant::now() < by, "no event, but {:?}", self.text);
            self.read_more();
        }
    }

    fn read_more(&mut self) {
        let before = self.raw.len();
        self.raw.extend(self.connection.read_some().unwrap());
        assert!(self.raw.len() > before, "the stream has ended");
        while let Some(line) = self.raw.windows(2).position(|two| two == b"\r\n") {
            let size = std::str::from_utf8(&self.raw[..line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            let end = line + 2 + size + 2;
            if self.raw.len() < end {
                return;
            }
            let chunk = &self.raw[line + 2..end - 2];
            self.text.push_str(std::str::from_utf8(chunk).unwrap());
            self.raw.drain(..end);
        }
    }
}

/// The stages of events, in order.
pub(crate) fn stages(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["stage"].as_str().unwrap())
        .collect()
}

/// The one event of a stage.
pub(crate) fn of<'a>(events: &'a [Value], stage: &str) -> &'a Value {
    let mut found = events.iter().filter(|event| event["stage"] == stage);
    let event = found
        .next()
        .unwrap_or_else(|| panic!("no {stage} in {events:#?}"));
    assert!(found.next().is_none(), "two of {stage} in {events:#?}");
    event
}
