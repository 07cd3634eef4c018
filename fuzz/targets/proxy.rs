//! What another HTTP server sends: in one piece and byte by byte it is the same, no more comes out
//! than went in, and nothing is passed on that a client could take for framing.
#![no_main]

use hob_http::Fields;
use hob_server::handle::proxy::wire::{AnswerReader, Asked, Piece};
use libfuzzer_sys::fuzz_target;

const HEAD_BYTES_MAX: usize = 4096;

#[derive(Debug, Default, PartialEq)]
struct Told {
    heads: Vec<(u16, Vec<u8>)>,
    announced: Option<u64>,
    body: Vec<u8>,
    trailers: Vec<u8>,
    is_over: bool,
    is_refused: bool,
}

fn check(fields: &Fields) -> Vec<u8> {
    for (name, value) in fields.iter() {
        for framing in [
            "content-length",
            "transfer-encoding",
            "connection",
            "upgrade",
        ] {
            assert!(!name.eq_ignore_ascii_case(framing.as_bytes()));
        }
        assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
    }
    fields.lines().to_vec()
}

fn told(asked: Asked, bytes: &[u8], step: usize) -> Told {
    let mut reader = AnswerReader::new(asked, HEAD_BYTES_MAX);
    let mut told = Told::default();
    for mut input in bytes.chunks(step) {
        loop {
            match reader.next(&mut input) {
                Ok(Some(Piece::Interim(status, fields))) => {
                    told.heads.push((status, check(&fields)));
                }
                Ok(Some(Piece::Head(head))) => {
                    told.announced = head.body_bytes;
                    told.heads.push((head.status, check(&head.fields)));
                }
                Ok(Some(Piece::Body(piece))) => told.body.extend_from_slice(piece),
                Ok(Some(Piece::Trailers(fields))) => told.trailers = check(&fields),
                Ok(None) => break,
                Err(_) => {
                    told.is_refused = true;
                    return told;
                }
            }
        }
        assert!(input.is_empty() || reader.is_over());
    }
    told.is_over = reader.is_over();
    told
}

fuzz_target!(|bytes: &[u8]| {
    for (is_head, tunnel) in [(false, false), (true, false), (false, true)] {
        let asked = Asked { is_head, tunnel };
        let whole = told(asked, bytes, bytes.len().max(1));
        let mut pieces = told(asked, bytes, 1);
        // Where it is refused, less may have come out before.
        if whole.is_refused {
            pieces.body.truncate(whole.body.len());
        }
        assert_eq!(whole, pieces);
        assert!(whole.body.len() <= bytes.len());
        if let (Some(announced), true, false) = (whole.announced, whole.is_over, is_head) {
            let status = whole.heads.last().map_or(0, |(status, _)| *status);
            let has_body = !matches!(status, 204 | 304);
            assert!(!has_body || whole.body.len() as u64 == announced);
        }
    }
});
