//! The same work for every loop: route a path, find a prepared answer, keep a record.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hob_http::date::DateLine;
use hob_http::h1::{Http1Connection, Http1Event, AfterAnswer};
use hob_http::limits::HttpLimits;
use hob_http::{Responder, Answered, Body, Fields, PreparedHead, Request, RequestHead, Response};
use hob_http::ResponseHead;
use hob_trace::Record;
use rustix::time::{ClockId, clock_gettime};

pub struct Site {
    routes: HashMap<Vec<u8>, (Rc<PreparedHead>, Bytes)>,
    records: RefCell<(usize, Vec<Record>)>,
}

impl Site {
    pub fn new(bytes: usize) -> Site {
        let mut routes = HashMap::new();
        let body = Bytes::from(vec![b'x'; bytes]);
        for name in ["/", "/a", "/b/c", "/0k.txt"] {
            let mut fields = Fields::new();
            for (name, value) in [
                ("Server", "hob"),
                ("Content-Type", "text/plain"),
                ("Last-Modified", "Sat, 21 Nov 2026 00:00:00 GMT"),
                ("ETag", "\"abcdef-1234\""),
                ("Accept-Ranges", "bytes"),
            ] {
                fields.add(name.as_bytes(), value.as_bytes());
            }
            let prepared = Rc::new(PreparedHead::new(200, fields, bytes as u64));
            routes.insert(name.as_bytes().to_vec(), (prepared, body.clone()));
        }
        Site { routes, records: RefCell::new((0, vec![Record::empty(); 4096])) }
    }

    fn find(&self, path: &[u8]) -> Option<&(Rc<PreparedHead>, Bytes)> {
        self.routes.get(path)
    }

    pub fn keep(&self, record: Record) {
        let mut records = self.records.borrow_mut();
        let at = records.0 % 4096;
        records.1[at] = record;
        records.0 += 1;
    }
}

impl Responder for Site {
    fn answer(&self, request: &Request) -> Answered {
        let Some((prepared, body)) = self.find(request.head().path()) else {
            return Answered::Ready(Response::text(404, "not here"));
        };
        Answered::Ready(Response::prepared(Rc::clone(prepared), Body::Bytes(body.clone())))
    }

    fn finished(&self, request: &Request) {
        self.keep(*request.record());
    }
}

pub fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

/// A connection for the plain loops: bytes in, bytes out, no socket.
pub struct Plain {
    core: Http1Connection,
    head: RequestHead,
}

impl Plain {
    pub fn new(limits: &Rc<HttpLimits>) -> Plain {
        Plain { core: Http1Connection::new(Rc::clone(limits), 0), head: RequestHead::empty() }
    }

    /// Answers what is in `input`; false when the connection ends. Enough for a load generator.
    pub fn answer(
        &mut self,
        site: &Site,
        date: &DateLine,
        turn_us: u64,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let mut used = 0;
        while used < input.len() {
            self.head = RequestHead::empty();
            let (count, event) = self.core.read(&input[used..], &mut self.head, turn_us / 1000);
            used += count;
            let Http1Event::Request(_) = event else { return false };
            let Some((prepared, body)) = site.find(self.head.path()) else { return false };
            let head = ResponseHead::PreparedHead(Rc::clone(prepared));
            self.core.push_head(&head, Some(body.len() as u64), false, date, out);
            if !body.is_empty() {
                self.core.push_data_prefix(body.len() as u64, out);
                out.extend_from_slice(body);
            }
            self.core.push_end(None, out);
            let mut record = Record::empty();
            record.started_us = turn_us;
            record.total_us = now_us() - turn_us;
            record.status = 200;
            site.keep(record);
            if self.core.finish() != AfterAnswer::Request {
                return false;
            }
        }
        true
    }
}

pub fn date_now() -> DateLine {
    DateLine::new(Duration::from_secs(clock_gettime(ClockId::Realtime).tv_sec as u64))
}
