//! One generation of the config with everything that was opened for it.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use super::key_watch::{self, Stamp};
use super::listeners::{self, KeptListener, NotOpened};
use super::state::{self, State};
use super::{
    ControlChoice, KeeperFailure, KeeperOptions, OwnConfig, PreflightScope, certificates, kept,
    logs,
};
use crate::Config;
use crate::acme::plan::CertificatePlan;
use crate::channel::Outfit;
use crate::key_files::{self, KeyFiles};
use crate::papers::{KeeperFacts, Papers};
use crate::parcel::DESCRIPTORS_MAX;
use crate::preflight::{self, Extent};
use crate::privileges::{self, UserIdentity};
use crate::process::policy::Policy;
use hob_config::ConfigSources;

/// One generation.
pub(super) struct OpenedConfig {
    /// Counts loads, from 1; upgrades go on counting.
    pub generation: u64,
    pub(super) sources: ConfigSources,
    pub(super) config: Config,
    /// How long programs that stay may take to end, the slowest of them.
    pub(super) grace: Duration,
    pub(super) listeners: Vec<Rc<KeptListener>>,
    pub(super) logs: Vec<(u16, OwnedFd)>,
    /// Files in which history and activity outlive the server.
    pub(super) kept: Vec<(u16, OwnedFd)>,
    /// Where things are kept over restarts.
    pub(super) state: State,
    /// Certificates and private keys.
    pub(super) keys: KeyFiles,
    /// Their files as they were when they were read.
    pub(super) key_stamps: Vec<Option<Stamp>>,
    pub(super) identity: Option<UserIdentity>,
    /// Certificates that come from an authority.
    pub(super) acme: Option<CertificatePlan>,
    /// What may be started; without programs nobody asks.
    pub(super) policy: Policy,
    /// What the operator should know, one sentence each.
    pub(super) warnings: Vec<String>,
}

/// Addresses show by being opened.
pub(super) fn extent(options: &KeeperOptions) -> Extent<'_> {
    Extent {
        opens_control: matches!(options.control, ControlChoice::Config),
        runtime: options.runtime.as_ref(),
        running: None,
        starts: false,
    }
}

impl OpenedConfig {
    /// Loads sources and opens what they name. A listener whose address is kept keeps its socket;
    /// on failure nothing that was kept has changed.
    pub(super) fn build(
        sources: ConfigSources,
        generation: u64,
        before: &[Rc<KeptListener>],
        options: &KeeperOptions,
        scope: PreflightScope,
    ) -> Result<OpenedConfig, KeeperFailure> {
        let loaded = (options.load)(&sources, scope, &extent(options));
        let (
            OwnConfig {
                mut config,
                grace,
                addresses,
            },
            notes,
        ) = loaded.map_err(|errors| KeeperFailure::Config(errors.to_string()))?;
        let descriptor_count = config.listeners.len() + config.logs.len() + 5;
        if descriptor_count > DESCRIPTORS_MAX {
            return Err(KeeperFailure::Config(format!(
                "{descriptor_count} listeners and logs, more than {DESCRIPTORS_MAX}"
            )));
        }
        let identity = privileges::identity_for(config.user.as_deref(), config.group.as_deref())
            .map_err(KeeperFailure::Config)?;
        let (policy, policy_warnings) = Policy::of(&config.programs, generation, identity.as_ref())
            .map_err(KeeperFailure::Config)?;
        let mut warnings = Vec::new();
        if !notes.is_empty() {
            warnings.push(notes.to_string());
        }
        let state = state::choose(config.state.as_deref(), options.usual_state.as_deref());
        // Before they are read: what changes meanwhile is seen later.
        let key_stamps = key_watch::stamps(&config, &state);
        let keys = certificates::read_all(&config, &state, &mut warnings)?;
        let acme = CertificatePlan::of(&config, identity.clone(), key_files::read)
            .map_err(KeeperFailure::Config)?;
        let logs = logs::open_all(&config.logs)?;
        let kept = kept::open_all(&config, &state, &mut warnings)?;
        let thread_count = config.threads.unwrap_or_else(crate::usable_cores);
        let (listeners, clamped) = listeners::open_all(
            &mut config.listeners,
            before,
            &options.inherited,
            thread_count,
        )
        .map_err(|NotOpened { index, error }| {
            let at = addresses[index];
            KeeperFailure::Refused(
                preflight::not_opened(&sources, at, &error, options.runtime.as_ref()).to_string(),
            )
        })?;
        warnings.extend(clamped);
        warnings.extend(policy_warnings);
        Ok(OpenedConfig {
            generation,
            sources,
            config,
            grace,
            listeners,
            logs,
            kept,
            state,
            keys,
            key_stamps,
            identity,
            acme,
            policy,
            warnings,
        })
    }

    /// Copies of everything a server needs.
    pub(super) fn outfit(
        &self,
        facts: KeeperFacts,
        control: Option<&OwnedFd>,
    ) -> std::io::Result<Outfit> {
        let papers = Papers {
            sources: self.sources.encode(),
            identity: self.identity.clone(),
            nice: self.config.nice,
            cpus: self.config.cpus.clone(),
            facts,
        };
        let listeners = self
            .listeners
            .iter()
            .map(|listener| listener.socket.try_clone());
        let mut datagrams = Vec::new();
        for (index, listener) in (0u16..).zip(&self.listeners) {
            for socket in &listener.datagrams {
                datagrams.push((index, socket.try_clone()?));
            }
        }
        let logs = self
            .logs
            .iter()
            .map(|(index, file)| Ok((*index, file.try_clone()?)));
        let kept = self
            .kept
            .iter()
            .map(|(index, file)| Ok((*index, file.try_clone()?)));
        Ok(Outfit {
            generation: self.generation,
            papers: papers.to_memory()?,
            listeners: listeners.collect::<Result<_, _>>()?,
            datagrams,
            logs: logs.collect::<std::io::Result<_>>()?,
            kept: kept.collect::<std::io::Result<_>>()?,
            control: control.map(OwnedFd::try_clone).transpose()?,
            challenges: None,
            keys: match self.keys.is_empty() {
                true => None,
                false => Some(self.keys.to_memory()?),
            },
        })
    }

    /// Keys that differ and that only a new server process takes over.
    pub(super) fn needs_new_server(&self, before: &Config) -> Vec<&'static str> {
        let now = &self.config;
        [
            ("threads", now.threads == before.threads),
            ("cpus", now.cpus == before.cpus),
            ("nice", now.nice == before.nice),
            ("user", now.user == before.user),
            ("group", now.group == before.group),
            (
                "history.file",
                (&now.history.file, now.history.file_bytes)
                    == (&before.history.file, before.history.file_bytes),
            ),
            ("activity", now.activity.is_off == before.activity.is_off),
            (
                "activity.file",
                now.activity.path(now.state.as_deref())
                    == before.activity.path(before.state.as_deref()),
            ),
            (
                "control",
                (&now.control, now.control_off) == (&before.control, before.control_off),
            ),
        ]
        .into_iter()
        .filter_map(|(key, is_same)| (!is_same).then_some(key))
        .collect()
    }
}
