//! Where a reference leads: relative ones are joined with where they stand, the way browsers do.

use crate::limits::TARGET_BYTES_MAX;
use crate::url::{Url, host_and_port};

/// What references are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) is_secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query.
    pub(crate) target: String,
}

/// Where something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResolvedReference {
    /// At the same server: path and query.
    Here(String),
    /// At another one: scheme, host and port.
    Elsewhere(String),
    /// Nothing is to be loaded: part of the document itself, or no address.
    Nowhere,
}

impl Base {
    /// Of a URL.
    pub(crate) fn of(url: &Url) -> Base {
        Base {
            is_secure: url.is_secure,
            host: url.host.clone(),
            port: url.port,
            target: url.target.clone(),
        }
    }

    /// The same server, at another path.
    pub(crate) fn at(&self, target: &str) -> Base {
        Base {
            target: target.to_owned(),
            ..self.clone()
        }
    }

    /// Where a reference leads from here.
    pub(crate) fn join(&self, reference: &str) -> ResolvedReference {
        let is_edge = |letter: char| letter <= ' ';
        let reference: String = reference
            .trim_matches(is_edge)
            .chars()
            .filter(|letter| !matches!(letter, '\t' | '\n' | '\r'))
            .collect();
        let reference = reference.split('#').next().unwrap_or_default();
        if reference.is_empty() || reference.len() > TARGET_BYTES_MAX {
            return ResolvedReference::Nowhere;
        }
        let (scheme, rest) = match scheme_of(reference) {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, reference),
        };
        let is_secure = match scheme.as_deref() {
            None => self.is_secure,
            Some("http") => false,
            Some("https") => true,
            Some(_) => return ResolvedReference::Nowhere,
        };
        let slashes = rest.chars().take_while(|letter| is_slash(*letter)).count();
        if scheme.is_some() || slashes >= 2 {
            return self.absolute(is_secure, &rest[slashes..]);
        }
        let (path, query) = cut(rest);
        let (own_path, _) = cut(&self.target);
        let joined = match path {
            "" => own_path.to_owned(),
            path if path.starts_with(is_slash) => path.to_owned(),
            path => {
                let folder = own_path.rfind('/').map_or(0, |at| at + 1);
                format!("{}{path}", &own_path[..folder])
            }
        };
        here(&joined, query)
    }

    /// Where it leads in a text that says that it belongs to another server.
    pub(crate) fn join_foreign(&self, origin: &str, reference: &str) -> ResolvedReference {
        let reference = reference.trim_matches(|letter: char| letter <= ' ');
        let is_absolute = scheme_of(reference).is_some() || reference.starts_with("//");
        match self.join(reference) {
            ResolvedReference::Here(_) if !is_absolute => {
                ResolvedReference::Elsewhere(origin.to_owned())
            }
            place => place,
        }
    }

    /// A reference that names a server.
    fn absolute(&self, is_secure: bool, rest: &str) -> ResolvedReference {
        let at = rest.find(|letter| is_slash(letter) || letter == '?');
        let (authority, rest) = rest.split_at(at.unwrap_or(rest.len()));
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let Some((host, port)) = host_and_port(authority) else {
            return ResolvedReference::Nowhere;
        };
        let port = port.unwrap_or(if is_secure { 443 } else { 80 });
        let is_here = is_secure == self.is_secure
            && port == self.port
            && host.eq_ignore_ascii_case(&self.host);
        if !is_here {
            let scheme = if is_secure { "https" } else { "http" };
            return ResolvedReference::Elsewhere(format!(
                "{scheme}://{}",
                authority.to_ascii_lowercase()
            ));
        }
        let (path, query) = cut(rest);
        here(path, query)
    }
}

/// A scheme at the beginning, and what follows its colon.
fn scheme_of(reference: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = reference.split_once(':')?;
    let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

fn is_slash(letter: char) -> bool {
    matches!(letter, '/' | '\\')
}

/// Path, and query with its question mark.
fn cut(text: &str) -> (&str, &str) {
    text.split_at(text.find('?').unwrap_or(text.len()))
}

/// A path without its dots, and both parts with everything percent-encoded that must be.
fn here(path: &str, query: &str) -> ResolvedReference {
    let mut parts: Vec<&str> = Vec::new();
    let all = path.split(is_slash).skip(1);
    let count = all.clone().count();
    for (number, part) in all.enumerate() {
        let is_last = number + 1 == count;
        let dots = part.to_ascii_lowercase().replace("%2e", ".");
        match dots.as_str() {
            ".." => {
                parts.pop();
            }
            "." => {}
            _ => {
                parts.push(part);
                continue;
            }
        }
        if is_last {
            parts.push("");
        }
    }
    let mut target = String::from("/");
    encode(&parts.join("/"), b"\"#<>?`{}", &mut target);
    encode(query, b"\"#<>'", &mut target);
    if target.len() > TARGET_BYTES_MAX {
        return ResolvedReference::Nowhere;
    }
    ResolvedReference::Here(target)
}

/// Appends a text with what may not stand in it as `%XX`.
fn encode(text: &str, marks: &[u8], out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !marks.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(base: &str, reference: &str) -> ResolvedReference {
        Base::of(&base.parse().unwrap()).join(reference)
    }

    #[test]
    fn references_of_the_same_server_become_targets() {
        for (reference, target) in [
            ("a.css", "/x/a.css"),
            ("./a/../b", "/x/b"),
            ("../../../c", "/c"),
            ("..", "/"),
            (".", "/x/"),
            ("%2E%2e/d", "/d"),
            ("/e?f=/../g#h", "/e?f=/../g"),
            ("?i", "/x/y?i"),
            (" \n/j\tk ", "/jk"),
            ("\\l\\m", "/l/m"),
            ("/n o\"<é>", "/n%20o%22%3C%C3%A9%3E"),
            ("/p?q='r s'", "/p?q=%27r%20s%27"),
            ("/%zz//a", "/%zz//a"),
            ("http://EXAMPLE.org:8080/t", "/t"),
            ("//example.org:8080?u", "/?u"),
            ("http:\\\\example.org:8080\\v", "/v"),
        ] {
            assert_eq!(
                joined("http://example.org:8080/x/y?z", reference),
                ResolvedReference::Here(target.to_owned()),
                "{reference}"
            );
        }
    }

    #[test]
    fn other_servers_are_told_apart() {
        for (reference, origin) in [
            ("https://example.org/a", "https://example.org"),
            ("//cdn.example.org/a", "http://cdn.example.org"),
            ("http://example.org:81", "http://example.org:81"),
            ("HTTP://u:p@EXAMPLE.com/", "http://example.com"),
        ] {
            assert_eq!(
                joined("http://example.org/", reference),
                ResolvedReference::Elsewhere(origin.to_owned()),
                "{reference}"
            );
        }
    }

    #[test]
    fn what_is_no_address_leads_nowhere() {
        for reference in [
            "",
            "#a",
            " # ",
            "data:text/plain,x",
            "javascript:void(0)",
            "blob:http://example.org/x",
            "about:blank",
            "http://",
            "//a b/",
            "http://[::1/",
        ] {
            assert_eq!(
                joined("http://example.org/", reference),
                ResolvedReference::Nowhere,
                "{reference}"
            );
        }
        let long = "x".repeat(TARGET_BYTES_MAX + 1);
        assert_eq!(
            joined("http://example.org/", &long),
            ResolvedReference::Nowhere
        );
    }
}
