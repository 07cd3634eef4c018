//! Lines: however a program's output is cut into reads, the same answers and callouts come out of
//! it; and what is written for a program can be read back.
#![no_main]

use hob_ipc::lines::{self, OutputEvent, SentinelScanner, Sentinels, VariableFormat};
use libfuzzer_sys::fuzz_target;

fn sentinels() -> Sentinels {
    Sentinels::from_random([0; 36])
}

/// Output joined, with marks where answers end and callouts stand; and if it was malformed.
fn scan(output: &[u8], step: usize) -> (Vec<u8>, bool) {
    let mut scanner = SentinelScanner::new(sentinels());
    let mut told = Vec::new();
    for piece in output.chunks(step) {
        scanner.space()[..piece.len()].copy_from_slice(piece);
        scanner.filled(piece.len());
        loop {
            match scanner.next_event() {
                Ok(Some(OutputEvent::Output(bytes))) => told.extend_from_slice(bytes),
                Ok(Some(OutputEvent::End)) => told.extend_from_slice(b"<end>"),
                Ok(Some(OutputEvent::Callout { text, wants_reply })) => {
                    told.push(u8::from(wants_reply));
                    told.extend_from_slice(text);
                }
                Ok(None) => break,
                Err(_) => return (Vec::new(), true),
            }
        }
    }
    let is_bad = scanner.finish().is_err();
    if !is_bad {
        told.extend_from_slice(scanner.rest());
    }
    (told, is_bad)
}

fuzz_target!(|input: &[u8]| {
    // One byte stands for a sentinel, so that the fuzzer finds them.
    let known = sentinels();
    let mut output = Vec::new();
    for &byte in input {
        match byte {
            1..=3 => {
                output.extend_from_slice(known.environment()[usize::from(byte) - 1].1.as_bytes())
            }
            byte => output.push(byte),
        }
    }
    let whole = scan(&output, 8192);
    for step in [1, 3, 29] {
        let cut = scan(&output, step);
        assert_eq!(cut.1, whole.1);
        assert!(cut.1 || cut.0 == whole.0);
    }
    let pairs: Vec<(&[u8], &[u8])> = input
        .split(|&byte| byte == b';')
        .filter_map(|pair| {
            let at = pair.iter().position(|&byte| byte == b'=')?;
            Some((&pair[..at], &pair[at + 1..]))
        })
        .collect();
    let mut out = Vec::new();
    if lines::append(&mut out, VariableFormat::Record, pairs.iter().copied()).is_ok() {
        let text = &out[2..out.len() - 1];
        assert_eq!(
            text.iter().filter(|&&byte| byte == b'\n').count(),
            pairs.len()
        );
    }
});
