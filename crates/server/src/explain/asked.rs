//! From a method and a URL, as a person writes them, to the head a client would send.

use std::net::IpAddr;

use hob_http::head::is_name;

/// A request to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedRequest {
    /// Method.
    pub method: String,
    /// The URL, or a path alone.
    pub url: String,
    /// Header fields: name and value.
    pub fields: Vec<(String, String)>,
    /// The client's address, where it is to count.
    pub from: Option<IpAddr>,
    /// Who has signed in.
    pub user: Option<String>,
    /// Groups that they are taken to be in, in the place of those that a file says; none where it
    /// says them, or it is not known.
    pub groups: Vec<String>,
}

/// What a URL comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExplainedUrl {
    /// Host and port as in the URL; `None` when only a path was given.
    pub(super) host: Option<String>,
    /// The port; `None` when only a path was given.
    pub(super) port: Option<u16>,
    /// Path and query as a client sends them.
    pub(super) target: String,
}

impl ExplainedRequest {
    /// Where the URL leads.
    pub(super) fn address(&self) -> Result<ExplainedUrl, String> {
        let url = self.url.trim();
        if url.contains(|c: char| c.is_control()) {
            return Err(format!("{url:?} has a control character"));
        }
        // A client keeps the fragment for itself.
        let url = url.split('#').next().unwrap_or_default();
        if url.starts_with('/') || url == "*" {
            return Ok(ExplainedUrl {
                host: None,
                port: None,
                target: escaped(url),
            });
        }
        let lower = url.to_ascii_lowercase();
        let (rest, usual_port) = if lower.starts_with("http://") {
            (&url["http://".len()..], 80)
        } else if lower.starts_with("https://") {
            (&url["https://".len()..], 443)
        } else {
            return Err(format!(
                "{url:?} is neither a path nor a URL; write /path or http://host/path"
            ));
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, target) = rest.split_at(end);
        if host.contains('@') {
            return Err(format!("{url:?} has a user in it; leave out all up to `@`"));
        }
        if host.is_empty() {
            return Err(format!("{url:?} names no host"));
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(ExplainedUrl {
            host: Some(host.to_owned()),
            port: Some(port_of(host, usual_port)?),
            target: format!("{slash}{}", escaped(target)),
        })
    }

    /// The head a client would send there.
    pub(super) fn head(&self, address: &ExplainedUrl) -> Result<Vec<u8>, String> {
        if !is_name(self.method.as_bytes()) {
            return Err(format!("{:?} is no method; write GET or HEAD", self.method));
        }
        let host = address.host.as_deref().unwrap_or_default();
        let own_host = self.fields.iter().any(|(name, _)| is_host(name));
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, address.target);
        if !own_host {
            head.push_str(&format!("Host: {host}\r\n"));
        }
        for (name, value) in &self.fields {
            if !is_name(name.as_bytes()) || value.contains(['\r', '\n', '\0']) {
                return Err(format!("{name:?}: {value:?} is no header field"));
            }
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Ok(head.into_bytes())
    }
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

fn port_of(host: &str, usual: u16) -> Result<u16, String> {
    // The colons of an IPv6 address stand within brackets.
    let after = host.rsplit(']').next().unwrap_or_default();
    match after.rsplit_once(':') {
        None => Ok(usual),
        Some((_, "")) => Ok(usual),
        Some((_, port)) => port
            .parse()
            .map_err(|_| format!("{port:?} is no port: it goes from 0 to 65535")),
    }
}

/// What a client encodes before it sends: spaces and what is not ASCII.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, url: &str) -> ExplainedRequest {
        ExplainedRequest {
            method: method.to_owned(),
            url: url.to_owned(),
            fields: Vec::new(),
            from: None,
            user: None,
            groups: Vec::new(),
        }
    }

    fn head(method: &str, url: &str) -> Result<String, String> {
        let asked = asked(method, url);
        let head = asked.head(&asked.address()?)?;
        Ok(String::from_utf8(head).unwrap())
    }

    #[test]
    fn urls_become_the_heads_clients_send() {
        let cases = [
            ("http://a", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
            (
                "HTTP://a:81?q=1",
                "GET /?q=1 HTTP/1.1\r\nHost: a:81\r\n\r\n",
            ),
            ("/a b/ü#top", "GET /a%20b/%C3%BC HTTP/1.1\r\nHost: \r\n\r\n"),
            (
                "https://[::1]:4/%2e",
                "GET /%2e HTTP/1.1\r\nHost: [::1]:4\r\n\r\n",
            ),
        ];
        for (url, expected) in cases {
            assert_eq!(head("GET", url).as_deref(), Ok(expected), "{url}");
        }
    }

    #[test]
    fn ports_are_the_schemes_unless_they_are_written() {
        let port = |url| asked("GET", url).address().map(|address| address.port);
        assert_eq!(port("http://a/"), Ok(Some(80)));
        assert_eq!(port("https://a/"), Ok(Some(443)));
        assert_eq!(port("http://[::1]/"), Ok(Some(80)));
        assert_eq!(port("http://[::1]:8080/"), Ok(Some(8080)));
        assert_eq!(port("/a"), Ok(None));
    }

    #[test]
    fn what_is_no_request_is_told() {
        let wrong = [
            ("GET", "a/b"),
            ("GET", "ftp://a/"),
            ("GET", "http:///a"),
            ("GET", "http://me@a/"),
            ("GET", "http://a:99999/"),
            ("GET", "/a\r\nX: 1"),
            ("G T", "/a"),
            ("", "/a"),
        ];
        for (method, url) in wrong {
            assert!(head(method, url).is_err(), "{method} {url}");
        }
    }

    #[test]
    fn a_field_may_name_the_host_and_cannot_split_the_head() {
        let mut asked = asked("GET", "/");
        asked.fields.push(("host".to_owned(), "b".to_owned()));
        let address = asked.address().unwrap();
        assert_eq!(
            asked.head(&address).unwrap(),
            b"GET / HTTP/1.1\r\nhost: b\r\n\r\n"
        );
        asked.fields.push(("a".to_owned(), "1\r\nb: 2".to_owned()));
        assert!(asked.head(&address).is_err());
    }
}
