//! What an operator can have done to the workers of a program: renewed, ended, asked for their
//! stacks.

use std::sync::Arc;

use crate::handle::resident::members::Stage;
use crate::handle::resident::pool::Pool;
use crate::handle::resident::post::{Letter, Post};
use crate::shared::fleet::now_ms;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Others take their places; each goes when another is ready and its requests are answered.
    Recycle,
    /// They take no more requests and go when they have finished what they have.
    Stop,
    /// SIGTERM, on which hosts of hob print their stacks and end. Others take their places.
    Stack,
}

impl Pool {
    /// The name by which it is told from others.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Does this to its workers, or to the one with this process id. Returns their process ids.
    pub(crate) fn operate(self: &Arc<Self>, operation: Operation, pid: Option<u32>) -> Vec<u32> {
        let chosen: Vec<Arc<Post>> = {
            let state = self.lock();
            let there = state
                .members
                .iter()
                .filter(|one| one.stage != Stage::Draining);
            let posts = there.map(|one| Arc::clone(&one.post));
            posts
                .filter(|post| pid.is_none() || post.pid() == pid)
                .collect()
        };
        let mut reached = Vec::new();
        for post in chosen {
            let is_done = match operation {
                Operation::Recycle => self.replace(&post, now_ms()),
                Operation::Stop => {
                    self.lock().drain(post.number);
                    true
                }
                Operation::Stack => post.post(Letter::Ask),
            };
            if is_done {
                reached.extend(post.pid());
            }
        }
        self.tend(now_ms());
        reached
    }
}
