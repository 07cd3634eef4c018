//! Variables of a request over SCGI: who reads them as the specification says gets those that were
//! written, each as it was, or none of them was sent.
#![no_main]

use hob_server::handle::scgi::wire::ScgiHead;
use hob_server::handle::script::variables::VariableSink;
use libfuzzer_sys::fuzz_target;

/// Reads a netstring of names and values, each of which a NUL byte ends.
fn read(head: &[u8]) -> Vec<(&[u8], &[u8])> {
    let colon = head.iter().position(|byte| *byte == b':').unwrap();
    let digits = std::str::from_utf8(&head[..colon]).unwrap();
    assert!(digits.len() == 1 || !digits.starts_with('0'));
    let (variables, end) = head[colon + 1..].split_at(digits.parse().unwrap());
    assert_eq!(end, b",");
    let mut parts = variables.split(|byte| *byte == 0);
    let mut read = Vec::new();
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        read.push((name, value));
    }
    read
}

fuzz_target!(|input: &[u8]| {
    let mut head = ScgiHead::new(input.len() as u64);
    let length = input.len().to_string();
    let mut written = vec![(&b"CONTENT_LENGTH"[..], length.as_bytes()), (b"SCGI", b"1")];
    // Lines of `NAME=value`; without `=` there is no such variable.
    for line in input.split(|byte| *byte == b'\n') {
        let equals = line.iter().position(|byte| *byte == b'=');
        let name = &line[..equals.unwrap_or(line.len())];
        let value = equals.map(|at| &line[at + 1..]);
        head.add(
            |out| out.extend_from_slice(name),
            |out| {
                out.extend_from_slice(value.unwrap_or(b"left out"));
                value.is_some()
            },
        );
        if let Some(value) = value
            && ![&b"CONTENT_LENGTH"[..], b"SCGI"].contains(&name)
        {
            written.push((name, value));
        }
    }
    let has_nul = written
        .iter()
        .any(|(name, value)| name.contains(&0) || value.contains(&0));
    match head.finish() {
        Ok(head) => assert_eq!(read(&head), written),
        Err(_) => assert!(has_nul),
    }
});
