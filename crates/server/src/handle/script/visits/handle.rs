//! Handles of visits. Who has one is let in, so none can be guessed, and none is shown whole.
//!
//! One of the server is `~` and 128 random bits in hexadecimal. One that a program makes is taken
//! when it looks as random: then any such text that names no visit is known for a handle that is
//! over, and is never taken for a part of an ordinary path. One that can be guessed holds beside a
//! cookie of the server alone, where a config lets programs have such: who has the cookie is let
//! in, and a text is a handle where there is that cookie.

use std::borrow::Cow;
use std::fmt;

use aws_lc_rs::rand;

/// A handle that is fit to be one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct VisitHandle {
    text: Box<[u8]>,
    /// Of one that can be guessed: what the cookie beside it has, empty before there is one.
    beside: Option<Box<[u8]>>,
}

/// Why a text is no handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitHandle {
    /// It is empty, too long, or has other characters than a path has unescaped.
    Malformed,
    /// It can be guessed.
    Weak,
}

/// Bytes of a handle, at most.
pub const HANDLE_BYTES_MAX: usize = 128;
/// Bits of randomness that a handle of a program has at least.
pub const HANDLE_BITS_MIN: u32 = 96;
/// Characters of a handle that are shown.
const SHOWN: usize = 4;
/// With this those of the server begin.
const MARK: u8 = b'~';
/// Different characters that a random text of this length has.
const DIFFERENT_MIN: u32 = 8;
/// The same of one of the server, which no random one falls short of.
const OF_SERVER_MIN: u32 = 4;
/// How often letters, digits and capitals take turns in a random text, at least.
const TURNS_MIN: u32 = 4;

impl VisitHandle {
    /// A new one; `None` where the kernel has no randomness.
    pub fn random() -> Option<VisitHandle> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut bits = [0; 16];
        rand::fill(&mut bits).ok()?;
        let mut text = Vec::with_capacity(1 + 2 * bits.len());
        text.push(MARK);
        for byte in bits {
            text.push(DIGITS[usize::from(byte >> 4)]);
            text.push(DIGITS[usize::from(byte & 15)]);
        }
        Some(VisitHandle {
            text: text.into(),
            beside: None,
        })
    }

    /// What a program gives for one.
    ///
    /// # Errors
    /// It is none.
    pub fn of(text: &[u8]) -> Result<VisitHandle, UnfitHandle> {
        let handle = VisitHandle::or_weak(text)?;
        match handle.beside {
            None => Ok(handle),
            Some(_) => Err(UnfitHandle::Weak),
        }
    }

    /// The same, where one may be weak.
    ///
    /// # Errors
    /// It is none.
    pub fn or_weak(text: &[u8]) -> Result<VisitHandle, UnfitHandle> {
        let is_fit = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        if text.is_empty() || text.len() > HANDLE_BYTES_MAX || !text.iter().all(is_fit) {
            return Err(UnfitHandle::Malformed);
        }
        let is_strong = is_of_server(text) || looks_random(text);
        Ok(VisitHandle {
            text: text.into(),
            beside: (!is_strong).then(Box::default),
        })
    }

    /// What a request has: a text, and what the cookie beside it has. `None` for what is never a
    /// handle: one that can be guessed, without its cookie.
    pub fn carried(text: &[u8], beside: Option<&[u8]>) -> Option<VisitHandle> {
        let handle = VisitHandle::or_weak(text).ok()?;
        match (handle.is_weak(), beside) {
            (false, _) => Some(handle),
            (true, Some(cookie)) if !cookie.is_empty() => Some(handle.beside(cookie)),
            (true, _) => None,
        }
    }

    /// It can be guessed.
    pub fn is_weak(&self) -> bool {
        self.beside.is_some()
    }

    /// The same, which holds beside a cookie with this.
    pub fn beside(self, cookie: &[u8]) -> VisitHandle {
        VisitHandle {
            text: self.text,
            beside: Some(cookie.into()),
        }
    }

    /// Its text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// What the cookie beside it has, where it holds with that alone.
    pub fn cookie(&self) -> Option<&[u8]> {
        self.beside.as_deref()
    }
}

impl fmt::Debug for VisitHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.text))
    }
}

/// True for what can only be a handle, live or over: a segment of a path, a cookie.
pub fn is_like_handle(text: &[u8]) -> bool {
    text.first() == Some(&MARK) || VisitHandle::of(text).is_ok()
}

/// A handle as people are shown it.
pub fn shown(text: &[u8]) -> String {
    let text = text.strip_prefix(&[MARK]).unwrap_or(text);
    let begin = &text[..text.len().min(SHOWN)];
    format!("{}...", begin.escape_ascii())
}

/// A URL or target whose path has handles, none of them whole; `None` where it has none.
pub fn without_handles(url: &[u8]) -> Option<Box<[u8]>> {
    let end = url.iter().position(|byte| b"?#".contains(byte));
    let (path, rest) = url.split_at(end.unwrap_or(url.len()));
    let is_absolute = path.windows(3).any(|part| part == b"://");
    // Who is asked is no part of the path.
    let passed_over = if is_absolute { 3 } else { 0 };
    let mut out = Vec::new();
    let mut has_some = false;
    for (index, segment) in path.split(|byte| *byte == b'/').enumerate() {
        if index > 0 {
            out.push(b'/');
        }
        let plain = decoded(segment);
        if index >= passed_over && is_like_handle(&plain) {
            has_some = true;
            out.extend_from_slice(shown(&plain).as_bytes());
        } else {
            out.extend_from_slice(segment);
        }
    }
    out.extend_from_slice(rest);
    has_some.then(|| out.into())
}

/// A segment without its percent codes.
fn decoded(segment: &[u8]) -> Cow<'_, [u8]> {
    if !segment.contains(&b'%') {
        return Cow::Borrowed(segment);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'%', [high, low, beyond @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push((high * 16 + low) as u8);
                    rest = beyond;
                }
                _ => bytes.push(*byte),
            },
            _ => bytes.push(*byte),
        }
    }
    Cow::Owned(bytes)
}

/// It has the form of the server's own.
fn is_of_server(text: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let digits = text.strip_prefix(&[MARK]);
    digits.is_some_and(|digits| {
        let seen = digits
            .iter()
            .fold(0u128, |seen, byte| seen | 1 << (byte & 127));
        digits.len() == 32 && digits.iter().all(is_digit) && seen.count_ones() >= OF_SERVER_MIN
    })
}

/// Whether so many bits of it may be random. Words, dates and numbers of documents are told from
/// random text by how often letters, digits and capitals take turns.
fn looks_random(text: &[u8]) -> bool {
    let plain = text.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let (mut count, mut turns, mut kinds, mut seen) = (0u32, 0u32, 0u32, 0u128);
    let mut is_hex = true;
    let mut last = 0;
    for byte in plain {
        let kind = match byte {
            b'0'..=b'9' => 1,
            b'a'..=b'z' => 2,
            _ => 4,
        };
        turns += u32::from(last != 0 && last != kind);
        (last, count) = (kind, count + 1);
        kinds |= kind;
        seen |= 1 << byte;
        is_hex &= byte.is_ascii_hexdigit();
    }
    // Hundredths of bits that a character has.
    let each = match kinds {
        1 => 332,
        3 | 5 if is_hex => 400,
        2 | 4 => 470,
        3 | 5 => 517,
        6 => 570,
        _ => 595,
    };
    let takes_turns = kinds == 1 || turns >= (count / 8).max(TURNS_MIN);
    count * each >= HANDLE_BITS_MIN * 100 && takes_turns && seen.count_ones() >= DIFFERENT_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_the_server_are_different_and_taken_from_programs_too() {
        let (one, other) = (
            VisitHandle::random().unwrap(),
            VisitHandle::random().unwrap(),
        );
        assert_ne!(one, other);
        assert_eq!(one.as_bytes().len(), 33);
        assert!(is_like_handle(one.as_bytes()));
        for _ in 0..100_000 {
            let random = VisitHandle::random().unwrap();
            assert_eq!(VisitHandle::of(random.as_bytes()).as_ref(), Ok(&random));
        }
    }

    #[test]
    fn what_can_be_guessed_is_no_handle() {
        for weak in [
            "1",
            "session42",
            "12345678901234567890",
            "00000000000000000000000000000000",
            "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1",
            "the-quick-brown-fox-jumps-over-the-lazy-dog",
            "product-with-a-long-name-of-2024",
            "2024-11-29T07-12-41-report-of-the-year",
        ] {
            assert_eq!(
                VisitHandle::of(weak.as_bytes()),
                Err(UnfitHandle::Weak),
                "{weak}"
            );
            assert!(!is_like_handle(weak.as_bytes()), "{weak}");
        }
        let long = "a1b2c3d4".repeat(17);
        for malformed in ["", "a b", "a/b", "ä", "a\"b", "%41", &long] {
            let of = VisitHandle::of(malformed.as_bytes());
            assert_eq!(of, Err(UnfitHandle::Malformed), "{malformed}");
        }
    }

    #[test]
    fn what_can_be_guessed_holds_beside_its_cookie_alone() {
        let one = VisitHandle::or_weak(b"42").unwrap();
        assert!(one.is_weak());
        let bound = one.clone().beside(b"~secret");
        assert_eq!(bound.as_bytes(), b"42");
        assert_eq!(bound.cookie(), Some(&b"~secret"[..]));
        assert_ne!(one, bound);
        let carried = |cookie: Option<&[u8]>| VisitHandle::carried(b"42", cookie);
        assert_eq!(carried(Some(b"~secret")), Some(bound.clone()));
        assert_ne!(carried(Some(b"~other")), Some(bound));
        assert_eq!(carried(Some(b"")), None);
        assert_eq!(carried(None), None);
        // One that cannot be guessed needs none.
        let strong = b"~9b74c9897bac770ffc029102a200c5de";
        let beside = VisitHandle::carried(strong, Some(b"~secret"));
        assert_eq!(beside, VisitHandle::of(strong).ok());
    }

    #[test]
    fn what_looks_random_is_a_handle() {
        for strong in [
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "3q2-7wAAx9TfKf0bq8Jz",
            "83749201758392017583920175839201",
            "9b74c9897bac770ffc029102a200c5de",
        ] {
            assert!(VisitHandle::of(strong.as_bytes()).is_ok(), "{strong}");
            assert!(is_like_handle(strong.as_bytes()), "{strong}");
        }
    }

    #[test]
    fn urls_are_shown_without_handles() {
        let shown = |url: &str| {
            let shown = without_handles(url.as_bytes());
            shown.map(|shown| String::from_utf8_lossy(&shown).into_owned())
        };
        const ONE: &str = "~9b74c9897bac770ffc029102a200c5de";
        for (url, as_shown) in [
            ("/shop/{}/cart?a=b", "/shop/9b74.../cart?a=b"),
            ("/shop/{}", "/shop/9b74..."),
            (
                "/shop/%7e9b74c9897bac770ffc029102a200c5de/a",
                "/shop/9b74.../a",
            ),
            (
                "https://a.example/shop/{}/#a",
                "https://a.example/shop/9b74.../#a",
            ),
            ("/shop/~/x", "/shop/.../x"),
        ] {
            let url = url.replace("{}", ONE);
            assert_eq!(shown(&url).as_deref(), Some(as_shown), "{url}");
        }
        for url in [
            "/",
            "",
            "/shop/cart?handle=~a",
            "https://~9b74c9897bac770ffc029102a2/a",
        ] {
            assert_eq!(shown(url), None, "{url}");
        }
    }

    #[test]
    fn handle_is_never_shown_whole() {
        let handle = VisitHandle::of(b"~9b74c9897bac770ffc029102a200c5de").unwrap();
        assert_eq!(format!("{handle:?}"), "9b74...");
        assert_eq!(shown(b"ab"), "ab...");
    }
}
