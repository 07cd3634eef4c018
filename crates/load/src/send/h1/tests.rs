//! Answers whole and in every two pieces, and those that are refused.

use super::*;

const ASKED: AnswerReadOptions<'_> = AnswerReadOptions {
    is_head: false,
    fields: &[],
    is_hashed: false,
};

/// Reads the bytes cut at `cut`, then the end of the connection if nothing is complete.
fn read_cut(
    bytes: &[u8],
    cut: usize,
    asked: AnswerReadOptions<'_>,
) -> Result<(AnswerSummary, usize), BadAnswer> {
    let mut reader = AnswerReader::default();
    if let AnswerProgress::Complete(used) = reader.read(&bytes[..cut], asked)? {
        return Ok((*reader.answer(), used));
    }
    if let AnswerProgress::Complete(used) = reader.read(&bytes[cut..], asked)? {
        return Ok((*reader.answer(), cut + used));
    }
    reader.end()?;
    Ok((*reader.answer(), bytes.len()))
}

/// Reads the bytes in every two pieces, which must make no difference.
fn read(bytes: &str, asked: AnswerReadOptions<'_>) -> Result<(AnswerSummary, usize), BadAnswer> {
    let whole = read_cut(bytes.as_bytes(), bytes.len(), asked);
    for cut in 0..bytes.len() {
        assert_eq!(
            read_cut(bytes.as_bytes(), cut, asked),
            whole,
            "cut at {cut}"
        );
    }
    whole
}

fn answer(status: u16, body_bytes: u64, is_reusable: bool) -> AnswerSummary {
    AnswerSummary {
        status,
        body_bytes,
        is_reusable,
        fields_seen: 0,
        body_hash: None,
    }
}

#[test]
fn body_ends_where_its_length_or_its_chunks_say() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(read(text, ASKED), Ok((answer(200, 5, true), text.len())));
    let text = "HTTP/1.1 200\nTransfer-Encoding: gzip, Chunked\n\n5;a=\"b\"\r\nhello\r\n0003 \r\nabc\n\
                0\r\nEtag: x\r\n\r\n";
    assert_eq!(read(text, ASKED), Ok((answer(200, 8, true), text.len())));
    let text = "HTTP/1.1 404 Not Found\r\nServer: x\r\n\r\nas long as it lasts";
    assert_eq!(read(text, ASKED), Ok((answer(404, 19, false), text.len())));
}

#[test]
fn body_that_is_wanted_is_given_as_it_comes() {
    let text =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for cut in 0..=text.len() {
        let mut reader = AnswerReader::default();
        reader.want_body();
        let mut body = Vec::new();
        for piece in [&text[..cut], &text[cut..]] {
            if !piece.is_empty() {
                reader.read(piece, ASKED).unwrap();
            }
            body.extend(reader.take_body());
        }
        assert_eq!(body, b"abcde", "cut at {cut}");
    }
    // Nobody asked for the next one's.
    let mut reader = AnswerReader::default();
    reader.read(text, ASKED).unwrap();
    assert_eq!(reader.take_body(), b"");
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    for status in ["204 No Content", "304 Not Modified"] {
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: 9\r\n\r\n");
        let status = status[..3].parse().unwrap();
        assert_eq!(
            read(&text, ASKED),
            Ok((answer(status, 0, true), text.len()))
        );
    }
    let head = AnswerReadOptions {
        is_head: true,
        ..ASKED
    };
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read(text, head), Ok((answer(200, 0, true), text.len())));
}

#[test]
fn what_follows_an_answer_is_not_taken() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n";
    let mut reader = AnswerReader::default();
    assert_eq!(
        reader.read(text.as_bytes(), ASKED),
        Ok(AnswerProgress::Complete(39))
    );
}

#[test]
fn interim_answers_are_passed_over() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(read(text, ASKED), Ok((answer(200, 0, true), text.len())));
    let many = "HTTP/1.1 100 Continue\r\n\r\n".repeat(101);
    let mut reader = AnswerReader::default();
    assert_eq!(reader.read(many.as_bytes(), ASKED), Err(BadAnswer::Interim));
}

#[test]
fn connection_ends_when_the_server_says_so() {
    let kept = |text: &str| read(text, ASKED).unwrap().0.is_reusable;
    assert!(!kept("HTTP/1.1 204 x\r\nConnection: foo, Close\r\n\r\n"));
    assert!(!kept("HTTP/1.0 204 x\r\n\r\n"));
    assert!(kept("HTTP/1.0 204 x\r\nconnection: Keep-Alive\r\n\r\n"));
    assert!(!kept("HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\n"));
}

#[test]
fn answer_that_breaks_off_is_told_from_none_at_all() {
    assert_eq!(read("", ASKED), Err(BadAnswer::NoAnswer));
    for text in [
        "HTTP/1.1 2",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        assert_eq!(read(text, ASKED), Err(BadAnswer::CutOff), "{text}");
    }
}

#[test]
fn malformed_answers_are_refused() {
    for (text, bad) in [
        ("SSH-2.0-OpenSSH\r\n", BadAnswer::StatusLine),
        ("HTTP/2 200\r\n\r\n", BadAnswer::StatusLine),
        ("HTTP/1.1 0200 OK\r\n\r\n", BadAnswer::StatusLine),
        ("HTTP/1.1 999 OK\r\n\r\n", BadAnswer::StatusLine),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", BadAnswer::Field),
        ("HTTP/1.1 200 OK\r\n: x\r\n\r\n", BadAnswer::Field),
        (
            "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
            BadAnswer::Field,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            BadAnswer::Framing,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            BadAnswer::Framing,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            BadAnswer::Framing,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            BadAnswer::Chunk,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab",
            BadAnswer::Chunk,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            BadAnswer::Chunk,
        ),
    ] {
        assert_eq!(read(text, ASKED), Err(bad), "{text}");
    }
}

#[test]
fn lines_longer_than_their_limits_are_refused() {
    let long = "x".repeat(HEAD_BYTES_MAX);
    let text = format!("HTTP/1.1 200 OK\r\nA: {long}");
    for step in [7, 1000, text.len()] {
        let mut reader = AnswerReader::default();
        let refused = text
            .as_bytes()
            .chunks(step)
            .find_map(|piece| reader.read(piece, ASKED).err());
        assert_eq!(refused, Some(BadAnswer::TooLong), "in pieces of {step}");
    }
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [format!("5;{long}"), format!("0\r\nA: {long}\r\n")] {
        let mut reader = AnswerReader::default();
        let text = format!("{head}{body}");
        assert_eq!(reader.read(text.as_bytes(), ASKED), Err(BadAnswer::TooLong));
    }
}

#[test]
fn expected_fields_are_seen_with_their_values() {
    let fields = ["etag", "Content-Type:text/html"].map(|text| ExpectedField::new(text).unwrap());
    let asked = AnswerReadOptions {
        is_head: true,
        fields: &fields,
        is_hashed: false,
    };
    let seen = |text: &str| read(text, asked).unwrap().0.fields_seen;
    assert_eq!(seen("HTTP/1.1 200 OK\r\n\r\n"), 0);
    assert_eq!(
        seen("HTTP/1.1 200 OK\r\nETag: x\r\ncontent-type: text/plain\r\n\r\n"),
        1
    );
    assert_eq!(
        seen("HTTP/1.1 200 OK\r\nETag:\r\ncontent-type:  text/html \r\n\r\n"),
        3
    );
}

#[test]
fn body_that_is_not_looked_at_is_counted() {
    let mut reader = AnswerReader::default();
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab";
    assert_eq!(reader.read(head, ASKED), Ok(AnswerProgress::More));
    assert_eq!(reader.skippable_bytes(), 8);
    assert_eq!(reader.skip(3), AnswerProgress::More);
    assert_eq!(reader.skip(5), AnswerProgress::Complete(0));
    assert_eq!(*reader.answer(), answer(200, 10, true));
}
