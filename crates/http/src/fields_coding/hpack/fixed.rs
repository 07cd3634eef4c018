//! The static table (RFC 7541 appendix A).

use crate::fields_coding::RequestFieldName;
use crate::head::Known;

/// Name, value, and what the name means in a request.
//= rfc7541#appendix-A
pub(super) const ENTRIES: [(&str, &str, RequestFieldName); 61] = [
    (":authority", "", RequestFieldName::Authority),
    (":method", "GET", RequestFieldName::Method),
    (":method", "POST", RequestFieldName::Method),
    (":path", "/", RequestFieldName::Path),
    (":path", "/index.html", RequestFieldName::Path),
    (":scheme", "http", RequestFieldName::Scheme),
    (":scheme", "https", RequestFieldName::Scheme),
    (":status", "200", RequestFieldName::Unlawful),
    (":status", "204", RequestFieldName::Unlawful),
    (":status", "206", RequestFieldName::Unlawful),
    (":status", "304", RequestFieldName::Unlawful),
    (":status", "400", RequestFieldName::Unlawful),
    (":status", "404", RequestFieldName::Unlawful),
    (":status", "500", RequestFieldName::Unlawful),
    ("accept-charset", "", RequestFieldName::Field(None)),
    (
        "accept-encoding",
        "gzip, deflate",
        RequestFieldName::Field(Some(Known::AcceptEncoding)),
    ),
    ("accept-language", "", RequestFieldName::Field(None)),
    ("accept-ranges", "", RequestFieldName::Field(None)),
    ("accept", "", RequestFieldName::Field(Some(Known::Accept))),
    (
        "access-control-allow-origin",
        "",
        RequestFieldName::Field(None),
    ),
    ("age", "", RequestFieldName::Field(None)),
    ("allow", "", RequestFieldName::Field(None)),
    (
        "authorization",
        "",
        RequestFieldName::Field(Some(Known::Authorization)),
    ),
    ("cache-control", "", RequestFieldName::Field(None)),
    ("content-disposition", "", RequestFieldName::Field(None)),
    ("content-encoding", "", RequestFieldName::Field(None)),
    ("content-language", "", RequestFieldName::Field(None)),
    (
        "content-length",
        "",
        RequestFieldName::Field(Some(Known::ContentLength)),
    ),
    ("content-location", "", RequestFieldName::Field(None)),
    ("content-range", "", RequestFieldName::Field(None)),
    (
        "content-type",
        "",
        RequestFieldName::Field(Some(Known::ContentType)),
    ),
    ("cookie", "", RequestFieldName::Field(Some(Known::Cookie))),
    ("date", "", RequestFieldName::Field(None)),
    ("etag", "", RequestFieldName::Field(None)),
    ("expect", "", RequestFieldName::Field(Some(Known::Expect))),
    ("expires", "", RequestFieldName::Field(None)),
    ("from", "", RequestFieldName::Field(None)),
    ("host", "", RequestFieldName::Field(Some(Known::Host))),
    (
        "if-match",
        "",
        RequestFieldName::Field(Some(Known::IfMatch)),
    ),
    (
        "if-modified-since",
        "",
        RequestFieldName::Field(Some(Known::IfModifiedSince)),
    ),
    (
        "if-none-match",
        "",
        RequestFieldName::Field(Some(Known::IfNoneMatch)),
    ),
    (
        "if-range",
        "",
        RequestFieldName::Field(Some(Known::IfRange)),
    ),
    (
        "if-unmodified-since",
        "",
        RequestFieldName::Field(Some(Known::IfUnmodifiedSince)),
    ),
    ("last-modified", "", RequestFieldName::Field(None)),
    ("link", "", RequestFieldName::Field(None)),
    ("location", "", RequestFieldName::Field(None)),
    ("max-forwards", "", RequestFieldName::Field(None)),
    ("proxy-authenticate", "", RequestFieldName::Field(None)),
    ("proxy-authorization", "", RequestFieldName::Field(None)),
    ("range", "", RequestFieldName::Field(Some(Known::Range))),
    ("referer", "", RequestFieldName::Field(Some(Known::Referer))),
    ("refresh", "", RequestFieldName::Field(None)),
    ("retry-after", "", RequestFieldName::Field(None)),
    ("server", "", RequestFieldName::Field(None)),
    ("set-cookie", "", RequestFieldName::Field(None)),
    (
        "strict-transport-security",
        "",
        RequestFieldName::Field(None),
    ),
    ("transfer-encoding", "", RequestFieldName::Unlawful),
    (
        "user-agent",
        "",
        RequestFieldName::Field(Some(Known::UserAgent)),
    ),
    ("vary", "", RequestFieldName::Field(None)),
    ("via", "", RequestFieldName::Field(None)),
    ("www-authenticate", "", RequestFieldName::Field(None)),
];

/// The index of an entry with this name, in any case, that an answer's fields may have.
pub(super) fn index_of(name: &[u8]) -> Option<usize> {
    let first = name.first()?.to_ascii_lowercase();
    let last = name.last()?.to_ascii_lowercase();
    // Length and ends leave at most one candidate.
    let index = match (name.len(), first, last) {
        (3, b'a', _) => 21,
        (3, b'v', _) => 60,
        (4, b'd', _) => 33,
        (4, b'e', _) => 34,
        (4, b'v', _) => 59,
        (4, b'l', _) => 45,
        (5, b'a', _) => 22,
        (6, b's', _) => 54,
        (7, b'e', _) => 36,
        (7, b'r', b'h') => 52,
        (8, b'l', _) => 46,
        (10, b's', _) => 55,
        (11, b'r', _) => 53,
        (12, b'c', _) => 31,
        (13, b'a', b's') => 18,
        (13, b'c', b'l') => 24,
        (13, b'c', b'e') => 30,
        (13, b'l', _) => 44,
        (14, b'c', _) => 28,
        (16, b'c', b'g') => 26,
        (16, b'c', b'e') => 27,
        (16, b'c', b'n') => 29,
        (16, b'w', _) => 61,
        (18, b'p', _) => 48,
        (19, b'c', _) => 25,
        (25, b's', _) => 56,
        (27, b'a', _) => 20,
        _ => return None,
    };
    ENTRIES[index - 1]
        .0
        .as_bytes()
        .eq_ignore_ascii_case(name)
        .then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_reading_them_says() {
        for (name, _, meaning) in ENTRIES {
            assert_eq!(RequestFieldName::of(name.as_bytes()), meaning, "{name}");
        }
    }

    #[test]
    fn names_of_answers_are_found_in_any_case() {
        let mut found = 0;
        for (name, _, _) in ENTRIES {
            if let Some(index) = index_of(name.to_ascii_uppercase().as_bytes()) {
                assert_eq!(ENTRIES[index - 1].0, name);
                found += 1;
            }
        }
        assert_eq!(found, 27);
        assert_eq!(index_of(b"x-a"), None);
        assert_eq!(index_of(b""), None);
    }
}
