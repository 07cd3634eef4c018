//! What a FastCGI program sends: in one piece and byte by byte it is the same, and nothing is read
//! past what there is.
#![no_main]

use hob_server::handle::fastcgi::wire::{Piece, RecordReader, WireFault};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Default, PartialEq)]
struct Told {
    output: Vec<u8>,
    error: Vec<u8>,
    code: Option<u32>,
    fault: Option<WireFault>,
}

fn told(bytes: &[u8], step: usize) -> Told {
    let mut reader = RecordReader::default();
    let mut told = Told::default();
    for mut part in bytes.chunks(step) {
        loop {
            match reader.next(&mut part) {
                Ok(Some(Piece::Output(bytes))) => told.output.extend_from_slice(bytes),
                Ok(Some(Piece::Error(bytes))) => told.error.extend_from_slice(bytes),
                Ok(Some(Piece::End(code))) => told.code = Some(code),
                Ok(None) => break,
                Err(fault) => {
                    told.fault = Some(fault);
                    return told;
                }
            }
        }
        assert!(part.is_empty());
    }
    assert_eq!(reader.is_over(), told.code.is_some());
    told
}

fuzz_target!(|bytes: &[u8]| {
    let whole = told(bytes, bytes.len().max(1));
    assert_eq!(whole, told(bytes, 1));
    assert!(whole.output.len() + whole.error.len() <= bytes.len());
});
