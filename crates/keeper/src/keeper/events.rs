//! What the keeper does about signals, messages and exits.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, WaitStatus};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};

use super::change::ControlRequest;
use super::children::{self, Child, ChildRole, ChildState, Drain, ending, pid_number};
use super::turn::{Keeper, KeeperPhase, announce};
use crate::acme::message;
use crate::channel::{ToKeeper, ToServer, Wish};
use crate::heap;
use crate::parcel::NotReceived;
use crate::process::orders::SpawnerReport;

/// Most messages taken from one child in one turn.
const MESSAGES_PER_TURN_MAX: usize = 64;
/// A child that closed its channel has this long to end.
const CLOSED_LIMIT: Duration = Duration::from_secs(5);

impl Keeper {
    pub(super) fn handle_signal(&mut self, signal: i32) {
        match signal {
            SIGHUP => self.reload(None),
            SIGUSR2 => self.upgrade(None),
            SIGINT if self.phase == KeeperPhase::Stopping => {
                tracing::warn!("stopping at once");
                self.children.iter_mut().for_each(Child::kill);
            }
            SIGTERM | SIGINT => self.stop(),
            _ => {}
        }
    }

    pub(super) fn handle_messages(&mut self, pid: Pid) {
        for _ in 0..MESSAGES_PER_TURN_MAX {
            let Some(child) = self.children.find(pid) else {
                return;
            };
            let Some(end) = &mut child.end else {
                return;
            };
            // An end that is gone shows when it is read.
            let _ = end.flush();
            let role = child.role;
            let handled = end.receive().and_then(|parcel| {
                match role {
                    ChildRole::Spawner => {
                        SpawnerReport::decode(&parcel).map(|said| self.handle_said(pid, said))
                    }
                    ChildRole::Acme => message::FromAcme::decode(&parcel)
                        .map(|said| self.handle_orders_said(pid, said)),
                    _ => ToKeeper::decode(parcel).map(|message| self.handle_message(pid, message)),
                }
                .map_err(NotReceived::Malformed)
            });
            let Some(child) = self.children.find(pid) else {
                return;
            };
            match handled {
                Ok(()) => {}
                // What comes here brings no descriptors.
                Err(NotReceived::Nothing | NotReceived::NoRoom) => return,
                Err(NotReceived::Gone) => {
                    child.end = None;
                    let limit = Instant::now() + CLOSED_LIMIT;
                    child.kill_at = Some(child.kill_at.map_or(limit, |at| at.min(limit)));
                    return;
                }
                Err(NotReceived::Malformed(error)) => {
                    let role = role.name();
                    tracing::error!(pid = pid_number(pid), %error, "killing a {role} that lies");
                    child.end = None;
                    child.kill();
                    return;
                }
            }
        }
    }

    fn handle_message(&mut self, pid: Pid, message: ToKeeper) {
        match message {
            ToKeeper::Ready => self.handle_ready(pid),
            ToKeeper::StartFailed { text } => {
                if let Some(child) = self.children.find(pid) {
                    child.last_words = Some(text);
                }
            }
            ToKeeper::Reloaded { generation } => self.handle_reloaded(pid, generation),
            ToKeeper::ReloadFailed { text } => self.handle_reload_failed(pid, &text),
            ToKeeper::Ask { wish, request } => {
                let ask = Some(ControlRequest { pid, request });
                match wish {
                    Wish::Reload => self.reload(ask),
                    Wish::Upgrade => self.upgrade(ask),
                    Wish::Stop => {
                        self.answer(ask, true, "stopping");
                        self.stop();
                    }
                }
            }
            ToKeeper::Rotate { index } => self.rotate(pid, index),
            ToKeeper::Challenged { number } => self.handle_challenged(pid, number),
            ToKeeper::Leaving => self.handle_leaving(pid),
            ToKeeper::Drained => {
                tracing::debug!(pid = pid_number(pid), "drained");
            }
        }
    }

    fn handle_ready(&mut self, pid: Pid) {
        let Some(child) = self.children.find(pid) else {
            return;
        };
        if child.state != ChildState::Starting {
            return;
        }
        child.state = ChildState::Serving;
        child.kill_at = None;
        tracing::info!(pid = pid_number(pid), "server ready");
        if self.phase == KeeperPhase::Starting {
            self.phase = KeeperPhase::Running;
            self.tell_of_itself();
            let token = self.admin_token.take();
            announce(&self.settings, &[], token.as_deref());
            self.notify.ready();
        }
        self.finish_upgrade(pid);
        // What reading the config took is most of what this process ever has.
        heap::give_back();
    }

    /// A server that was told to end by somebody else: it drains on its own account, and another
    /// one takes its place while it does.
    fn handle_leaving(&mut self, pid: Pid) {
        let drain = Drain::of(&self.settings);
        let now = Instant::now();
        if let Some(child) = self.children.find(pid) {
            child.drain(drain, now);
        }
        if self.current == Some(pid) && self.phase == KeeperPhase::Running {
            tracing::warn!(
                pid = pid_number(pid),
                "server was told to end by another process"
            );
            self.current = None;
            self.lose_change("the server was told to end");
            self.restart_at = Some(now);
        }
    }

    pub(super) fn handle_exit(&mut self, pid: Pid, status: WaitStatus) {
        self.hear_last_words(pid);
        let Some(child) = self.children.remove(pid) else {
            tracing::debug!(pid = pid_number(pid), "reaped an orphan");
            return;
        };
        let reason = ending(status);
        match child.role {
            ChildRole::Server => self.tell_who_lives(),
            ChildRole::Spawner => return self.handle_spawner_exit(&child, &reason),
            ChildRole::Check => return self.handle_checked(pid, status),
            ChildRole::Acme => return self.handle_orders_exit(&child, &reason),
            ChildRole::Compress if status.exit_status() == Some(0) => {
                return tracing::info!("an access log was compressed");
            }
            ChildRole::Compress => {
                return tracing::error!(reason, "an access log was not compressed");
            }
        }
        let was_current = self.current == Some(pid);
        if was_current {
            self.current = None;
        }
        match self.phase {
            KeeperPhase::Stopping => self.finish_if_empty(),
            KeeperPhase::Starting => {
                let failure = children::first_start_failure(status, child.last_words);
                self.finished = Some(Err(failure));
            }
            KeeperPhase::Running if was_current => self.handle_loss(&child, &reason),
            KeeperPhase::Running => {
                tracing::info!(pid = pid_number(pid), reason, "old server ended");
            }
        }
    }

    /// A server has ended. Those of an older program do not know what they are told then.
    fn tell_who_lives(&mut self) {
        let living = self.children.servers();
        for child in self.children.iter_mut() {
            if child.role == ChildRole::Server && child.number.is_some() {
                let living = living.clone();
                child.send(ToServer::Servers { living });
            }
        }
    }

    /// Why a server could not start: its end can be seen before the last thing it said.
    fn hear_last_words(&mut self, pid: Pid) {
        let Some(child) = self.children.find(pid) else {
            return;
        };
        if !matches!(
            (child.role, &child.state),
            (ChildRole::Server, ChildState::Starting)
        ) {
            return;
        }
        let Some(end) = &mut child.end else {
            return;
        };
        for _ in 0..MESSAGES_PER_TURN_MAX {
            match end.receive().map(ToKeeper::decode) {
                Ok(Ok(ToKeeper::StartFailed { text })) => child.last_words = Some(text),
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// The server is gone and nobody wanted that.
    fn handle_loss(&mut self, child: &Child, reason: &str) {
        let last_words = child.last_words.as_deref().unwrap_or_default();
        tracing::error!(
            pid = pid_number(child.pid),
            reason,
            last_words,
            "server ended"
        );
        if self.fall_back(last_words, reason) {
            return;
        }
        self.lose_change(&format!("the server ended by {reason}"));
        let now = Instant::now();
        let wait = self
            .backoff
            .after_death(now.saturating_duration_since(child.started));
        self.restart_at = now.checked_add(wait);
        if !wait.is_zero() {
            tracing::warn!(
                wait_ms = wait.as_millis(),
                "starting another server after a pause"
            );
        }
    }

    fn rotate(&mut self, pid: Pid, index: u16) {
        let Some(log) = self.settings.config.logs.get(usize::from(index)) else {
            return;
        };
        if self.current != Some(pid) {
            return;
        }
        let day = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let day = day.as_secs() / (24 * 60 * 60);
        let rotated = self.rotations.rotate(log, day, Instant::now());
        match rotated.and_then(|file| Ok((file.try_clone()?, file))) {
            Ok((file, kept)) => self.replace_log(index, file, kept),
            Err(error) => tracing::error!(index, %error, "access log not rotated"),
        }
    }

    /// Compresses one log after the other, and none while an old server may still write to it.
    pub(super) fn compress_logs(&mut self, now: Instant) {
        if self.may_compress()
            && let Some(path) = self.rotations.take_due(now)
        {
            let started = children::start_compress(&path, &self.options.environment);
            match started {
                Ok(child) => self.children.add(child),
                Err(error) => tracing::error!(%error, "an access log was not compressed"),
            }
        }
    }

    pub(super) fn compression_due(&self) -> Option<Instant> {
        let is_possible = self.phase == KeeperPhase::Running && self.may_compress();
        self.rotations.due().filter(|_| is_possible)
    }

    fn may_compress(&self) -> bool {
        !self.children.iter().any(|child| {
            child.role == ChildRole::Compress
                || (child.role == ChildRole::Server && child.state == ChildState::Draining)
        })
    }

    pub(super) fn replace_log(&mut self, index: u16, file: OwnedFd, kept: OwnedFd) {
        for (known, log) in &mut self.settings.logs {
            if *known == index {
                *log = kept;
                break;
            }
        }
        if let Some(child) = self.current.and_then(|pid| self.children.find(pid)) {
            child.send(ToServer::LogFile { index, file });
        }
    }

    pub(super) fn stop(&mut self) {
        if self.phase == KeeperPhase::Stopping {
            return;
        }
        self.phase = KeeperPhase::Stopping;
        self.restart_at = None;
        self.notify.stopping();
        self.lose_change("hob is stopping");
        self.dismiss_orders();
        let drain = Drain::of(&self.settings);
        tracing::info!(deadline_ms = drain.deadline.as_millis(), "stopping");
        let now = Instant::now();
        for child in self.children.iter_mut() {
            match child.role {
                ChildRole::Server => child.drain(drain, now),
                ChildRole::Check => child.kill(),
                // It ends when nothing can be started any more.
                ChildRole::Spawner => {}
                // It was sent home a moment ago.
                ChildRole::Acme => {}
                // It needs nobody, and half a compressed file helps nobody.
                ChildRole::Compress => {}
            }
        }
        self.finish_if_empty();
    }

    pub(super) fn finish_if_empty(&mut self) {
        if self.children.count(ChildRole::Server) > 0 {
            return;
        }
        self.dismiss_spawners();
        if self.children.count(ChildRole::Spawner) == 0 {
            self.finished = Some(Ok(()));
        }
    }
}
