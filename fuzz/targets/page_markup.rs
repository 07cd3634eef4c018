//! Markup: parts between bytes 1 are the author's and data in turn. What is written for data has
//! nothing in it that begins or ends a tag, a value or a comment.
#![no_main]

use hob_page::escape::{EscapeMode, HtmlPlace};
use hob_page::value::Marks;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut place = HtmlPlace::new(EscapeMode::Context);
    let mut out = Vec::new();
    for (index, part) in input.split(|byte| *byte == 1).enumerate() {
        out.clear();
        if index % 2 == 0 {
            place.author(part, &mut out);
            assert!(out.len() <= part.len() * 3 + 2);
            continue;
        }
        let is_written = place.data(part, Marks::NONE, &mut out).is_ok();
        assert!(!out.iter().any(|byte| b"<>\"'".contains(byte)));
        assert!(is_written || out.is_empty() || out == b"#" || out == b" ");
    }
});
