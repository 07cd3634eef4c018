//! What the config says of a program behind an upstream, whatever is spoken there.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::handle::config::Route;
use crate::handle::config::build_site::OnSection;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::program::check_env;
use crate::handle::config::tree::{KeyTextPair, Section};
use crate::handle::script::build::half_close;
use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::config::{RetryRules, UpstreamSections, UpstreamSettings};
use crate::handle::upstream::keys::TIMEOUT_TABLE;
use crate::handle::upstream::patience::UpstreamTimeouts;
use crate::handle::upstream::program::UpstreamProgram;
use crate::handle::upstream::program::check::ProgramCheck;
use crate::handle::upstream::program::protocol::ProgramProtocol;
use crate::serve::sites::SitesBuildContext;

/// A program that another process keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSettings {
    /// Who answers.
    pub upstream: UpstreamSettings,
    /// Limits of time.
    pub timeout: UpstreamTimeouts,
    /// When another member is asked.
    pub retry: RetryRules,
    /// What it is told is the site's root.
    pub document_root: Option<PathBuf>,
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

impl ProgramSettings {
    /// Reads the keys that all have, and says where the members stand.
    pub(crate) fn read(
        section: &Section,
        on: &OnSection<'_>,
        faults: &mut Faults<'_>,
    ) -> (ProgramSettings, Spot) {
        let from = UpstreamSections::of(section, on.around.root, faults);
        let members = from.members(faults, |text, resolve| MemberAddress::parse(text, resolve));
        let members = members
            .into_iter()
            .map(|(address, terms)| terms.at(address));
        let upstream = UpstreamSettings::read(from, members.collect(), faults);
        check_env(section, faults);
        let pair = |pair: &KeyTextPair| (pair.name.clone(), pair.text.clone());
        let mut env: Vec<_> = section.map("env").iter().map(pair).collect();
        env.sort();
        let settings = ProgramSettings {
            upstream,
            timeout: section.inner("timeout", &TIMEOUT_TABLE, UpstreamTimeouts::read),
            retry: RetryRules::read(section, faults),
            document_root: on.around.site.optional_path("root").cloned(),
            env,
            pass_authorization: section.flag("pass_authorization"),
            dev: section.flag("dev"),
            control: section.flag("control"),
            head: section.size_usize("head"),
        };
        (settings, from.members_spot())
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
    ) -> Arc<UpstreamProgram> {
        let shared = around.shared();
        let protocol: Arc<dyn ProgramProtocol> = Arc::new(protocol);
        let key = protocol.words().key;
        let addresses = settings.upstream.texts();
        let name = settings.upstream.shown(&route.path, key);
        let check = ProgramCheck::protocol(&protocol);
        let limits = (settings.upstream.connections, settings.upstream.queue);
        Arc::new(UpstreamProgram {
            upstream: shared.upstream(name.clone(), &settings.upstream, check),
            gate: shared.gate(&format!("{name} {key} {addresses}"), name, limits),
            pace: StderrRateLimit::default(),
            half_close: half_close(route),
            settings: settings.clone(),
            protocol,
            addresses,
        })
    }
}
