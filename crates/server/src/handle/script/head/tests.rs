//! Heads of programs' outputs, and what is refused.

use super::*;

fn read(output: &[u8]) -> CgiHeadProgress {
    HeadReader::new(512).read(output)
}

fn head(output: &[u8]) -> (CgiHead, &[u8]) {
    match read(output) {
        CgiHeadProgress::Head(head, used) => (head, &output[used..]),
        other => panic!("{other:?} for {}", output.escape_ascii()),
    }
}

fn refusal(output: &[u8]) -> &'static str {
    match read(output) {
        CgiHeadProgress::Refused(bad) => bad.reason,
        other => panic!("{other:?} for {}", output.escape_ascii()),
    }
}

fn lines(head: &CgiHead) -> String {
    String::from_utf8_lossy(head.fields.lines()).replace("\r\n", "\n")
}

#[test]
fn document_has_status_200_and_its_fields() {
    for output in [
        &b"Content-Type: text/html\nX-A: 1\n\nbody"[..],
        b"Content-Type: text/html\r\nX-A: 1\r\n\r\nbody",
        b"Content-Type:text/html\nX-A:   1  \r\n\r\nbody",
        b"Content-Type: text/html\r\nX-A: 1\n\nbody",
    ] {
        let (head, body) = head(output);
        assert_eq!((head.status, body), (200, &b"body"[..]));
        assert_eq!(lines(&head), "Content-Type: text/html\nX-A: 1\n");
        assert_eq!(
            (head.local, head.body_bytes, head.is_chunked),
            (None, None, false)
        );
    }
}

#[test]
fn head_that_comes_byte_by_byte_is_the_same() {
    let output = b"Status: 404 No\r\nContent-Type: a/b\r\n\r\n\n\nbody";
    let mut reader = HeadReader::new(512);
    let end = output
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap()
        + 4;
    for len in 0..end {
        assert_eq!(
            reader.read(&output[..len]),
            CgiHeadProgress::NeedMore,
            "{len}"
        );
    }
    assert_eq!(reader.read(&output[..end]), read(output));
    let CgiHeadProgress::Head(head, used) = read(output) else {
        panic!("no head");
    };
    assert_eq!((used, head.status), (end, 404));
}

#[test]
fn status_is_the_number_of_the_field() {
    for (value, status) in [
        ("200", 200),
        ("404 Not Found", 404),
        ("599\tx", 599),
        ("  201  ", 201),
    ] {
        let output = format!("Status:{value}\n\n");
        assert_eq!(head(output.as_bytes()).0.status, status, "{value}");
    }
    for value in ["", "20", "2000", "abc", "-20", "600", "000", "+20", "200x"] {
        let output = format!("Status: {value}\n\n");
        assert_eq!(
            refusal(output.as_bytes()),
            "the status is no number from 200 to 599",
            "{value}"
        );
    }
    assert_eq!(
        refusal(b"Status: 101 Switching\n\n"),
        "an answer cannot end with status 1xx"
    );
}

#[test]
fn location_of_this_server_answers_instead_and_others_redirect_the_client() {
    let (local, body) = head(b"Location: /a/b?c=d\n\n");
    assert_eq!(
        (local.local.as_deref(), body),
        (Some(&b"/a/b?c=d"[..]), &b""[..])
    );
    assert_eq!(lines(&local), "");
    for place in [
        "http://example.org/",
        "//example.org/",
        "other.html",
        "/a#part",
        "/a b",
        "/\\example.org",
    ] {
        let output = format!("Location: {place}\n\n");
        let (head, _) = head(output.as_bytes());
        assert_eq!((head.status, head.local.as_deref()), (302, None), "{place}");
        assert_eq!(lines(&head), format!("Location: {place}\n"));
    }
    // With a status of its own the answer is for the client.
    let (head, _) = head(b"Status: 303 See Other\nLocation: /a\n\n");
    assert_eq!((head.status, head.local.as_deref()), (303, None));
    assert_eq!(lines(&head), "Location: /a\n");
}

#[test]
fn fields_of_the_connection_and_the_server_are_taken_out() {
    let (head, _) = head(
        b"Content-Type: a/b\nConnection: close, X-Hop\nKeep-Alive: 5\nX-Hop: 1\nTE: x\n\
          Trailer: x\nUpgrade: x\nProxy-Connection: x\nDate: now\nServer: me\nX-CGI-Thing: 1\n\
          X-Cgiless: 2\nSet-Cookie: a=1\nset-cookie: b=2\n\n",
    );
    assert_eq!(
        lines(&head),
        "Content-Type: a/b\nX-Cgiless: 2\nSet-Cookie: a=1\nset-cookie: b=2\n"
    );
}

#[test]
fn length_is_a_number_and_is_taken_out() {
    let (first, _) = head(b"Content-Length: 12\ncontent-length: 12\n\n");
    assert_eq!((first.body_bytes, lines(&first)), (Some(12), String::new()));
    for value in ["", "-1", "+1", "1 2", "0x1", "99999999999999999999"] {
        let output = format!("Content-Length: {value}\n\n");
        assert_eq!(
            refusal(output.as_bytes()),
            "Content-Length is no number of bytes",
            "{value}"
        );
    }
    let two = refusal(b"Content-Length: 1\nContent-Length: 2\n\n");
    assert_eq!(two, "the head has two different Content-Lengths");
    let (chunked, _) = head(b"Content-Length: 12\nTransfer-Encoding: Chunked\n\n");
    assert_eq!((chunked.body_bytes, chunked.is_chunked), (None, true));
    let coded = refusal(b"Transfer-Encoding: gzip, chunked\n\n");
    assert_eq!(coded, "the program uses a transfer coding");
}

#[test]
fn status_line_is_read_and_interim_heads_are_passed_over() {
    let output = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 103 x\nLink: x\n\n\
                   HTTP/1.1 404 Not Found\r\nServer: x\r\nX-A: 1\r\n\r\nbody";
    let (head, body) = head(output);
    assert_eq!((head.status, body), (404, &b"body"[..]));
    assert_eq!(lines(&head), "X-A: 1\n");
    let mut reader = HeadReader::new(512);
    let end = output.len() - b"body".len();
    for len in 0..end {
        assert_eq!(
            reader.read(&output[..len]),
            CgiHeadProgress::NeedMore,
            "{len}"
        );
    }
    assert_eq!(reader.read(output), read(output));
    let bare = read(b"HTTP/1.0 204 No Content\r\n\r\n");
    assert!(matches!(bare, CgiHeadProgress::Head(head, 27) if head.status == 204));
    assert_eq!(
        read(b"HTTP/1.1 100 Continue\n\n"),
        CgiHeadProgress::NeedMore
    );
    assert_eq!(
        refusal(b"HTTP/1.1\n\n"),
        "the status is no number from 200 to 599"
    );
}

#[test]
fn lines_that_are_no_fields_are_refused() {
    const NO_FIELD: &str = "a line of the head is no field (`Name: value`)";
    for (output, reason) in [
        (&b"Hello\n\n"[..], NO_FIELD),
        (b"Content-Type: a/b\n going on\n\n", NO_FIELD),
        (b"Content-Type : a/b\n\n", NO_FIELD),
        (b": a\n\n", NO_FIELD),
        (b"X\0: a\n\n", NO_FIELD),
        (b"X: a\0b\n\n", "a field of the head holds a NUL byte"),
        (
            b"X: a\rb\n\n",
            "a field of the head holds a control character",
        ),
        (
            b"X: a\x1bb\n\n",
            "a field of the head holds a control character",
        ),
        (
            b"Content-Type: a/b\nContent-Type: a/c\n\n",
            "the head has two content types",
        ),
        (b"Status: 200\nStatus: 404\n\n", "the head has two statuses"),
        (
            b"Location: /a\nLocation: /b\n\n",
            "the head has two locations",
        ),
        (b"Location:\n\n", "Location is empty"),
        (
            b"\nbody",
            "the program's output begins with an empty line, where a head should stand",
        ),
        (
            b"\r\nbody",
            "the program's output begins with an empty line, where a head should stand",
        ),
    ] {
        assert_eq!(refusal(output), reason, "{}", output.escape_ascii());
    }
    let CgiHeadProgress::Refused(bad) = read(b"Traceback (most recent call last)\n\n") else {
        panic!("that is no head");
    };
    let expected = format!("{NO_FIELD}: Traceback (most recent call last)");
    assert_eq!(bad.to_string(), expected);
}

#[test]
fn head_longer_than_its_limit_is_refused_as_soon_as_that_is_seen() {
    let field = format!("X: {}\n", "a".repeat(600));
    assert_eq!(refusal(field.as_bytes()), TOO_LONG);
    assert_eq!(refusal(format!("{field}\n").as_bytes()), TOO_LONG);
    let fits = format!("X: {}\n\n", "a".repeat(512 - 5));
    assert!(matches!(
        read(fits.as_bytes()),
        CgiHeadProgress::Head(_, 512)
    ));
    let wrong = format!("X: {}\n\n", "a".repeat(512 - 4));
    assert_eq!(refusal(wrong.as_bytes()), TOO_LONG);
}

#[test]
fn output_that_ends_before_its_head_does_is_told_apart_from_none() {
    let reader = HeadReader::new(512);
    assert_eq!(
        reader.at_end(b"").reason,
        "the program ended without output"
    );
    assert_eq!(
        reader.at_end(b" \n").reason,
        "the program ended without output"
    );
    let cut = reader.at_end(b"Content-Type: a/b\nX");
    assert_eq!(&*cut.line, b"Content-Type: a/b");
    assert_ne!(cut.reason, "the program ended without output");
}
