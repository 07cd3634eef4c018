//! Cookies of requests.

use hob_http::Request;

/// The value of a request's cookie, the first of this name.
pub fn cookie<'r>(request: &'r Request, name: &[u8]) -> Option<&'r [u8]> {
    cookies(request, name).next()
}

/// The values of all cookies of a name (RFC 6265 section 5.4), in the order sent.
pub fn cookies<'r>(request: &'r Request, name: &[u8]) -> impl Iterator<Item = &'r [u8]> {
    let fields = request.head().values(b"Cookie");
    let pairs = fields.flat_map(|field| field.split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| pair.trim_ascii().strip_prefix(name)?.strip_prefix(b"="))
}
