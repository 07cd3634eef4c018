//! Names of methods, as lists of `access`, `cors` and `when` have them.

use super::fault::{Faults, Spot};
use super::text::is_header_name;

/// The methods of a list; what is none is told.
pub(crate) fn read_methods(texts: Vec<(&str, Spot)>, faults: &mut Faults<'_>) -> Vec<String> {
    for (text, spot) in &texts {
        // Both are tokens (RFC 9110 section 9.1).
        if !is_header_name(text) || text.contains(|c: char| c.is_ascii_lowercase()) {
            faults
                .error(*spot, format!("{text:?} is no method"))
                .hint("write methods as they are sent, such as `\"GET\"`: case matters");
        }
    }
    texts.iter().map(|(text, _)| (*text).to_owned()).collect()
}

/// The same, and HEAD where GET is among them.
pub(crate) fn with_head(mut methods: Vec<String>) -> Vec<String> {
    let has = |name: &str| methods.iter().any(|known| known == name);
    if has("GET") && !has("HEAD") {
        methods.push("HEAD".to_owned());
    }
    methods
}
