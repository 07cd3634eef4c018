//! Regular expressions in the place of a pattern: told from slips, with the pattern that says the
//! same.

/// The text is a regular expression. One that could be a pattern is so only where nothing else
/// could be meant.
pub(super) fn is_meant(text: &str, is_refused: bool) -> bool {
    let has = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    let is_class = has(&["[0-9", "[a-z", "[A-Z", "[^", "(?", "(.*", ".+"]);
    let is_marked = text.starts_with('^')
        || text.ends_with('$')
        || has(&["\\.", "\\d", "\\w", "\\s", "\\/", "(", "|"])
        || has(&[".*"]) && !text.starts_with('*');
    is_class || is_refused && is_marked
}

/// The pattern that takes what the usual regular expressions do.
pub(super) fn as_pattern(text: &str) -> Option<String> {
    let (text, is_open_before) = match text.strip_prefix('^') {
        Some(rest) => (rest, false),
        None => (text, !text.starts_with('/')),
    };
    let (text, is_open_behind) = match text.strip_suffix('$') {
        Some(rest) => (rest, false),
        None => (text, true),
    };
    let ending = text
        .strip_prefix("/.*")
        .or(text.strip_prefix(".*"))
        .unwrap_or(text);
    if let Some(ending) = ending.strip_prefix("\\.")
        && (is_open_before || ending.len() + 2 < text.len())
    {
        return is_word(ending).then(|| format!("*.{ending}"));
    }
    let mut pattern = String::new();
    let text = match SOME.iter().find_map(|some| text.strip_suffix(some)) {
        Some(before) => format!("{}/*", before.trim_end_matches('/')),
        None if is_open_behind && !ONE.iter().any(|one| text.ends_with(one)) => {
            format!("{}/*", text.trim_end_matches('/'))
        }
        None => text.to_owned(),
    };
    let mut captures = 0;
    for piece in text.strip_prefix('/')?.split('/') {
        pattern.push('/');
        if !ONE.contains(&piece) {
            pattern.push_str(&piece.replace("\\.", "."));
            continue;
        }
        captures += 1;
        match captures {
            1 => pattern.push_str("{name}"),
            more => pattern.push_str(&format!("{{name{more}}}")),
        }
    }
    let is_plain = !pattern.contains(['\\', '(', ')', '[', ']', '|', '+', '^', '$', '?']);
    is_plain.then_some(pattern)
}

/// What takes anything at the end.
const SOME: &[&str] = &["(.*)", ".*", "(.+)", ".+"];
/// What takes one segment.
const ONE: &[&str] = &[
    "[0-9]+",
    "([0-9]+)",
    "\\d+",
    "(\\d+)",
    "[^/]+",
    "([^/]+)",
    "[a-z]+",
    "([a-z]+)",
    "\\w+",
    "(\\w+)",
    "[a-z0-9-]+",
    "([a-z0-9-]+)",
    "[^/]*",
    "([^/]*)",
];

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use crate::route::pattern::Pattern;

    #[test]
    fn regular_expressions_are_told_with_the_pattern_that_says_the_same() {
        for (text, meant) in [
            (r"\.php$", Some("*.php")),
            (r"^/.*\.php$", Some("*.php")),
            (r".*\.cgi", Some("*.cgi")),
            ("^/api/", Some("/api/*")),
            ("^/api/.*$", Some("/api/*")),
            ("/api/(.*)", Some("/api/*")),
            ("^/about$", Some("/about")),
            (r"^/index\.html$", Some("/index.html")),
            ("/user/[0-9]+", Some("/user/{name}")),
            ("^/user/([0-9]+)/posts$", Some("/user/{name}/posts")),
            (r"/a/\d+/b/\w+", Some("/a/{name}/b/{name2}")),
            ("^/(de|en)/", None),
            (r"\.(png|jpg)$", None),
        ] {
            let told = Pattern::parse(text).unwrap_err().to_string();
            let wanted = match meant {
                Some(meant) => format!("`~`; write `{meant}`"),
                None => "without one write `/name`,".to_owned(),
            };
            assert!(told.contains(&wanted), "{text}: {told}");
        }
    }

    #[test]
    fn patterns_with_unusual_letters_stay_patterns() {
        for text in [
            "/price$", "/a(b)", "/[slug]", "/a+b", "/c|d", "/^", "/x.y", "/~anna/*",
        ] {
            assert!(Pattern::parse(text).is_ok(), "{text}");
        }
    }
}
