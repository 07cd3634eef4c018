//! What a watcher asks for, in words: `path=/cgi-bin/* slower=100ms status=5xx`.
//!
//! Each word is a key and a value; a value with spaces stands in double quotes. A key that stands
//! more than once asks for any of its values; of several keys all must hold.

use std::fmt;
use std::net::IpAddr;

use crate::watch::{KEEP_MAX, Pattern, TERMS_BYTES_MAX, VALUES_MAX};
use crate::{HandlerKind, Record};

/// What a watcher asks for.
#[derive(Clone, Debug, Default)]
pub struct WatchTerms {
    clients: Vec<Network>,
    sites: Vec<Pattern>,
    paths: Vec<Pattern>,
    methods: Vec<String>,
    headers: Vec<(String, Pattern)>,
    statuses: Vec<(u16, u16)>,
    handlers: Vec<HandlerKind>,
    slower_us: Option<u64>,
    /// Show the fields of requests and answers.
    pub shows_head: bool,
    /// Show the bytes of bodies.
    pub shows_body: bool,
    /// Hide nothing.
    pub shows_secrets: bool,
    /// Nothing is shown until an event matches this.
    pub trigger: Option<Pattern>,
    /// How many events before that one are shown then.
    pub keep: usize,
}

/// What is known of a request when it is decided whether it is watched.
pub struct WatchCandidate<'a> {
    /// Where it comes from; unspecified for Unix sockets.
    pub client: IpAddr,
    /// Name of its site; empty when none was chosen.
    pub site: &'a str,
    /// Its path, as sent.
    pub path: &'a [u8],
    /// Its method.
    pub method: &'a [u8],
    /// Who answers.
    pub handler: HandlerKind,
    /// Its fields.
    pub fields: &'a dyn FieldsOf,
}

/// Fields of a request's head.
pub trait FieldsOf {
    /// Whether a value of the field of this name, in any case of letters, is accepted.
    fn any(&self, name: &str, is_accepted: &mut dyn FnMut(&[u8]) -> bool) -> bool;
}

/// What is wrong with the words of a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermsError(String);

impl fmt::Display for TermsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TermsError {}

/// Every key.
const KEYS: &str = "client, site, path, method, header, status, handler, slower, head, body, \
                    secrets, trigger, keep";

impl WatchTerms {
    /// Reads a whole filter.
    ///
    /// # Errors
    /// The first word that cannot be understood, and why.
    pub fn parse(text: &str) -> Result<WatchTerms, TermsError> {
        let mut terms = WatchTerms::default();
        terms.add_words(text)?;
        Ok(terms)
    }

    /// Adds the words of a text.
    ///
    /// # Errors
    /// As [`WatchTerms::parse`].
    pub fn add_words(&mut self, text: &str) -> Result<(), TermsError> {
        if text.len() > TERMS_BYTES_MAX {
            return Err(TermsError(format!(
                "the filter is longer than {TERMS_BYTES_MAX} bytes"
            )));
        }
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (word, after) = next_word(rest)?;
            let Some((key, value)) = word.split_once('=') else {
                return Err(TermsError(format!(
                    "`{word}` is no key with a value, such as `path=/cgi-bin/*`"
                )));
            };
            self.add(key, value)?;
            rest = after.trim_start();
        }
        Ok(())
    }

    /// Adds one key with its value.
    ///
    /// # Errors
    /// Why it cannot be understood.
    pub fn add(&mut self, key: &str, value: &str) -> Result<(), TermsError> {
        if value.len() > TERMS_BYTES_MAX || self.value_count() >= VALUES_MAX {
            return Err(TermsError("the filter is too long".to_owned()));
        }
        let wrong = |text: String| TermsError(format!("{key}: {text}"));
        let pattern = || Pattern::parse(value).map_err(wrong);
        match key {
            "client" => self.clients.push(Network::parse(value).map_err(wrong)?),
            "site" => self.sites.push(pattern()?),
            "path" => self.paths.push(pattern()?),
            "method" => self.methods.push(value.to_owned()),
            "header" => {
                let Some((name, regex)) = value.split_once(':') else {
                    return Err(wrong(
                        "it is NAME:REGEX, such as `User-Agent:curl`".to_owned(),
                    ));
                };
                let regex = Pattern::regex(regex).map_err(wrong)?;
                self.headers.push((name.to_owned(), regex));
            }
            "status" => self.statuses.push(statuses(value).map_err(wrong)?),
            "handler" => self.handlers.push(handler(value).map_err(wrong)?),
            "slower" => self.slower_us = Some(duration_us(value).map_err(wrong)?),
            "head" => self.shows_head = switch(value).map_err(wrong)?,
            "body" => self.shows_body = switch(value).map_err(wrong)?,
            "secrets" => self.shows_secrets = switch(value).map_err(wrong)?,
            "trigger" => self.trigger = Some(Pattern::parse(value).map_err(wrong)?),
            "keep" => match value.parse() {
                Ok(keep) if keep <= KEEP_MAX => self.keep = keep,
                _ => return Err(wrong(format!("`{value}` is no number up to {KEEP_MAX}"))),
            },
            _ => return Err(TermsError(format!("`{key}` is no key; there are {KEYS}"))),
        }
        Ok(())
    }

    fn value_count(&self) -> usize {
        self.clients.len()
            + self.sites.len()
            + self.paths.len()
            + self.methods.len()
            + self.headers.len()
            + self.statuses.len()
            + self.handlers.len()
    }

    /// Whether a request may be meant, as far as its begin decides.
    pub fn match_begin(&self, subject: &WatchCandidate<'_>) -> bool {
        let any = |patterns: &[Pattern], text: &[u8]| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        let has_client = self.clients.is_empty()
            || self
                .clients
                .iter()
                .any(|network| network.holds(subject.client));
        let has_handler = self.handlers.is_empty() || self.handlers.contains(&subject.handler);
        let has_method = self.methods.is_empty()
            || self
                .methods
                .iter()
                .any(|method| method.as_bytes() == subject.method);
        has_client
            && has_handler
            && has_method
            && any(&self.paths, subject.path)
            && any(&self.sites, subject.site.as_bytes())
            && (self.headers.is_empty()
                || self.headers.iter().any(|(name, pattern)| {
                    let mut matches = |value: &[u8]| pattern.matches(value);
                    subject.fields.any(name, &mut matches)
                }))
    }

    /// True when only a request's end decides whether it is meant.
    pub fn needs_end(&self) -> bool {
        self.slower_us.is_some() || !self.statuses.is_empty()
    }

    /// Whether a request is meant, as far as its end decides.
    pub fn match_end(&self, record: &Record) -> bool {
        let is_slow = self
            .slower_us
            .is_none_or(|slower_us| record.total_us >= slower_us);
        let status = record.status;
        let within = |(from, to): &(u16, u16)| (*from..=*to).contains(&status);
        is_slow && (self.statuses.is_empty() || self.statuses.iter().any(within))
    }
}

/// The next word of a text, its quotes taken off, and what follows it.
fn next_word(text: &str) -> Result<(String, &str), TermsError> {
    let mut word = String::new();
    let mut is_quoted = false;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => match characters.next() {
                Some((_, escaped @ ('"' | '\\'))) => word.push(escaped),
                // Regular expressions have backslashes of their own.
                Some((_, other)) => word.extend(['\\', other]),
                None => break,
            },
            character if character.is_whitespace() && !is_quoted => return Ok((word, &text[at..])),
            character => word.push(character),
        }
    }
    match is_quoted {
        true => Err(TermsError("a double quote is not closed".to_owned())),
        false => Ok((word, "")),
    }
}

/// An address, or all that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    bits: u128,
    /// How many of the 128 bits count, of an address mapped to IPv6.
    count: u32,
}

impl Network {
    fn parse(text: &str) -> Result<Network, String> {
        let wrong = || format!("`{text}` is no address, and no network such as 10.0.0.0/8");
        let (address, count) = match text.split_once('/') {
            Some((address, count)) => (address, Some(count)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width: u32 = if address.is_ipv4() { 32 } else { 128 };
        let count = match count {
            Some(count) => count.parse().map_err(|_| wrong())?,
            None => width,
        };
        if count > width {
            return Err(wrong());
        }
        Ok(Network {
            bits: mapped(address),
            count: count + 128 - width,
        })
    }

    fn holds(&self, address: IpAddr) -> bool {
        let differing = self.bits ^ mapped(address);
        !address.is_unspecified() && differing.leading_zeros() >= self.count
    }
}

fn mapped(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// `404`, `5xx`, or `400-499`.
fn statuses(text: &str) -> Result<(u16, u16), String> {
    let wrong = || format!("`{text}` is no status such as 404, 5xx or 400-499");
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().map_err(|_| wrong())?;
        return match class {
            1..=5 => Ok((class * 100, class * 100 + 99)),
            _ => Err(wrong()),
        };
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (from.parse(), to.parse()) {
        // 0 is for those that got no answer.
        (Ok(0), Ok(0)) => Ok((0, 0)),
        (Ok(from @ 100..), Ok(to @ ..=599)) if from <= to => Ok((from, to)),
        _ => Err(wrong()),
    }
}

fn handler(text: &str) -> Result<HandlerKind, String> {
    let mut kinds = HandlerKind::ALL.iter().copied();
    kinds.find(|kind| kind.word() == text).ok_or_else(|| {
        let words: Vec<&str> = HandlerKind::ALL.iter().map(|kind| kind.word()).collect();
        format!("`{text}` is no handler; there are {}", words.join(", "))
    })
}

/// `100ms`, `2s`, `500us` or `1m`; without a unit it is milliseconds. In microseconds.
fn duration_us(text: &str) -> Result<u64, String> {
    let end = text.find(|character: char| !character.is_ascii_digit());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit_us = match unit {
        "us" => Some(1),
        "ms" | "" => Some(1000),
        "s" => Some(1_000_000),
        "m" => Some(60_000_000),
        _ => None,
    };
    let us = number.parse::<u64>().ok().zip(unit_us);
    us.and_then(|(number, unit_us): (u64, u64)| number.checked_mul(unit_us))
        .ok_or_else(|| format!("`{text}` is no time such as 100ms or 2s"))
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        _ => Err(format!("`{text}` is neither 1 nor 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One field.
    struct One(&'static str, &'static [u8]);

    impl FieldsOf for One {
        fn any(&self, name: &str, is_accepted: &mut dyn FnMut(&[u8]) -> bool) -> bool {
            name.eq_ignore_ascii_case(self.0) && is_accepted(self.1)
        }
    }

    fn subject<'a>(client: &str, path: &'a str, fields: &'a One) -> WatchCandidate<'a> {
        WatchCandidate {
            client: client.parse().unwrap(),
            site: "example.com",
            path: path.as_bytes(),
            method: b"GET",
            handler: HandlerKind::Cgi,
            fields,
        }
    }

    #[test]
    fn keys_must_all_hold_and_values_of_one_key_any() {
        let header = One("user-agent", b"curl/8.0");
        for (terms, expected) in [
            ("", true),
            ("path=/cgi-bin/*", true),
            ("path=/other", false),
            ("path=/other path=/cgi-bin/*", true),
            ("path=~^/cgi", true),
            ("client=127.0.0.1", true),
            ("client=127.0.0.0/8", true),
            ("client=10.0.0.0/8", false),
            ("client=::1", false),
            ("client=10.0.0.0/8 client=127.0.0.1", true),
            ("site=example.com", true),
            ("site=*.com", true),
            ("site=other", false),
            ("handler=cgi", true),
            ("handler=files", false),
            ("method=GET", true),
            ("method=POST method=PUT", false),
            ("header=User-Agent:curl", true),
            ("header=user-agent:^wget", false),
            ("header=Accept:.", false),
            ("path=/cgi-bin/* handler=files", false),
            ("  path=/cgi-bin/*   handler=cgi ", true),
            ("status=5xx slower=1h", true),
        ] {
            let Ok(terms) = WatchTerms::parse(terms) else {
                assert!(terms.contains("1h"), "{terms}");
                continue;
            };
            let found = terms.match_begin(&subject("127.0.0.1", "/cgi-bin/x", &header));
            assert_eq!(found, expected, "{terms:?}");
        }
        let terms = WatchTerms::parse("client=2001:db8::/32").unwrap();
        assert!(terms.match_begin(&subject("2001:db8:1::2", "/", &header)));
        assert!(!terms.match_begin(&subject("2001:db9::2", "/", &header)));
        // Nobody over a Unix socket has an address.
        let terms = WatchTerms::parse("client=0.0.0.0/0").unwrap();
        assert!(!terms.match_begin(&subject("0.0.0.0", "/", &header)));
    }

    #[test]
    fn end_decides_over_status_and_time() {
        let mut record = Record::empty();
        (record.status, record.total_us) = (503, 150_000);
        for (terms, needs_end, expected) in [
            ("path=/x", false, true),
            ("status=503", true, true),
            ("status=5xx", true, true),
            ("status=4xx", true, false),
            ("status=4xx status=500-510", true, true),
            ("slower=100ms", true, true),
            ("slower=150", true, true),
            ("slower=1s", true, false),
            ("slower=500us status=5xx", true, true),
        ] {
            let parsed = WatchTerms::parse(terms).unwrap();
            assert_eq!(parsed.needs_end(), needs_end, "{terms}");
            assert_eq!(parsed.match_end(&record), expected, "{terms}");
        }
    }

    #[test]
    fn values_with_spaces_stand_in_quotes() {
        let terms =
            WatchTerms::parse(r#"header="User-Agent:Mozilla .* \"x\" \d" trigger="*a b*" keep=7"#);
        let terms = terms.unwrap();
        let header = One("User-Agent", b"Mozilla 5 \"x\" 7");
        assert!(terms.match_begin(&subject("127.0.0.1", "/", &header)));
        assert!(terms.trigger.unwrap().matches(b"xa bx"));
        assert_eq!(terms.keep, 7);
        let terms = WatchTerms::parse("head=1 body=yes secrets=true").unwrap();
        assert!(terms.shows_head && terms.shows_body && terms.shows_secrets);
    }

    #[test]
    fn what_cannot_be_understood_is_refused_and_says_why() {
        for (terms, expected) in [
            ("x=1", "`x` is no key; there are client, site"),
            ("path", "`path` is no key with a value"),
            ("status=6xx", "status: `6xx` is no status"),
            ("status=4", "status: `4` is no status"),
            ("status=500-400", "status: `500-400` is no status"),
            ("slower=fast", "slower: `fast` is no time"),
            ("slower=99999999999999999999s", "slower: "),
            ("client=10.0.0.0/33", "client: `10.0.0.0/33` is no address"),
            ("client=x", "client: `x` is no address"),
            (
                "handler=magic",
                "handler: `magic` is no handler; there are none, files",
            ),
            ("header=x", "header: it is NAME:REGEX"),
            ("header=x:(", "header: `(` is no regular expression"),
            ("path=~[", "path: `[` is no regular expression"),
            ("keep=1001", "keep: `1001` is no number up to 1000"),
            ("head=maybe", "head: `maybe` is neither 1 nor 0"),
            ("path=\"/a", "a double quote is not closed"),
        ] {
            let error = WatchTerms::parse(terms).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{terms}: {error}");
        }
        assert!(WatchTerms::parse(&"x".repeat(TERMS_BYTES_MAX + 1)).is_err());
        assert!(WatchTerms::parse(&"path=a ".repeat(VALUES_MAX + 1)).is_err());
    }
}
