//! Field sections: random ones are read or refused, and what is written comes back.
//!
//! The first byte chooses: a section to be decoded, or fields to be encoded.
#![no_main]

use hob_http::fields_coding::qpack;
use libfuzzer_sys::fuzz_target;

fn decode(section: &[u8]) {
    let mut buffer = Vec::new();
    let mut count = 0;
    let _ = qpack::decode(section, &mut buffer, |buffer, field| {
        let (name, value) = field.texts(buffer);
        count += 1;
        assert_eq!(name.len() + value.len(), buffer.len());
        buffer.clear();
    });
    assert!(count <= section.len());
}

fn round_trip(input: &[u8]) {
    let mut section = Vec::new();
    let mut sent = Vec::new();
    qpack::push_prefix(&mut section);
    let mut rest = input;
    while let [name_len, value_len, after @ ..] = rest {
        // A name in lower case, and not one that speaks of the connection.
        let name = match name_len {
            0..64 => "content-type".to_owned(),
            64..128 => "set-cookie".to_owned(),
            _ => format!("x-{}", "n".repeat(usize::from(name_len % 100))),
        };
        let (value, after) = after.split_at(after.len().min(usize::from(*value_len)));
        rest = after;
        qpack::push_field(name.as_bytes(), value, &mut section);
        sent.push((name.into_bytes(), value.to_vec()));
    }
    let mut seen = Vec::new();
    let decoded = qpack::decode(&section, &mut Vec::new(), |buffer, field| {
        let (name, value) = field.texts(buffer);
        seen.push((name.to_vec(), value.to_vec()));
    });
    assert!(decoded.is_ok());
    assert_eq!(seen, sent);
}

fuzz_target!(|data: &[u8]| {
    match data.split_first() {
        Some((choice, input)) if choice & 1 == 0 => decode(input),
        Some((_, input)) => round_trip(input),
        None => {}
    }
});
