//! Who starts programs: a spawner as soon as the config has a program, another one as soon as it
//! dies, and an end to it for every server.
//!
//! An upgrade starts a spawner of the new program. The old one goes on for the old server and ends
//! with it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::backoff::{Backoff, LONGEST_SPAWNER};
use super::children::{self, Child, ChildRole, ChildState, pid_number};
use super::turn::{Keeper, KeeperPhase};
use crate::channel::ToServer;
use crate::parcel;
use crate::process::orders::{SpawnerOrder, SpawnerReport};
use crate::process::policy::Policy;
use crate::process::spawner::end_session;

/// A spawner that is not ready after this is killed and started again.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long a spawner may take to end its programs when hob stops.
const DISMISS_LIMIT: Duration = Duration::from_secs(5);
/// Policies that are kept for a spawner that comes later: an old server may drain on an old one.
const POLICIES_MAX: usize = 32;
/// Between two looks for what a dead spawner left behind.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Looks after which what is left is left alone.
const LOOKS_MAX: u32 = 100;

/// What the keeper knows of its spawners besides their rows among its children.
pub(super) struct Spawners {
    /// The one that servers get ends to.
    pub(super) current: Option<Pid>,
    /// Newest last, with their memory.
    policies: Vec<(Policy, OwnedFd)>,
    backoff: Backoff,
    restart_at: Option<Instant>,
    leftovers: Vec<Leftover>,
    look_at: Option<Instant>,
    /// What the operator was told of.
    troubles: Vec<String>,
}

/// The session of a dead spawner: what its programs started and what did not leave it.
struct Leftover {
    session: i32,
    looks: u32,
}

impl Default for Spawners {
    fn default() -> Spawners {
        Spawners {
            current: None,
            policies: Vec::new(),
            backoff: Backoff::new(LONGEST_SPAWNER),
            restart_at: None,
            leftovers: Vec::new(),
            look_at: None,
            troubles: Vec::new(),
        }
    }
}

impl Keeper {
    /// Sees to it that spawners know the policy in force.
    pub(super) fn spread_policy(&mut self) {
        let policy = self.settings.policy.clone();
        self.spread(&policy);
    }

    /// Gives a policy to every spawner, and starts one if it is the first with programs.
    pub(super) fn spread(&mut self, policy: &Policy) {
        if self.remember(policy) && !policy.programs.is_empty() {
            let memory = self.spawners.policies.last();
            let memory = memory.map(|(_, memory)| memory.as_fd().try_clone_to_owned());
            let is_spawner = |child: &&mut Child| child.role == ChildRole::Spawner;
            for child in self.children.iter_mut().filter(is_spawner) {
                let copied = memory.as_ref().map(|memory| match memory {
                    Ok(memory) => memory.try_clone(),
                    Err(error) => Err(error.kind().into()),
                });
                match copied {
                    Some(Ok(memory)) => child.order(SpawnerOrder::Policy(memory)),
                    other => tracing::error!(?other, "a spawner misses the new policy"),
                }
            }
        }
        let is_wanted = !policy.programs.is_empty();
        if is_wanted && self.spawners.current.is_none() && self.spawners.restart_at.is_none() {
            self.start_spawner();
        }
    }

    /// Keeps a policy for spawners to come. False when it is the last one again.
    pub(super) fn remember(&mut self, policy: &Policy) -> bool {
        let policies = &mut self.spawners.policies;
        if policies.last().is_some_and(|(last, _)| last == policy) {
            return false;
        }
        // A generation that was refused comes again with another content.
        policies.retain(|(known, _)| known.generation != policy.generation);
        match policy.to_memory() {
            Ok(memory) => policies.push((policy.clone(), memory)),
            Err(error) => tracing::error!(%error, "the policy for programs was not made"),
        }
        if policies.len() > POLICIES_MAX {
            policies.remove(0);
        }
        self.spawners.troubles.clear();
        true
    }

    fn start_spawner(&mut self) {
        let name = self.options.arguments.first().cloned();
        let name = name.unwrap_or_else(|| "hob".into());
        let environment = &self.options.environment;
        match children::start_own(ChildRole::Spawner, &name, environment, START_LIMIT) {
            Ok(mut child) => {
                for (_, memory) in &self.spawners.policies {
                    if let Ok(memory) = memory.try_clone() {
                        child.order(SpawnerOrder::Policy(memory));
                    }
                }
                tracing::info!(pid = pid_number(child.pid), "spawner started");
                self.spawners.current = Some(child.pid);
                self.children.add(child);
                self.link_servers();
            }
            Err(error) => {
                tracing::error!(%error, "no spawner started");
                self.restart_spawner(Duration::ZERO);
            }
        }
    }

    fn restart_spawner(&mut self, lived: Duration) {
        let wait = self.spawners.backoff.after_death(lived);
        self.spawners.restart_at = Instant::now().checked_add(wait);
    }

    /// Gives every server that has none an end to the current spawner.
    pub(super) fn link_servers(&mut self) {
        let Some(spawner) = self.spawners.current else {
            return;
        };
        let is_unlinked =
            |child: &&Child| child.role == ChildRole::Server && child.spawner.is_none();
        let unlinked: Vec<Pid> = self
            .children
            .iter()
            .filter(is_unlinked)
            .map(|child| child.pid)
            .collect();
        for server in unlinked {
            let (ours, theirs) = match parcel::pair() {
                Ok(pair) => pair,
                Err(error) => return tracing::error!(%error, "a server has no spawner"),
            };
            if let Some(child) = self.children.find(spawner) {
                child.order(SpawnerOrder::Server(theirs));
            }
            if let Some(child) = self.children.find(server) {
                let pid = pid_number(spawner) as u32;
                child.spawner = Some(spawner);
                child.send(ToServer::Spawner { pid, end: ours });
                for text in self.spawners.troubles.clone() {
                    child.send(ToServer::Note { text });
                }
            }
        }
    }

    pub(super) fn handle_said(&mut self, pid: Pid, said: SpawnerReport) {
        match said {
            SpawnerReport::Ready => {
                if let Some(child) = self.children.find(pid) {
                    child.state = ChildState::Serving;
                    child.kill_at = None;
                }
            }
            // The spawner has a rate for it.
            SpawnerReport::Refused { text } => tracing::warn!("{text}"),
            SpawnerReport::Trouble { text } => {
                if self.spawners.troubles.contains(&text) {
                    return;
                }
                tracing::warn!("{text}");
                self.spawners.troubles.push(text.clone());
                if let Some(child) = self.current.and_then(|pid| self.children.find(pid)) {
                    child.send(ToServer::Note { text });
                }
            }
        }
    }

    /// A spawner ended: what it left is looked for, and unless that was wanted there is another.
    pub(super) fn handle_spawner_exit(&mut self, child: &Child, reason: &str) {
        let pid = pid_number(child.pid);
        self.spawners.leftovers.push(Leftover {
            session: pid,
            looks: 0,
        });
        self.spawners.look_at = Some(Instant::now());
        for server in self.children.iter_mut() {
            server.spawner = server.spawner.filter(|spawner| *spawner != child.pid);
        }
        let was_current = self.spawners.current == Some(child.pid);
        if was_current {
            self.spawners.current = None;
        }
        if self.phase == KeeperPhase::Stopping {
            self.finish_if_empty();
        } else if was_current {
            tracing::error!(pid, reason, "spawner ended");
            self.restart_spawner(child.started.elapsed());
        } else {
            tracing::info!(pid, reason, "old spawner ended");
            self.link_servers();
        }
    }

    /// Nothing is to be started any more: spawners end what runs, and themselves.
    pub(super) fn dismiss_spawners(&mut self) {
        self.spawners.restart_at = None;
        let now = Instant::now();
        for child in self
            .children
            .iter_mut()
            .filter(|child| child.role == ChildRole::Spawner)
        {
            if child.end.take().is_some() {
                child.kill_at = now.checked_add(DISMISS_LIMIT);
            }
        }
    }

    /// This spawner ends with its last server.
    pub(super) fn retire_spawner(&mut self, pid: Option<Pid>) {
        if let Some(child) = pid.and_then(|pid| self.children.find(pid)) {
            child.state = ChildState::Draining;
            child.order(SpawnerOrder::Retire);
        }
    }

    /// The new program did not get to work: the spawner of the old one goes on, if it lives.
    pub(super) fn go_back_to_spawner(&mut self, old: Option<Pid>) {
        let Some(old) = old.filter(|old| self.children.find(*old).is_some()) else {
            return;
        };
        let new = self.spawners.current.replace(old);
        self.spawners.restart_at = None;
        self.retire_spawner(new);
        self.spread_policy();
        self.link_servers();
    }

    pub(super) fn tend_spawners(&mut self, now: Instant) {
        if self.spawners.restart_at.is_some_and(|at| at <= now) {
            self.spawners.restart_at = None;
            self.start_spawner();
        }
        if self.spawners.look_at.is_none_or(|at| at > now) {
            return;
        }
        self.spawners.leftovers.retain_mut(|leftover| {
            leftover.looks += 1;
            end_session(leftover.session) > 0 && leftover.looks < LOOKS_MAX
        });
        let is_left = !self.spawners.leftovers.is_empty();
        self.spawners.look_at = is_left.then(|| now + LOOK_AGAIN);
    }

    pub(super) fn spawners_due(&self) -> Option<Instant> {
        let Spawners {
            restart_at,
            look_at,
            ..
        } = self.spawners;
        restart_at.into_iter().chain(look_at).min()
    }
}
