//! `scgi` of a route: who is asked, how, and within which limits.

use std::sync::Arc;
use std::time::Duration;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::Faults;
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Config, Route, UpstreamTls};
use crate::handle::scgi::Scgi;
use crate::handle::scgi::keys::SCGI;
use crate::handle::scgi::wire::{OWN_VARIABLES, ScgiProtocol};
use crate::handle::upstream::program::UpstreamProgram;
use crate::handle::upstream::program::config::{ProgramSettings, ProgramSpots};
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight::ProgramCheck;

impl HasSettings for Scgi {
    type Settings = ProgramSettings;
    type Spots = ProgramSpots;
}

impl Configured for Scgi {
    const KEY: SchemaKey = SchemaKey::new("scgi", ValueType::OrText("to", &SCGI), Nothing(""));

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (ProgramSettings, ProgramSpots) {
        let is_own = |name: &str| OWN_VARIABLES.contains(&name.as_bytes());
        for pair in section.map("env").iter().filter(|pair| is_own(&pair.name)) {
            faults
                .warn(pair.key, format!("`{}` does nothing here", pair.name))
                .hint("remove it: SCGI has it in every request");
        }
        ProgramSettings::read(section, on, programs, faults)
    }

    fn build(
        settings: &ProgramSettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        _: &Pattern,
    ) -> Result<Arc<Scgi>, String> {
        let program = UpstreamProgram::new(ScgiProtocol, settings, around, route)?;
        Ok(Arc::new(Scgi(program)))
    }

    fn check(
        settings: &ProgramSettings,
        spots: &ProgramSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        settings.check(*spots, config, looked, faults);
    }

    fn look(settings: &ProgramSettings, spots: &ProgramSpots, look: &mut ProgramCheck<'_, '_, '_>) {
        settings.look(*spots, look);
    }

    fn upstream_tls(settings: &ProgramSettings) -> Option<&UpstreamTls> {
        settings.upstream.tls.as_ref()
    }

    fn program(settings: &ProgramSettings) -> Option<usize> {
        settings.run.as_ref().map(|run| run.rules)
    }

    fn grace(settings: &ProgramSettings) -> Duration {
        let run = settings.run.as_ref();
        run.map_or(Duration::ZERO, |run| run.grace)
    }

    fn runs(settings: &ProgramSettings) -> String {
        settings.answers()
    }
}
