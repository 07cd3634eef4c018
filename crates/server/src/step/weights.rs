//! Lists with quality values: `gzip;q=0.5, br` or `text/html;level=1;q=0.7, */*`.

/// One element of such a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weighted<'a> {
    /// The coding or media range, without parameters.
    pub value: &'a [u8],
    /// True when it has parameters of its own, before `q`.
    pub has_parameters: bool,
    /// Its quality.
    pub quality: Quality,
}

/// A quality in thousandths, 0 to 1000; 0 is "not acceptable".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quality(u16);

impl Quality {
    /// Not acceptable.
    pub const NONE: Quality = Quality(0);
    /// As good as can be; what an element without `q` has.
    pub const FULL: Quality = Quality(1000);

    /// True when the element is acceptable.
    pub fn is_acceptable(self) -> bool {
        self.0 > 0
    }

    /// `0`, `0.5`, `1.000`: at most three decimals, nothing above 1.
    //= rfc9110#12.4.2
    pub fn parse(text: &[u8]) -> Option<Quality> {
        let (&first, rest) = text.split_first()?;
        let decimals = match rest {
            b"" => rest,
            [b'.', decimals @ ..] if decimals.len() <= 3 => decimals,
            _ => return None,
        };
        let mut value = match first {
            b'0' => 0,
            b'1' => 1000,
            _ => return None,
        };
        for (&digit, place) in decimals.iter().zip([100, 10, 1]) {
            if !digit.is_ascii_digit() {
                return None;
            }
            value += u16::from(digit - b'0') * place;
        }
        (value <= 1000).then_some(Quality(value))
    }
}

/// The elements of a list, in order. Elements that are empty, or whose quality is broken, are left
/// out.
//= rfc9110#5.6.1.2
pub fn weighted(list: &[u8]) -> impl Iterator<Item = Weighted<'_>> {
    unquoted(list, b',').filter_map(element)
}

fn element(text: &[u8]) -> Option<Weighted<'_>> {
    let mut parts = unquoted(text, b';').map(<[u8]>::trim_ascii);
    let value = parts.next().filter(|value| !value.is_empty())?;
    let mut has_parameters = false;
    for part in parts {
        match part {
            [b'q' | b'Q', b'=', quality @ ..] => {
                let quality = Quality::parse(quality)?;
                return Some(Weighted {
                    value,
                    has_parameters,
                    quality,
                });
            }
            _ => has_parameters |= !part.is_empty(),
        }
    }
    Some(Weighted {
        value,
        has_parameters,
        quality: Quality::FULL,
    })
}

/// Cuts at a delimiter, but not inside of a quoted string.
//= rfc9110#5.6.4
pub(crate) fn unquoted(text: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    text.split(move |&byte| {
        if is_quoted {
            is_quoted = byte != b'"' || is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            return false;
        }
        is_quoted = byte == b'"';
        byte == delimiter
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualities_follow_the_grammar() {
        let cases = [
            ("0", 0),
            ("1", 1000),
            ("0.", 0),
            ("1.", 1000),
            ("0.5", 500),
            ("0.05", 50),
            ("0.001", 1),
            ("1.000", 1000),
        ];
        for (text, thousandths) in cases {
            assert_eq!(
                Quality::parse(text.as_bytes()),
                Some(Quality(thousandths)),
                "{text}"
            );
        }
        for wrong in [
            "", "2", ".5", "1.001", "0.0001", "0,5", "-1", "0.5a", "00", "1e0",
        ] {
            assert_eq!(Quality::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn elements_with_their_parameters() {
        let list = b" a , b;q=0.5,, c ; x=\"1,;\\\"q=0\" ; Q=0.2;q=1, d;q=x, ;q=1, e;, f;y";
        let found: Vec<(&[u8], bool, u16)> = weighted(list)
            .map(|e| (e.value, e.has_parameters, e.quality.0))
            .collect();
        let expected: [(&[u8], bool, u16); 5] = [
            (b"a", false, 1000),
            (b"b", false, 500),
            (b"c", true, 200),
            (b"e", false, 1000),
            (b"f", true, 1000),
        ];
        assert_eq!(found, expected);
    }
}
