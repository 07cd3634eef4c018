//! Range fields: parts lie within the representation, do not touch, and are not too many.
#![no_main]

use hob_server::step::range::{ByteRange, Multipart, PARTS_MAX, Selection, select};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u64, &[u8])| {
    let (length, range) = input;
    let parts = match select(range, length) {
        Selection::Whole | Selection::Unsatisfiable => return,
        Selection::One(part) => vec![part],
        Selection::Many(parts) => {
            assert!((2..=PARTS_MAX).contains(&parts.len()));
            parts
        }
    };
    let mut sorted: Vec<ByteRange> = parts.clone();
    sorted.sort_unstable_by_key(|part| part.start);
    assert!(
        sorted
            .iter()
            .all(|part| part.start < part.end && part.end <= length)
    );
    assert!(sorted.windows(2).all(|pair| pair[0].end < pair[1].start));
    let multipart = Multipart::new(length, b"text/plain", length);
    assert!(multipart.body_bytes(&parts) >= parts.iter().map(|part| part.len()).sum());
});
