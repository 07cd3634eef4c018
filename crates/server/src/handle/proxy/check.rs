//! How another server is asked how it is.

use std::sync::Arc;

use hob_http::h2::client::{Http2Client, Http2ClientEvent};
use hob_http::tls::peer::PeerVersions;

use crate::handle::proxy::wire::{AnswerReader, Asked, Piece};
use crate::handle::upstream::check::{CheckProtocol, ChecksMembers, HEAD_BYTES_MAX};
use crate::handle::upstream::http2::HttpVersions;

/// Checks over HTTP.
#[derive(Debug)]
struct HttpCheck(HttpVersions);

pub(crate) fn protocol(versions: HttpVersions) -> CheckProtocol {
    CheckProtocol {
        handler: "proxy",
        asks: Arc::new(HttpCheck(versions)),
    }
}

impl ChecksMembers for HttpCheck {
    fn versions(&self) -> PeerVersions {
        self.0.offered()
    }

    fn request(&self, path: &str, host: &str, is_h2: bool) -> Vec<u8> {
        if self.is_http2(is_h2) {
            return asked_over_http2(path, host).1;
        }
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: hob\r\nAccept: */*\r\n\
             Connection: close\r\n\r\n"
        );
        head.into_bytes()
    }

    fn status(&self, came: &[u8], is_h2: bool) -> Result<Option<u16>, String> {
        if self.is_http2(is_h2) {
            return status_over_http2(came);
        }
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

impl HttpCheck {
    fn is_http2(&self, is_h2: bool) -> bool {
        is_h2 || self.0 == HttpVersions::Http2
    }
}

/// A connection with its first request, and what is sent for that.
fn asked_over_http2(path: &str, host: &str) -> (Http2Client, Vec<u8>) {
    let mut out = Vec::new();
    let mut client = Http2Client::new(HEAD_BYTES_MAX, 0, &mut out);
    client.open((false, true), &mut out, |block| {
        let target = (host.as_bytes(), path.as_bytes());
        block.target((b"GET", None), false, target);
        block.field(b"user-agent", b"hob");
        block.field(b"accept", b"*/*");
    });
    (client, out)
}

fn status_over_http2(came: &[u8]) -> Result<Option<u16>, String> {
    let (mut client, mut out) = asked_over_http2("/", "");
    let mut used = 0;
    loop {
        let (count, event) = client.read(&came[used..], &mut out, 0);
        used += count;
        match event {
            Http2ClientEvent::NeedMore => return Ok(None),
            Http2ClientEvent::Head(_, head) => return Ok(Some(head.status)),
            Http2ClientEvent::Over(error) => return Err(error.reason.to_owned()),
            Http2ClientEvent::Broken(_, fault) => {
                return Err(format!("it gave no answer: {fault:?}"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_that_of_the_answer_and_not_of_interim_ones() {
        let check = HttpCheck(HttpVersions::Http1);
        let status = |came| check.status(came, false);
        assert_eq!(status(b"HTTP/1.1 200 OK\r\nA: b\r\n"), Ok(None));
        let whole = b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 503 No\r\n\r\nno";
        assert_eq!(status(whole), Ok(Some(503)));
        assert!(status(b"220 mail ready\r\n\r\n").is_err());
        assert!(HttpCheck(HttpVersions::Http2).status(whole, false).is_err());
    }
}
