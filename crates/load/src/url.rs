//! Where requests go: the URLs of the command line, taken apart.

use std::fmt;
use std::str::FromStr;

/// A URL of `http` or `https`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// As it was written.
    pub text: String,
    /// Is it one of https?
    pub is_secure: bool,
    /// Name or address; an IPv6 address without its brackets.
    pub host: String,
    /// The port; that of the scheme where the URL has none.
    pub port: u16,
    /// Host and port as the Host field has them.
    pub authority: String,
    /// Path and query; `/` where the URL has none.
    pub target: String,
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let wrong = |what: &str| format!("{text:?}: {what}; write http://HOST[:PORT]/PATH");
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("no scheme"))?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("the scheme is neither http nor https")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong(
                "spaces and letters outside ASCII must be written as %XX",
            ));
        }
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(at);
        if authority.contains('@') {
            return Err(wrong(
                "names and passwords belong into --header Authorization:...",
            ));
        }
        let (host, port) = host_and_port(authority).ok_or_else(|| wrong("no such host or port"))?;
        Ok(Url {
            text: text.to_owned(),
            is_secure,
            host: host.to_owned(),
            port: port.unwrap_or(if is_secure { 443 } else { 80 }),
            authority: authority.to_owned(),
            target: if target.starts_with('/') {
                target.to_owned()
            } else {
                format!("/{target}")
            },
        })
    }
}

impl Url {
    /// What all URLs of a run have together: whether it is `https`, host and port.
    pub fn origin(&self) -> (bool, &str, u16) {
        (self.is_secure, &self.host, self.port)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Url {
    /// Has it neither a path nor a query?
    pub fn is_root(&self) -> bool {
        self.target == "/"
    }

    /// Another path of the same server.
    pub(crate) fn with_target(&self, target: &str) -> Result<Url, String> {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}{target}", self.authority).parse()
    }
}

/// Host without brackets, and port where there is one; none where it is no such thing.
pub(crate) fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        host.parse::<std::net::Ipv6Addr>().ok()?;
        match after {
            "" => (host, None),
            after => (host, Some(after.strip_prefix(':')?)),
        }
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:%".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_name) {
        return None;
    }
    match port {
        None | Some("") => Some((host, None)),
        Some(port) => {
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|port| *port > 0 && is_number)?;
            Some((host, Some(port)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_taken_apart() {
        let url: Url = "HTTPS://example.org:8443/a?b=c#d".parse().unwrap();
        assert_eq!(url.origin(), (true, "example.org", 8443));
        assert_eq!(
            (url.authority.as_str(), url.target.as_str()),
            ("example.org:8443", "/a?b=c")
        );
        let url: Url = "http://[::1]?x".parse().unwrap();
        assert_eq!(url.origin(), (false, "::1", 80));
        assert_eq!(
            (url.authority.as_str(), url.target.as_str()),
            ("[::1]", "/?x")
        );
        assert_eq!("http://a".parse::<Url>().unwrap().target, "/");
    }

    #[test]
    fn url_that_cannot_be_asked_is_refused_with_what_to_write() {
        for wrong in [
            "127.0.0.1:8080/",
            "ftp://a/",
            "http://",
            "http:///a",
            "http://a:0/",
            "http://a:99999/",
            "http://a:+1/",
            "http://[1.2.3.4]/",
            "http://[::1]8/",
            "http://u:p@a/",
            "http://a/b c",
            "http://a/\r\nx",
            "http://a/é",
        ] {
            let error = wrong.parse::<Url>().unwrap_err();
            assert!(error.contains("; write http://HOST"), "{error}");
        }
    }
}
