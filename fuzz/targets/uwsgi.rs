//! Variables of a request over the protocol of uWSGI: who reads them as its documentation says gets
//! those that were written, each as it was, or none of them was sent.
#![no_main]

use hob_server::handle::script::variables::VariableSink;
use hob_server::handle::uwsgi::wire::UwsgiHead;
use libfuzzer_sys::fuzz_target;

/// Takes a part off that stands behind its length.
fn part<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let (len, rest) = bytes.split_at(2);
    let (part, rest) = rest.split_at(u16::from_le_bytes([len[0], len[1]]).into());
    *bytes = rest;
    part
}

fuzz_target!(|input: &[u8]| {
    let (modifiers, lines) = input.split_at(input.len().min(2));
    let modifier = |at| modifiers.get(at).copied().unwrap_or_default();
    let mut head = UwsgiHead::new(modifier(0), modifier(1));
    let mut written = Vec::new();
    // Lines of `NAME=value`; without `=` there is no such variable, with `*` it is long.
    for line in lines.split(|byte| *byte == b'\n') {
        let equals = line.iter().position(|byte| *byte == b'=');
        let name = &line[..equals.unwrap_or(line.len())];
        let value = equals.map(|at| match &line[at + 1..] {
            [b'*', value @ ..] => value.repeat(5000),
            value => value.to_vec(),
        });
        head.add(
            |out| out.extend_from_slice(name),
            |out| {
                out.extend_from_slice(value.as_deref().unwrap_or(b"left out"));
                value.is_some()
            },
        );
        written.extend(value.map(|value| (name, value)));
    }
    let bytes: usize = written
        .iter()
        .map(|(name, value)| 4 + name.len() + value.len())
        .sum();
    let Ok(head) = head.finish() else {
        assert!(bytes > 0xffff);
        return;
    };
    assert_eq!((head[0], head[3]), (modifier(0), modifier(1)));
    assert_eq!(usize::from(u16::from_le_bytes([head[1], head[2]])), bytes);
    let mut rest = &head[4..];
    for (name, value) in written {
        assert_eq!((part(&mut rest), part(&mut rest)), (name, &value[..]));
    }
    assert!(rest.is_empty());
});
