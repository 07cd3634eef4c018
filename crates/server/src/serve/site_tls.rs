//! Whether a site answers over the connection a request came by: what the site wants of TLS,
//! against what the handshake gave.

use std::io::Write;

use hob_http::{Request, Response};
use hob_trace::Fault;

use crate::handle::plain;
use crate::route::template::without_port;
use crate::serve::sites::{ServedSite, Sites};

/// The answer in the place of the site's, when it does not answer here.
pub(crate) fn check(sites: &Sites, site: &ServedSite, request: &Request) -> Option<Response> {
    match &request.facts().tls {
        Some(tls) if tls.rule == site.client_rule => None,
        // The handshake was made under the rule of another site; a new connection will do.
        //= rfc9110#15.5.20
        Some(_) => {
            let reason = "the host has another rule for certificates of clients than the handshake";
            Some(refuse(request, 421, reason))
        }
        None => refuse_clear(sites, site, request, is_clear(request)),
    }
}

/// The same for a request that came without TLS; in clear text through a network, perhaps.
pub(crate) fn refuse_clear(
    sites: &Sites,
    site: &ServedSite,
    request: &Request,
    is_clear: bool,
) -> Option<Response> {
    if site.https_only && is_clear {
        return Some(to_https(sites, request));
    }
    site.requires_client.then(|| {
        let reason = "the site requires a certificate of clients, and this is clear text";
        refuse(request, 403, reason)
    })
}

/// What came over a Unix socket came from this machine, unless who passed it on says otherwise.
fn is_clear(request: &Request) -> bool {
    let facts = request.facts();
    facts.peer.is_some() && !facts.is_secure()
}

fn refuse(request: &Request, status: u16, reason: &'static str) -> Response {
    let mut record = request.record_mut();
    record.fault = Fault::Client;
    record.reason = Some(reason);
    plain::error(status)
}

/// Sends the client to the same address over TLS.
fn to_https(sites: &Sites, request: &Request) -> Response {
    let head = request.head();
    let host = without_port(head.host());
    if host.is_empty() {
        return refuse(request, 400, "no host to be sent to TLS for");
    }
    let mut location = b"https://".to_vec();
    location.extend_from_slice(host);
    if sites.https_port != 443 {
        // Writing to a Vec cannot fail.
        let _ = write!(location, ":{}", sites.https_port);
    }
    let path = if head.path() == b"*" {
        b"/"
    } else {
        head.path()
    };
    location.extend_from_slice(path);
    if let Some(query) = head.query() {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    plain::move_for_good(head.method(), &location)
}
