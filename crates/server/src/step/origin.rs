//! Whether a browser sends a request for a page elsewhere.
//!
//! It can be made to ask here by any page it shows. Such a request has the page's own origin
//! (`Origin`, RFC 6454 section 7) and a word on how that and this host relate (`Sec-Fetch-Site`,
//! Fetch Metadata Request Headers). No page can change these; programs that are no browsers send
//! neither.

use hob_http::Request;

/// Why the request is one of a page elsewhere; `None` where it is not.
pub fn foreign_page(request: &Request) -> Option<&'static str> {
    let head = request.head();
    let site = head.values(b"sec-fetch-site").next();
    if matches!(site, Some(b"cross-site" | b"same-site")) {
        return Some("another site's page asks for this");
    }
    let origin = head.values(b"origin").next()?;
    (!is_own_origin(request, origin)).then_some("another origin's page asks for this")
}

/// `http://HOST` or `https://HOST` with the host that was asked for. Something in front may speak
/// TLS for us; that we do means no clear text.
fn is_own_origin(request: &Request, origin: &[u8]) -> bool {
    let host = request.head().host();
    let is_https = origin.strip_prefix(b"https://");
    let is_http = origin.strip_prefix(b"http://");
    let place = match request.facts().tls {
        Some(_) => is_https,
        None => is_https.or(is_http),
    };
    place.is_some_and(|place| place.eq_ignore_ascii_case(host))
}
