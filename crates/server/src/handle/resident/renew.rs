//! Workers for files that have changed: the new one is ready before the old ones go, and one that
//! cannot start is no reason to go on with what was there before.
//!
//! ```text
//! files change --> version + 1, a worker with it starts --ready--> workers of versions before go
//!                                    '--ends before that--> they go, too; clients are told why
//! ```

use std::sync::Arc;

use crate::handle::resident::members::{Member, PoolState, WorkerStage};
use crate::handle::resident::pool::Pool;
use crate::handle::resident::watch::FolderWatch;
use crate::serve::fleet::now_ms;

impl Pool {
    /// Watches the program's files, if they are to be. May wait for a disk.
    pub(super) fn watch(self: &Arc<Self>) -> Option<FolderWatch> {
        let (dir, patterns) = (&self.settings.dir, &self.settings.watch);
        if patterns.is_empty() {
            return None;
        }
        let pool = Arc::downgrade(self);
        let on_change = move || {
            if let Some(pool) = pool.upgrade() {
                pool.renew(now_ms());
            }
        };
        let watch = FolderWatch::start(dir, patterns, on_change);
        if let Err(error) = &watch {
            let (program, dir) = (self.settings.runs.name(), dir.display());
            tracing::warn!(program, %dir, %error, "its files cannot be watched");
        }
        watch.ok()
    }

    /// The program's files have changed.
    fn renew(self: &Arc<Self>, now_ms: u64) {
        let mut state = self.state.lock();
        if state.is_retired || self.fleet.is_stopping() {
            return;
        }
        let program = self.settings.runs.name();
        tracing::info!(program, "its files have changed: new workers");
        state.version += 1;
        state.forget_failures();
        // Who starts right now may read something of both.
        let is_starting = |one: &&Member| one.stage == WorkerStage::Starting;
        let starting = state.members.iter().filter(is_starting);
        let starting: Vec<u64> = starting.map(|one| one.mailbox.number).collect();
        for number in starting {
            state.drain(number);
        }
        let is_serving = state
            .members
            .iter()
            .any(|one| one.stage == WorkerStage::Ready);
        let order = match is_serving {
            true => self.order(&mut state, None, now_ms).ok(),
            false => None,
        };
        if order.is_none() {
            // There is no room for one more: theirs is taken.
            let version = state.version;
            state.drain_before(version);
        }
        self.tend_locked(state, now_ms);
        if let Some(order) = order {
            self.fleet.start(order);
        }
    }
}

impl PoolState {
    /// What did not start before may start now.
    fn forget_failures(&mut self) {
        self.failures = 0;
        self.is_unstartable = false;
        self.retry_at_ms = 0;
    }
}
