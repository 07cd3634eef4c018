//! Parts of files: which bytes, how they are announced, when the whole is sent instead.

use crate::harness::client::ask;
use crate::harness::{BIG_BYTES, BIG_LINE};
use crate::{BEFORE, MODIFIED, place_with, set_modified};

#[test]
fn one_range_is_a_part_with_its_place() {
    let place = place_with(&[("digits.txt", "0123456789")]);
    let hob = place.serve_config("");
    for (range, place, body) in [
        ("bytes=2-4", "bytes 2-4/10", "234"),
        ("bytes=7-", "bytes 7-9/10", "789"),
        ("bytes=-3", "bytes 7-9/10", "789"),
        ("bytes=-99", "bytes 0-9/10", "0123456789"),
        ("bytes=9-99", "bytes 9-9/10", "9"),
        ("bytes=1-2,2-4", "bytes 1-4/10", "1234"),
    ] {
        let fields = format!("Range: {range}\r\n");
        let answer = ask(hob.port(), "GET", "/digits.txt", &fields);
        assert_eq!((answer.status, answer.text().as_str()), (206, body));
        assert_eq!(answer.header("content-range"), Some(place), "{range}");
        assert_eq!(answer.header("accept-ranges"), Some("bytes"));
    }
    hob.stop();
}

#[test]
fn several_ranges_are_parts_of_one_body() {
    let place = place_with(&[("digits.txt", "0123456789")]);
    let hob = place.serve_config("");
    let fields = "Range: bytes=0-1, 5-6, -1\r\n";
    let answer = ask(hob.port(), "GET", "/digits.txt", fields);
    assert_eq!(answer.status, 206);
    assert_eq!(answer.header("content-range"), None);
    let media_type = answer.header("content-type").unwrap();
    let border = media_type
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let part = |place: &str, body: &str| {
        format!(
            "--{border}\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Range: bytes {place}/10\r\n\r\n{body}\r\n"
        )
    };
    let parts = [part("0-1", "01"), part("5-6", "56"), part("9-9", "9")];
    assert_eq!(answer.text(), format!("{}--{border}--\r\n", parts.concat()));
    hob.stop();
}

#[test]
fn parts_of_a_large_file_are_sent_alike() {
    let place = place_with(&[]);
    place.fill_big();
    let hob = place.serve_config("");
    let (first, last) = (BIG_BYTES - 16, BIG_BYTES - 1);
    let fields = format!("Range: bytes={first}-\r\n");
    let answer = ask(hob.port(), "GET", "/big.bin", &fields);
    assert_eq!(answer.status, 206);
    let expected = format!("bytes {first}-{last}/{BIG_BYTES}");
    assert_eq!(answer.header("content-range"), Some(expected.as_str()));
    assert_eq!(answer.text(), BIG_LINE);

    let fields = format!("Range: bytes=0-3,{first}-{last}\r\n");
    let answer = ask(hob.port(), "GET", "/big.bin", &fields);
    assert_eq!(answer.status, 206);
    let text = answer.text();
    assert!(text.contains("\r\n\r\n0123\r\n--"), "{text}");
    assert!(
        text.contains(&format!("\r\n\r\n{BIG_LINE}\r\n--")),
        "{text}"
    );
    hob.stop();
}

#[test]
fn range_that_is_not_there_gets_416_with_the_size() {
    let place = place_with(&[("digits.txt", "0123456789")]);
    let hob = place.serve_config("");
    for range in ["bytes=10-", "bytes=-0", "bytes=10-11,20-"] {
        let fields = format!("Range: {range}\r\n");
        let answer = ask(hob.port(), "GET", "/digits.txt", &fields);
        assert_eq!(answer.status, 416, "{range}");
        assert_eq!(answer.header("content-range"), Some("bytes */10"));
    }
    hob.stop();
}

#[test]
fn whole_file_is_sent_where_a_range_does_not_count() {
    let place = place_with(&[("digits.txt", "0123456789"), ("empty.txt", "")]);
    let hob = place.serve_config("");
    let many = (0..40).map(|at| format!("{}-{},", at * 2, at * 2));
    let many: String = many.collect();
    for range in ["bytes=4-2", "lines=1-2", "bytes=x-", "bytes", &many] {
        let fields = format!("Range: {range}\r\n");
        let answer = ask(hob.port(), "GET", "/digits.txt", &fields);
        assert_eq!((answer.status, answer.body.len()), (200, 10), "{range}");
    }
    let head = ask(hob.port(), "HEAD", "/digits.txt", "Range: bytes=0-1\r\n");
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), Some("10"));
    let empty = ask(hob.port(), "GET", "/empty.txt", "Range: bytes=0-\r\n");
    assert_eq!(empty.status, 200);
    hob.stop();
}

#[test]
fn if_range_sends_the_part_of_what_the_client_has_and_else_the_whole() {
    let place = place_with(&[("digits.txt", "0123456789")]);
    set_modified(&place, "site/digits.txt");
    let hob = place.serve_config("");
    let tag = ask(hob.port(), "GET", "/digits.txt", "");
    let tag = tag.header("etag").unwrap();
    for (condition, status) in [
        (tag, 206),
        (MODIFIED, 206),
        ("\"other\"", 200),
        (BEFORE, 200),
        (&format!("W/{tag}"), 200),
    ] {
        let fields = format!("Range: bytes=0-1\r\nIf-Range: {condition}\r\n");
        let answer = ask(hob.port(), "GET", "/digits.txt", &fields);
        assert_eq!(answer.status, status, "{condition}");
    }
    hob.stop();
}
