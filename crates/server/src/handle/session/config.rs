//! `session` of a route: which program stays for each visitor, how it is found again, and within
//! which limits.

use std::sync::Arc;
use std::time::Duration;

use hob_keeper::preflight::ProgramCheck;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::Faults;
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Config, Resident, Route, SourceLocation, Workers};
use crate::handle::resident;
use crate::handle::resident::config::{ResidentSpots, build_program};
use crate::handle::script::visits::carrier::VisitCarriers;
use crate::handle::script::visits::table::VisitRules;
use crate::handle::session::Session;
use crate::handle::session::keys::{SESSION, VISITOR_QUEUE, VISITS};
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;

/// A program that stays for each visitor.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSettings {
    /// The program of one visit: a resident one with one worker.
    pub program: Resident,
    /// Where handles are looked for.
    pub handle: HandlePlace,
    /// The cookie's name behind `__Host-`; `None` is made of the route's path.
    pub cookie: Option<String>,
    /// Where who comes too late is sent.
    pub stale: Option<String>,
    /// The same request again, while one is under way.
    pub duplicate: Duplicate,
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

/// What becomes of the same request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicate {
    /// It waits its turn.
    Queue,
    /// It is refused.
    Refuse,
}

impl HasSettings for Session {
    type Settings = SessionSettings;
    type Spots = ResidentSpots;
}

impl Configured for Session {
    const KEY: SchemaKey = SchemaKey::new("session", ValueType::Table(&SESSION), Nothing(""))
        .aka(&["persistent", "persistent_cgi"]);

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (SessionSettings, ResidentSpots) {
        let site_root = on.around.site.optional_path("root");
        let (program, spots) = build_program(section, site_root, false, programs, faults);
        let settings = read(section, program, faults);
        let path = on.route.text("path");
        if settings.handle != HandlePlace::Cookie && !path.ends_with("/*") {
            faults
                .error(
                    section.spot("handle"),
                    "there is no place for a handle in the path",
                )
                .hint("let the route's `path` end with `/*`, or write `handle = \"cookie\"`");
        }
        (settings, spots)
    }

    fn build(
        settings: &SessionSettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        pattern: &Pattern,
    ) -> Result<Arc<Session>, String> {
        around.session(settings, route, pattern)
    }

    fn check(
        settings: &SessionSettings,
        spots: &ResidentSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        resident::Resident::check(&settings.program, spots, config, looked, faults);
    }

    fn look(
        settings: &SessionSettings,
        spots: &ResidentSpots,
        look: &mut ProgramCheck<'_, '_, '_>,
    ) {
        resident::Resident::look(&settings.program, spots, look);
    }

    fn program(settings: &SessionSettings) -> Option<usize> {
        Some(settings.program.program)
    }

    fn grace(settings: &SessionSettings) -> Duration {
        settings.program.grace
    }

    fn runs(settings: &SessionSettings) -> String {
        settings.program.runs.name().to_owned()
    }
}

fn read(section: &Section, program: Resident, faults: &mut Faults<'_>) -> SessionSettings {
    let rules = section.inner("visits", &VISITS, |visits| VisitRules {
        count_max: visits.number("max"),
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
    SessionSettings {
        program: Resident {
            workers: Workers {
                idle_timeout: rules.wait,
                max_age: section.time("life"),
                ..program.workers
            },
            queue: section.inner("queue", &VISITOR_QUEUE, |queue| queue.number("max")),
            wait: section.inner("queue", &VISITOR_QUEUE, |queue| queue.time("wait")),
            ..program
        },
        handle,
        cookie: cookie(section, handle, faults),
        stale: stale(section, faults),
        duplicate: match section.word("duplicate") {
            "refuse" => Duplicate::Refuse,
            _ => Duplicate::Queue,
        },
        rules,
    }
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

impl SessionSettings {
    /// All that decides how visits run. Where it stands in the config is no part of it.
    pub(super) fn placeless(&self) -> SessionSettings {
        SessionSettings {
            program: Resident {
                program: 0,
                place: SourceLocation::default(),
                ..self.program.clone()
            },
            ..self.clone()
        }
    }

    /// Where handles are looked for, on a route with this path.
    pub(super) fn carriers(&self, path: &str) -> VisitCarriers {
        let name = || match &self.cookie {
            Some(name) => format!("__Host-{name}"),
            None => {
                let plain = |byte: &u8| byte.is_ascii_alphanumeric();
                let plain: Vec<u8> = path.bytes().filter(plain).collect();
                format!("__Host-hts{}", String::from_utf8_lossy(&plain))
            }
        };
        VisitCarriers {
            in_path: self.handle != HandlePlace::Cookie,
            cookie: (self.handle != HandlePlace::Path).then(name),
        }
    }
}
