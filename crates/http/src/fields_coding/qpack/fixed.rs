//! The static table (RFC 9204 appendix A).

use crate::fields_coding::Name;
use crate::head::Known;

/// Name, value, and what the name means in a request.
//= rfc9204#appendix-A
#[rustfmt::skip]
pub(super) const ENTRIES: [(&str, &str, Name); 99] = [
    (":authority", "", Name::Authority),
    (":path", "/", Name::Path),
    ("age", "0", Name::Field(None)),
    ("content-disposition", "", Name::Field(None)),
    ("content-length", "0", Name::Field(Some(Known::ContentLength))),
    ("cookie", "", Name::Field(Some(Known::Cookie))),
    ("date", "", Name::Field(None)),
    ("etag", "", Name::Field(None)),
    ("if-modified-since", "", Name::Field(Some(Known::IfModifiedSince))),
    ("if-none-match", "", Name::Field(Some(Known::IfNoneMatch))),
    ("last-modified", "", Name::Field(None)),
    ("link", "", Name::Field(None)),
    ("location", "", Name::Field(None)),
    ("referer", "", Name::Field(Some(Known::Referer))),
    ("set-cookie", "", Name::Field(None)),
    (":method", "CONNECT", Name::Method),
    (":method", "DELETE", Name::Method),
    (":method", "GET", Name::Method),
    (":method", "HEAD", Name::Method),
    (":method", "OPTIONS", Name::Method),
    (":method", "POST", Name::Method),
    (":method", "PUT", Name::Method),
    (":scheme", "http", Name::Scheme),
    (":scheme", "https", Name::Scheme),
    (":status", "103", Name::Unlawful),
    (":status", "200", Name::Unlawful),
    (":status", "304", Name::Unlawful),
    (":status", "404", Name::Unlawful),
    (":status", "503", Name::Unlawful),
    ("accept", "*/*", Name::Field(Some(Known::Accept))),
    ("accept", "application/dns-message", Name::Field(Some(Known::Accept))),
    ("accept-encoding", "gzip, deflate, br", Name::Field(Some(Known::AcceptEncoding))),
    ("accept-ranges", "bytes", Name::Field(None)),
    ("access-control-allow-headers", "cache-control", Name::Field(None)),
    ("access-control-allow-headers", "content-type", Name::Field(None)),
    ("access-control-allow-origin", "*", Name::Field(None)),
    ("cache-control", "max-age=0", Name::Field(None)),
    ("cache-control", "max-age=2592000", Name::Field(None)),
    ("cache-control", "max-age=604800", Name::Field(None)),
    ("cache-control", "no-cache", Name::Field(None)),
    ("cache-control", "no-store", Name::Field(None)),
    ("cache-control", "public, max-age=31536000", Name::Field(None)),
    ("content-encoding", "br", Name::Field(None)),
    ("content-encoding", "gzip", Name::Field(None)),
    ("content-type", "application/dns-message", Name::Field(Some(Known::ContentType))),
    ("content-type", "application/javascript", Name::Field(Some(Known::ContentType))),
    ("content-type", "application/json", Name::Field(Some(Known::ContentType))),
    ("content-type", "application/x-www-form-urlencoded", Name::Field(Some(Known::ContentType))),
    ("content-type", "image/gif", Name::Field(Some(Known::ContentType))),
    ("content-type", "image/jpeg", Name::Field(Some(Known::ContentType))),
    ("content-type", "image/png", Name::Field(Some(Known::ContentType))),
    ("content-type", "text/css", Name::Field(Some(Known::ContentType))),
    ("content-type", "text/html; charset=utf-8", Name::Field(Some(Known::ContentType))),
    ("content-type", "text/plain", Name::Field(Some(Known::ContentType))),
    ("content-type", "text/plain;charset=utf-8", Name::Field(Some(Known::ContentType))),
    ("range", "bytes=0-", Name::Field(Some(Known::Range))),
    ("strict-transport-security", "max-age=31536000", Name::Field(None)),
    ("strict-transport-security", "max-age=31536000; includesubdomains", Name::Field(None)),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload", Name::Field(None)),
    ("vary", "accept-encoding", Name::Field(None)),
    ("vary", "origin", Name::Field(None)),
    ("x-content-type-options", "nosniff", Name::Field(None)),
    ("x-xss-protection", "1; mode=block", Name::Field(None)),
    (":status", "100", Name::Unlawful),
    (":status", "204", Name::Unlawful),
    (":status", "206", Name::Unlawful),
    (":status", "302", Name::Unlawful),
    (":status", "400", Name::Unlawful),
    (":status", "403", Name::Unlawful),
    (":status", "421", Name::Unlawful),
    (":status", "425", Name::Unlawful),
    (":status", "500", Name::Unlawful),
    ("accept-language", "", Name::Field(None)),
    ("access-control-allow-credentials", "FALSE", Name::Field(None)),
    ("access-control-allow-credentials", "TRUE", Name::Field(None)),
    ("access-control-allow-headers", "*", Name::Field(None)),
    ("access-control-allow-methods", "get", Name::Field(None)),
    ("access-control-allow-methods", "get, post, options", Name::Field(None)),
    ("access-control-allow-methods", "options", Name::Field(None)),
    ("access-control-expose-headers", "content-length", Name::Field(None)),
    ("access-control-request-headers", "content-type", Name::Field(None)),
    ("access-control-request-method", "get", Name::Field(None)),
    ("access-control-request-method", "post", Name::Field(None)),
    ("alt-svc", "clear", Name::Field(None)),
    ("authorization", "", Name::Field(Some(Known::Authorization))),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'", Name::Field(None)),
    ("early-data", "1", Name::Field(None)),
    ("expect-ct", "", Name::Field(None)),
    ("forwarded", "", Name::Field(None)),
    ("if-range", "", Name::Field(Some(Known::IfRange))),
    ("origin", "", Name::Field(None)),
    ("purpose", "prefetch", Name::Field(None)),
    ("server", "", Name::Field(None)),
    ("timing-allow-origin", "*", Name::Field(None)),
    ("upgrade-insecure-requests", "1", Name::Field(None)),
    ("user-agent", "", Name::Field(Some(Known::UserAgent))),
    ("x-forwarded-for", "", Name::Field(None)),
    ("x-frame-options", "deny", Name::Field(None)),
    ("x-frame-options", "sameorigin", Name::Field(None)),
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
            assert_eq!(Name::of(name.as_bytes()), meaning, "{name}");
        }
    }
}
