//! `fastcgi` of a route: who is asked, for which scripts, and within which limits.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::{KeyTextPair, Section};
use crate::handle::config::{Config, Route};
use crate::handle::fastcgi::FastCgi;
use crate::handle::fastcgi::check::CHECK;
use crate::handle::fastcgi::find::Scripts;
use crate::handle::fastcgi::keys::FASTCGI;
use crate::handle::script::build::half_close;
use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::config::{RetryRules, UpstreamSections, UpstreamSettings};
use crate::handle::upstream::keys::TIMEOUT_TABLE;
use crate::handle::upstream::patience::UpstreamTimeouts;
use crate::handle::{Configured, HasSettings, upstream};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight::ProgramCheck;

/// A program that another process keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct FastCgiSettings {
    /// Who answers.
    pub upstream: UpstreamSettings,
    /// Limits of time.
    pub timeout: UpstreamTimeouts,
    /// When another member is asked.
    pub retry: RetryRules,
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
    /// Variables that every request has, sorted by name.
    pub env: Vec<(String, String)>,
    /// `Authorization` is passed on.
    pub pass_authorization: bool,
    /// Failures are explained to the client.
    pub dev: bool,
    /// It may steer its answers.
    pub control: bool,
    /// Longest head of an answer, in bytes.
    pub head: usize,
}

/// Where the parts of a `fastcgi` stand.
pub struct FastCgiSpots {
    to: Spot,
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
        _: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (FastCgiSettings, FastCgiSpots) {
        let of_site = on.around.site.optional_path("root");
        let from = UpstreamSections::of(section, on.around.root, faults);
        let settings = read(section, (from, of_site), faults);
        let root = match section.given("root") {
            Some(_) => section.spot("root"),
            None => on.around.site.spot("root"),
        };
        let to = from.members_spot();
        (settings, FastCgiSpots { to, root })
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
        let shared = around.shared();
        let addresses = settings.upstream.texts();
        let name = settings.upstream.shown(&route.path, "fastcgi");
        let limits = (settings.upstream.connections, settings.upstream.queue);
        Ok(Arc::new(FastCgi {
            scripts: Scripts::new(root.map(|root| (shared.pool.for_lane(root.lane()), root))),
            document_root: bytes(settings.document_root()),
            upstream: shared.upstream(name.clone(), &settings.upstream, CHECK),
            gate: shared.gate(&format!("{name} fastcgi {addresses}"), name, limits),
            pace: StderrRateLimit::default(),
            half_close: half_close(route),
            settings: settings.clone(),
            addresses,
        }))
    }

    fn check(
        settings: &FastCgiSettings,
        spots: &FastCgiSpots,
        _: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        if let Some(root) = settings.looked_for() {
            looked.folder(root, spots.root, faults);
        }
        upstream::config::look_at_sockets(&settings.upstream, spots.to, looked, faults);
    }

    fn look(settings: &FastCgiSettings, spots: &FastCgiSpots, look: &mut ProgramCheck<'_, '_, '_>) {
        if let Some(root) = settings.looked_for() {
            look.server_enters(root, spots.root);
        }
    }

    fn runs(settings: &FastCgiSettings) -> String {
        settings.upstream.texts()
    }
}

impl FastCgiSettings {
    /// The folder in which scripts are looked for.
    fn looked_for(&self) -> Option<&Path> {
        self.root.as_deref().filter(|_| self.check)
    }

    fn document_root(&self) -> &Path {
        let root = self.script_root.as_ref().or(self.root.as_ref());
        root.map_or(Path::new(""), PathBuf::as_path)
    }
}

fn read(
    section: &Section,
    (from, of_site): (UpstreamSections<'_>, Option<&PathBuf>),
    faults: &mut Faults<'_>,
) -> FastCgiSettings {
    let split = section.text("split").to_owned();
    let own_root = section.optional_path("root");
    let root = own_root.or(of_site).filter(|_| !split.is_empty()).cloned();
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
    let members = from.members(faults, |text, resolve| MemberAddress::parse(text, resolve));
    let members = members
        .into_iter()
        .map(|(address, terms)| terms.at(address));
    FastCgiSettings {
        upstream: UpstreamSettings::read(from, members.collect(), faults),
        timeout: section.inner("timeout", &TIMEOUT_TABLE, UpstreamTimeouts::read),
        retry: RetryRules::read(section, faults),
        check: section.flag("check") && root.is_some(),
        root,
        index: index(section, faults),
        split,
        script_root,
        env: env(section, faults),
        pass_authorization: section.flag("pass_authorization"),
        dev: section.flag("dev"),
        control: section.flag("control"),
        head: section.size_usize("head"),
    }
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

fn env(section: &Section, faults: &mut Faults<'_>) -> Vec<(String, String)> {
    let pairs = section.map("env");
    for pair in pairs.iter().filter(|pair| pair.name.is_empty()) {
        faults
            .error(pair.key, "\"\" is no name of a variable")
            .hint("write a name, such as `APP_ENV`");
    }
    let pair = |pair: &KeyTextPair| (pair.name.clone(), pair.text.clone());
    let mut env: Vec<_> = pairs.iter().map(pair).collect();
    env.sort();
    env
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
