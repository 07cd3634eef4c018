//! Answers as programs give them, and requests that ask for less.

use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hob_http::limits::HttpLimits;
use hob_http::{BodyError, BodyStream, Chunk};

use super::*;

const PAGE: &str = "the kettle is warm, the kettle is warm, the kettle is warm\n";
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

fn steps() -> AfterSteps {
    AfterSteps {
        compress: vec![Coding::Zstd, Coding::Brotli, Coding::Gzip],
        compress_min: 32,
        compress_types: vec!["text/*".to_owned(), "application/json".to_owned()],
        intercept_errors: false,
        buffer_max: 1 << 20,
    }
}

fn request(method: &str, fields: &[&str]) -> Request {
    let fields: String = fields.iter().map(|line| format!("{line}\r\n")).collect();
    let head = format!("{method} / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let request = Request::offline(head.as_bytes(), &HttpLimits::default()).unwrap();
    // 2026-06-15
    request.record_mut().started_unix_ms = 1_781_524_800_000;
    request
}

fn fields(lines: &[&str]) -> Fields {
    let mut fields = Fields::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        assert!(fields.add(name.as_bytes(), value.as_bytes()));
    }
    fields
}

fn text(lines: &[&str]) -> Response {
    let mut all = fields(&["Content-Type: text/plain"]);
    fields(lines).iter().for_each(|(name, value)| {
        all.set(name, value);
    });
    Response::new(200, all, Body::Bytes(Bytes::from_static(PAGE.as_bytes())))
}

/// The page piece by piece, of unknown size; notes when it is let go.
struct Pieces {
    rest: &'static [u8],
    len: Option<u64>,
    is_gone: Rc<Cell<bool>>,
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.is_gone.set(true);
    }
}

impl BodyStream for Pieces {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        let (piece, rest) = self.rest.split_at(self.rest.len().min(7));
        self.rest = rest;
        let chunk = Chunk::Bytes(Bytes::from_static(piece));
        Poll::Ready((!piece.is_empty()).then_some(Ok(chunk)))
    }

    fn len(&self) -> Option<u64> {
        self.len
    }
}

fn streamed(lines: &[&str], len: Option<u64>) -> (Response, Rc<Cell<bool>>) {
    let is_gone = Rc::new(Cell::new(false));
    let pieces = Pieces {
        rest: PAGE.as_bytes(),
        len,
        is_gone: Rc::clone(&is_gone),
    };
    let response = Response {
        body: Body::Stream(Box::new(pieces)),
        ..text(lines)
    };
    (response, is_gone)
}

fn answer(method: &str, asked: &[&str], response: Response) -> Response {
    narrow(
        &request(method, asked),
        &steps(),
        &Control::default(),
        response,
    )
}

fn value<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    let value = response.fields().value(name.as_bytes())?;
    Some(std::str::from_utf8(value).unwrap())
}

fn body(response: Response) -> Vec<u8> {
    let mut stream = response.body.into_stream();
    let mut out = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(Chunk::Bytes(bytes)))) = stream.poll_chunk(&mut cx, 4096) {
        out.extend_from_slice(&bytes);
    }
    out
}

fn decoded(coding: &str, data: &[u8]) -> String {
    let mut out = String::new();
    match coding {
        "br" => brotli::Decompressor::new(data, 4096).read_to_string(&mut out),
        "zstd" => zstd::stream::read::Decoder::new(data)
            .unwrap()
            .read_to_string(&mut out),
        _ => flate2::read::GzDecoder::new(data).read_to_string(&mut out),
    }
    .unwrap();
    out
}

#[test]
fn own_tag_or_date_of_a_program_gives_304_and_ends_it() {
    let tag = "ETag: \"a\"";
    let date = &format!("Last-Modified: {MODIFIED}");
    let later = "If-Modified-Since: Mon, 07 Nov 1994 08:49:37 GMT";
    for (own, asked) in [
        (tag, "If-None-Match: \"x\", W/\"a\""),
        (tag, "If-None-Match: *"),
        (date, &format!("If-Modified-Since: {MODIFIED}")),
        (date, later),
    ] {
        for method in ["GET", "HEAD"] {
            let own = [own, "Set-Cookie: a=b", "Cache-Control: private"];
            let (response, is_gone) = streamed(&own, None);
            let answer = answer(method, &[asked], response);
            assert_eq!(answer.status(), 304, "{asked}");
            assert!(is_gone.get());
            assert!(answer.body.is_empty());
            let names: Vec<_> = answer.fields().iter().map(|(name, _)| name).collect();
            let own_name = own[0].split(':').next().unwrap().as_bytes();
            assert_eq!(names, [own_name, b"Set-Cookie", b"Cache-Control", b"Vary"]);
        }
    }
}

#[test]
fn conditions_that_do_not_hold_leave_the_answer() {
    for (own, asked) in [
        ("ETag: \"a\"", "If-None-Match: \"b\""),
        ("ETag: \"a\"", &format!("If-Modified-Since: {MODIFIED}")),
        ("X-None: 1", "If-None-Match: \"a\", *"),
        ("X-None: 1", "If-Match: \"a\""),
        ("ETag: a", "If-None-Match: a"),
        ("ETag: \"a\"", "If-Match: \"b\", \"a\""),
        (&format!("Last-Modified: {MODIFIED}"), "If-Match: \"b\""),
    ] {
        assert_eq!(
            answer("GET", &[asked], text(&[own])).status(),
            200,
            "{own} {asked}"
        );
    }
    // What a POST was to do is done.
    for asked in ["If-None-Match: \"a\"", "If-Match: \"b\""] {
        assert_eq!(
            answer("POST", &[asked], text(&["ETag: \"a\""])).status(),
            200
        );
    }
    let mut created = text(&["ETag: \"a\""]);
    created.head = ResponseHead::Fields(203, created.fields().clone());
    assert_eq!(
        answer("GET", &["If-None-Match: \"a\""], created).status(),
        203
    );
}

#[test]
fn conditions_that_fail_give_412() {
    for (own, asked) in [
        ("ETag: \"a\"", "If-Match: \"b\""),
        ("ETag: W/\"a\"", "If-Match: W/\"a\""),
        (
            &format!("Last-Modified: {MODIFIED}"),
            "If-Unmodified-Since: Sat, 05 Nov 1994 08:49:37 GMT",
        ),
    ] {
        let answer = answer("GET", &[asked], text(&[own]));
        assert_eq!(
            (answer.status(), answer.is_stand_in),
            (412, true),
            "{asked}"
        );
    }
}

#[test]
fn one_range_is_cut_out_when_the_size_is_known() {
    let len = PAGE.len();
    for (asked, range) in [
        ("bytes=4-9", 4..10),
        ("bytes=-5", len - 5..len),
        ("bytes=50-", 50..len),
    ] {
        let asked = format!("Range: {asked}");
        let (streamed, is_gone) = streamed(&["ETag: \"a\""], Some(len as u64));
        for response in [text(&["ETag: \"a\""]), streamed] {
            let answer = answer("GET", &[&asked, "Accept-Encoding: gzip"], response);
            assert_eq!(answer.status(), 206, "{asked}");
            let expected = format!("bytes {}-{}/{len}", range.start, range.end - 1);
            assert_eq!(value(&answer, "Content-Range"), Some(&*expected));
            assert_eq!(value(&answer, "Content-Encoding"), None);
            assert_eq!(value(&answer, "Vary"), Some("Accept-Encoding"));
            assert_eq!(answer.body.len(), Some(range.len() as u64));
            assert_eq!(body(answer), PAGE.as_bytes()[range.clone()]);
        }
        assert!(is_gone.get());
    }
    let beyond = answer("GET", &["Range: bytes=99-"], text(&[]));
    assert_eq!(beyond.status(), 416);
    assert_eq!(
        value(&beyond, "Content-Range"),
        Some(&*format!("bytes */{len}"))
    );
}

#[test]
fn whole_is_sent_where_a_range_does_not_count() {
    let part = "Range: bytes=0-3";
    let (unknown, _) = streamed(&[], None);
    let own_part = Response {
        head: ResponseHead::Fields(206, fields(&["Content-Range: bytes 0-58/99"])),
        ..text(&[])
    };
    for (method, asked, response, status) in [
        ("GET", vec!["Range: bytes=0-1,4-5"], text(&[]), 200),
        ("GET", vec!["Range: lines=0-1"], text(&[]), 200),
        ("GET", vec![part], unknown, 200),
        ("GET", vec![part], text(&["Accept-Ranges: none"]), 200),
        (
            "GET",
            vec![part, "If-Range: \"b\""],
            text(&["ETag: \"a\""]),
            200,
        ),
        ("GET", vec![part, "If-Range: \"b\""], text(&[]), 200),
        ("HEAD", vec![part], text(&[]), 200),
        ("POST", vec![part], text(&[]), 200),
        ("GET", vec![part], own_part, 206),
    ] {
        let answer = answer(method, &asked, response);
        assert_eq!(answer.status(), status, "{method} {asked:?}");
        assert_eq!(body(answer), PAGE.as_bytes(), "{method} {asked:?}");
    }
    let fits = answer("GET", &[part, "If-Range: \"a\""], text(&["ETag: \"a\""]));
    assert_eq!(fits.status(), 206);
}

#[test]
fn ranges_are_offered_with_a_size_and_a_validator() {
    let offers = |response| value(&answer("GET", &[], response), "Accept-Ranges").is_some();
    assert!(offers(text(&["ETag: \"a\""])));
    assert!(!offers(text(&[])));
    assert!(!offers(streamed(&["ETag: \"a\""], None).0));
    let coded = answer("GET", &["Accept-Encoding: br"], text(&["ETag: \"a\""]));
    assert_eq!(value(&coded, "Accept-Ranges"), None);
}

#[test]
fn bytes_and_streams_are_compressed_as_the_client_likes_best() {
    for coding in ["zstd", "br", "gzip"] {
        let accept = format!("Accept-Encoding: {coding}");
        for response in [text(&["ETag: \"a\""]), streamed(&["ETag: \"a\""], None).0] {
            let is_known = response.body.len().is_some();
            let answer = answer("GET", &[&accept], response);
            assert_eq!(value(&answer, "Content-Encoding"), Some(coding));
            assert_eq!(value(&answer, "Vary"), Some("Accept-Encoding"));
            assert_eq!(value(&answer, "ETag"), Some("W/\"a\""));
            assert_eq!(answer.body.len().is_some(), is_known);
            assert_eq!(decoded(coding, &body(answer)), PAGE);
        }
    }
}

#[test]
fn what_must_stay_as_it_is_stays() {
    let small = Response {
        body: Body::Bytes(Bytes::from_static(b"small")),
        ..text(&[])
    };
    let status = |status| Response {
        head: ResponseHead::Fields(status, text(&[]).fields().clone()),
        ..text(&[])
    };
    let cases = [
        (text(&["Content-Encoding: x"]), None),
        (text(&["Cache-Control: max-age=1, No-Transform"]), None),
        (text(&["Content-Type: image/png"]), None),
        (text(&["Content-Digest: sha-256=:a:"]), None),
        (small, None),
        (status(204), None),
        (status(206), None),
        (status(404), Some("gzip")),
        (text(&["Content-Type: application/JSON; a=b"]), Some("gzip")),
    ];
    for (index, (response, coding)) in cases.into_iter().enumerate() {
        let before = value(&response, "Content-Encoding").map(str::to_owned);
        let answer = answer("GET", &["Accept-Encoding: gzip"], response);
        let after = value(&answer, "Content-Encoding");
        assert_eq!(after, coding.or(before.as_deref()), "case {index}");
        assert_eq!(
            value(&answer, "Vary").is_some(),
            coding.is_some(),
            "case {index}"
        );
    }
    let never = Control {
        compress: Compress::Never,
        ..Control::default()
    };
    let asks = request("GET", &["Accept-Encoding: gzip"]);
    let answer = narrow(&asks, &steps(), &never, text(&[]));
    assert_eq!(
        (value(&answer, "Content-Encoding"), value(&answer, "Vary")),
        (None, None)
    );
}

#[test]
fn vary_is_told_to_all_and_only_once() {
    let plain = answer("GET", &[], text(&["Vary: Cookie"]));
    let values: Vec<_> = plain
        .fields()
        .iter()
        .filter(|(name, _)| name == b"Vary")
        .collect();
    assert_eq!(values.len(), 2);
    for told in ["Vary: Cookie, accept-encoding", "Vary: *"] {
        let answer = answer("GET", &["Accept-Encoding: gzip"], text(&[told]));
        let count = answer
            .fields()
            .iter()
            .filter(|(name, _)| *name == b"Vary")
            .count();
        assert_eq!(count, 1, "{told}");
    }
}

#[test]
fn head_has_the_fields_of_get() {
    for response in [
        || text(&["ETag: \"a\""]),
        || streamed(&["ETag: \"a\""], None).0,
    ] {
        let asked = ["Accept-Encoding: br"];
        let (get, head) = (
            answer("GET", &asked, response()),
            answer("HEAD", &asked, response()),
        );
        assert_eq!(get.fields(), head.fields());
        assert_eq!(get.body.len(), head.body.len());
    }
}

#[test]
fn tag_of_a_304_is_that_of_the_answer_it_stands_for() {
    let asked = ["If-None-Match: W/\"a\"", "Accept-Encoding: gzip"];
    let coded = answer("GET", &asked, text(&["ETag: \"a\""]));
    assert_eq!(
        (coded.status(), value(&coded, "ETag")),
        (304, Some("W/\"a\""))
    );
    let plain = answer("GET", &asked[..1], text(&["ETag: \"a\""]));
    assert_eq!(
        (plain.status(), value(&plain, "ETag")),
        (304, Some("\"a\""))
    );
}

#[test]
fn tunnel_is_left_alone() {
    let (streamed, _) = streamed(&[], None);
    let Body::Stream(stream) = streamed.body else {
        unreachable!("it is a stream")
    };
    let tunnel = Response::new(200, text(&[]).fields().clone(), Body::Tunnel(stream));
    let answer = answer("GET", &["Accept-Encoding: gzip"], tunnel);
    assert!(matches!(answer.body, Body::Tunnel(_)));
    assert_eq!(value(&answer, "Content-Encoding"), None);
}
