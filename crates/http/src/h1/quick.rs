//! The head that nearly every request has, read in one pass (RFC 9112 sections 2 to 5).
//!
//! GET, HEAD or POST, a path as target, HTTP/1.1, fields one line each. Whatever is unusual, wrong
//! or not there yet is left to [`HeadScanner`](super::parse::Scanner) and
//! [`read_head`](super::parse::read_head): they accept more and say what is refused. What is read
//! here, they read alike; a test and a fuzz target compare the two.

use hob_trace::Protocol;

use crate::h1::parse::{Framing, Length, read_framing};
use crate::h1::target::read_host;
use crate::head::{self, HeadSpan, Known, RequestHead};
use crate::limits::HttpLimits;

/// Reads the head that stands whole at the start of `input`. `None`: it has to be read with more
/// care. `head` is empty before, and after `None`.
pub fn read_quickly(
    input: &[u8],
    head: &mut RequestHead,
    limits: &HttpLimits,
) -> Option<(usize, Framing)> {
    let read = read(&input[..input.len().min(limits.head_bytes)], head, limits);
    if read.is_none() {
        head.clear();
    }
    read
}

fn read(input: &[u8], head: &mut RequestHead, limits: &HttpLimits) -> Option<(usize, Framing)> {
    let method_len = match input {
        [b'G', b'E', b'T', b' ', ..] => 3,
        [b'H', b'E', b'A', b'D', b' ', ..] | [b'P', b'O', b'S', b'T', b' ', ..] => 4,
        _ => return None,
    };
    let mut at = read_target(input, method_len, head, limits)?;
    let mut is_framed = false;
    loop {
        let line = &input[at..];
        match line {
            [b'\r', b'\n', ..] => break,
            _ if head.fields.len() == limits.header_count => return None,
            _ => {}
        }
        let name_len = find(line, |word| {
            less(word, 0x21) | equal(word, b':') | high(word)
        })?;
        if line[name_len] != b':' {
            return None;
        }
        let name = &line[..name_len];
        let known = Known::of(name);
        if known.is_none() && !head::is_name(name) {
            return None;
        }
        is_framed |= matches!(
            known,
            Some(
                Known::Connection | Known::ContentLength | Known::Expect | Known::TransferEncoding
            )
        );
        let value = value_of(&line[name_len + 1..])?;
        let value_at = at + name_len + 1 + value.start as usize;
        head.push_known(
            known,
            span(at, name_len),
            span(value_at, value.len as usize),
        );
        at = at + name_len + 1 + value.line_len;
    }
    let len = at + 2;
    head.bytes.extend_from_slice(&input[..len]);
    read_host(head).ok()?;
    let framing = if is_framed {
        read_framing(head).ok()?
    } else {
        Framing {
            length: Length::Bytes(0),
            keep_alive: true,
            expects_continue: false,
        }
    };
    Some((len, framing))
}

/// Reads the request line behind its method; returns where the fields begin.
fn read_target(
    input: &[u8],
    method_len: usize,
    head: &mut RequestHead,
    limits: &HttpLimits,
) -> Option<usize> {
    let start = method_len + 1;
    let rest = &input[start..];
    if rest.first() != Some(&b'/') {
        return None;
    }
    let mut len = rest.iter().position(|&byte| !PATH_BYTES[byte as usize])?;
    head.path = span(start, len);
    if rest[len] == b'?' {
        let query = &rest[len + 1..];
        let is_query = |byte: u8| PATH_BYTES[byte as usize] || byte == b'?';
        let query_len = query.iter().position(|&byte| !is_query(byte))?;
        head.query = Some(span(start + len + 1, query_len));
        len += 1 + query_len;
    }
    let after = rest[len..].first_chunk::<VERSION_LEN>()?;
    if after != VERSION || len > limits.target_bytes {
        return None;
    }
    head.protocol = Protocol::Http11;
    head.method = span(0, method_len);
    head.target = span(start, len);
    Some(start + len + VERSION_LEN)
}

const VERSION: &[u8; VERSION_LEN] = b" HTTP/1.1\r\n";
const VERSION_LEN: usize = 11;

/// Bytes that may stand in a path: printable ASCII without `?` and `#`.
const PATH_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte] = byte != b'?' as usize && byte != b'#' as usize;
        byte += 1;
    }
    table
};

/// Where a value stands behind its colon, and how long the rest of its line is, its end included.
struct FieldValueSpan {
    start: u32,
    len: u32,
    line_len: usize,
}

fn value_of(rest: &[u8]) -> Option<FieldValueSpan> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = rest.iter().position(|byte| !is_blank(byte))?;
    let mut end = start;
    loop {
        end += find(&rest[end..], |word| less(word, 0x20) | equal(word, 0x7f))?;
        match rest[end..] {
            [b'\t', ..] => end += 1,
            [b'\r', b'\n', ..] => break,
            _ => return None,
        }
    }
    let value = &rest[start..end];
    let blanks = value.iter().rev().take_while(|byte| is_blank(byte)).count();
    Some(FieldValueSpan {
        start: start as u32,
        len: (value.len() - blanks) as u32,
        line_len: end + 2,
    })
}

fn span(start: usize, len: usize) -> HeadSpan {
    HeadSpan {
        start: start as u32,
        len: len as u32,
    }
}

/// The first byte of which `wanted` sets the highest bit, looking at eight at a time.
#[inline(always)]
fn find(bytes: &[u8], wanted: impl Fn(u64) -> u64) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = wanted(u64::from_le_bytes(*word)) & HIGH_BITS;
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let mut word = [b'a'; 8];
    word[..rest.len()].copy_from_slice(rest);
    let found = wanted(u64::from_le_bytes(word)) & HIGH_BITS;
    (found != 0).then(|| words.len() * 8 + found.trailing_zeros() as usize / 8)
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH_BITS: u64 = ONES << 7;

// The three below are exact for the first byte they find. Behind it a borrow can set more bits;
// nobody looks at those.

/// Bytes below `limit`, which is at most 0x80.
#[inline(always)]
const fn less(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * limit as u64) & !word
}

/// Bytes equal to `byte`.
#[inline(always)]
const fn equal(word: u64, byte: u8) -> u64 {
    less(word ^ (ONES * byte as u64), 1)
}

/// Bytes that are not printable ASCII, from 0x7f on.
#[inline(always)]
const fn high(word: u64) -> u64 {
    word | equal(word, 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::parse::{HeadScanner, Scan, read_head};

    /// What the careful way makes of `input`.
    fn read_carefully(input: &[u8], limits: &HttpLimits) -> Option<(usize, Framing, RequestHead)> {
        let Scan::Complete(len) = HeadScanner::default().scan(input, limits) else {
            return None;
        };
        let mut head = RequestHead::empty();
        let framing = read_head(&input[..len], &mut head, limits).ok()?;
        Some((len, framing, head))
    }

    /// Reads both ways; says whether the quick one did.
    fn compare(input: &[u8], limits: &HttpLimits) -> bool {
        let mut head = RequestHead::empty();
        let Some((len, framing)) = read_quickly(input, &mut head, limits) else {
            assert_eq!(head, RequestHead::empty(), "nothing is left behind");
            return false;
        };
        let text = input.escape_ascii();
        let careful = read_carefully(input, limits);
        assert_eq!(careful, Some((len, framing, head)), "{text}");
        true
    }

    const HEADS: [&str; 8] = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a/b.html?x=1?y HTTP/1.1\r\nHost: localhost:8080\r\nAccept: */*\r\n\r\n",
        "HEAD /a%20b HTTP/1.1\r\nhost:a\r\nUser-Agent: \t x y \t\r\nX-Empty:\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 12\r\n\r\nhello, world",
        "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Text: gr\u{fc}n\ttab\r\n\r\nGET / ",
        "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\nCookie: c=d\r\nRange: bytes=0-1\r\n\r\n",
        "GET /?a HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"abc\"\r\nIf-Modified-Since: x\r\n\r\n",
    ];

    #[test]
    fn usual_heads_are_read_quickly_and_as_the_careful_way_does() {
        for head in HEADS {
            assert!(compare(head.as_bytes(), &HttpLimits::default()), "{head}");
        }
    }

    #[test]
    fn head_used_before_keeps_nothing_of_its_last_request() {
        let old = b"GET / HTTP/1.0\r\nHost: b\r\nCookie: a\r\nCookie: b\r\n\r\n";
        let mut used = RequestHead::empty();
        read_head(old, &mut used, &HttpLimits::default()).unwrap();
        used.clear();
        let mut fresh = RequestHead::empty();
        for head in [&mut used, &mut fresh] {
            assert!(read_quickly(HEADS[0].as_bytes(), head, &HttpLimits::default()).is_some());
        }
        assert_eq!(used, fresh);
    }

    #[test]
    fn unusual_heads_are_left_to_the_careful_way() {
        for head in [
            "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
            "PUT / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            "GET /# HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n",
        ] {
            assert!(!compare(head.as_bytes(), &HttpLimits::default()), "{head}");
        }
    }

    #[test]
    fn every_byte_at_every_place_is_read_alike() {
        let mut quick = 0;
        for head in HEADS {
            for at in 0..head.len() {
                let mut bytes = head.as_bytes().to_vec();
                for byte in 0..=u8::MAX {
                    bytes[at] = byte;
                    quick += usize::from(compare(&bytes, &HttpLimits::default()));
                }
                let (start, end) = head.as_bytes().split_at(at);
                for between in ["\r\n", "\r", " ", ":", "\t", "?", ""] {
                    let shorter = &end[usize::from(between.is_empty())..];
                    compare(
                        &[start, between.as_bytes(), shorter].concat(),
                        &HttpLimits::default(),
                    );
                }
                compare(start, &HttpLimits::default());
            }
        }
        assert!(
            quick > 10_000,
            "most changes within values are harmless: {quick}"
        );
    }

    #[test]
    fn limits_hold_for_both_ways_alike() {
        for head in HEADS {
            for limit in 1..head.len() + 2 {
                let limits = HttpLimits::default;
                compare(
                    head.as_bytes(),
                    &HttpLimits {
                        target_bytes: limit,
                        ..limits()
                    },
                );
                compare(
                    head.as_bytes(),
                    &HttpLimits {
                        head_bytes: limit,
                        ..limits()
                    },
                );
                compare(
                    head.as_bytes(),
                    &HttpLimits {
                        header_count: limit,
                        ..limits()
                    },
                );
            }
        }
    }
}
