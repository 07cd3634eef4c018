//! What an operator can have done to the workers of a program: renewed, ended, asked for their
//! stacks.

use std::sync::Arc;

use crate::handle::resident::mailbox::{ToDriver, WorkerMailbox};
use crate::handle::resident::members::WorkerStage;
use crate::handle::resident::pool::Pool;
use crate::serve::fleet::now_ms;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Others take their places; each goes when another is ready and its requests are answered.
    Recycle,
    /// They take no more requests and go when they have finished what they have.
    Stop,
    /// SIGTERM, on which hosts of hob print their stacks and end. Others take their places.
    Stack,
}

impl Pool {
    /// The name by which it is told from others.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A route means it: by its path, with or without the `/*` at its end, by what runs, or by
    /// both.
    pub fn is_of(&self, wanted: &str) -> bool {
        let runs = self.settings.runs.name();
        let path = self
            .name
            .strip_suffix(runs)
            .unwrap_or(&self.name)
            .trim_end();
        let plain = |path: &str| path.trim_end_matches('*').trim_end_matches('/').to_owned();
        let is_path = wanted.starts_with('/') && plain(wanted) == plain(path);
        is_path || wanted == runs || wanted == self.name
    }

    /// Does this to its workers, or to the one with this process id. Returns their process ids.
    pub fn operate(self: &Arc<Self>, operation: Operation, pid: Option<u32>) -> Vec<u32> {
        let chosen: Vec<Arc<WorkerMailbox>> = {
            let state = self.state.lock();
            let there = state
                .members
                .iter()
                .filter(|one| one.stage != WorkerStage::Draining);
            let posts = there.map(|one| Arc::clone(&one.mailbox));
            posts
                .filter(|mailbox| pid.is_none() || mailbox.pid() == pid)
                .collect()
        };
        let mut reached = Vec::new();
        for mailbox in chosen {
            let is_done = match operation {
                Operation::Recycle => self.replace(&mailbox, now_ms()),
                Operation::Stop => {
                    self.state.lock().drain(mailbox.number);
                    true
                }
                Operation::Stack => mailbox.send(ToDriver::Ask),
            };
            if is_done {
                reached.extend(mailbox.pid());
            }
        }
        self.tend(now_ms());
        reached
    }
}
