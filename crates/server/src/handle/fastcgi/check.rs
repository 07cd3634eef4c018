//! How a program is asked how it is: as by a request, which php-fpm answers itself at its
//! `ping.path`.

use crate::handle::fastcgi::wire::{Piece, RecordReader, RequestHead, WireFault, push_body_end};
use crate::handle::script::head::{CgiHeadProgress, HeadReader};
use crate::handle::upstream::check::CheckProtocol;

pub(super) const CHECK: CheckProtocol = CheckProtocol {
    handler: "fastcgi",
    request,
    status,
};

fn request(path: &str, host: &str) -> Vec<u8> {
    let (name, query) = path.split_once('?').unwrap_or((path, ""));
    let mut head = RequestHead::new(false);
    for (variable, value) in [
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("SERVER_SOFTWARE", "hob"),
        ("SERVER_NAME", host),
        ("REQUEST_METHOD", "GET"),
        ("REQUEST_URI", path),
        ("SCRIPT_NAME", name),
        ("SCRIPT_FILENAME", name),
        ("QUERY_STRING", query),
    ] {
        head.push(variable.as_bytes(), value.as_bytes());
    }
    let mut bytes = head.finish();
    push_body_end(&mut bytes);
    bytes
}

fn status(came: &[u8]) -> Result<Option<u16>, String> {
    let (mut reader, mut left, mut output) = (RecordReader::default(), came, Vec::new());
    loop {
        match reader.next(&mut left) {
            Ok(Some(Piece::Output(bytes))) => output.extend_from_slice(bytes),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(WireFault::Malformed(text) | WireFault::Refused(text)) => {
                return Err(text.to_owned());
            }
        }
    }
    match HeadReader::new(usize::MAX).read(&output) {
        CgiHeadProgress::Head(head, _) => Ok(Some(head.status)),
        CgiHeadProgress::Refused(bad) => Err(bad.to_string()),
        CgiHeadProgress::NeedMore => Ok(None),
    }
}
