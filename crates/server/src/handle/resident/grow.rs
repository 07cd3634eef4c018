//! What a pool starts: as many workers as its config wants, more while that helps.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::LOOK_EVERY;
use crate::handle::resident::mailbox::WorkerMailbox;
use crate::handle::resident::members::{Member, PoolState, WorkerStage};
use crate::handle::resident::pool::{Gone, Pool, fail_all};
use crate::handle::resident::scale::PoolUsage;
use crate::serve::fleet::{NoSeat, now_ms};

/// What a pool should start.
enum GrowthDecision {
    Workers(usize),
    /// Whether more would help has to be seen from these processes.
    Look(Vec<u32>),
}

/// A worker to be started on a thread. Dropped unheard, it is as if the worker had ended.
pub(crate) struct WorkerStart {
    pub(super) pool: Arc<Pool>,
    pub(super) mailbox: Arc<WorkerMailbox>,
    is_taken: bool,
}

impl WorkerStart {
    /// The thread it is to be started on.
    pub(crate) fn thread(&self) -> usize {
        self.mailbox.thread
    }

    /// Whoever starts the worker answers for it from now on.
    pub(super) fn take(mut self) -> (Arc<Pool>, Arc<WorkerMailbox>) {
        self.is_taken = true;
        (Arc::clone(&self.pool), Arc::clone(&self.mailbox))
    }
}

impl Drop for WorkerStart {
    fn drop(&mut self) {
        if !self.is_taken {
            let gone = Gone {
                unstarted: Vec::new(),
                is_crash: true,
                is_blameless: false,
                text: "its thread has ended".to_owned(),
            };
            self.pool.gone(&self.mailbox, gone, now_ms());
        }
    }
}

impl Pool {
    /// Starts what should be started, and tells those whose waiting is in vain.
    pub(super) fn tend_locked<'p>(
        self: &'p Arc<Self>,
        mut state: MutexGuard<'p, PoolState>,
        now_ms: u64,
    ) {
        let mut orders = Vec::new();
        let mut refused = None;
        let wanted = match self.wanted(&mut state, now_ms) {
            GrowthDecision::Workers(count) => count,
            GrowthDecision::Look(pids) => {
                // It reads many files: others have the pool meanwhile.
                drop(state);
                let measured = PoolUsage::of(&pids);
                state = self.state.lock();
                self.more(&mut state, measured, now_ms)
            }
        };
        for _ in 0..wanted {
            match self.order(&mut state, None, now_ms) {
                Ok(order) => orders.push(order),
                Err(NoSeat::Soon) => {
                    state.gauge.why = "an idle worker of another program makes room".to_owned();
                    break;
                }
                Err(NoSeat::Full) => {
                    let (_, most) = self.fleet.load();
                    state.gauge.why =
                        format!("every worker of the server is in use: `limits.workers` is {most}");
                    if state.members.is_empty() {
                        refused = Some(ResidentFailure::NoWorkers);
                    }
                    break;
                }
            }
        }
        if state.is_hopeless(now_ms) {
            refused = Some(ResidentFailure::Unstartable(state.last_failure.clone()));
        }
        let in_vain = match &refused {
            Some(_) => std::mem::take(&mut state.waiting),
            None => BTreeMap::new(),
        };
        drop(state);
        if let Some(failure) = &refused {
            fail_all(in_vain, failure);
        }
        for order in orders {
            self.fleet.start(order);
        }
    }

    /// How many workers to start now, as far as that can be said without a look at those there are.
    fn wanted(&self, state: &mut PoolState, now_ms: u64) -> GrowthDecision {
        if state.is_retired || now_ms < state.retry_at_ms {
            return GrowthDecision::Workers(0);
        }
        if self.is_bound() {
            let is_wanted = state.started == 0 && !state.waiting.is_empty();
            return GrowthDecision::Workers(usize::from(is_wanted));
        }
        let alive = state.alive();
        // A server that stops starts nothing but what somebody waits for.
        let min = match self.fleet.is_stopping() {
            true => 0,
            false => self.settings.workers.min,
        };
        let least = min.max(usize::from(!state.waiting.is_empty()));
        let mut members = state.members.iter();
        if members.any(|one| one.stage == WorkerStage::Draining && one.room_max == 0) {
            // How one ends that never was ready says whether another is worth its while.
            return GrowthDecision::Workers(0);
        }
        if alive < least {
            return GrowthDecision::Workers((least - alive).min(state.at_once_max()));
        }
        if state.waiting.is_empty() {
            state.next_look_ms = 0;
            return GrowthDecision::Workers(0);
        }
        if alive >= self.workers_max {
            state.gauge.why = match self.settings.workers.max {
                Some(most) => format!("`workers.max` is {most}"),
                None => format!("without `workers.max` there are {alive} at most"),
            };
            return GrowthDecision::Workers(0);
        }
        if state.starting() > 0 || now_ms < state.next_look_ms {
            return GrowthDecision::Workers(0);
        }
        state.next_look_ms = now_ms + LOOK_EVERY.as_millis() as u64;
        let members = state.members.iter();
        GrowthDecision::Look(members.filter_map(|one| one.mailbox.pid()).collect())
    }

    /// How many workers to start after a look at those there are.
    fn more(&self, state: &mut PoolState, measured: PoolUsage, now_ms: u64) -> usize {
        let room = self.workers_max.saturating_sub(state.alive());
        if state.is_retired || state.starting() > 0 || room == 0 {
            return 0;
        }
        let (bytes, count) = measured.memory;
        let memory_room = self.memory_room(bytes, count, state.alive());
        if memory_room == 0 {
            state.gauge.why = format!(
                "they have {} MiB, the share of memory a program has without workers.max",
                bytes >> 20
            );
            return 0;
        }
        let room = room.min(memory_room);
        let most = state.waiting.len().min(room).min(state.at_once_max());
        state.gauge.more(measured, now_ms, self.fleet.cores(), most)
    }

    /// Takes a seat and a thread for one more worker.
    pub(super) fn order(
        self: &Arc<Self>,
        state: &mut PoolState,
        replaces: Option<u64>,
        now_ms: u64,
    ) -> Result<WorkerStart, NoSeat> {
        let seat = self.fleet.seat(self, now_ms)?;
        let thread = self.fleet.choose_thread(|thread| {
            let members = state.members.iter();
            members.filter(|one| one.mailbox.thread == thread).count()
        });
        let thread = thread.ok_or(NoSeat::Full)?;
        let mailbox = WorkerMailbox::new(state.next_number, thread, now_ms);
        state.next_number += 1;
        state.started += 1;
        state.members.push(Member {
            mailbox: Arc::clone(&mailbox),
            stage: WorkerStage::Starting,
            version: state.version,
            room_max: 0,
            concurrency: usize::from(self.settings.workers.concurrency),
            active: Vec::new(),
            replaces,
            is_being_replaced: false,
            idle_since_ms: now_ms,
            _seat: seat,
        });
        Ok(WorkerStart {
            pool: Arc::clone(self),
            mailbox,
            is_taken: false,
        })
    }
}
