//! Parameters of a statement: `?` becomes `$1`, `$2`, ... wherever PostgreSQL would read an
//! operator, and stays in literals, names and comments.

/// The statement with numbered parameters; `None` if there are not as many marks as values. Without
/// values nothing is changed: a `?` is an operator then.
pub fn numbered(statement: &str, count: usize) -> Option<String> {
    if count == 0 {
        return Some(statement.to_owned());
    }
    let mut text = String::with_capacity(statement.len() + 2 * count);
    let mut rest = statement;
    let mut found = 0;
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        if next == '?' {
            found += 1;
            text.push('$');
            text.push_str(&found.to_string());
            rest = &rest[1..];
            before = Some('?');
            continue;
        }
        let end = token_end(rest, before);
        text.push_str(&rest[..end]);
        before = rest[..end].chars().next_back();
        rest = &rest[end..];
    }
    (found == count).then_some(text)
}

/// Where what begins here ends: a word, a literal, a name in quotes, a comment, or one character.
fn token_end(rest: &str, before: Option<char>) -> usize {
    let bytes = rest.as_bytes();
    match bytes {
        [b'E' | b'e', b'\'', ..] => 1 + quoted_end(&bytes[1..], Escapes::Known),
        [b'\'', ..] => quoted_end(bytes, Escapes::None),
        [b'"', ..] => quoted_end(bytes, Escapes::None),
        [b'-', b'-', ..] => memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1),
        [b'/', b'*', ..] => comment_end(bytes),
        [b'$', ..] if !before.is_some_and(is_of_word) => dollar_end(rest),
        _ => {
            let word = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            let first = rest.chars().next().map_or(0, char::len_utf8);
            word.max(first)
        }
    }
}

/// Whether backslashes mean something in a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    None,
    Known,
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// Behind the quote that ends what begins with one; a doubled one belongs to it.
fn quoted_end(bytes: &[u8], escapes: Escapes) -> usize {
    let quote = bytes[0];
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' if escapes == Escapes::Known => at += 1,
            byte if *byte == quote && bytes.get(at) == Some(&quote) => at += 1,
            byte if *byte == quote => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// Comments stand inside each other.
fn comment_end(bytes: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// `$tag$ ... $tag$`, or the one character.
fn dollar_end(rest: &str) -> usize {
    let Some(end) = rest[1..].find('$').map(|end| end + 2) else {
        return 1;
    };
    let tag = &rest[..end];
    let name = &tag[1..end - 1];
    let is_tag = name.chars().all(is_of_word) && !name.starts_with(|c: char| c.is_ascii_digit());
    match is_tag {
        true => rest[end..]
            .find(tag)
            .map_or(rest.len(), |at| end + at + end),
        false => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_numbered_outside_of_literals_names_and_comments() {
        for (statement, count, wanted) in [
            ("SELECT ?, ?", 2, Some("SELECT $1, $2")),
            ("a = ? AND b LIKE ?", 2, Some("a = $1 AND b LIKE $2")),
            ("a = '?' AND b = ?", 1, Some("a = '?' AND b = $1")),
            ("a = 'it''s ?' || ?", 1, Some("a = 'it''s ?' || $1")),
            (r"a = E'\'?' || ?", 1, Some(r"a = E'\'?' || $1")),
            (r"a = '\' || ?", 1, Some(r"a = '\' || $1")),
            (r"name'\' || ?", 1, Some(r"name'\' || $1")),
            ("\"a?\"\"?\" = ?", 1, Some("\"a?\"\"?\" = $1")),
            ("? -- ?\n, ?", 2, Some("$1 -- ?\n, $2")),
            ("? /* ? /* ? */ ? */ ?", 2, Some("$1 /* ? /* ? */ ? */ $2")),
            ("$q$ ? $x$ ? $q$ || ?", 1, Some("$q$ ? $x$ ? $q$ || $1")),
            ("$$?$$ || ?", 1, Some("$$?$$ || $1")),
            ("a$b$ = ? || c$b$", 1, Some("a$b$ = $1 || c$b$")),
            ("$1 ?", 1, Some("$1 $1")),
            ("ä = ?", 1, Some("ä = $1")),
            ("a ? 'key'", 0, Some("a ? 'key'")),
            ("a = '?", 1, None),
            ("a = ?", 2, None),
            ("?, ?", 1, None),
        ] {
            let found = numbered(statement, count);
            assert_eq!(found.as_deref(), wanted, "{statement}");
        }
    }
}
