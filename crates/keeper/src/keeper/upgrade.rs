//! Going over to the program as it now stands on disk, without losing a connection.
//!
//! ```text
//! old keeper                                 new keeper (same process, after exec)
//!   read the sources again
//!   run `new-program check` on them
//!     it says no: report, stay
//!   exec the new program, handing over  -->  build settings, start a new server
//!     exec fails: report, stay                 ready: the old server drains
//!                                              not ready in time: killed, the old one goes on
//! ```

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitStatus};

use super::PreflightScope;
use super::change::{ControlRequest, KeeperChange};
use super::children::{self, ChildRole, ChildState, Drain, ending, pid_number};
use super::control::KeptControl;
use super::listeners::{KeptListener, give_up_new};
use super::settings::OpenedConfig;
use super::turn::Keeper;
use super::{KeeperOptions, handover};
use crate::memory;
use hob_config::ConfigSources;

/// How long the new program may look at the config.
const CHECK_LIMIT: Duration = Duration::from_secs(30);
/// How long the new server may take to be ready.
pub(super) const READY_LIMIT: Duration = Duration::from_secs(10);
/// How long the old server may finish what it has; downloads take their time.
const OLD_SERVER_DRAIN: Duration = Duration::from_secs(60 * 60);
/// How long it keeps idle connections, because a request may already be on its way.
const OLD_SERVER_GRACE: Duration = Duration::from_secs(5);
/// Old servers that may drain at once; the oldest beyond that gets the short deadline.
const OLD_SERVERS_MAX: usize = 8;

/// The program of an upgrade looks at the config.
pub(super) struct Checking {
    pub(super) pid: Pid,
    pub(super) ask: Option<ControlRequest>,
    sources: ConfigSources,
    output: OwnedFd,
}

/// The new server is starting while the old one still serves.
pub(super) struct Replacing {
    pub(super) old: Option<Pid>,
    pub(super) old_spawner: Option<Pid>,
    pub(super) ask: Option<ControlRequest>,
    /// What the old server serves, to go back to.
    pub(super) old_sources: ConfigSources,
    pub(super) old_generation: u64,
    pub(super) old_listeners: Vec<Rc<KeptListener>>,
    pub(super) old_control: Option<Rc<KeptControl>>,
}

impl Keeper {
    /// Begins an upgrade.
    pub(super) fn upgrade(&mut self, ask: Option<ControlRequest>) {
        if !self.may_begin(ask) {
            self.is_upgrade_wanted |= ask.is_none();
            return;
        }
        match self.start_check(ask) {
            Ok(checking) => self.change = Some(KeeperChange::Check(checking)),
            Err(text) => self.refuse_upgrade(&text, ask),
        }
    }

    fn start_check(&mut self, ask: Option<ControlRequest>) -> Result<Checking, String> {
        let sources = (self.options.sources)().map_err(|errors| errors.to_string())?;
        let program = &self.options.program;
        let start = || {
            let output = memory::empty("hob-check")?;
            let input = memory::sealed("hob-sources", &sources.encode())?;
            let KeeperOptions {
                arguments,
                environment,
                ..
            } = &self.options;
            let child = children::start_check(
                program,
                arguments,
                environment,
                input,
                &output,
                CHECK_LIMIT,
            )?;
            Ok((output, child))
        };
        let (output, child) = start().map_err(|error: std::io::Error| {
            format!("cannot run the new program {}: {error}", program.display())
        })?;
        let pid = child.pid;
        self.children.add(child);
        Ok(Checking {
            pid,
            ask,
            sources,
            output,
        })
    }

    /// The check ended: over to the new program, or not.
    pub(super) fn handle_checked(&mut self, pid: Pid, status: WaitStatus) {
        let checking = match self.change.take() {
            Some(KeeperChange::Check(checking)) if checking.pid == pid => checking,
            other => {
                self.change = other;
                return;
            }
        };
        if status.exit_status() == Some(0) {
            let error = handover::hand_over(self, &checking.sources, checking.ask);
            self.refuse_upgrade(&error, checking.ask);
            return;
        }
        let program = self.options.program.display().to_string();
        let output = memory::read_text(&checking.output);
        let text = format!(
            "the new program {program} refused ({}): {output}",
            ending(status)
        );
        self.refuse_upgrade(&text, checking.ask);
    }

    fn refuse_upgrade(&mut self, text: &str, ask: Option<ControlRequest>) {
        tracing::error!("no upgrade: {text}");
        self.answer(
            ask,
            false,
            &format!("no upgrade, everything runs on as before: {text}"),
        );
    }

    /// The new server is ready: the old one finishes what it has.
    pub(super) fn finish_upgrade(&mut self, pid: Pid) {
        if self.current != Some(pid) {
            return;
        }
        let replacing = match self.change.take() {
            Some(KeeperChange::Replace(replacing)) => replacing,
            other => {
                self.change = other;
                return;
            }
        };
        let text = format!("upgraded, the new server is process {}", pid_number(pid));
        tracing::info!("{text}");
        self.leave_control(replacing.old_control.as_ref());
        self.tell_of_itself();
        self.retire_listeners(&replacing.old_listeners);
        self.retire_spawner(replacing.old_spawner);
        self.notify.ready();
        self.answer(replacing.ask, true, &text);
        let now = Instant::now();
        if let Some(old) = replacing.old.and_then(|old| self.children.find(old)) {
            let drain = Drain {
                deadline: OLD_SERVER_DRAIN,
                grace: OLD_SERVER_GRACE,
                ..Drain::of(&self.settings)
            };
            old.drain(drain, now);
        }
        let short = Drain::of(&self.settings);
        let draining = self
            .children
            .iter()
            .filter(|child| child.role == ChildRole::Server && child.state == ChildState::Draining);
        let surplus = draining.count().saturating_sub(OLD_SERVERS_MAX);
        let draining = self
            .children
            .iter_mut()
            .filter(|child| child.role == ChildRole::Server && child.state == ChildState::Draining);
        for child in draining.take(surplus) {
            child.drain(short, now);
        }
    }

    /// The new server of an upgrade is gone: back to the old one, if it still lives.
    pub(super) fn fall_back(&mut self, last_words: &str, reason: &str) -> bool {
        let replacing = match self.change.take() {
            Some(KeeperChange::Replace(replacing)) => replacing,
            other => {
                self.change = other;
                return false;
            }
        };
        let text = format!("the new server was not ready, the old one goes on: {last_words}");
        let text = format!("{} ({reason})", text.trim_end_matches([':', ' ']));
        self.restore(&replacing);
        self.go_back_to_spawner(replacing.old_spawner);
        self.refuse_upgrade(&text, replacing.ask);
        self.current = replacing
            .old
            .filter(|old| self.children.find(*old).is_some());
        self.current.is_some()
    }

    fn restore(&mut self, replacing: &Replacing) {
        let restored = OpenedConfig::build(
            replacing.old_sources.clone(),
            replacing.old_generation,
            &replacing.old_listeners,
            &self.options,
            PreflightScope::Disk,
        );
        match restored {
            Ok(settings) => {
                let failed = std::mem::replace(&mut self.settings, settings);
                give_up_new(&failed.listeners, &self.settings.listeners);
            }
            Err(failure) => tracing::error!(%failure, "the old config no longer loads"),
        }
        let failed = std::mem::replace(&mut self.control, replacing.old_control.clone());
        self.leave_control(failed.as_ref());
        self.tell_of_itself();
    }

    /// Removes the files of a control socket that is another one than that of now.
    pub(super) fn leave_control(&self, other: Option<&Rc<KeptControl>>) {
        let kept = self.control.as_ref();
        if let Some(other) = other
            && !kept.is_some_and(|kept| Rc::ptr_eq(kept, other))
        {
            other.remove();
        }
    }
}
