//! The query of a request to the admin API.

use std::borrow::Cow;

use hob_server::route::percent;

/// The value of a key in a query, its percent codes decoded; the first, where there are more. What
/// is no UTF-8 is replaced.
pub fn value_of(query: &[u8], key: &str) -> Option<String> {
    query.split(|&byte| byte == b'&').find_map(|pair| {
        let mut halves = pair.splitn(2, |&byte| byte == b'=');
        let name = halves.next()?;
        (decoded(name) == key).then(|| decoded(halves.next().unwrap_or_default()).into_owned())
    })
}

/// Every key of a query and its value, decoded as above, in order.
pub fn pairs_of(query: &[u8]) -> Vec<(String, String)> {
    let pairs = query
        .split(|&byte| byte == b'&')
        .filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let mut halves = pair.splitn(2, |&byte| byte == b'=');
        let [name, value] = [(); 2].map(|()| halves.next().unwrap_or_default());
        (decoded(name).into_owned(), decoded(value).into_owned())
    });
    pairs.collect()
}

/// A part of a query as text; what is no UTF-8 is replaced.
fn decoded(text: &[u8]) -> Cow<'static, str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, beyond @ ..]) => match percent::decode_pair(&[*high, *low]) {
                Some(value) => {
                    bytes.push(value);
                    rest = beyond;
                }
                None => bytes.push(b'%'),
            },
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_query_are_decoded_and_the_first_counts() {
        let query = b"a=1&path=%2fcgi-bin%2F*+x&empty&b=%zz%4&a=2&%61b=c";
        let value = |key| value_of(query, key);
        assert_eq!(value("a").as_deref(), Some("1"));
        assert_eq!(value("path").as_deref(), Some("/cgi-bin/* x"));
        assert_eq!(value("empty").as_deref(), Some(""));
        assert_eq!(value("b").as_deref(), Some("%zz%4"));
        assert_eq!(value("ab").as_deref(), Some("c"));
        assert_eq!(value("c"), None);
        assert_eq!(value_of(b"x=%ff", "x").as_deref(), Some("\u{fffd}"));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [pair("a", "1"), pair("b", ""), pair("c d", "=")];
        assert_eq!(pairs_of(b"a=1&&b&c+d=="), expected);
    }
}
