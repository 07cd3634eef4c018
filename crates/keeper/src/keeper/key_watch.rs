//! Looks whether files of certificates and keys have changed, and has the server take over those
//! that fit together. A pair that does not fit, or not yet, changes nothing: the one before stays.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::certificates;
use super::settings::OpenedConfig;
use super::state::State;
use super::turn::{Keeper, KeeperPhase};
use crate::Config;
use crate::channel::ToServer;
use crate::key_files::{CertificateAndKey, KeyFiles};
use crate::tls;
use hob_config::CertificateSource;

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_secs(2);

/// What is known of the files of the settings in force.
#[derive(Default)]
pub(super) struct KeyWatch {
    generation: u64,
    /// As they were when they were last read.
    stamps: Vec<Option<Stamp>>,
    due: Option<Instant>,
    /// What was wrong with them, told once.
    trouble: Option<String>,
}

/// What tells one state of a file from another: device, inode, size, and when it changed.
pub(super) type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

fn stamp(path: &Path) -> Option<Stamp> {
    let data = std::fs::metadata(path).ok()?;
    let modified = (data.mtime(), data.mtime_nsec());
    let changed = (data.ctime(), data.ctime_nsec());
    Some((data.dev(), data.ino(), data.size(), modified, changed))
}

/// The files of certificates and keys that a config names.
fn files(config: &Config, state: &State) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for source in tls::sources(config) {
        match source {
            CertificateSource::SelfSigned => {}
            CertificateSource::Files { certificate, key } => files.extend([certificate, key]),
            // Another hob with the same folder may have got it.
            CertificateSource::Auto { names } => {
                files.extend(certificates::kept_file(config, state, &names));
            }
        }
    }
    files
}

/// As the files are now.
pub(super) fn stamps(config: &Config, state: &State) -> Vec<Option<Stamp>> {
    files(config, state)
        .iter()
        .map(|path| stamp(path))
        .collect()
}

impl Keeper {
    /// When the files are looked at next; never without any.
    pub(super) fn keys_due(&self) -> Option<Instant> {
        self.key_watch
            .due
            .filter(|_| self.phase == KeeperPhase::Running)
    }

    pub(super) fn look_at_keys(&mut self, now: Instant) {
        if self.key_watch.generation != self.settings.generation {
            // These settings were read a moment ago; what changed since is seen as a change.
            self.key_watch = KeyWatch {
                generation: self.settings.generation,
                stamps: self.settings.key_stamps.clone(),
                due: (!self.settings.key_stamps.is_empty()).then_some(now + INTERVAL),
                trouble: None,
            };
        }
        if self.change.is_some() || self.key_watch.due.is_none_or(|due| due > now) {
            return;
        }
        self.key_watch.due = Some(now + INTERVAL);
        let stamps = stamps(&self.settings.config, &self.settings.state);
        if stamps == self.key_watch.stamps {
            return;
        }
        match self.read_keys_again() {
            Ok(()) => {
                self.key_watch.stamps = stamps;
                self.key_watch.trouble = None;
            }
            // It is tried again: perhaps only one of the two files has been replaced.
            Err(text) if self.key_watch.trouble.as_ref() == Some(&text) => {}
            Err(text) => {
                let note = format!("changed certificates are not served, the old ones are: {text}");
                tracing::error!("{note}");
                if let Some(child) = self.current.and_then(|pid| self.children.find(pid)) {
                    child.send(ToServer::Note { text: note });
                }
                self.key_watch.trouble = Some(text);
            }
        }
    }

    /// Certificates of an authority whose files are gone or broken are served as they were: what is
    /// read in their place only signs itself.
    pub(super) fn keep_what_works(&self, keys: &mut KeyFiles) {
        let stand_in = |pair: &CertificateAndKey| certificates::is_self_signed(&pair.certificate);
        for pair in &mut keys.pairs {
            let mut before = self.settings.keys.pairs.iter();
            let before = before.find(|known| known.source == pair.source);
            if let Some(before) = before
                && pair.source.is_auto()
                && stand_in(pair)
                && !stand_in(before)
            {
                pair.clone_from(before);
            }
        }
    }

    pub(super) fn read_keys_again(&mut self) -> Result<(), String> {
        let OpenedConfig { config, state, .. } = &self.settings;
        let read = certificates::read_all(config, state, &mut Vec::new());
        let mut keys = read.map_err(|failure| failure.to_string())?;
        self.keep_what_works(&mut keys);
        // Who may sign certificates of others is a matter of the config: a reload takes it over.
        keys.authorities.clone_from(&self.settings.keys.authorities);
        if keys == self.settings.keys {
            return Ok(());
        }
        let memory = keys.to_memory().map_err(|error| error.to_string())?;
        self.settings.keys = keys;
        if let Some(child) = self.current.and_then(|pid| self.children.find(pid)) {
            child.send(ToServer::Keys { memory });
        }
        tracing::info!("certificates have changed; the new ones are served");
        Ok(())
    }
}
