//! Values of a query where they stand: the first line is the query, the second a name, the rest a
//! text. What is found is what decoding all of it finds.
#![no_main]

use hob_server::route::percent::decode_pair;
use hob_server::step::query::value;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (query, name, text) = (line(), line(), line());
    let found = value(query, name);
    let pairs = query.split(|byte| *byte == b'&').map(|pair| {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let mut half = || decoded(halves.next().unwrap_or_default());
        (half(), half())
    });
    let expected = { pairs }.find(|(own, _)| own == name);
    let expected = expected.map(|(_, value)| value);
    let bytes = found.map(|found| found.bytes().collect::<Vec<u8>>());
    assert_eq!(bytes, expected);
    if let (Some(found), Some(expected)) = (found, expected) {
        assert!(found.plain().is_none_or(|plain| plain == expected));
        let mut parts = expected.windows(text.len().max(1));
        assert_eq!(
            found.has(text),
            text.is_empty() || parts.any(|part| part == text)
        );
    }
});

fn decoded(text: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(&byte) = text.get(at) {
        let pair = text.get(at + 1..at + 3).and_then(decode_pair);
        let (decoded, len) = match (byte, pair) {
            (b'%', Some(decoded)) => (decoded, 3),
            (b'+', _) => (b' ', 1),
            (other, _) => (other, 1),
        };
        out.push(decoded);
        at += len;
    }
    out
}
