//! What is not shown to a watcher who has not asked for secrets: values of some fields and of some
//! keys of queries.

/// Stands in place of what is hidden.
const HIDDEN: &[u8] = b"(hidden)";

/// Fields whose values are hidden always.
const FIELDS: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "hob-request",
    "set-cookie",
];

/// Fields that hold a URL.
const URLS: [&str; 3] = ["referer", "location", "content-location"];

/// Names of secrets.
#[derive(Clone, Debug)]
pub struct Hidden {
    query: Vec<Vec<u8>>,
    fields: Vec<Vec<u8>>,
}

impl Default for Hidden {
    fn default() -> Hidden {
        Hidden::new(&Hidden::QUERY, &[] as &[&str])
    }
}

impl Hidden {
    /// Words at which names of keys of a query end that are hidden, unless the config says others.
    pub const QUERY: [&'static str; 6] =
        ["token", "password", "passwd", "key", "secret", "session"];

    /// Hides keys of queries whose name ends with one of these words, and fields of these names
    /// beside those that are always hidden.
    pub fn new<T: AsRef<str>, U: AsRef<str>>(query: &[T], fields: &[U]) -> Hidden {
        let lower = |text: &str| text.to_ascii_lowercase().into_bytes();
        let own = fields.iter().map(|name| lower(name.as_ref()));
        Hidden {
            query: query.iter().map(|word| lower(word.as_ref())).collect(),
            fields: FIELDS.iter().map(|name| lower(name)).chain(own).collect(),
        }
    }

    /// Writes a URL or request target, the values of secret keys hidden.
    pub fn push_target(&self, target: &[u8], out: &mut Vec<u8>) {
        let Some(at) = target.iter().position(|byte| *byte == b'?') else {
            return out.extend_from_slice(target);
        };
        let (path, query) = target.split_at(at + 1);
        out.extend_from_slice(path);
        for (index, pair) in query.split(|byte| *byte == b'&').enumerate() {
            if index > 0 {
                out.push(b'&');
            }
            match pair.iter().position(|byte| *byte == b'=') {
                Some(at) if self.hides_key(&pair[..at]) => {
                    out.extend_from_slice(&pair[..=at]);
                    out.extend_from_slice(HIDDEN);
                }
                _ => out.extend_from_slice(pair),
            }
        }
    }

    /// Writes the value of a field, or that it is hidden.
    pub fn push_value(&self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let is = |known: &[u8]| known.eq_ignore_ascii_case(name);
        if self.fields.iter().any(|known| is(known)) {
            out.extend_from_slice(HIDDEN);
        } else if URLS.iter().any(|known| is(known.as_bytes())) {
            self.push_target(value, out);
        } else {
            out.extend_from_slice(value);
        }
    }

    fn hides_key(&self, name: &[u8]) -> bool {
        let name = decoded(name);
        self.query.iter().any(|word| {
            let begin = name.len().checked_sub(word.len());
            begin.is_some_and(|begin| name[begin..].eq_ignore_ascii_case(word))
        })
    }
}

/// A name without its percent codes: `p%61ssword` is a password, too.
fn decoded(name: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let [byte, after @ ..] = rest {
        rest = after;
        if let (b'%', [high, low, beyond @ ..]) = (byte, after)
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            bytes.push((high * 16 + low) as u8);
            rest = beyond;
        } else {
            bytes.push(*byte);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(hidden: &Hidden, text: &str) -> String {
        let mut out = Vec::new();
        hidden.push_target(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn secret_keys_of_a_query_are_hidden_however_they_are_written() {
        let hidden = Hidden::default();
        for (shown, expected) in [
            ("/a", "/a"),
            ("/a?b=c", "/a?b=c"),
            ("/a?token=1&b=2", "/a?token=(hidden)&b=2"),
            ("/a?b=2&access_TOKEN=x=y", "/a?b=2&access_TOKEN=(hidden)"),
            ("/a?p%61ssword=x", "/a?p%61ssword=(hidden)"),
            ("/a?token&key=", "/a?token&key=(hidden)"),
            ("/token=1?x", "/token=1?x"),
            ("http://h/?secret=1#x", "http://h/?secret=(hidden)"),
        ] {
            assert_eq!(target(&hidden, shown), expected);
        }
        let own = Hidden::new(&["pin"], &["X-Api-Key"]);
        assert_eq!(target(&own, "/?pin=1&token=2"), "/?pin=(hidden)&token=2");
    }

    #[test]
    fn secret_fields_are_hidden_and_urls_in_others_are_looked_at() {
        let hidden = Hidden::new(&Hidden::QUERY, &["X-Api-Key"]);
        for (name, value, expected) in [
            ("Authorization", "Basic x", "(hidden)"),
            ("cookie", "a=b", "(hidden)"),
            ("SET-COOKIE", "a=b", "(hidden)"),
            ("Proxy-Authorization", "x", "(hidden)"),
            ("x-api-key", "x", "(hidden)"),
            ("Referer", "http://h/?key=1", "http://h/?key=(hidden)"),
            ("Location", "/?password=1", "/?password=(hidden)"),
            ("Accept", "*/*", "*/*"),
        ] {
            let mut out = Vec::new();
            hidden.push_value(name.as_bytes(), value.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{name}");
        }
    }
}
