//! The static table (RFC 7541 appendix A).

use crate::fields_coding::Name;
use crate::head::Known;

/// Name, value, and what the name means in a request.
//= rfc7541#appendix-A
pub(super) const ENTRIES: [(&str, &str, Name); 61] = [
    (":authority", "", Name::Authority),
    (":method", "GET", Name::Method),
    (":method", "POST", Name::Method),
    (":path", "/", Name::Path),
    (":path", "/index.html", Name::Path),
    (":scheme", "http", Name::Scheme),
    (":scheme", "https", Name::Scheme),
    (":status", "200", Name::Unlawful),
    (":status", "204", Name::Unlawful),
    (":status", "206", Name::Unlawful),
    (":status", "304", Name::Unlawful),
    (":status", "400", Name::Unlawful),
    (":status", "404", Name::Unlawful),
    (":status", "500", Name::Unlawful),
    ("accept-charset", "", Name::Field(None)),
    (
        "accept-encoding",
        "gzip, deflate",
        Name::Field(Some(Known::AcceptEncoding)),
    ),
    ("accept-language", "", Name::Field(None)),
    ("accept-ranges", "", Name::Field(None)),
    ("accept", "", Name::Field(Some(Known::Accept))),
    ("access-control-allow-origin", "", Name::Field(None)),
    ("age", "", Name::Field(None)),
    ("allow", "", Name::Field(None)),
    ("authorization", "", Name::Field(Some(Known::Authorization))),
    ("cache-control", "", Name::Field(None)),
    ("content-disposition", "", Name::Field(None)),
    ("content-encoding", "", Name::Field(None)),
    ("content-language", "", Name::Field(None)),
    (
        "content-length",
        "",
        Name::Field(Some(Known::ContentLength)),
    ),
    ("content-location", "", Name::Field(None)),
    ("content-range", "", Name::Field(None)),
    ("content-type", "", Name::Field(Some(Known::ContentType))),
    ("cookie", "", Name::Field(Some(Known::Cookie))),
    ("date", "", Name::Field(None)),
    ("etag", "", Name::Field(None)),
    ("expect", "", Name::Field(Some(Known::Expect))),
    ("expires", "", Name::Field(None)),
    ("from", "", Name::Field(None)),
    ("host", "", Name::Field(Some(Known::Host))),
    ("if-match", "", Name::Field(Some(Known::IfMatch))),
    (
        "if-modified-since",
        "",
        Name::Field(Some(Known::IfModifiedSince)),
    ),
    ("if-none-match", "", Name::Field(Some(Known::IfNoneMatch))),
    ("if-range", "", Name::Field(Some(Known::IfRange))),
    (
        "if-unmodified-since",
        "",
        Name::Field(Some(Known::IfUnmodifiedSince)),
    ),
    ("last-modified", "", Name::Field(None)),
    ("link", "", Name::Field(None)),
    ("location", "", Name::Field(None)),
    ("max-forwards", "", Name::Field(None)),
    ("proxy-authenticate", "", Name::Field(None)),
    ("proxy-authorization", "", Name::Field(None)),
    ("range", "", Name::Field(Some(Known::Range))),
    ("referer", "", Name::Field(Some(Known::Referer))),
    ("refresh", "", Name::Field(None)),
    ("retry-after", "", Name::Field(None)),
    ("server", "", Name::Field(None)),
    ("set-cookie", "", Name::Field(None)),
    ("strict-transport-security", "", Name::Field(None)),
    ("transfer-encoding", "", Name::Unlawful),
    ("user-agent", "", Name::Field(Some(Known::UserAgent))),
    ("vary", "", Name::Field(None)),
    ("via", "", Name::Field(None)),
    ("www-authenticate", "", Name::Field(None)),
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
            assert_eq!(Name::of(name.as_bytes()), meaning, "{name}");
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
