//! Words of a query that is no form: they become arguments of the program (RFC 3875 section 4.4).

/// Most arguments a query may become.
pub const ARGUMENT_COUNT_MAX: usize = 256;

/// The arguments a query stands for; none when it has a `=`, which makes it a form.
///
/// A word that begins with `-` would be an option of the program, or worse of its interpreter, so a
/// query with one is passed in `QUERY_STRING` only, as is one that is not well-formed.
//= rfc3875#4.4
pub fn of_query(query: &[u8]) -> Vec<Vec<u8>> {
    if query.is_empty() || memchr::memchr(b'=', query).is_some() {
        return Vec::new();
    }
    let mut words = Vec::new();
    for word in query.split(|&byte| byte == b'+') {
        match decoded(word) {
            Some(word) if words.len() < ARGUMENT_COUNT_MAX && !word.starts_with(b"-") => {
                words.push(word);
            }
            _ => return Vec::new(),
        }
    }
    words
}

/// The values of a form's field: of `name=value` pairs between `&`. `None` for one that cannot be
/// decoded.
pub fn values_of<'q>(query: &'q [u8], name: &'q str) -> impl Iterator<Item = Option<Vec<u8>>> + 'q {
    query.split(|&byte| byte == b'&').filter_map(move |pair| {
        let mut halves = pair.splitn(2, |&byte| byte == b'=');
        let is_wanted = decoded_form(halves.next()?).as_deref() == Some(name.as_bytes());
        let value = halves.next().unwrap_or_default();
        is_wanted.then(|| decoded_form(value))
    })
}

fn decoded_form(text: &[u8]) -> Option<Vec<u8>> {
    let spaced: Vec<u8> = text
        .iter()
        .map(|&byte| if byte == b'+' { b' ' } else { byte })
        .collect();
    decoded(&spaced)
}

/// Percent-decoded; `None` for a `%` without two hex digits and for a NUL byte, with which no
/// argument can be passed.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let byte = match byte {
            b'%' => {
                let pair;
                (pair, rest) = after.split_at_checked(2)?;
                crate::route::percent::decode_pair(pair)?
            }
            byte => byte,
        };
        if byte == 0 {
            return None;
        }
        out.push(byte);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(query: &str) -> Vec<String> {
        let words = of_query(query.as_bytes());
        let text = |word: Vec<u8>| String::from_utf8_lossy(&word).into_owned();
        words.into_iter().map(text).collect()
    }

    #[test]
    fn query_without_equals_sign_is_words() {
        assert_eq!(words("one+two%20words+%2B"), ["one", "two words", "+"]);
        assert_eq!(words("one"), ["one"]);
        assert_eq!(words("a++b"), ["a", "", "b"]);
        assert_eq!(words("a%3Db"), ["a=b"]);
    }

    #[test]
    fn forms_options_and_malformed_queries_are_no_words() {
        let long = "a+".repeat(ARGUMENT_COUNT_MAX);
        for query in [
            "", "a=b", "a+b=", "-s", "a+-d", "%2Ds", "a%", "a%0", "a%zz", "a%00", &long,
        ] {
            assert!(of_query(query.as_bytes()).is_empty(), "{query}");
        }
    }

    #[test]
    fn values_of_a_form_are_decoded() {
        let query = b"a=1&b=x+y%26&a=2&c&%61=3&b=%0";
        let of = |name| values_of(query, name).collect::<Vec<_>>();
        let value = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(of("a"), [value("1"), value("2"), value("3")]);
        assert_eq!(of("b"), [value("x y&"), None]);
        assert_eq!(of("c"), [value("")]);
        assert!(of("d").is_empty());
    }
}
