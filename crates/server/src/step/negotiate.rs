//! What a client accepts: content codings, HTML or JSON for a listing, and CSV for rows.

use hob_page::sql_page::SqlPageFormat;

use super::weights::{Quality, weighted};
use hob_config::Coding;

/// The coding an answer is sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Negotiated {
    /// As it is.
    Identity,
    /// Coded.
    Coded(Coding),
    /// The client refuses it as it is, and every coding there is (406).
    NotAcceptable,
}

/// The form of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingForm {
    /// For people.
    Html,
    /// For programs.
    Json,
}

/// Chooses among the codings that are available, the server's favourite first.
///
/// The client's highest quality wins, of equals the server's favourite, and any coding over
/// `identity` of the same quality. A client that says nothing gets the answer as it is.
//= rfc9110#12.5.3
pub fn coding(accept_encoding: Option<&[u8]>, available: &[Coding]) -> Negotiated {
    let Some(list) = accept_encoding else {
        return Negotiated::Identity;
    };
    let wishes = Wishes::read(list);
    let mut best = None;
    for &coding in available {
        let quality = wishes.of(coding);
        if quality.is_acceptable() && best.is_none_or(|(best, _)| quality > best) {
            best = Some((quality, coding));
        }
    }
    match (best, wishes.identity) {
        (Some((quality, _)), Some(identity)) if identity > quality => Negotiated::Identity,
        (Some((_, coding)), _) => Negotiated::Coded(coding),
        (None, _) if wishes.accepts_identity() => Negotiated::Identity,
        (None, _) => Negotiated::NotAcceptable,
    }
}

/// Chooses the form of a listing: JSON when the client likes it better than HTML.
//= rfc9110#12.5.1
pub fn listing_form(accept: Option<&[u8]>) -> ListingForm {
    liked(
        accept,
        [(HTML, ListingForm::Html), (JSON, ListingForm::Json)],
    )
}

/// Chooses what the result of a page of SQL is written as.
//= rfc9110#12.5.1
pub fn sql_page_format(accept: Option<&[u8]>) -> SqlPageFormat {
    liked(
        accept,
        [
            (HTML, SqlPageFormat::Html),
            (JSON, SqlPageFormat::Json),
            ((b"text/csv", b"text/*"), SqlPageFormat::Csv),
        ],
    )
}

/// A media type, and the range of its kind.
type MediaRanges = (&'static [u8], &'static [u8]);
const HTML: MediaRanges = (b"text/html", b"text/*");
const JSON: MediaRanges = (b"application/json", b"application/*");

/// The one that the client likes best; of those it likes alike, and where it says nothing, the
/// first.
fn liked<T: Copy, const N: usize>(accept: Option<&[u8]>, all: [(MediaRanges, T); N]) -> T {
    let quality = |(exact, group)| accept.map(|list| media_quality(list, exact, group));
    let mut best = (quality(all[0].0), all[0].1);
    for (ranges, one) in &all[1..] {
        let quality = quality(*ranges);
        if quality > best.0 {
            best = (quality, *one);
        }
    }
    best.1
}

/// The name of a coding in `Accept-Encoding` and `Content-Encoding`.
pub const fn coding_name(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => "br",
        Coding::Zstd => "zstd",
        Coding::Gzip => "gzip",
    }
}

/// The qualities a client gave; `None` where it said nothing.
#[derive(Default)]
struct Wishes {
    brotli: Option<Quality>,
    zstd: Option<Quality>,
    gzip: Option<Quality>,
    identity: Option<Quality>,
    any: Option<Quality>,
}

impl Wishes {
    /// Of two elements for one coding the first counts.
    fn read(list: &[u8]) -> Wishes {
        let mut wishes = Wishes::default();
        for element in weighted(list) {
            let is = |name: &[u8]| element.value.eq_ignore_ascii_case(name);
            let wish = if is(b"gzip") || is(b"x-gzip") {
                &mut wishes.gzip
            } else if is(b"br") {
                &mut wishes.brotli
            } else if is(b"zstd") {
                &mut wishes.zstd
            } else if is(b"identity") {
                &mut wishes.identity
            } else if is(b"*") {
                &mut wishes.any
            } else {
                continue;
            };
            wish.get_or_insert(element.quality);
        }
        wishes
    }

    fn of(&self, coding: Coding) -> Quality {
        let own = match coding {
            Coding::Brotli => self.brotli,
            Coding::Zstd => self.zstd,
            Coding::Gzip => self.gzip,
        };
        own.or(self.any).unwrap_or(Quality::NONE)
    }

    /// `identity` is acceptable unless it is refused by name or by `*`.
    fn accepts_identity(&self) -> bool {
        self.identity
            .or(self.any)
            .is_none_or(Quality::is_acceptable)
    }
}

/// The quality of a media type: that of the most specific range which names it.
fn media_quality(list: &[u8], exact: &[u8], group: &[u8]) -> Quality {
    let mut found = [None; 3];
    for element in weighted(list).filter(|element| !element.has_parameters) {
        let specific = [exact, group, b"*/*"];
        let level = specific
            .iter()
            .position(|range| element.value.eq_ignore_ascii_case(range));
        if let Some(level) = level {
            found[level].get_or_insert(element.quality);
        }
    }
    found.into_iter().flatten().next().unwrap_or(Quality::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Coding::{Brotli, Gzip, Zstd};

    const ALL: [Coding; 3] = [Brotli, Zstd, Gzip];

    fn chosen(list: &str, available: &[Coding]) -> Negotiated {
        coding(Some(list.as_bytes()), available)
    }

    #[test]
    fn highest_quality_then_the_servers_order() {
        let cases = [
            ("gzip, deflate, br, zstd", Negotiated::Coded(Brotli)),
            ("gzip, zstd", Negotiated::Coded(Zstd)),
            ("gzip;q=1, br;q=0.9", Negotiated::Coded(Gzip)),
            ("br;q=0.5, gzip;q=0.501", Negotiated::Coded(Gzip)),
            ("GZIP", Negotiated::Coded(Gzip)),
            ("x-gzip", Negotiated::Coded(Gzip)),
            ("*", Negotiated::Coded(Brotli)),
            ("br;q=0, *", Negotiated::Coded(Zstd)),
            ("*;q=0.1, gzip", Negotiated::Coded(Gzip)),
            ("identity, gzip", Negotiated::Coded(Gzip)),
            ("identity;q=0.5, gzip;q=0.4", Negotiated::Identity),
            ("identity;q=0, gzip;q=0.1", Negotiated::Coded(Gzip)),
        ];
        for (list, expected) in cases {
            assert_eq!(chosen(list, &ALL), expected, "{list}");
        }
    }

    #[test]
    fn identity_unless_it_is_refused() {
        for list in [
            "",
            "deflate",
            "gzip;q=0",
            "br;q=x",
            "identity",
            "*;q=0, identity;q=0.1",
            "deflate, gzip;q=0, br;q=0.000, zstd;q=0",
        ] {
            assert_eq!(chosen(list, &ALL), Negotiated::Identity, "{list}");
        }
        for list in [
            "identity;q=0",
            "*;q=0",
            "identity;q=0.000, compress",
            "br;q=0, *;q=0",
        ] {
            assert_eq!(chosen(list, &ALL), Negotiated::NotAcceptable, "{list}");
        }
        assert_eq!(coding(None, &ALL), Negotiated::Identity);
    }

    #[test]
    fn only_what_is_available_is_chosen() {
        assert_eq!(chosen("br, gzip;q=0.1", &[Gzip]), Negotiated::Coded(Gzip));
        assert_eq!(chosen("br", &[Gzip]), Negotiated::Identity);
        assert_eq!(chosen("*", &[]), Negotiated::Identity);
        assert_eq!(
            chosen("br, identity;q=0", &[Gzip]),
            Negotiated::NotAcceptable
        );
        assert_eq!(chosen("gzip, br", &[Gzip, Brotli]), Negotiated::Coded(Gzip));
    }

    #[test]
    fn listing_is_json_when_json_is_liked_better() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for accept in [
            browser,
            "*/*",
            "",
            "application/json, text/html",
            "application/json;q=0, */*",
            "application/json;v=2",
            "image/png",
        ] {
            assert_eq!(
                listing_form(Some(accept.as_bytes())),
                ListingForm::Html,
                "{accept}"
            );
        }
        for accept in [
            "application/json",
            "Application/JSON, */*;q=0.9",
            "application/*",
            "text/html;q=0.5, */*",
        ] {
            assert_eq!(
                listing_form(Some(accept.as_bytes())),
                ListingForm::Json,
                "{accept}"
            );
        }
        assert_eq!(listing_form(None), ListingForm::Html);
    }

    #[test]
    fn rows_are_what_is_liked_best() {
        use SqlPageFormat::{Csv, Html, Json};
        for (accept, wanted) in [
            ("", Html),
            ("*/*", Html),
            ("application/json", Json),
            ("text/csv", Csv),
            ("text/csv;q=0.5, application/json", Json),
            ("text/html;q=0, application/json;q=0.1", Json),
            ("text/html;q=0.2, */*", Json),
            ("text/html;q=0.2, text/*", Csv),
            ("image/png", Html),
        ] {
            assert_eq!(sql_page_format(Some(accept.as_bytes())), wanted, "{accept}");
        }
        assert_eq!(sql_page_format(None), Html);
    }
}
