//! Cookies of requests.

use hob_http::Request;

/// The value of a request's cookie (RFC 6265 section 5.4), the first of this name.
pub fn cookie<'a>(request: &'a Request, name: &[u8]) -> Option<&'a [u8]> {
    let fields = request.head().values(b"Cookie");
    let mut pairs = fields.flat_map(|field| field.split(|byte| *byte == b';'));
    pairs.find_map(|pair| {
        let value = pair.trim_ascii().strip_prefix(name)?;
        value.strip_prefix(b"=")
    })
}
