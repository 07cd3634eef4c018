//! What a browser's cache knows of an asset: for how long it need not be asked for, and what to ask
//! with then.
//!
//! Only what the server says counts (`Cache-Control`, `Expires`). That browsers take something to
//! be fresh for a tenth of its age when nobody said anything is left out: a second view would then
//! measure nothing of a server without such fields.

use std::sync::Arc;

use super::visitor::Scanned;
use crate::conduct::http_date;
use crate::send::{Kept, KeptField};

/// What is known of one asset.
#[derive(Debug, Clone)]
pub(crate) struct CachedAsset {
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    /// In nanoseconds of the run.
    fresh_until_ns: u64,
    /// What it names, where it was read.
    pub(crate) scanned: Option<Arc<Scanned>>,
}

impl CachedAsset {
    /// Of an answer that came now; none where it must not be stored.
    pub(crate) fn of(
        kept: &Kept,
        scanned: Option<Arc<Scanned>>,
        now_ns: u64,
    ) -> Option<CachedAsset> {
        let mut entry = CachedAsset {
            etag: kept.get(KeptField::Etag),
            last_modified: kept.get(KeptField::LastModified),
            fresh_until_ns: now_ns,
            scanned,
        };
        entry.renew(kept, now_ns).then_some(entry)
    }

    /// The server has said again how long it is fresh; false where it must not be stored.
    pub(crate) fn renew(&mut self, kept: &Kept, now_ns: u64) -> bool {
        match lifetime_s(kept) {
            None => false,
            Some(seconds) => {
                let ns = seconds.saturating_mul(1_000_000_000);
                self.fresh_until_ns = now_ns.saturating_add(ns);
                true
            }
        }
    }

    pub(crate) fn is_fresh(&self, now_ns: u64) -> bool {
        now_ns < self.fresh_until_ns
    }
}

/// For how many more seconds an answer is fresh; none where it must not be stored.
/// //= rfc9111#4.2.1
fn lifetime_s(kept: &Kept) -> Option<u64> {
    let control = kept.get(KeptField::CacheControl).unwrap_or_default();
    let mut max_age = None;
    for word in control.split(',') {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" => return None,
            "no-cache" => return Some(0),
            "max-age" => max_age = value.trim().trim_matches('"').parse::<u64>().ok(),
            _ => {}
        }
    }
    let expires = || {
        let expires = http_date(&kept.get(KeptField::Expires)?)?;
        let date = http_date(&kept.get(KeptField::Date)?)?;
        u64::try_from(expires - date).ok()
    };
    let lifetime = max_age.or_else(expires).unwrap_or(0);
    let age = kept.get(KeptField::Age).and_then(|age| age.parse().ok());
    Some(lifetime.saturating_sub(age.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::kept::Keep;

    fn lifetime(fields: &[(&str, &str)]) -> Option<u64> {
        let mut kept = Kept::new(Keep::Fields);
        for (name, value) in fields {
            kept.field(name.as_bytes(), value.as_bytes());
        }
        lifetime_s(&kept)
    }

    #[test]
    fn lifetime_is_what_the_server_says() {
        const DATE: (&str, &str) = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
        for (fields, seconds) in [
            (&[][..], Some(0)),
            (&[("Cache-Control", "public, max-age=60")], Some(60)),
            (&[("Cache-Control", "Max-Age=60"), ("Age", "20")], Some(40)),
            (&[("Cache-Control", "max-age=60"), ("Age", "80")], Some(0)),
            (
                &[
                    ("Cache-Control", "max-age=60"),
                    ("Cache-Control", "no-cache"),
                ],
                Some(0),
            ),
            (&[("Cache-Control", "max-age=60, no-store")], None),
            (
                &[("Expires", "Sun, 06 Nov 1994 08:50:37 GMT"), DATE],
                Some(60),
            ),
            (&[("Expires", "0"), DATE], Some(0)),
            (
                &[("Expires", "Sun, 06 Nov 1994 08:48:37 GMT"), DATE],
                Some(0),
            ),
        ] {
            assert_eq!(lifetime(fields), seconds, "{fields:?}");
        }
    }

    #[test]
    fn what_is_fresh_grows_old() {
        let mut kept = Kept::new(Keep::Fields);
        kept.field(b"cache-control", b"max-age=2");
        let mut entry = CachedAsset::of(&kept, None, 0).unwrap();
        assert!(entry.is_fresh(1_999_999_999) && !entry.is_fresh(2_000_000_000));
        assert!(entry.renew(&kept, 2_000_000_000));
        assert!(entry.is_fresh(3_000_000_000));
    }
}
