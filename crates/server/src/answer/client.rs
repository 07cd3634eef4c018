//! Where a request comes from, where balancers and proxies stand in front: they say it in a field,
//! and only those that the listener trusts are believed.
//!
//! Each adds the address it was connected from at the end of the list, so the last one that is
//! none of theirs is the client: what stands before that, anybody can have written.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use hob_config::ClientTrust;
use hob_http::{Request, ToldOfClient};

/// Believes what a field says of a request's client, as far as it comes from who is trusted. Where
/// the connection began with a header that names a client, that is where it comes from.
pub(super) fn believe(trust: &ClientTrust, request: &Request) {
    let Some(field) = &trust.field else { return };
    let facts = request.facts();
    let said = match trust.peers.has_peer(facts.peer.map(|peer| peer.ip())) {
        true => said((trust, field), request),
        false => Said::default(),
    };
    let before = facts.told.as_ref().and_then(|told| told.is_secure);
    let told = ToldOfClient {
        is_secure: said.is_secure.or(before),
        field: Rc::from(&**field),
        variables: None,
    };
    request.believe(said.client, told);
}

/// What is said of a client.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    client: Option<IpAddr>,
    is_secure: Option<bool>,
}

fn said((trust, field): (&ClientTrust, &str), request: &Request) -> Said {
    let head = request.head();
    let lines: Vec<&[u8]> = head.values(field.as_bytes()).collect();
    let said = of_list((trust, field), &lines.join(&b", "[..]));
    if field != "x-forwarded-for" {
        return said;
    }
    // Who is nearest has the last word.
    let last = head.values(b"x-forwarded-proto").last();
    let scheme = last.and_then(|value| value.rsplit(|byte| *byte == b',').next());
    Said {
        is_secure: scheme.map(|scheme| scheme.trim_ascii().eq_ignore_ascii_case(b"https")),
        ..said
    }
}

/// The last element that none of the trusted is.
fn of_list((trust, field): (&ClientTrust, &str), list: &[u8]) -> Said {
    let mut last = Said::default();
    for element in elements(list).into_iter().rev() {
        let found = match field {
            "forwarded" => of_forwarded(element),
            _ => Said {
                client: address(element),
                is_secure: None,
            },
        };
        let Some(client) = found.client else {
            // Who is behind it says no address: what stands before is not of the trusted.
            return Said {
                is_secure: found.is_secure.or(last.is_secure),
                ..last
            };
        };
        last = found;
        if !trust.peers.has(client) {
            return last;
        }
    }
    last
}

/// `for=192.0.2.60;proto=http;by=203.0.113.43` (RFC 7239 section 4).
fn of_forwarded(element: &[u8]) -> Said {
    let mut said = Said::default();
    for pair in split_unquoted(element, b';') {
        let Some(equals) = memchr::memchr(b'=', pair) else {
            continue;
        };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        let value = value
            .strip_prefix(b"\"")
            .and_then(|value| value.strip_suffix(b"\""))
            .unwrap_or(value);
        if name.eq_ignore_ascii_case(b"for") {
            said.client = address(value);
        } else if name.eq_ignore_ascii_case(b"proto") {
            said.is_secure = Some(value.eq_ignore_ascii_case(b"https"));
        }
    }
    said
}

/// An address, with or without a port.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address.ip().to_canonical());
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    inner
        .parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical())
}

fn elements(list: &[u8]) -> Vec<&[u8]> {
    let all = split_unquoted(list, b',')
        .into_iter()
        .map(<[u8]>::trim_ascii);
    all.filter(|element| !element.is_empty()).collect()
}

/// The parts between a separator that stands outside quotes.
fn split_unquoted(text: &[u8], separator: u8) -> Vec<&[u8]> {
    let (mut parts, mut begin, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if byte == separator && !is_quoted => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use hob_config::{AddressRange, ClientSet};

    use super::*;

    fn said(field: &str, list: &str) -> Said {
        let trust = ClientTrust {
            peers: ClientSet::new(vec![AddressRange::parse("10.0.0.0/8").unwrap()], false),
            field: None,
        };
        of_list((&trust, field), list.as_bytes())
    }

    fn client(field: &str, list: &str) -> Option<String> {
        let said = said(field, list);
        said.client.map(|client| client.to_string())
    }

    #[test]
    fn last_address_that_is_not_of_the_trusted_is_the_client() {
        let client = |list| client("x-forwarded-for", list);
        for (list, found) in [
            ("192.0.2.1", "192.0.2.1"),
            ("6.6.6.6, 192.0.2.1", "192.0.2.1"),
            ("6.6.6.6, 192.0.2.1, 10.0.0.2,10.0.0.3", "192.0.2.1"),
            ("10.0.0.9, 10.0.0.2", "10.0.0.9"),
            ("192.0.2.1:4711", "192.0.2.1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("2001:db8::1, 10.0.0.1", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("192.0.2.1, unknown, 10.0.0.2", "10.0.0.2"),
            ("192.0.2.1,, ", "192.0.2.1"),
        ] {
            assert_eq!(client(list).as_deref(), Some(found), "{list}");
        }
        for none in ["", "unknown", "<script>", "192.0.2.1, ?", ","] {
            assert_eq!(client(none), None, "{none}");
        }
    }

    #[test]
    fn forwarded_says_the_scheme_too() {
        let said = |list: &str| {
            let Said { client, is_secure } = said("forwarded", list);
            (client.map(|client| client.to_string()), is_secure)
        };
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(
            said(
                "for=6.6.6.6, For=\"[2001:db8::1]:47\";proto=https;by=_x, for=10.0.0.1;proto=http"
            ),
            (is("2001:db8::1"), Some(true))
        );
        assert_eq!(
            said("for=192.0.2.1;PROTO=\"http\""),
            (is("192.0.2.1"), Some(false))
        );
        assert_eq!(said("for=\"_a,b;c\";proto=https"), (None, Some(true)));
        assert_eq!(said("proto=https"), (None, Some(true)));
        assert_eq!(said("for"), (None, None));
    }
}
