//! Links that were signed with a key, and are let in until they are over.
//!
//! ```text
//! /files/a.pdf?page=2&expires=1796083200&signature=eK2h...
//! |---------- signed, as sent ---------|           HMAC-SHA256, base64 for URLs, no padding
//! ```

use std::path::Path;

use aws_lc_rs::hmac;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// Shortest key, in bytes.
const KEY_BYTES_MIN: usize = 32;
const EXPIRES: &str = "expires=";
const SIGNATURE: &str = "signature=";

/// Keys that links are signed with.
pub struct LinkKeys(Vec<hmac::Key>);

/// Why a link is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRefusal {
    /// It has no signature, or none of these keys.
    Unsigned,
    /// It was signed, and is over.
    Over,
}

impl LinkRefusal {
    /// In the words of the record.
    pub fn reason(self) -> &'static str {
        match self {
            LinkRefusal::Unsigned => "require: the link is not signed with a key of `signed_urls`",
            LinkRefusal::Over => "require: the signed link is over",
        }
    }
}

impl LinkKeys {
    /// The keys of a file's text, one a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<LinkKeys, String> {
        let mut keys = Vec::new();
        for (line, key) in (1..).zip(text.lines().map(str::trim)) {
            if key.is_empty() || key.starts_with('#') {
                continue;
            }
            if key.len() < KEY_BYTES_MIN {
                return Err(format!(
                    "line {line}: a key has {KEY_BYTES_MIN} characters at least"
                ));
            }
            keys.push(hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()));
        }
        match keys.is_empty() {
            true => Err("there is no key in it".to_owned()),
            false => Ok(LinkKeys(keys)),
        }
    }

    /// The keys of a file. Waits for a disk.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn open(path: &Path) -> Result<LinkKeys, String> {
        let text = super::read_file(path)?;
        LinkKeys::parse(&text).map_err(|text| format!("{}: {text}", path.display()))
    }

    /// A path and query with a signature by the first key, good until a time in seconds of Unix
    /// time.
    pub fn sign(&self, target: &str, until_unix_s: u64) -> String {
        let separator = if target.contains('?') { '&' } else { '?' };
        let signed = format!("{target}{separator}{EXPIRES}{until_unix_s}");
        let tag = hmac::sign(&self.0[0], signed.as_bytes());
        let tag = BASE64_URL_SAFE_NO_PAD.encode(tag);
        format!("{signed}&{SIGNATURE}{tag}")
    }

    /// Whether a target, as sent, is let in at a time.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, target: &[u8], now_unix_s: u64) -> Result<(), LinkRefusal> {
        let until_unix_s = self.signed_until(target).ok_or(LinkRefusal::Unsigned)?;
        match now_unix_s < until_unix_s {
            true => Ok(()),
            false => Err(LinkRefusal::Over),
        }
    }

    /// Until when a target is good; nothing where it is not signed.
    fn signed_until(&self, target: &[u8]) -> Option<u64> {
        let at = memchr::memmem::rfind(target, b"&signature=")?;
        let (signed, rest) = target.split_at(at);
        let tag = BASE64_URL_SAFE_NO_PAD
            .decode(&rest[1 + SIGNATURE.len()..])
            .ok()?;
        let is_by = |key: &hmac::Key| hmac::verify(key, signed, &tag).is_ok();
        if !self.0.iter().any(is_by) {
            return None;
        }
        let query = signed.iter().position(|byte| *byte == b'?')?;
        let last = signed[query + 1..].rsplit(|byte| *byte == b'&').next()?;
        std::str::from_utf8(last)
            .ok()?
            .strip_prefix(EXPIRES)?
            .parse()
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &str =
        "# new\n0123456789abcdef0123456789abcdef\n\n00112233445566778899aabbccddeeff\n";

    #[test]
    fn link_is_good_until_its_time_and_as_it_was_signed() {
        let keys = LinkKeys::parse(KEYS).unwrap();
        for target in ["/a.pdf", "/a%20b?page=2", "/?x=signature=1"] {
            let link = keys.sign(target, 1000);
            assert_eq!(keys.check(link.as_bytes(), 999), Ok(()), "{link}");
            assert_eq!(
                keys.check(link.as_bytes(), 1000),
                Err(LinkRefusal::Over),
                "{link}"
            );
            for at in 0..link.len() {
                let mut other = link.clone().into_bytes();
                other[at] ^= 1;
                let found = keys.check(&other, 999);
                // The last digit of base64 has bits that say nothing; they have to be 0.
                assert_eq!(found, Err(LinkRefusal::Unsigned), "{link} at {at}");
            }
            let more = format!("{link}&page=3");
            assert_eq!(keys.check(more.as_bytes(), 1), Err(LinkRefusal::Unsigned));
        }
        // Made by OpenSSL: printf %s "/a?expires=1000" | openssl dgst -sha256 -hmac KEY -binary
        let other = "/a?expires=1000&signature=_gAHjBEvHKp7zDF94yT9T3VePTVMSdhiidw7oQHxYto";
        assert_eq!(keys.check(other.as_bytes(), 1), Ok(()));
    }

    #[test]
    fn key_that_is_not_the_first_opens_what_it_has_signed() {
        let keys = LinkKeys::parse(KEYS).unwrap();
        let old = LinkKeys::parse(KEYS.lines().last().unwrap()).unwrap();
        assert_eq!(keys.check(old.sign("/a", 10).as_bytes(), 1), Ok(()));
        let refused = Err(LinkRefusal::Unsigned);
        assert_eq!(old.check(keys.sign("/a", 10).as_bytes(), 1), refused);
    }

    #[test]
    fn what_is_no_signed_link_is_refused() {
        let keys = LinkKeys::parse(KEYS).unwrap();
        let signed = |text: &str| {
            let tag = hmac::sign(&keys.0[0], text.as_bytes());
            format!("{text}&signature={}", BASE64_URL_SAFE_NO_PAD.encode(tag))
        };
        assert_eq!(keys.check(signed("/a?expires=9").as_bytes(), 1), Ok(()));
        for link in [
            signed("/a"),
            signed("/a?"),
            signed("/a?expires="),
            signed("/a?expires=-1"),
            signed("/a?expires=9999999999999999999999"),
            signed("/a?expires=9&page=2"),
            signed("/a?xexpires=9"),
            signed("/a&expires=9"),
            "/a?expires=9".to_owned(),
            "/a?expires=9&signature=".to_owned(),
            "/a?expires=9&signature=!".to_owned(),
            "&signature=".to_owned(),
            String::new(),
        ] {
            assert_eq!(
                keys.check(link.as_bytes(), 1),
                Err(LinkRefusal::Unsigned),
                "{link}"
            );
        }
    }

    #[test]
    fn keys_that_could_be_guessed_are_refused() {
        for text in [
            "",
            "# only\n",
            "short\n",
            "0123456789abcdef0123456789abcdef\nshort\n",
        ] {
            assert!(LinkKeys::parse(text).is_err(), "{text:?}");
        }
    }
}
