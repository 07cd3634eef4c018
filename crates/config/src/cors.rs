//! `cors` of a site or a route: which pages elsewhere may send it requests and read its answers.

use std::sync::Arc;
use std::time::Duration;

use super::fault::{Faults, Spot};
use super::method::read_methods;
use super::text::is_header_name;
use super::tree::Section;

/// What pages elsewhere may (Fetch standard, section 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsSettings {
    /// Whose pages.
    pub origins: Vec<OriginRule>,
    /// With which methods.
    pub methods: Vec<String>,
    /// With which fields besides the usual ones; `*` among them is any.
    pub headers: Vec<String>,
    /// Which fields of answers they may read besides the usual ones.
    pub expose: Vec<String>,
    /// With cookies and other credentials.
    pub credentials: bool,
    /// For how long a browser need not ask again.
    pub max_age: Duration,
}

/// Origins of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginRule {
    /// Any.
    Any,
    /// This one, in lower case.
    Exact(String),
    /// Those of hosts below one: what stands before a host's own name and behind it.
    Below(String, String),
}

impl OriginRule {
    /// Whether an origin, as a browser sends it, is meant.
    pub fn has(&self, origin: &[u8]) -> bool {
        match self {
            OriginRule::Any => true,
            OriginRule::Exact(own) => origin.eq_ignore_ascii_case(own.as_bytes()),
            OriginRule::Below(before, after) => {
                let origin = origin.to_ascii_lowercase();
                let name = origin.strip_prefix(before.as_bytes());
                let name = name.and_then(|rest| rest.strip_suffix(after.as_bytes()));
                let is_of_host = |byte: &u8| byte.is_ascii_alphanumeric() || b"-.".contains(byte);
                name.is_some_and(|name| !name.is_empty() && name.iter().all(is_of_host))
            }
        }
    }

    fn parse(text: &str) -> Result<OriginRule, &'static str> {
        const HINT: &str = "write it as a browser sends it: `https://app.example.com`, with its \
                            port where that is not the usual one, and nothing behind it";
        if text == "*" {
            return Ok(OriginRule::Any);
        }
        if text == "null" {
            return Ok(OriginRule::Exact(text.to_owned()));
        }
        let (scheme, host) = text.split_once("://").ok_or(HINT)?;
        let is_of_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let is_scheme = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
        let (is_below, name) = match host.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, host),
        };
        if name.is_empty() || !name.chars().all(is_of_host) || !scheme.chars().all(is_scheme) {
            return Err(HINT);
        }
        if matches!(scheme, "https") && name.ends_with(":443")
            || matches!(scheme, "http") && name.ends_with(":80")
        {
            return Err("browsers leave the usual port out: leave it out here, too");
        }
        let text = text.to_ascii_lowercase();
        Ok(match is_below {
            true => {
                let name = name.to_ascii_lowercase();
                OriginRule::Below(format!("{scheme}://"), format!(".{name}"))
            }
            false => OriginRule::Exact(text),
        })
    }
}

/// What a site or a route says, if it says something of its own.
pub(crate) fn read_cors(section: &Section, faults: &mut Faults<'_>) -> Option<Arc<CorsSettings>> {
    let section = section.section("cors")?;
    let mut origins = Vec::new();
    for (text, spot) in section.given_texts("origins") {
        match OriginRule::parse(text) {
            Ok(origin) => origins.push(origin),
            Err(hint) => {
                let message = format!("{text:?} is no origin of a page");
                faults.error(spot, message).hint(hint);
            }
        }
    }
    let credentials = section.flag("credentials");
    let spot = section.spot("origins");
    if section.given("origins").is_some() && section.given_texts("origins").is_empty() {
        let hint = "list the origins of those that may, or remove `cors`";
        faults.error(spot, "no page may").hint(hint);
    }
    if origins.contains(&OriginRule::Any) && origins.len() > 1 {
        let hint = "keep it alone, or remove it";
        faults.error(spot, "`*` has all the others").hint(hint);
    }
    if origins.contains(&OriginRule::Any) && credentials {
        faults
            .error(spot, "no browser sends credentials where any page may ask")
            .hint("list the origins, or remove `credentials`");
    }
    let names = |key: &'static str, faults: &mut Faults<'_>| names(section, key, faults);
    Some(Arc::new(CorsSettings {
        origins,
        methods: read_methods(section.texts("methods"), faults),
        headers: names("headers", faults),
        expose: names("expose", faults),
        credentials,
        max_age: section.time("max_age"),
    }))
}

/// Names of fields: they are tokens (RFC 9110 section 5.1).
fn names(section: &Section, key: &str, faults: &mut Faults<'_>) -> Vec<String> {
    let all: Vec<(&str, Spot)> = section.texts(key);
    for (text, spot) in &all {
        if !is_header_name(text) {
            let message = format!("{text:?} is no name");
            faults
                .error(*spot, message)
                .hint("write one name in each string");
        }
    }
    all.into_iter().map(|(text, _)| text.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_those_that_browsers_send() {
        let has =
            |rule: &str, origin: &str| OriginRule::parse(rule).unwrap().has(origin.as_bytes());
        assert!(has("https://app.example.com", "https://app.example.com"));
        assert!(has("https://App.example.com", "https://app.example.com"));
        assert!(has(
            "https://app.example.com:8443",
            "https://app.example.com:8443"
        ));
        assert!(has("*", "null") && has("null", "null"));
        assert!(has("https://*.example.com", "https://a.b.example.com"));
        for other in [
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://app.example.com.evil.test",
            "https://evil.test/https://app.example.com",
            "null",
            "",
        ] {
            assert!(!has("https://app.example.com", other), "{other}");
        }
        for other in [
            "https://example.com",
            "https://.example.com",
            "https://evilexample.com",
            "https://evil.test/.example.com",
            "https://evil.test?.example.com",
            "https://user@a.example.com",
            "http://a.example.com",
            "https://a.example.com:444",
        ] {
            assert!(!has("https://*.example.com", other), "{other}");
        }
        for wrong in [
            "",
            "app.example.com",
            "https://",
            "https://app.example.com/",
            "https://app.example.com:443",
            "http://app.example.com:80",
            "https://*",
            "https://a.*.com",
            "https://a b",
            "HTTPS://a.test",
        ] {
            assert!(OriginRule::parse(wrong).is_err(), "{wrong}");
        }
    }
}
