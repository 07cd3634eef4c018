//! What a section says of visits: where their handles are, how long they last, how many there are.

use std::time::Duration;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::fault::Faults;
use crate::handle::config::tree::Section;
use crate::handle::script::visits::carrier::{VisitCarriers, WeakCookies};
use crate::handle::script::visits::keys::VISITS;
use crate::handle::script::visits::repeat::{Duplicate, DuplicateRules};
use crate::handle::script::visits::table::VisitRules;

/// How visits are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitSettings {
    /// Where handles are looked for.
    pub handle: HandlePlace,
    /// The cookie's name behind `__Host-`; `None` is made of the route's path.
    pub cookie: Option<String>,
    /// Where who comes too late is sent.
    pub stale: Option<String>,
    /// How old a visit may be.
    pub life: Duration,
    /// The same request again, while one is under way.
    pub duplicates: DuplicateRules,
    /// How many visits there may be, and how long handles hold.
    pub rules: VisitRules,
}

/// Where a visitor's handle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlePlace {
    /// In the path.
    Path,
    /// In a cookie.
    Cookie,
    /// In either.
    Both,
}

impl VisitSettings {
    /// Reads a section with the keys of visits.
    pub(crate) fn read(
        section: &Section,
        on: &OnSection<'_>,
        faults: &mut Faults<'_>,
    ) -> VisitSettings {
        let rules = section.inner("visits", &VISITS, |visits| VisitRules {
            count_max: visits.given("max").map(|_| visits.number("max")),
            client_max: visits.number("per_client"),
            per_second: visits.number("rate"),
            at_once: visits.number("burst"),
            overlap: section.time("overlap"),
            wait: section.time("wait"),
            wait_max: section.time("wait_max"),
        });
        if rules.wait > rules.wait_max {
            faults
                .error(section.spot("wait"), "`wait` is more than `wait_max`")
                .hint("make `wait_max` longer, or `wait` shorter");
        }
        let handle = match section.word("handle") {
            "cookie" => HandlePlace::Cookie,
            "both" => HandlePlace::Both,
            _ => HandlePlace::Path,
        };
        if handle != HandlePlace::Cookie && !on.route.text("path").ends_with("/*") {
            faults
                .error(
                    section.spot("handle"),
                    "there is no place for a handle in the path",
                )
                .hint("let the route's `path` end with `/*`, or write `handle = \"cookie\"`");
        }
        VisitSettings {
            handle,
            cookie: cookie(section, handle, faults),
            stale: stale(section, faults),
            life: section.time("life"),
            duplicates: DuplicateRules {
                duplicate: match section.word("duplicate") {
                    "refuse" => Duplicate::Refuse,
                    "repeat" => Duplicate::Repeat,
                    _ => Duplicate::Queue,
                },
                bytes_max: section.size_usize("repeat"),
            },
            rules,
        }
    }

    /// Where handles are looked for, on a route with this path. Each page of a route has a cookie
    /// of its own: `page` is its name.
    pub(crate) fn carriers(&self, path: &str, page: &str) -> VisitCarriers {
        let name = || match (&self.cookie, page) {
            (Some(name), "") => format!("__Host-{name}"),
            (Some(name), page) => format!("__Host-{name}-{}", plain(page)),
            (None, page) => format!("__Host-hts{}{}", plain(path), plain(page)),
        };
        VisitCarriers {
            in_path: self.handle != HandlePlace::Cookie,
            cookie: (self.handle != HandlePlace::Path).then(name),
            weak: None,
        }
    }

    /// The cookies beside handles that can be guessed, on a route with this path.
    pub(crate) fn weak_cookies(&self, path: &str) -> WeakCookies {
        WeakCookies {
            prefix: format!("__Host-hts{}-", plain(path)),
            life: self.life,
        }
    }
}

fn plain(text: &str) -> String {
    let plain = text.chars().filter(char::is_ascii_alphanumeric);
    plain.collect()
}

fn cookie(section: &Section, handle: HandlePlace, faults: &mut Faults<'_>) -> Option<String> {
    let name = section.optional_text("cookie")?;
    let spot = section.spot("cookie");
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        faults
            .error(spot, format!("{name:?} is no name of a cookie"))
            .hint("write letters, digits, `-`, `_` and `.`: `\"shop\"`");
    }
    if handle == HandlePlace::Path {
        faults
            .warn(
                spot,
                "`cookie` does nothing here: the handle is in the path",
            )
            .hint("remove it, or write `handle = \"cookie\"`");
    }
    Some(name.to_owned())
}

fn stale(section: &Section, faults: &mut Faults<'_>) -> Option<String> {
    let target = section.optional_text("stale")?;
    let is_path = target.starts_with('/') && !target.starts_with("//");
    if !is_path || target.bytes().any(|byte| byte <= b' ' || byte == 127) {
        faults
            .error(section.spot("stale"), format!("{target:?} is no path"))
            .hint("write where visitors begin again: `\"/shop/\"`");
    }
    Some(target.to_owned())
}
