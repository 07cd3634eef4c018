//! Whom a request is for: the four forms of a target, and `Host` (RFC 9112 section 3.2).

use hob_trace::Protocol;

use crate::h1::parse::span_in;
use crate::head::{HeadSpan, Known, RequestHead};
use crate::host::is_host;
use crate::refusal::Refusal;

/// Sorts out the four forms of a target.
//= rfc9112#3.2
pub(crate) fn read_target(head: &mut RequestHead) -> Result<(), Refusal> {
    let target = head.target.of(&head.bytes);
    let start = head.target.start;
    if target.contains(&b'#') {
        return Err(Refusal::bad("the request target has a fragment"));
    }
    let is_connect = head.method.of(&head.bytes) == b"CONNECT";
    match target.first() {
        Some(b'/') if !is_connect => {
            let (path, query) = split_query(target, start);
            (head.path, head.query) = (path, query);
            Ok(())
        }
        Some(b'*') if target.len() == 1 && head.method.of(&head.bytes) == b"OPTIONS" => {
            head.path = head.target;
            Ok(())
        }
        Some(_) if is_connect => {
            let digits = target.iter().rev().take_while(|b| b.is_ascii_digit());
            let port_len = digits.count();
            // An IPv6 address without a port ends with its bracket, so digits after a colon are a
            // port.
            let has_port = port_len > 0
                && target.len() > port_len
                && target[target.len() - port_len - 1] == b':';
            if !is_host(target) || !has_port {
                return Err(Refusal::bad("CONNECT needs host:port"));
            }
            head.host = head.target;
            Ok(())
        }
        Some(_) => read_absolute(head),
        None => Err(Refusal::bad("the request target is empty")),
    }
}

/// `http://host/path?query`, as clients send it to a proxy.
//= rfc9112#3.2.2
fn read_absolute(head: &mut RequestHead) -> Result<(), Refusal> {
    let target = head.target.of(&head.bytes);
    let scheme_len = match () {
        () if starts_with_no_case(target, b"http://") => 7,
        () if starts_with_no_case(target, b"https://") => 8,
        () => {
            return Err(Refusal::bad(
                "the request target is neither a path nor a URL",
            ));
        }
    };
    let rest = &target[scheme_len..];
    let authority_len = rest
        .iter()
        .position(|&byte| byte == b'/' || byte == b'?')
        .unwrap_or(rest.len());
    if authority_len == 0 || !is_host(&rest[..authority_len]) {
        return Err(Refusal::bad("the host in the request target is malformed"));
    }
    let authority_start = head.target.start + scheme_len as u32;
    let after = &rest[authority_len..];
    let (path, query) = split_query(after, authority_start + authority_len as u32);
    head.host = HeadSpan {
        start: authority_start,
        len: authority_len as u32,
    };
    (head.path, head.query) = (path, query);
    if path.len == 0 {
        head.path = HeadSpan {
            start: head.bytes.len() as u32,
            len: 1,
        };
        head.bytes.push(b'/');
    }
    Ok(())
}

fn starts_with_no_case(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start)
}

fn split_query(text: &[u8], start: u32) -> (HeadSpan, Option<HeadSpan>) {
    // Targets are short: a plain loop is done before a vector search has begun.
    match text.iter().position(|&byte| byte == b'?') {
        None => (
            HeadSpan {
                start,
                len: text.len() as u32,
            },
            None,
        ),
        Some(at) => {
            let query = HeadSpan {
                start: start + at as u32 + 1,
                len: (text.len() - at - 1) as u32,
            };
            (
                HeadSpan {
                    start,
                    len: at as u32,
                },
                Some(query),
            )
        }
    }
}

/// Exactly one valid `Host` in HTTP/1.1, at most one in 1.0. A target with a host of its own names
/// the same one: else whoever decides by one of them is passed by with the other.
//= rfc9112#3.2
pub(crate) fn read_host(head: &mut RequestHead) -> Result<(), Refusal> {
    if head.is_repeated(Known::Host) {
        return Err(Refusal::bad("there is more than one Host field"));
    }
    match head.value(Known::Host) {
        None if head.protocol == Protocol::Http10 => Ok(()),
        None => Err(Refusal::bad("there is no Host field")),
        Some(host) if !host.is_empty() && !is_host(host) => {
            Err(Refusal::bad("the Host field is malformed"))
        }
        Some(host) => {
            if head.host.len == 0 {
                head.host = span_in(&head.bytes, host);
            } else if !is_same_host(head, host) {
                return Err(Refusal::bad(
                    "Host and the host in the request target differ",
                ));
            }
            Ok(())
        }
    }
}

/// True when the target's host is the one of the field; the port its scheme has anyway may stand in
/// one of them only.
fn is_same_host(head: &RequestHead, host: &[u8]) -> bool {
    let target = head.target.of(&head.bytes);
    let own = head.host.of(&head.bytes);
    let port: &[u8] = match () {
        () if starts_with_no_case(target, b"http://") => b":80",
        () if starts_with_no_case(target, b"https://") => b":443",
        // CONNECT, which always has one.
        () => &own[memchr::memrchr(b':', own).unwrap_or(own.len())..],
    };
    let without_port =
        |text: &'_ [u8]| text.len() - if text.ends_with(port) { port.len() } else { 0 };
    own[..without_port(own)].eq_ignore_ascii_case(&host[..without_port(host)])
}
