//! `session` of a route: which program stays for each visitor, how it is found again, and within
//! which limits.

use std::sync::Arc;
use std::time::Duration;

use hob_keeper::preflight::ProgramCheck;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::captured::plain_root;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::Faults;
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Config, Resident, Route, SourceLocation, Workers};
use crate::handle::resident;
use crate::handle::resident::config::{ResidentSpots, build_program};
use crate::handle::script::visits::carrier::VisitCarriers;
use crate::handle::script::visits::config::VisitSettings;
use crate::handle::script::visits::said::WeakHandles;
use crate::handle::session::Session;
use crate::handle::session::keys::{SESSION, VISITOR_QUEUE};
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;

/// A program that stays for each visitor.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSettings {
    /// The program of one visit: a resident one with one worker.
    pub program: Resident,
    /// Handles of the program that can be guessed.
    pub weak: WeakHandles,
    /// How visits are kept.
    pub visits: VisitSettings,
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
        let site_root = plain_root(on.around.site);
        let (program, spots) = build_program(section, site_root, false, programs, faults);
        let settings = read(section, program, on, faults);
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
        let workers = config.limits.workers;
        let said = settings.visits.rules.count_max;
        if let Some(most) = said.filter(|most| *most > workers) {
            let text = format!(
                "{most} visits may be there at once, but all resident programs together have \
                 {workers} workers"
            );
            faults.warn(spots.what, text).hint(
                "a visit has a process of its own: raise `limits.workers`, or lower `visits.max`",
            );
        }
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

fn read(
    section: &Section,
    program: Resident,
    on: &OnSection<'_>,
    faults: &mut Faults<'_>,
) -> SessionSettings {
    let visits = VisitSettings::read(section, on, faults);
    SessionSettings {
        program: Resident {
            workers: Workers {
                idle_timeout: visits.rules.wait,
                max_age: visits.life,
                ..program.workers
            },
            queue: section.inner("queue", &VISITOR_QUEUE, |queue| queue.number("max")),
            wait: section.inner("queue", &VISITOR_QUEUE, |queue| queue.time("wait")),
            ..program
        },
        weak: match section.word("weak") {
            "bind" => WeakHandles::Bind,
            _ => WeakHandles::Refuse,
        },
        visits,
    }
}

impl SessionSettings {
    /// Where handles are looked for, on a route with this path.
    pub(super) fn carriers(&self, path: &str) -> VisitCarriers {
        let is_bound = self.weak == WeakHandles::Bind;
        VisitCarriers {
            weak: is_bound.then(|| self.visits.weak_cookies(path)),
            ..self.visits.carriers(path, "")
        }
    }

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
}
