//! What `hob status --programs` tells of resident programs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hob_ipc::message::Carrier;
use hob_machine::process::resident_bytes;

use crate::handle::resident::members::{Member, WorkerStage};
use crate::handle::resident::pool::Pool;
use crate::handle::resident::told;
use crate::serve::fleet::{Fleet, now_ms};
use crate::serve::workers::Workers;

/// How busy a pool is, for `/metrics`.
#[derive(Default)]
pub struct PoolLoad {
    /// The route and what runs.
    pub name: String,
    by_stage: [u64; STATES.len()],
    /// Most workers.
    pub workers_max: u64,
    /// Requests that wait.
    pub waiting: u64,
    /// Processes of its workers.
    pub pids: Vec<u32>,
    /// Of each worker that is ready; `None` is lines.
    pub carriers: Vec<Option<Carrier>>,
}

/// What a worker can be at.
const STATES: [&str; 4] = ["starting", "idle", "busy", "leaving"];

impl PoolLoad {
    /// Workers by what they are at.
    pub fn by_state(&self) -> impl Iterator<Item = (&'static str, u64)> {
        STATES.into_iter().zip(self.by_stage)
    }

    /// Two pools taken as one.
    pub fn add(&mut self, other: PoolLoad) {
        for (sum, count) in self.by_stage.iter_mut().zip(other.by_stage) {
            *sum += count;
        }
        self.workers_max += other.workers_max;
        self.waiting += other.waiting;
        self.pids.extend(other.pids);
        self.carriers.extend(other.carriers);
    }
}

/// How it stands with a pool, for alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolFacts {
    /// The route and what runs.
    pub name: String,
    /// Requests that wait for a worker.
    pub waiting: usize,
    /// Most of them.
    pub waiting_max: usize,
    /// Starts in a row after which no worker was ready.
    pub failures: u32,
    /// Why a worker ended or did not start, the last time.
    pub last_failure: String,
}

/// Process ids of the workers of each pool, by its name.
pub fn pids(fleet: &Fleet) -> Vec<(String, Vec<u32>)> {
    let of = |pool: &Arc<Pool>| {
        let state = pool.state.lock();
        let pids = state.members.iter().filter_map(|one| one.mailbox.pid());
        (pool.name.clone(), pids.collect())
    };
    fleet.pools().iter().map(of).collect()
}

/// How it stands with each pool.
pub fn pool_facts(fleet: &Fleet) -> Vec<PoolFacts> {
    let of = |pool: &Arc<Pool>| {
        let state = pool.state.lock();
        let is_failing = state.is_unstartable && state.failures > 0;
        PoolFacts {
            name: pool.name.clone(),
            waiting: state.waiting.len(),
            waiting_max: pool.settings.queue,
            failures: if is_failing { state.failures } else { 0 },
            last_failure: state.last_failure.clone(),
        }
    };
    fleet.pools().iter().map(of).collect()
}

impl Pool {
    /// How busy it is.
    pub fn load(&self) -> PoolLoad {
        let state = self.state.lock();
        let mut load = PoolLoad {
            name: self.name.clone(),
            workers_max: self.workers_max as u64,
            waiting: state.waiting.len() as u64,
            ..PoolLoad::default()
        };
        for member in &state.members {
            let at = STATES.iter().position(|state| *state == member.state());
            load.by_stage[at.unwrap_or_default()] += 1;
            load.pids.extend(member.mailbox.pid());
            if member.stage != WorkerStage::Starting {
                let greeting = member.mailbox.greeting.get();
                load.carriers.push(greeting.and_then(|said| said.carrier));
            }
        }
        load
    }

    /// Adds its workers, and who waits for one.
    pub(crate) fn add_to(&self, workers: &mut Workers) {
        let state = self.state.lock();
        for member in &state.members {
            match member.stage {
                WorkerStage::Starting => workers.starting += 1,
                _ if !member.active.is_empty() => workers.busy += 1,
                _ => workers.idle += 1,
            }
            workers.pids.extend(member.mailbox.pid());
        }
        workers.max += self.workers_max;
        workers.queued += state.waiting.len();
    }

    /// What it does, and its workers.
    pub fn told(&self) -> told::Pool {
        let state = self.state.lock();
        let now_ms = now_ms();
        let workers_settings = &self.settings.workers;
        told::Pool {
            name: self.name.clone(),
            runs: self.settings.runs.name().to_owned(),
            min: workers_settings.min,
            max: self.workers_max,
            concurrency: workers_settings.concurrency,
            waiting: state.waiting.len(),
            started: state.started,
            crashed: state.lost,
            replaced: state.replaced,
            changes: state.version,
            growth: self.growth(&state),
            last_failure: state.last_failure.clone(),
            workers: state.members.iter().map(|one| one.told(now_ms)).collect(),
        }
    }
}

impl Member {
    fn state(&self) -> &'static str {
        match self.stage {
            WorkerStage::Starting => "starting",
            WorkerStage::Ready if self.active.is_empty() => "idle",
            WorkerStage::Ready => "busy",
            WorkerStage::Draining => "leaving",
        }
    }

    fn told(&self, now_ms: u64) -> told::Worker {
        let pid = self.mailbox.pid();
        let requests = self.active.iter().map(|exchange| told::WorkerRequest {
            id: exchange.name.to_string(),
            request: exchange.label(),
            ms: now_ms.saturating_sub(exchange.given_ms()),
        });
        let greeting = self.mailbox.greeting.get();
        let carrier = greeting.and_then(|said| said.carrier);
        let carrier = carrier.map(|carrier| match carrier {
            Carrier::Shm => "shm",
            Carrier::Stream => "stream",
        });
        told::Worker {
            pid,
            thread: self.mailbox.thread,
            state: self.state().to_owned(),
            carrier: carrier.map(str::to_owned),
            library: greeting.map(|said| said.library.clone()),
            age_s: now_ms.saturating_sub(self.mailbox.started_ms) / 1000,
            served: self.mailbox.served.load(Ordering::Relaxed),
            memory_bytes: pid.and_then(resident_bytes),
            requests: requests.collect(),
        }
    }
}
