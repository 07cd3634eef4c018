//! What somebody looks for in the history.

use std::collections::HashSet;
use std::net::IpAddr;

use super::entry::Finished;
use crate::record::{Fault, HandlerKind};
use crate::series::SeriesName;

/// Conditions; all that are given must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Begun at this Unix time in milliseconds or later.
    pub since_unix_ms: Option<u64>,
    /// Begun at this Unix time in milliseconds or before.
    pub until_unix_ms: Option<u64>,
    /// Stands in the target, host, referer, user agent, user, reason, note or detail; upper and
    /// lower case are one.
    pub text: Option<String>,
    /// The client's address, or how it begins: `10.1.`.
    pub client: Option<String>,
    /// The site's name.
    pub site: Option<String>,
    /// The route's path pattern, which all routes with that path have, or all that it is called.
    pub route: Option<String>,
    /// The path; `*` stands for any text, `?` for one character.
    pub path: Option<String>,
    /// The method.
    pub method: Option<String>,
    /// Status codes.
    pub status: Option<Statuses>,
    /// Who answered.
    pub handler: Option<HandlerKind>,
    /// Whose fault it was.
    pub fault: Option<Fault>,
    /// Took at least so long, in microseconds.
    pub slower_us: Option<u64>,
}

/// Status codes looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statuses {
    /// One.
    Code(u16),
    /// A hundred: `4xx`.
    Class(u16),
}

impl Statuses {
    /// Reads `404` or `4xx`.
    pub fn parse(text: &str) -> Option<Statuses> {
        match text.strip_suffix("xx") {
            Some(class) => class.parse().ok().filter(|c| *c < 10).map(Statuses::Class),
            None => text.parse().ok().filter(|c| *c < 1000).map(Statuses::Code),
        }
    }

    fn has(self, status: u16) -> bool {
        match self {
            Statuses::Code(code) => status == code,
            Statuses::Class(class) => status / 100 == class,
        }
    }
}

/// Routes of one path are told apart by what follows it: what they ask of requests.
fn is_called(name: &str, wanted: &str) -> bool {
    let rest = name.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" when "))
}

/// A filter made ready for many entries.
#[derive(Debug)]
pub(super) struct Sieve {
    filter: Filter,
    /// Series of the site and route looked for; `None` when all are.
    series: Option<HashSet<u16>>,
    address: Option<IpAddr>,
    text: Vec<u8>,
}

impl Sieve {
    pub(super) fn new(filter: Filter, names: &[impl AsRef<SeriesName>]) -> Sieve {
        let (site, route) = (&filter.site, &filter.route);
        let series = (site.is_some() || route.is_some()).then(|| {
            let wanted = |name: &SeriesName| {
                site.as_ref().is_none_or(|site| *site == name.site)
                    && route
                        .as_ref()
                        .is_none_or(|route| is_called(&name.route, route))
            };
            let all = names.iter().enumerate();
            all.filter(|(_, name)| wanted(name.as_ref()))
                .map(|(number, _)| number as u16)
                .collect()
        });
        let client = filter.client.as_deref();
        let text = filter.text.as_deref().unwrap_or_default();
        Sieve {
            series,
            address: client.and_then(|client| client.parse().ok()),
            text: text.to_ascii_lowercase().into_bytes(),
            filter,
        }
    }

    /// No entry that was finished at these times at the latest can hold.
    pub(super) fn is_over(&self, last_unix_ms: u64) -> bool {
        let since = self.filter.since_unix_ms;
        since.is_some_and(|since| last_unix_ms < since)
    }

    /// No entry that took at most so long can hold.
    pub(super) fn is_quick(&self, slowest_us: u64) -> bool {
        self.filter
            .slower_us
            .is_some_and(|least| slowest_us < least)
    }

    pub(super) fn holds(&self, finished: &Finished<'_>) -> bool {
        let (filter, record) = (&self.filter, &finished.record);
        let started_ms = record.started_unix_ms;
        filter.since_unix_ms.is_none_or(|since| started_ms >= since)
            && filter.until_unix_ms.is_none_or(|until| started_ms <= until)
            && filter
                .slower_us
                .is_none_or(|least| record.total_us >= least)
            && filter.status.is_none_or(|wanted| wanted.has(record.status))
            && filter.handler.is_none_or(|wanted| wanted == record.handler)
            && filter.fault.is_none_or(|wanted| wanted == record.fault)
            && self
                .series
                .as_ref()
                .is_none_or(|wanted| wanted.contains(&record.series))
            && self.holds_texts(finished)
    }

    fn holds_texts(&self, finished: &Finished<'_>) -> bool {
        let (filter, texts) = (&self.filter, &finished.texts);
        let is_client = |client: &str| match self.address {
            Some(address) => finished.record.client == address,
            None => finished.record.client.to_string().starts_with(client),
        };
        let is_method = |method: &String| method.as_bytes().eq_ignore_ascii_case(texts.method);
        let is_path = |glob: &String| matches_glob(glob.as_bytes(), path_of(texts.target));
        filter.method.as_ref().is_none_or(is_method)
            && filter.path.as_ref().is_none_or(is_path)
            && filter.client.as_deref().is_none_or(is_client)
            && (self.text.is_empty() || self.holds_text(finished))
    }

    fn holds_text(&self, finished: &Finished<'_>) -> bool {
        let texts = &finished.texts;
        [
            texts.target,
            texts.host,
            texts.referer,
            texts.user_agent,
            texts.user,
            texts.detail,
            finished.reason,
            finished.note,
        ]
        .into_iter()
        .any(|text| contains(text, &self.text))
    }
}

fn path_of(target: &[u8]) -> &[u8] {
    let end = target.iter().position(|&byte| byte == b'?');
    &target[..end.unwrap_or(target.len())]
}

/// `wanted` is in lower case.
fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len())
        .any(|piece| piece.eq_ignore_ascii_case(wanted))
}

/// Whether a text is what a pattern says: `*` is any text, `?` any one byte. Takes at most the
/// product of their lengths.
pub(crate) fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text) = (0, 0);
    // The last star, and where what it stands for ends so far.
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => match &mut star {
                Some((begin, end)) => {
                    *end += 1;
                    (at, in_text) = (*begin + 1, *end);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        for (pattern, text, is_match) in [
            ("", "", true),
            ("*", "", true),
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("/a*", "/ab", true),
            ("*.cgi", "/x/y.cgi", true),
            ("/*/b*d", "/a/b/c/d", true),
            ("/?/", "/x/", true),
            ("/?/", "//", false),
            ("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaa", false),
        ] {
            let told = matches_glob(pattern.as_bytes(), text.as_bytes());
            assert_eq!(told, is_match, "{pattern} {text}");
        }
    }

    #[test]
    fn statuses_are_codes_or_hundreds() {
        assert_eq!(Statuses::parse("404"), Some(Statuses::Code(404)));
        assert_eq!(Statuses::parse("4xx"), Some(Statuses::Class(4)));
        for bad in ["", "xx", "40xx", "4x", "4 4", "-1", "1000"] {
            assert_eq!(Statuses::parse(bad), None, "{bad}");
        }
    }
}
