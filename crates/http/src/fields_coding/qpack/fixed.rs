//! The static table (RFC 9204 appendix A).

use crate::fields_coding::RequestFieldName;
use crate::head::Known;

/// Name, value, and what the name means in a request.
//= rfc9204#appendix-A
#[rustfmt::skip]
pub(super) const ENTRIES: [(&str, &str, RequestFieldName); 99] = [
    (":authority", "", RequestFieldName::Authority),
    (":path", "/", RequestFieldName::Path),
    ("age", "0", RequestFieldName::Field(None)),
    ("content-disposition", "", RequestFieldName::Field(None)),
    ("content-length", "0", RequestFieldName::Field(Some(Known::ContentLength))),
    ("cookie", "", RequestFieldName::Field(Some(Known::Cookie))),
    ("date", "", RequestFieldName::Field(None)),
    ("etag", "", RequestFieldName::Field(None)),
    ("if-modified-since", "", RequestFieldName::Field(Some(Known::IfModifiedSince))),
    ("if-none-match", "", RequestFieldName::Field(Some(Known::IfNoneMatch))),
    ("last-modified", "", RequestFieldName::Field(None)),
    ("link", "", RequestFieldName::Field(None)),
    ("location", "", RequestFieldName::Field(None)),
    ("referer", "", RequestFieldName::Field(Some(Known::Referer))),
    ("set-cookie", "", RequestFieldName::Field(None)),
    (":method", "CONNECT", RequestFieldName::Method),
    (":method", "DELETE", RequestFieldName::Method),
    (":method", "GET", RequestFieldName::Method),
    (":method", "HEAD", RequestFieldName::Method),
    (":method", "OPTIONS", RequestFieldName::Method),
    (":method", "POST", RequestFieldName::Method),
    (":method", "PUT", RequestFieldName::Method),
    (":scheme", "http", RequestFieldName::Scheme),
    (":scheme", "https", RequestFieldName::Scheme),
    (":status", "103", RequestFieldName::Unlawful),
    (":status", "200", RequestFieldName::Unlawful),
    (":status", "304", RequestFieldName::Unlawful),
    (":status", "404", RequestFieldName::Unlawful),
    (":status", "503", RequestFieldName::Unlawful),
    ("accept", "*/*", RequestFieldName::Field(Some(Known::Accept))),
    ("accept", "application/dns-message", RequestFieldName::Field(Some(Known::Accept))),
    ("accept-encoding", "gzip, deflate, br", RequestFieldName::Field(Some(Known::AcceptEncoding))),
    ("accept-ranges", "bytes", RequestFieldName::Field(None)),
    ("access-control-allow-headers", "cache-control", RequestFieldName::Field(None)),
    ("access-control-allow-headers", "content-type", RequestFieldName::Field(None)),
    ("access-control-allow-origin", "*", RequestFieldName::Field(None)),
    ("cache-control", "max-age=0", RequestFieldName::Field(None)),
    ("cache-control", "max-age=2592000", RequestFieldName::Field(None)),
    ("cache-control", "max-age=604800", RequestFieldName::Field(None)),
    ("cache-control", "no-cache", RequestFieldName::Field(None)),
    ("cache-control", "no-store", RequestFieldName::Field(None)),
    ("cache-control", "public, max-age=31536000", RequestFieldName::Field(None)),
    ("content-encoding", "br", RequestFieldName::Field(None)),
    ("content-encoding", "gzip", RequestFieldName::Field(None)),
    ("content-type", "application/dns-message", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "application/javascript", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "application/json", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "application/x-www-form-urlencoded", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "image/gif", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "image/jpeg", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "image/png", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "text/css", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "text/html; charset=utf-8", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "text/plain", RequestFieldName::Field(Some(Known::ContentType))),
    ("content-type", "text/plain;charset=utf-8", RequestFieldName::Field(Some(Known::ContentType))),
    ("range", "bytes=0-", RequestFieldName::Field(Some(Known::Range))),
    ("strict-transport-security", "max-age=31536000", RequestFieldName::Field(None)),
    ("strict-transport-security", "max-age=31536000; includesubdomains", RequestFieldName::Field(None)),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload", RequestFieldName::Field(None)),
    ("vary", "accept-encoding", RequestFieldName::Field(None)),
    ("vary", "origin", RequestFieldName::Field(None)),
    ("x-content-type-options", "nosniff", RequestFieldName::Field(None)),
    ("x-xss-protection", "1; mode=block", RequestFieldName::Field(None)),
    (":status", "100", RequestFieldName::Unlawful),
    (":status", "204", RequestFieldName::Unlawful),
    (":status", "206", RequestFieldName::Unlawful),
    (":status", "302", RequestFieldName::Unlawful),
    (":status", "400", RequestFieldName::Unlawful),
    (":status", "403", RequestFieldName::Unlawful),
    (":status", "421", RequestFieldName::Unlawful),
    (":status", "425", RequestFieldName::Unlawful),
    (":status", "500", RequestFieldName::Unlawful),
    ("accept-language", "", RequestFieldName::Field(None)),
    ("access-control-allow-credentials", "FALSE", RequestFieldName::Field(None)),
    ("access-control-allow-credentials", "TRUE", RequestFieldName::Field(None)),
    ("access-control-allow-headers", "*", RequestFieldName::Field(None)),
    ("access-control-allow-methods", "get", RequestFieldName::Field(None)),
    ("access-control-allow-methods", "get, post, options", RequestFieldName::Field(None)),
    ("access-control-allow-methods", "options", RequestFieldName::Field(None)),
    ("access-control-expose-headers", "content-length", RequestFieldName::Field(None)),
    ("access-control-request-headers", "content-type", RequestFieldName::Field(None)),
    ("access-control-request-method", "get", RequestFieldName::Field(None)),
    ("access-control-request-method", "post", RequestFieldName::Field(None)),
    ("alt-svc", "clear", RequestFieldName::Field(None)),
    ("authorization", "", RequestFieldName::Field(Some(Known::Authorization))),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'", RequestFieldName::Field(None)),
    ("early-data", "1", RequestFieldName::Field(None)),
    ("expect-ct", "", RequestFieldName::Field(None)),
    ("forwarded", "", RequestFieldName::Field(None)),
    ("if-range", "", RequestFieldName::Field(Some(Known::IfRange))),
    ("origin", "", RequestFieldName::Field(None)),
    ("purpose", "prefetch", RequestFieldName::Field(None)),
    ("server", "", RequestFieldName::Field(None)),
    ("timing-allow-origin", "*", RequestFieldName::Field(None)),
    ("upgrade-insecure-requests", "1", RequestFieldName::Field(None)),
    ("user-agent", "", RequestFieldName::Field(Some(Known::UserAgent))),
    ("x-forwarded-for", "", RequestFieldName::Field(None)),
    ("x-frame-options", "deny", RequestFieldName::Field(None)),
    ("x-frame-options", "sameorigin", RequestFieldName::Field(None)),
];

/// The entries with a name, in lower case. Names that answers do not have are left out.
pub(super) fn places_of(name: &[u8]) -> &'static [u8] {
    match name {
        b"age" => &[2],
        b"content-disposition" => &[3],
        b"content-length" => &[4],
        b"date" => &[6],
        b"etag" => &[7],
        b"last-modified" => &[10],
        b"link" => &[11],
        b"location" => &[12],
        b"set-cookie" => &[14],
        b":status" => &[24, 25, 26, 27, 28, 63, 64, 65, 66, 67, 68, 69, 70, 71],
        b"accept-ranges" => &[32],
        b"access-control-allow-headers" => &[33, 34, 75],
        b"access-control-allow-origin" => &[35],
        b"cache-control" => &[36, 37, 38, 39, 40, 41],
        b"content-encoding" => &[42, 43],
        b"content-type" => &[44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54],
        b"strict-transport-security" => &[56, 57, 58],
        b"vary" => &[59, 60],
        b"x-content-type-options" => &[61],
        b"x-xss-protection" => &[62],
        b"access-control-allow-credentials" => &[73, 74],
        b"access-control-allow-methods" => &[76, 77, 78],
        b"access-control-expose-headers" => &[79],
        b"alt-svc" => &[83],
        b"content-security-policy" => &[85],
        b"expect-ct" => &[87],
        b"server" => &[92],
        b"timing-allow-origin" => &[93],
        b"x-frame-options" => &[97, 98],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_name() {
        for (place, (name, _, _)) in ENTRIES.iter().enumerate() {
            let places = places_of(name.as_bytes());
            let is_there = places.contains(&(place as u8));
            assert!(is_there || places.is_empty(), "{name}");
        }
    }

    #[test]
    fn meaning_of_a_name_is_what_it_would_be_as_text() {
        for (name, _, meaning) in ENTRIES {
            assert_eq!(RequestFieldName::of(name.as_bytes()), meaning, "{name}");
        }
    }
}
