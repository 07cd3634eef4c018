//! Patterns: a glob for all of a text, or after `~` a regular expression for a part of it.

use regex_lite::{Regex, RegexBuilder};

/// Memory a regular expression may take, in bytes.
const REGEX_BYTES_MAX: usize = 256 * 1024;

/// A pattern.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// `*` is any text, also none and with slashes; `?` is one byte.
    Glob(Vec<u8>),
    /// Found anywhere in the text.
    Regex(Regex),
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with the regular expression.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        match text.strip_prefix('~') {
            Some(text) => Pattern::regex(text),
            None => Ok(Pattern::Glob(text.as_bytes().to_vec())),
        }
    }

    /// A regular expression without the `~`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn regex(text: &str) -> Result<Pattern, String> {
        let regex = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
        regex.map(Pattern::Regex).map_err(|error| {
            let error = error.to_string();
            format!(
                "`{text}` is no regular expression: {}",
                error.replace('\n', " ")
            )
        })
    }

    /// Whether a text matches. Linear in time for a regular expression; at most quadratic for a
    /// glob, whose texts are short.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Pattern::Glob(glob) => glob_matches(glob, text),
            Pattern::Regex(regex) => regex.is_match(&String::from_utf8_lossy(text)),
        }
    }
}

/// The star that was passed last, and where its text ends so far, is where to go on after a
/// mismatch.
fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at + 1, seen));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match &mut star {
                Some((after, until)) => {
                    *until += 1;
                    (at, seen) = (*after, *until);
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_is_for_the_whole_text_and_a_regular_expression_for_a_part() {
        for (pattern, text, expected) in [
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("/cgi-bin/*", "/cgi-bin/x/y", true),
            ("/cgi-bin/*", "/cgi-bin/", true),
            ("/cgi-bin/*", "/cgi-bin", false),
            ("*.php", "/a/b.php", true),
            ("*.php", "/a/b.php/c", false),
            ("*a*b*c", "xxaxbxxbxc", true),
            ("*a*b*c", "xxaxcxxbx", false),
            ("/?/x", "/1/x", true),
            ("/?/x", "//x", false),
            ("**", "", true),
            ("", "", true),
            ("", "a", false),
            ("~cgi", "/cgi-bin/x", true),
            ("~^/a/\\d+$", "/a/12", true),
            ("~^/a/\\d+$", "/a/12b", false),
        ] {
            let found = Pattern::parse(pattern).unwrap().matches(text.as_bytes());
            assert_eq!(found, expected, "{pattern} {text}");
        }
        assert!(Pattern::parse("~caf").unwrap().matches(b"\xffcaf\xfe"));
    }

    #[test]
    fn wrong_and_huge_regular_expressions_are_refused() {
        for text in ["~(", "~[", "~(a{1000}){1000}"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }
}
