//! What may stand in header fields, media types and names of files below a root.

use super::fault::{Faults, Spot};

/// Fields that belong to the framing of messages: the server sets them itself.
const FRAMING: [&str; 8] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What is wrong with a field's name, and what to do.
pub fn header_name_wrong(name: &str) -> Option<(String, &'static str)> {
    if !is_header_name(name) {
        let hint = "names are letters, digits and `-`, without `:`";
        return Some((format!("{name:?} is no name of a header field"), hint));
    }
    let is_framing = FRAMING.iter().any(|field| field.eq_ignore_ascii_case(name));
    is_framing.then(|| {
        let hint = "remove it: the server sets it for each answer";
        (format!("`{name}` cannot be set here"), hint)
    })
}

/// What to do about a field's value that cannot stand in a message.
//= rfc9110#5.5
pub fn header_value_wrong(value: &str) -> Option<&'static str> {
    if value.chars().any(char::is_control) {
        return Some("remove line breaks and other control characters");
    }
    (value.trim() != value).then_some("remove the space at its begin or end")
}

/// Tells when `text` is no media type; `shown` is what the config says.
//= rfc9110#8.3.1
pub fn check_media_type(text: &str, shown: &str, spot: Spot, faults: &mut Faults<'_>) {
    let bare = text.split(';').next().unwrap_or(text).trim_end();
    let is_type = bare.split_once('/').is_some_and(|(main, sub)| {
        !main.is_empty() && !sub.is_empty() && main.bytes().chain(sub.bytes()).all(is_token)
    });
    if !is_type || header_value_wrong(text).is_some() {
        let message = format!("{shown:?} is no media type");
        faults
            .error(spot, message)
            .hint("write it as in `text/html` or `image/svg+xml`");
    }
}

/// What to do about a name that does not stay below a root.
pub fn relative_name_wrong(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("write a file name such as `index.html`");
    }
    if name.starts_with('/') || name.ends_with('/') {
        return Some("write it without `/` at its begin and end");
    }
    let leaves = name
        .split('/')
        .any(|part| part.is_empty() || part == "." || part == "..");
    leaves.then_some("write it without `.` and `..`")
}

/// Whether a field of a header can have this name.
//= rfc9110#5.1
pub fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_token)
}

//= rfc9110#5.6.2
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_fields_and_broken_names_are_refused() {
        assert_eq!(header_name_wrong("X-Frame-Options"), None);
        for name in ["Content-Length", "transfer-encoding", "a b", "a:", ""] {
            assert!(header_name_wrong(name).is_some(), "{name:?}");
        }
    }

    #[test]
    fn values_cannot_begin_a_new_line() {
        assert_eq!(header_value_wrong("a, b=\"c\""), None);
        for value in ["a\r\nB: c", " a", "a\t"] {
            assert!(header_value_wrong(value).is_some(), "{value:?}");
        }
    }

    #[test]
    fn names_stay_below_the_root() {
        assert_eq!(relative_name_wrong("a/b.html"), None);
        for name in ["", "/a", "a/", "../a", "a/../b", "a//b", "."] {
            assert!(relative_name_wrong(name).is_some(), "{name:?}");
        }
    }
}
