//! `fastcgi` of a route: who is asked, for which scripts, and within which limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{Config, Route, UpstreamTls};
use crate::handle::fastcgi::FastCgi;
use crate::handle::fastcgi::find::Scripts;
use crate::handle::fastcgi::keys::FASTCGI;
use crate::handle::fastcgi::wire::FastCgiProtocol;
use crate::handle::upstream::program::UpstreamProgram;
use crate::handle::upstream::program::config::{ProgramSettings, ProgramSpots};
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight::ProgramCheck;

/// A program that another process keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct FastCgiSettings {
    /// What holds for programs of all kinds.
    pub program: ProgramSettings,
    /// The folder of its scripts; `None` where it has none.
    pub root: Option<PathBuf>,
    /// Scripts that answer for a folder.
    pub index: Vec<String>,
    /// Ending of scripts; empty where one program answers for all paths.
    pub split: String,
    /// Where the other side finds the scripts.
    pub script_root: Option<PathBuf>,
    /// They are looked for here.
    pub check: bool,
}

/// Where the parts of a `fastcgi` stand.
pub struct FastCgiSpots {
    program: ProgramSpots,
    root: Spot,
}

impl HasSettings for FastCgi {
    type Settings = FastCgiSettings;
    type Spots = FastCgiSpots;
}

impl Configured for FastCgi {
    const KEY: SchemaKey =
        SchemaKey::new("fastcgi", ValueType::OrText("to", &FASTCGI), Nothing(""));

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (FastCgiSettings, FastCgiSpots) {
        let (settings, program) = read(section, on, programs, faults);
        let root = match section.given("root") {
            Some(_) => section.spot("root"),
            None => on.around.site.spot("root"),
        };
        (settings, FastCgiSpots { program, root })
    }

    fn build(
        settings: &FastCgiSettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        _: &Pattern,
    ) -> Result<Arc<FastCgi>, String> {
        let root = match settings.looked_for() {
            Some(root) => Some(around.root(root)?),
            None => None,
        };
        let pool = &around.shared().pool;
        let protocol = FastCgiProtocol {
            keeps: settings.program.upstream.keep > 0,
        };
        Ok(Arc::new(FastCgi {
            scripts: Scripts::new(root.map(|root| (pool.for_lane(root.lane()), root))),
            program: UpstreamProgram::new(protocol, &settings.program, around, route)?,
            settings: settings.clone(),
        }))
    }

    fn check(
        settings: &FastCgiSettings,
        spots: &FastCgiSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        if let Some(root) = settings.looked_for() {
            looked.folder(root, spots.root, faults);
        }
        settings
            .program
            .check(spots.program, config, looked, faults);
    }

    fn look(settings: &FastCgiSettings, spots: &FastCgiSpots, look: &mut ProgramCheck<'_, '_, '_>) {
        if let Some(root) = settings.looked_for() {
            look.server_enters(root, spots.root);
        }
        settings.program.look(spots.program, look);
    }

    fn upstream_tls(settings: &FastCgiSettings) -> Option<&UpstreamTls> {
        settings.program.upstream.tls.as_ref()
    }

    fn program(settings: &FastCgiSettings) -> Option<usize> {
        settings.program.run.as_ref().map(|run| run.rules)
    }

    fn grace(settings: &FastCgiSettings) -> Duration {
        let run = settings.program.run.as_ref();
        run.map_or(Duration::ZERO, |run| run.grace)
    }

    fn runs(settings: &FastCgiSettings) -> String {
        settings.program.answers()
    }
}

impl FastCgiSettings {
    /// The folder in which scripts are looked for.
    fn looked_for(&self) -> Option<&Path> {
        self.root.as_deref().filter(|_| self.check)
    }
}

fn read(
    section: &Section,
    on: &OnSection<'_>,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (FastCgiSettings, ProgramSpots) {
    let (mut program, spots) = ProgramSettings::read(section, on, programs, faults);
    let of_site = program.document_root.take();
    let split = section.text("split").to_owned();
    let own_root = section.optional_path("root");
    let root = own_root
        .or(of_site.as_ref())
        .filter(|_| !split.is_empty())
        .cloned();
    let script_root = section.optional_path("script_root").cloned();
    if root.is_none() && script_root.is_none() && !split.is_empty() && !section.has("root") {
        faults
            .error(
                section.header,
                "`fastcgi` has no `root`, and the site has none either",
            )
            .hint(
                "add `root = \"FOLDER\"` of the scripts, or `split = \"\"` for one program that \
                 answers for all paths",
            );
    }
    if split.is_empty() {
        for key in ["root", "index", "script_root", "check"] {
            if let Some(given) = section.given(key) {
                faults
                    .warn(given.key, format!("`{key}` does nothing here"))
                    .hint("remove it: without `split` no file is looked for");
            }
        }
    }
    program.document_root = script_root.clone().or_else(|| root.clone());
    let settings = FastCgiSettings {
        program,
        check: section.flag("check") && root.is_some(),
        root,
        index: index(section, faults),
        split,
        script_root,
    };
    (settings, spots)
}

fn index(section: &Section, faults: &mut Faults<'_>) -> Vec<String> {
    let names = section.texts("index");
    for (name, spot) in &names {
        if name.is_empty() || name.contains('/') {
            faults
                .error(*spot, format!("{name:?} is no name of an index script"))
                .hint("write a file name, without a folder");
        }
    }
    names.iter().map(|(name, _)| (*name).to_owned()).collect()
}
