//! How another server is asked how it is.

use std::sync::Arc;

use crate::handle::proxy::wire::{AnswerReader, Asked, Piece};
use crate::handle::upstream::check::{CheckProtocol, ChecksMembers};

/// Checks over HTTP.
#[derive(Debug)]
struct HttpCheck;

pub(super) fn protocol() -> CheckProtocol {
    CheckProtocol {
        handler: "proxy",
        asks: Arc::new(HttpCheck),
    }
}

impl ChecksMembers for HttpCheck {
    fn request(&self, path: &str, host: &str) -> Vec<u8> {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: hob\r\nAccept: */*\r\n\
             Connection: close\r\n\r\n"
        );
        head.into_bytes()
    }

    fn status(&self, came: &[u8]) -> Result<Option<u16>, String> {
        let asked = Asked {
            is_head: false,
            tunnel: false,
        };
        let (mut reader, mut left) = (AnswerReader::new(asked, usize::MAX), came);
        loop {
            match reader.next(&mut left) {
                Ok(Some(Piece::Interim(..))) => {}
                Ok(Some(Piece::Head(head))) => return Ok(Some(head.status)),
                Ok(_) => return Ok(None),
                Err(fault) => return Err(format!("what it sent is no answer: {}", fault.0)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_that_of_the_answer_and_not_of_interim_ones() {
        assert_eq!(HttpCheck.status(b"HTTP/1.1 200 OK\r\nA: b\r\n"), Ok(None));
        let whole = b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 503 No\r\n\r\nno";
        assert_eq!(HttpCheck.status(whole), Ok(Some(503)));
        assert!(HttpCheck.status(b"220 mail ready\r\n\r\n").is_err());
    }
}
