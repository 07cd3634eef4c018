//! Whether a request came from the pages themselves: the name it asks for, the page it comes from.
//!
//! A browser can be made to ask here by any page it shows (`hob_server::step::origin`). Such a
//! request has the name that the browser was given (`Host`), too, which no page can change.

use std::net::IpAddr;

use hob_http::Request;
use hob_server::step::origin::foreign_page;

/// Why a request is refused: status and words.
pub(super) type Refusal = (u16, &'static str);

/// The listener is asked for by a name of its own.
pub(super) fn check_name(request: &Request, names: &[String]) -> Result<(), Refusal> {
    let refusal = (
        421,
        "these pages are not called so here; `admin.names` lists their names",
    );
    let host = request.head().host();
    let host = std::str::from_utf8(host).map_err(|_| refusal)?;
    let name = without_port(host).to_ascii_lowercase();
    let local = request.facts().local.map(|local| local.ip().to_canonical());
    let is_loopback = local.is_some_and(|ip| ip.is_loopback());
    let is_own = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
        // A page at an address is at that address: it cannot be another one's.
        Ok(address) => Some(address) == local || (is_loopback && address.is_loopback()),
        Err(_) => (is_loopback && name == "localhost") || names.contains(&name),
    };
    match is_own {
        true => Ok(()),
        false => Err(refusal),
    }
}

/// The request comes from no page elsewhere.
pub(super) fn check_page(request: &Request) -> Result<(), Refusal> {
    foreign_page(request).map_or(Ok(()), |reason| Err((403, reason)))
}

/// A request that changes something comes from our own pages for certain: it has their origin, and
/// a field that no form can send.
pub(super) fn check_change(request: &Request) -> Result<(), Refusal> {
    let head = request.head();
    let mut origins = head.values(b"origin");
    let is_one = origins.next().is_some() && origins.next().is_none();
    if !is_one {
        return Err((403, "changes need the field `Origin`"));
    }
    check_page(request)?;
    match head.values(b"x-hob-admin").next() {
        Some(b"1") => Ok(()),
        _ => Err((403, "changes need the field `X-Hob-Admin: 1`")),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            let is_bare_v6 = name.contains(':') && !name.ends_with(']');
            if is_bare_v6 { host } else { name }
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_taken_off_and_an_address_of_six_stays_whole() {
        for (host, name) in [
            ("a:80", "a"),
            ("a", "a"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("::1", "::1"),
            ("a:b", "a:b"),
            ("", ""),
        ] {
            assert_eq!(without_port(host), name, "{host}");
        }
    }
}
