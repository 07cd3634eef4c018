//! Request heads: nothing panics, bytes that come at once are read as those that come in pieces,
//! and the quick way reads as the careful one.
//!
//! The first byte says how the rest is cut.
#![no_main]

use hob_http::RequestHead;
use hob_http::h1::parse::{HeadScanner, Scan, read_head};
use hob_http::h1::quick::read_quickly;
use hob_http::is_host;
use hob_http::limits::HttpLimits;
use libfuzzer_sys::fuzz_target;

/// Small, so that inputs reach them.
fn limits() -> HttpLimits {
    HttpLimits {
        target_bytes: 64,
        head_bytes: 512,
        header_count: 8,
        ..HttpLimits::default()
    }
}

/// What comes of `input` when it is seen first up to each of `lengths`, and where the head begins.
fn scan(input: &[u8], lengths: impl Iterator<Item = usize>) -> (usize, Scan) {
    let limits = limits();
    let mut scanner = HeadScanner::default();
    let mut start = 0;
    for length in lengths.chain([input.len()]) {
        loop {
            match scanner.scan(&input[start..length.max(start)], &limits) {
                Scan::Incomplete => break,
                Scan::Blank(len) => start += len,
                found => return (start, found),
            }
        }
    }
    (start, Scan::Incomplete)
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, input)) = data.split_first() else {
        return;
    };
    let whole = scan(input, std::iter::empty());
    let pieces = (0..input.len()).step_by(usize::from(step) % 16 + 1);
    assert_eq!(scan(input, pieces), whole);
    let mut quick = RequestHead::empty();
    if let Some((len, framing)) = read_quickly(input, &mut quick, &limits()) {
        let mut careful = RequestHead::empty();
        assert_eq!(whole, (0, Scan::Complete(len)));
        assert_eq!(
            read_head(&input[..len], &mut careful, &limits()),
            Ok(framing)
        );
        assert_eq!(quick, careful);
    }
    let (start, Scan::Complete(len)) = whole else {
        return;
    };
    let bytes = &input[start..start + len];
    assert!(bytes.ends_with(b"\r\n\r\n"));
    let mut head = RequestHead::empty();
    if read_head(bytes, &mut head, &limits()).is_err() {
        return;
    }
    assert!(head.target().len() <= limits().target_bytes);
    assert!(head.fields().count() <= limits().header_count);
    assert!(head.host().is_empty() || is_host(head.host()));
    assert!(head.path().is_empty() || matches!(head.path()[0], b'/' | b'*'));
    let is_clean = |bytes: &[u8]| bytes.iter().all(|b| !matches!(b, 0..=8 | 10..=31 | 127));
    assert!(!head.target().contains(&b' ') && is_clean(head.target()));
    for (name, value) in head.fields() {
        assert!(!name.is_empty() && !name.contains(&b' ') && is_clean(name) && is_clean(value));
    }
});
