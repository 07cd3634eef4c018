//! Chunked bodies: nothing panics, and bytes that come at once are read as those that come in
//! pieces.
//!
//! The first byte says how the rest is cut.
#![no_main]

use hob_http::Bytes;
use hob_http::Refusal;
use hob_http::h1::chunked::{ChunkedDecoder, Decoded};
use hob_http::limits::HttpLimits;
use libfuzzer_sys::fuzz_target;

#[derive(Debug, PartialEq)]
enum End {
    Open,
    Trailers(Vec<(Bytes, Bytes)>),
    Refused(Refusal),
}

/// The data, how it ended, and how many bytes were used when it did.
fn decode(input: &[u8], step: usize) -> (Vec<u8>, End, usize) {
    // Small, so that inputs reach them.
    let limits = HttpLimits {
        head_bytes: 128,
        header_count: 4,
        ..HttpLimits::default()
    };
    let mut decoder = ChunkedDecoder::default();
    let mut data = Vec::new();
    let mut used = 0;
    let mut length = 0;
    loop {
        length = (length + step).min(input.len());
        loop {
            let (count, decoded) = decoder.read(&input[used..length], &limits);
            assert!(count <= length - used);
            used += count;
            match decoded {
                Decoded::NeedMore => break,
                Decoded::Data(len) => {
                    assert!(len > 0 && len <= count);
                    data.extend_from_slice(&input[used - len..used]);
                }
                Decoded::End => {
                    let end = match decoder.trailers() {
                        Ok(trailers) => End::Trailers(trailers),
                        Err(refusal) => End::Refused(refusal),
                    };
                    return (data, end, used);
                }
                Decoded::Refused(refusal) => return (data, End::Refused(refusal), 0),
            }
        }
        if length == input.len() {
            return (data, End::Open, used);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, input)) = data.split_first() else {
        return;
    };
    let whole = decode(input, input.len().max(1));
    assert_eq!(decode(input, usize::from(step) % 16 + 1), whole);
    if let (_, End::Trailers(trailers), _) = whole {
        for (name, value) in trailers {
            assert!(!name.is_empty() && !name.contains(&b' '));
            assert!(value.iter().all(|b| !matches!(b, 0..=8 | 10..=31 | 127)));
        }
    }
});
