//! `uwsgi` of a route: who is asked, how, and within which limits.

use std::sync::Arc;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::Faults;
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Config, Route, UpstreamTls};
use crate::handle::upstream::program::UpstreamProgram;
use crate::handle::upstream::program::config::{ProgramSettings, ProgramSpots};
use crate::handle::uwsgi::Uwsgi;
use crate::handle::uwsgi::keys::UWSGI;
use crate::handle::uwsgi::wire::UwsgiProtocol;
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;

/// An application that uWSGI runs.
#[derive(Clone, Debug, PartialEq)]
pub struct UwsgiSettings {
    /// What holds for programs of all kinds.
    pub program: ProgramSettings,
    /// The plugin that answers.
    pub modifier1: u8,
    /// What that leaves open.
    pub modifier2: u8,
}

impl HasSettings for Uwsgi {
    type Settings = UwsgiSettings;
    type Spots = ProgramSpots;
}

impl Configured for Uwsgi {
    const KEY: SchemaKey = SchemaKey::new("uwsgi", ValueType::OrText("to", &UWSGI), Nothing(""));

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (UwsgiSettings, ProgramSpots) {
        let (program, spots) = ProgramSettings::read(section, on, programs, faults);
        let settings = UwsgiSettings {
            program,
            modifier1: section.number("modifier1"),
            modifier2: section.number("modifier2"),
        };
        (settings, spots)
    }

    fn build(
        settings: &UwsgiSettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        _: &Pattern,
    ) -> Result<Arc<Uwsgi>, String> {
        let protocol = UwsgiProtocol {
            modifier1: settings.modifier1,
            modifier2: settings.modifier2,
        };
        let program = UpstreamProgram::new(protocol, &settings.program, around, route)?;
        Ok(Arc::new(Uwsgi(program)))
    }

    fn check(
        settings: &UwsgiSettings,
        spots: &ProgramSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        settings.program.check(*spots, config, looked, faults);
    }

    fn upstream_tls(settings: &UwsgiSettings) -> Option<&UpstreamTls> {
        settings.program.upstream.tls.as_ref()
    }

    fn runs(settings: &UwsgiSettings) -> String {
        settings.program.upstream.texts()
    }
}
