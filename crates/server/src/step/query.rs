//! Values of a query, read where they stand: nothing is copied.

use crate::route::percent::decode_pair;

/// A name or a value of a form as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct FormText<'q>(&'q [u8]);

/// The value of a name in a query; of several, the first. One without a `=` is empty.
pub fn value<'q>(query: &'q [u8], name: &[u8]) -> Option<FormText<'q>> {
    let mut pairs = query.split(|byte| *byte == b'&');
    pairs.find_map(|pair| {
        let (own, value) = match memchr::memchr(b'=', pair) {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &b""[..]),
        };
        let is_it = match FormText(own).plain() {
            Some(own) => own == name,
            None => FormText(own).bytes().eq(name.iter().copied()),
        };
        is_it.then_some(FormText(value))
    })
}

impl<'q> FormText<'q> {
    /// The text itself, where nothing in it is encoded.
    pub fn plain(self) -> Option<&'q [u8]> {
        let is_encoded = memchr::memchr2(b'%', b'+', self.0).is_some();
        (!is_encoded).then_some(self.0)
    }

    /// Its bytes, decoded: `+` is a space, and a `%` without two hex digits stands for itself.
    pub fn bytes(self) -> impl Iterator<Item = u8> + Clone + 'q {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            Some(match byte {
                b'+' => b' ',
                b'%' => match after.get(..2).and_then(decode_pair) {
                    Some(decoded) => {
                        rest = &after[2..];
                        decoded
                    }
                    None => b'%',
                },
                byte => byte,
            })
        })
    }

    /// Whether it has a text in it.
    pub fn has(self, text: &[u8]) -> bool {
        let mut from = self.bytes();
        loop {
            let mut here = from.clone();
            if text.iter().all(|byte| here.next() == Some(*byte)) {
                return true;
            }
            if from.next().is_none() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(query: &str, name: &str) -> Option<String> {
        let value = value(query.as_bytes(), name.as_bytes())?;
        Some(String::from_utf8(value.bytes().collect()).unwrap())
    }

    #[test]
    fn first_value_of_a_name_is_found_and_decoded() {
        for (query, name, expected) in [
            ("a=1&b=2", "b", Some("2")),
            ("a=1&a=2", "a", Some("1")),
            ("a", "a", Some("")),
            ("a=", "a", Some("")),
            ("x=a+b%21", "x", Some("a b!")),
            ("%78=1", "x", Some("1")),
            ("a+b=1", "a b", Some("1")),
            ("a=b=c", "a", Some("b=c")),
            ("a=%", "a", Some("%")),
            ("a=%4", "a", Some("%4")),
            ("a=%zz%41", "a", Some("%zzA")),
            ("", "a", None),
            ("ab=1", "a", None),
            ("A=1", "a", None),
            ("=1", "a", None),
            ("b=a", "a", None),
        ] {
            assert_eq!(decoded(query, name).as_deref(), expected, "{query}");
        }
    }

    #[test]
    fn text_is_found_in_an_encoded_one() {
        let value = value(b"a=%61b+c", b"a").unwrap();
        assert!(value.plain().is_none());
        for text in ["", "a", "ab", "b c", "c", "ab c"] {
            assert!(value.has(text.as_bytes()), "{text}");
        }
        for text in ["ab c ", "61", "+", "bc"] {
            assert!(!value.has(text.as_bytes()), "{text}");
        }
    }
}
