//! Field blocks: random ones are read or refused, and what is written comes back, whatever the
//! tables hold.
//!
//! The first byte chooses: blocks to be decoded, each behind its length; or fields to be encoded.
#![no_main]

use hob_http::fields_coding::hpack::{Encoder, HpackDecoder};
use hob_http::fields_coding::huffman;
use libfuzzer_sys::fuzz_target;

fn decode(mut input: &[u8]) {
    let mut decoder = HpackDecoder::default();
    while let Some((&len, rest)) = input.split_first() {
        let (block, rest) = rest.split_at(rest.len().min(usize::from(len)));
        input = rest;
        let mut buffer = Vec::new();
        let mut count = 0;
        let decoded = decoder.decode(block, &mut buffer, |buffer, field| {
            let (name, value) = field.texts(buffer);
            count += 1;
            assert_eq!(name.len() + value.len(), buffer.len());
            buffer.clear();
        });
        assert!(count <= block.len());
        if decoded.is_err() {
            return;
        }
    }
}

fn round_trip(input: &[u8]) {
    let (mut encoder, mut decoder) = (Encoder::default(), HpackDecoder::default());
    let mut rest = input;
    while let [size, count, after @ ..] = rest {
        rest = after;
        if size & 1 == 1 {
            encoder.resize(usize::from(*size) * 20);
        }
        let mut block = Vec::new();
        let mut sent = Vec::new();
        encoder.begin(200, &mut block);
        for _ in 0..count % 16 {
            let [name_len, value_len, after @ ..] = rest else {
                break;
            };
            // A name in lower case, and not one that speaks of the connection.
            let name = format!("x-{}", name_len % 32).into_bytes();
            let (value, after) = after.split_at(after.len().min(usize::from(*value_len)));
            rest = after;
            encoder.field(&name, value, &mut block);
            sent.push((name, value.to_vec()));
        }
        let mut seen = Vec::new();
        let decoded = decoder.decode(&block, &mut Vec::new(), |buffer, field| {
            let (name, value) = field.texts(buffer);
            seen.push((name.to_vec(), value.to_vec()));
        });
        assert!(decoded.is_ok());
        assert_eq!(seen[1..], sent);
    }
    let mut coded = Vec::new();
    huffman::encode(input, &mut coded);
    assert_eq!(coded.len(), huffman::encoded_len(input));
    let mut back = Vec::new();
    assert!(huffman::decode(&coded, &mut back).is_ok());
    assert_eq!(back, input);
}

fuzz_target!(|data: &[u8]| {
    match data.split_first() {
        Some((choice, input)) if choice & 1 == 0 => decode(input),
        Some((_, input)) => round_trip(input),
        None => {}
    }
});
