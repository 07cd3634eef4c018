//! Reloads, and what reloads and upgrades share: one change at a time, answers to who asked.

use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::PreflightScope;
use super::listeners::{KeptListener, give_up_new};
use super::logs;
use super::settings::OpenedConfig;
use super::turn::{Keeper, KeeperPhase, announce};
use super::upgrade::{Checking, Replacing};
use crate::channel::ToServer;
use crate::heap;

/// Who asked on the control socket gets an answer after this, whether the server has one or not.
/// The reload itself has no deadline: a server that loads slowly still gets there, and one that
/// hangs can be killed, which ends the change.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A request of the control socket: the server that passed it on, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ControlRequest {
    pub(super) pid: Pid,
    pub(super) request: u64,
}

/// The change under way.
pub(super) enum KeeperChange {
    /// The server was given new settings and has not answered.
    Reload {
        settings: Box<OpenedConfig>,
        ask: Option<ControlRequest>,
        answer_at: Option<Instant>,
    },
    /// The program of an upgrade looks at the config.
    Check(Checking),
    /// This is the program of an upgrade, and its server is starting.
    Replace(Box<Replacing>),
}

impl Keeper {
    /// Reads the config again and gives it to the server.
    pub(super) fn reload(&mut self, ask: Option<ControlRequest>) {
        if !self.may_begin(ask) {
            self.is_reload_wanted |= ask.is_none() && self.phase != KeeperPhase::Stopping;
            return;
        }
        self.notify.reloading();
        let built = (self.options.sources)().map_err(|errors| errors.to_string());
        let built = built.and_then(|sources| {
            let generation = self.settings.generation + 1;
            let kept = &self.settings.listeners;
            OpenedConfig::build(
                sources,
                generation,
                kept,
                &self.options,
                PreflightScope::Machine,
            )
            .map_err(|failure| failure.to_string())
        });
        match built {
            Ok(mut settings) => {
                self.keep_what_works(&mut settings.keys);
                self.offer(settings, ask);
            }
            Err(text) => self.refuse_reload(&text, ask),
        }
    }

    fn offer(&mut self, settings: OpenedConfig, ask: Option<ControlRequest>) {
        if self.current.is_none() {
            // Between two servers: the next one starts with it.
            self.commit(settings, ask);
            return;
        }
        let outfit = match self.outfit(&settings) {
            Ok(outfit) => outfit,
            Err(error) => {
                give_up_new(&settings.listeners, &self.settings.listeners);
                self.refuse_reload(&format!("cannot prepare the reload: {error}"), ask);
                return;
            }
        };
        // Before the server hears of it: it may start programs at once.
        self.spread(&settings.policy);
        if let Some(child) = self.current.and_then(|pid| self.children.find(pid)) {
            child.send(ToServer::Reload(outfit));
        }
        self.link_servers();
        let answer_at = ask.and_then(|_| Instant::now().checked_add(ANSWER_LIMIT));
        self.change = Some(KeeperChange::Reload {
            settings: Box::new(settings),
            ask,
            answer_at,
        });
    }

    pub(super) fn handle_reloaded(&mut self, pid: Pid, generation: u64) {
        match self.change.take() {
            Some(KeeperChange::Reload { settings, ask, .. })
                if self.current == Some(pid) && settings.generation == generation =>
            {
                self.commit(*settings, ask);
            }
            other => self.change = other,
        }
    }

    pub(super) fn handle_reload_failed(&mut self, pid: Pid, text: &str) {
        match self.change.take() {
            Some(KeeperChange::Reload { settings, ask, .. }) if self.current == Some(pid) => {
                give_up_new(&settings.listeners, &self.settings.listeners);
                self.refuse_reload(text, ask);
            }
            other => self.change = other,
        }
    }

    fn commit(&mut self, settings: OpenedConfig, ask: Option<ControlRequest>) {
        let stuck = settings.needs_new_server(&self.settings.config);
        let before = std::mem::replace(&mut self.settings, settings);
        self.spread_policy();
        self.tell_of_itself();
        self.retire_listeners(&before.listeners);
        for warning in &self.settings.warnings {
            tracing::warn!("{warning}");
        }
        let generation = self.settings.generation;
        let mut text = format!("reloaded, generation {generation}");
        if !stuck.is_empty() {
            text = format!(
                "{text}; `hob upgrade` or a restart applies: {}",
                stuck.join(", ")
            );
        }
        tracing::info!(generation, "{text}");
        self.notify.ready();
        self.answer(ask, true, &text);
        drop(before);
        heap::give_back();
    }

    /// New addresses are told, and socket files of given-up ones go.
    pub(super) fn retire_listeners(&self, before: &[Rc<KeptListener>]) {
        give_up_new(before, &self.settings.listeners);
        announce(&self.settings, before, None);
    }

    /// The old config stays; logs are opened again all the same, because whoever moved them away
    /// waits for that.
    fn refuse_reload(&mut self, text: &str, ask: Option<ControlRequest>) {
        for line in text.lines() {
            tracing::error!("{line}");
        }
        match logs::open_all(&self.settings.config.logs) {
            Ok(files) => {
                for (index, file) in files {
                    match file.try_clone() {
                        Ok(kept) => self.replace_log(index, file, kept),
                        Err(error) => tracing::error!(%error, "access log not opened again"),
                    }
                }
            }
            Err(failure) => tracing::error!(%failure, "access logs not opened again"),
        }
        tracing::error!("the config was not reloaded; the old one stays");
        self.notify.ready();
        self.answer(ask, false, text);
        heap::give_back();
    }

    /// Whether a change may begin now; who asked is told when not.
    pub(super) fn may_begin(&mut self, ask: Option<ControlRequest>) -> bool {
        let refusal = match self.phase {
            KeeperPhase::Running if self.change.is_none() => return true,
            KeeperPhase::Running => {
                "another reload or upgrade is under way; try again when it is done"
            }
            KeeperPhase::Starting => "hob is starting; try again",
            KeeperPhase::Stopping => "hob is stopping",
        };
        self.answer(ask, false, refusal);
        false
    }

    /// The change under way cannot be finished.
    pub(super) fn lose_change(&mut self, reason: &str) {
        match self.change.take() {
            None => {}
            Some(KeeperChange::Reload { settings, ask, .. }) => {
                give_up_new(&settings.listeners, &self.settings.listeners);
                tracing::error!(reason, "reload given up; the old config stays");
                self.notify.ready();
                self.answer(ask, false, reason);
            }
            Some(KeeperChange::Check(checking)) => {
                if let Some(child) = self.children.find(checking.pid) {
                    child.kill();
                }
                self.answer(checking.ask, false, reason);
            }
            Some(KeeperChange::Replace(replacing)) => {
                self.leave_control(replacing.old_control.as_ref());
                self.answer(replacing.ask, false, reason);
            }
        }
    }

    pub(super) fn answer(&mut self, ask: Option<ControlRequest>, is_ok: bool, text: &str) {
        let Some(ControlRequest { pid, request }) = ask else {
            return;
        };
        if let Some(child) = self.children.find(pid) {
            child.send(ToServer::Answer {
                request,
                is_ok,
                text: text.to_owned(),
            });
        }
    }

    pub(super) fn late_reload_due(&self) -> Option<Instant> {
        match &self.change {
            Some(KeeperChange::Reload { answer_at, .. }) => *answer_at,
            _ => None,
        }
    }

    pub(super) fn answer_late_reload(&mut self, now: Instant) {
        let Some(KeeperChange::Reload { ask, answer_at, .. }) = &mut self.change else {
            return;
        };
        if answer_at.is_none_or(|at| at > now) {
            return;
        }
        *answer_at = None;
        let ask = ask.take();
        let seconds = ANSWER_LIMIT.as_secs();
        let text =
            format!("the server has not taken the new config within {seconds} s; it may yet");
        self.answer(ask, false, &text);
    }
}
