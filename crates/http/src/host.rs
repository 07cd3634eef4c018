//! What may stand in `Host` and `:authority`.

use std::net::Ipv6Addr;

use crate::head;

/// Bytes of a registered name.
const HOST_BYTES: [bool; 256] = head::letters_digits_and(b"-._~%!$&'()*+;=");

/// True for `name`, `name:port`, `1.2.3.4`, `[v6]`, `[v6]:port`; no user part.
//= rfc3986#3.2.2
pub fn is_host(host: &[u8]) -> bool {
    let (name_is_good, port) = if let Some(rest) = host.strip_prefix(b"[") {
        let Some(end) = memchr::memchr(b']', rest) else {
            return false;
        };
        let inner = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        (inner.parse::<Ipv6Addr>().is_ok(), &rest[end + 1..])
    } else {
        let end = host.iter().position(|&byte| !HOST_BYTES[byte as usize]);
        let end = end.unwrap_or(host.len());
        (end > 0, &host[end..])
    };
    let port_is_good = match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    name_is_good && port_is_good
}
