//! What the config says of a program behind an upstream, whatever is spoken there.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::handle::config::build_site::OnSection;
use crate::handle::config::captured::plain_root;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::program::{Programs, check_env};
use crate::handle::config::tree::{KeyTextPair, Section};
use crate::handle::config::{Config, Route};
use crate::handle::script::build::half_close;
use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::upstream;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::buffer::BufferSettings;
use crate::handle::upstream::config::{
    RetryRules, UpstreamSections, UpstreamSettings, UpstreamTlsSpots,
};
use crate::handle::upstream::keys::TIMEOUT_TABLE;
use crate::handle::upstream::patience::UpstreamTimeouts;
use crate::handle::upstream::program::UpstreamProgram;
use crate::handle::upstream::program::check::ProgramCheck;
use crate::handle::upstream::program::protocol::ProgramProtocol;
use crate::handle::upstream::run::config::RunSettings;
use crate::handle::upstream::run::keys::RUN;
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight;

/// A program that another process keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSettings {
    /// Who answers.
    pub upstream: UpstreamSettings,
    /// What hob starts itself to be asked; `None` where it does not.
    pub run: Option<RunSettings>,
    /// Limits of time.
    pub timeout: UpstreamTimeouts,
    /// When another member is asked.
    pub retry: RetryRules,
    /// What it is told is the site's root.
    pub document_root: Option<PathBuf>,
    /// What is held of bodies.
    pub buffer: BufferSettings,
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

/// Where its parts stand.
#[derive(Clone, Copy)]
pub struct ProgramSpots {
    /// Who answers.
    who: Spot,
    tls: UpstreamTlsSpots,
}

impl ProgramSettings {
    /// Reads the keys that all have, and says where its parts stand.
    pub(crate) fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (ProgramSettings, ProgramSpots) {
        let from = UpstreamSections::of(section, on.around.root, faults);
        let members = from.members(faults, |text, resolve| MemberAddress::parse(text, resolve));
        let members = members
            .into_iter()
            .map(|(address, terms)| terms.at(address));
        let mut upstream = UpstreamSettings::read(from, members.collect(), faults);
        let run = RunSettings::read(section, on, programs, faults);
        if let Some(run) = &run {
            // Nobody else asks it.
            if !section.has("connections") {
                upstream.connections = run.children;
            }
            if section.table().key("keep").is_some() && !section.has("keep") {
                upstream.keep = upstream.connections.min(run.children);
            }
        }
        check_env(section, faults);
        let pair = |pair: &KeyTextPair| (pair.name.clone(), pair.text.clone());
        let mut env: Vec<_> = section.map("env").iter().map(pair).collect();
        env.sort();
        let settings = ProgramSettings {
            upstream,
            run,
            timeout: section.inner("timeout", &TIMEOUT_TABLE, UpstreamTimeouts::read),
            retry: RetryRules::read(section, faults),
            buffer: BufferSettings::read(section),
            document_root: plain_root(on.around.site).cloned(),
            env,
            pass_authorization: section.flag("pass_authorization"),
            dev: section.flag("dev"),
            control: section.flag("control"),
            head: section.size_usize("head"),
        };
        let who = match settings.run {
            Some(_) => section.spot(RUN),
            None => from.members_spot(),
        };
        let tls = from.tls_spots();
        (settings, ProgramSpots { who, tls })
    }

    /// Tells what is not there, or not to be trusted.
    pub(crate) fn check(
        &self,
        spots: ProgramSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        upstream::config::look_at_sockets(&self.upstream, spots.who, looked, faults);
        upstream::config::look_at_tls(&self.upstream, spots.tls, looked, faults);
        if let Some(run) = &self.run {
            run.check(spots.who, config, looked, faults);
        }
    }

    /// Tells what this machine has in its way.
    pub(crate) fn look(&self, spots: ProgramSpots, look: &mut preflight::ProgramCheck<'_, '_, '_>) {
        if let Some(run) = &self.run {
            run.look(spots.who, look);
        }
    }

    /// Who answers, for people.
    pub(crate) fn answers(&self) -> String {
        let run = self.run.as_ref().map(|run| run.name().to_owned());
        run.unwrap_or_else(|| self.upstream.texts())
    }

    pub(crate) fn document_root(&self) -> &[u8] {
        let root = self.document_root.as_ref();
        root.map_or(&[], |root| root.as_os_str().as_bytes())
    }
}

impl UpstreamProgram {
    /// The program of a route.
    pub(crate) fn new(
        protocol: impl ProgramProtocol + 'static,
        settings: &ProgramSettings,
        around: &SitesBuildContext<'_>,
        route: &Route,
    ) -> Result<Arc<UpstreamProgram>, String> {
        let protocol: Arc<dyn ProgramProtocol> = Arc::new(protocol);
        let (run, upstream) =
            around.run(settings.run.as_ref(), &settings.upstream, &route.label())?;
        let addresses = upstream.texts();
        let check = ProgramCheck::protocol(&protocol);
        let (upstream, gate) = around.upstream(&upstream, &route.label(), check);
        Ok(Arc::new(UpstreamProgram {
            upstream,
            run,
            gate,
            pace: StderrRateLimit::default(),
            half_close: half_close(route),
            settings: settings.clone(),
            protocol,
            addresses,
        }))
    }
}
