//! Filters as people write them, `KEY=VALUE` one beside the other, and as a query of the API.

use hob_load::parse_duration;
use hob_server::config::nearest;

use crate::CommandFailure;
use crate::request::wrong;

/// What requests are chosen by.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pairs: Vec<(String, String)>,
}

impl Filter {
    /// Reads arguments, each of which may hold several filters. What has none of the keys belongs
    /// to the value before it, and before the first one to the key for plain words.
    pub(crate) fn read(
        arguments: &[String],
        keys: &[&str],
        plain: Option<&str>,
    ) -> Result<Filter, CommandFailure> {
        let mut filter = Filter::default();
        for argument in arguments {
            let begin = filter.pairs.len();
            for word in argument.split_whitespace() {
                let pair = word.split_once('=').filter(|(key, _)| keys.contains(key));
                let is_more = begin < filter.pairs.len();
                match (pair, plain) {
                    (Some((key, value)), _) => filter.add(key, value),
                    (None, _) if is_more => filter.extend(word),
                    (None, Some(plain)) if !looks_like_key(word) => filter.add(plain, word),
                    _ => {
                        return Err(wrong(no_filter(word, keys)));
                    }
                }
            }
        }
        filter.check()?;
        Ok(filter)
    }

    /// What can be seen to be wrong before anybody is asked.
    fn check(&self) -> Result<(), CommandFailure> {
        for (key, value) in &self.pairs {
            if value.is_empty() {
                return Err(wrong(format!("{key}= says nothing; write {key}=VALUE")));
            }
            if key == "slower" {
                parse_duration(value).map_err(|why| wrong(format!("slower: {why}")))?;
            }
        }
        Ok(())
    }

    /// Adds a pair.
    pub(crate) fn add(&mut self, key: &str, value: &str) {
        self.pairs.push((key.to_owned(), value.to_owned()));
    }

    /// Adds a word to the last value.
    fn extend(&mut self, word: &str) {
        if let Some((_, value)) = self.pairs.last_mut() {
            value.push(' ');
            value.push_str(word);
        }
    }

    /// Puts another value in the place of what people wrote.
    pub(crate) fn translate(
        &mut self,
        keys: &[&str],
        translated: impl Fn(&str) -> Result<String, String>,
    ) -> Result<(), CommandFailure> {
        for (key, value) in &mut self.pairs {
            if keys.contains(&key.as_str()) {
                *value = translated(value).map_err(|why| wrong(format!("{key}: {why}")))?;
            }
        }
        Ok(())
    }

    /// A path of the API with all of it as its query.
    pub(crate) fn target(&self, path: &str) -> String {
        let mut target = path.to_owned();
        for (index, (key, value)) in self.pairs.iter().enumerate() {
            target.push(if index == 0 { '?' } else { '&' });
            target.push_str(key);
            target.push('=');
            push_encoded(&mut target, value);
        }
        target
    }
}

/// Why a word is no filter, with the key that was probably meant.
fn no_filter(word: &str, keys: &[&str]) -> String {
    let pair = word.split_once('=').filter(|(key, _)| !key.is_empty());
    let meant = pair.and_then(|(key, value)| {
        let longer = || keys.iter().copied().find(|known| known.starts_with(key));
        Some((nearest(key, keys.iter().copied()).or_else(longer)?, value))
    });
    match meant {
        Some((key, value)) => format!("{word:?} is no filter; did you mean `{key}={value}`?"),
        None => format!("{word:?} is no filter; write KEY=VALUE, as --help has them"),
    }
}

/// A word before `=`, as keys are: a slip of the pen is better said than looked for.
fn looks_like_key(word: &str) -> bool {
    let key = word.split_once('=').map(|(key, _)| key);
    key.is_some_and(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// Adds a text as a part of a URL can hold it.
pub(crate) fn push_encoded(target: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                target.push(char::from(byte));
            }
            _ => target.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[&str] = &["path", "slower", "header", "q"];

    fn read(arguments: &[&str], plain: Option<&str>) -> Result<String, String> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let filter = Filter::read(&arguments, KEYS, plain).map_err(|refusal| refusal.text)?;
        Ok(filter.target("/v1/x"))
    }

    #[test]
    fn filters_become_a_query() {
        assert_eq!(read(&[], None), Ok("/v1/x".to_owned()));
        for arguments in [
            &["path=/cgi-bin/* slower=100ms"][..],
            &["path=/cgi-bin/*", "slower=100ms"],
        ] {
            let wanted = "/v1/x?path=%2Fcgi-bin%2F%2A&slower=100ms";
            assert_eq!(read(arguments, None), Ok(wanted.to_owned()));
        }
        assert_eq!(
            read(&["header=User-Agent:^Some thing=else&q", "q=ä"], None),
            Ok("/v1/x?header=User-Agent%3A%5ESome%20thing%3Delse%26q&q=%C3%A4".to_owned())
        );
        assert_eq!(
            read(&["two words"], Some("q")),
            Ok("/v1/x?q=two%20words".to_owned())
        );
    }

    #[test]
    fn what_is_no_filter_is_said() {
        for (arguments, plain) in [
            (&["plain"][..], None),
            (&["stats=5xx"], Some("q")),
            (&["path="], None),
            (&["slower=fast"], None),
        ] {
            assert!(read(arguments, plain).is_err(), "{arguments:?}");
        }
        for (argument, meant) in [
            ("slow=10", "did you mean `slower=10`?"),
            ("paht=/a", "did you mean `path=/a`?"),
            ("kettle=1", "as --help has them"),
            ("=1", "as --help has them"),
        ] {
            let told = read(&[argument], None).unwrap_err();
            assert!(told.ends_with(meant), "{told}");
        }
    }
}
