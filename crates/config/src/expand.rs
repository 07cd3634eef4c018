//! `${NAME}` in string values: finding the names, and putting the values in. `$${` is a plain `${`.

/// Why a text cannot be expanded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExpansionError {
    /// The variable is not set.
    Undefined(String),
    /// `${` without a name and a `}`.
    Malformed,
}

/// The text with each `${NAME}` replaced.
pub(crate) fn expand<'v>(
    text: &str,
    variable: impl Fn(&str) -> Option<&'v str>,
) -> Result<String, ExpansionError> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            ExpansionPiece::Plain(plain) => out.push_str(plain),
            ExpansionPiece::Name(name) => match variable(name) {
                Some(value) => out.push_str(value),
                None => return Err(ExpansionError::Undefined(name.to_owned())),
            },
            ExpansionPiece::Malformed => return Err(ExpansionError::Malformed),
        }
    }
    Ok(out)
}

/// The names a text mentions.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter_map(|piece| match piece {
        ExpansionPiece::Name(name) => Some(name),
        _ => None,
    })
}

enum ExpansionPiece<'t> {
    Plain(&'t str),
    Name(&'t str),
    Malformed,
}

fn pieces(text: &str) -> impl Iterator<Item = ExpansionPiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(after) = rest.strip_prefix("$${") {
            rest = after;
            return Some(ExpansionPiece::Plain("${"));
        }
        if let Some(after) = rest.strip_prefix("${") {
            let name = after.split_once('}').filter(|(name, _)| is_name(name));
            rest = name.map_or("", |(_, after)| after);
            return Some(name.map_or(ExpansionPiece::Malformed, |(name, _)| {
                ExpansionPiece::Name(name)
            }));
        }
        // The next place where something may begin, after the first character.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let len = rest[first..].find('$').map_or(rest.len(), |at| first + at);
        let (plain, after) = rest.split_at(len);
        rest = after;
        Some(ExpansionPiece::Plain(plain))
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, ExpansionError> {
        expand(text, |name| (name == "PORT").then_some("80"))
    }

    #[test]
    fn variables_are_replaced_and_escapes_kept() {
        assert_eq!(expanded("a:${PORT}${PORT}b").as_deref(), Ok("a:8080b"));
        assert_eq!(
            expanded("$${PORT} $PORT $ ä$").as_deref(),
            Ok("${PORT} $PORT $ ä$")
        );
        assert_eq!(expanded("$$${PORT}").as_deref(), Ok("$${PORT}"));
    }

    #[test]
    fn undefined_and_malformed_are_told_apart() {
        assert_eq!(
            expanded("${HOST}"),
            Err(ExpansionError::Undefined("HOST".into()))
        );
        for text in ["${", "${}", "${1}", "${A-B}", "${A"] {
            assert_eq!(expanded(text), Err(ExpansionError::Malformed), "{text}");
        }
    }

    #[test]
    fn names_are_found_outside_escapes() {
        assert_eq!(names("${A}$${B}${C}").collect::<Vec<_>>(), ["A", "C"]);
    }
}
