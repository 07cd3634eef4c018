//! Tasks: futures that belong to a thread and to no connection. They are polled after the events of
//! a turn, a limited number of them, and before the connections they may have woken.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use crate::limits::TASKS_PER_TURN;
use crate::reactor::slab::Slab;
use crate::reactor::wake::KeyWaker;
use crate::reactor::{REACTOR, Reactor};

type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Whether a drain waits for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    Awaited,
    Standing,
}

/// All tasks of a thread.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: Slab<Task>,
    awaited_count: usize,
    /// The thread has ended: no task begins any more.
    is_shut: bool,
}

struct Task {
    /// `None` while it is polled.
    work: Option<Work>,
    /// `None` when no thread drives it.
    waker: Option<Arc<KeyWaker>>,
    care: Care,
}

/// While one is there, its thread does not end; see [`Reactor::hold`] and [`Reactor::stay`].
#[derive(Debug)]
pub struct Hold {
    _count: Rc<()>,
}

impl Reactor {
    pub(super) fn add_hold(&self) -> Hold {
        Hold {
            _count: Rc::clone(&self.0.holds),
        }
    }

    pub(super) fn add_stay(&self) -> Hold {
        Hold {
            _count: Rc::clone(&self.0.stays),
        }
    }

    /// True while there is something that ends after the drain.
    pub(crate) fn has_stays(&self) -> bool {
        Rc::strong_count(&self.0.stays) > 1
    }

    pub(super) fn add_task(&self, work: Work, care: Care) {
        let mut tasks = self.0.tasks.borrow_mut();
        if tasks.is_shut {
            drop(tasks);
            return drop(work);
        }
        let key = tasks.tasks.insert(Task {
            work: Some(work),
            waker: None,
            care,
        });
        tasks.awaited_count += usize::from(care == Care::Awaited);
        if let Some(home) = &self.0.home {
            let waker = KeyWaker::new(Arc::clone(&home.bell), key | REACTOR);
            if let Some(task) = tasks.tasks.get_mut(key) {
                task.waker = Some(waker);
            }
            self.0.woken.borrow_mut().push_back(key);
        }
    }

    /// A task can go on.
    pub(crate) fn wake_task(&self, key: u64) {
        self.0.woken.borrow_mut().push_back(key & !REACTOR);
    }

    /// True when there are tasks to be polled.
    pub(crate) fn has_woken_tasks(&self) -> bool {
        !self.0.woken.borrow().is_empty()
    }

    /// True while there are tasks, or holds, that a drain waits for.
    pub(crate) fn has_awaited_tasks(&self) -> bool {
        self.0.tasks.borrow().awaited_count > 0 || Rc::strong_count(&self.0.holds) > 1
    }

    /// Polls those that were woken before this turn's tasks began, a limited number of them.
    pub(crate) fn run_tasks(&self) {
        let count = self.0.woken.borrow().len().min(TASKS_PER_TURN);
        for _ in 0..count {
            self.run_next_task();
        }
    }

    fn run_next_task(&self) {
        let Some(key) = self.0.woken.borrow_mut().pop_front() else {
            return;
        };
        let Some((mut work, waker)) = self.0.tasks.borrow_mut().begin_poll(key) else {
            return;
        };
        // Nothing is borrowed: a task may spawn others, set timers, watch and close descriptors.
        let is_done = work
            .as_mut()
            .poll(&mut Context::from_waker(&waker.waker()))
            .is_ready();
        let left_over = self.0.tasks.borrow_mut().end_poll(key, work, is_done);
        drop(left_over);
    }
}

impl Tasks {
    /// Takes a task to poll it, if it is still there.
    fn begin_poll(&mut self, key: u64) -> Option<(Work, Arc<KeyWaker>)> {
        let task = self.tasks.get_mut(key)?;
        let waker = Arc::clone(task.waker.as_ref()?);
        Some((task.work.take()?, waker))
    }

    /// Puts a task back, or returns what is left of it.
    fn end_poll(&mut self, key: u64, work: Work, is_done: bool) -> Option<(Work, Option<Task>)> {
        if !is_done && let Some(task) = self.tasks.get_mut(key) {
            task.work = Some(work);
            return None;
        }
        let task = self.tasks.remove(key);
        if let Some(task) = &task {
            self.awaited_count -= usize::from(task.care == Care::Awaited);
        }
        Some((work, task))
    }

    /// Ends them all; the caller drops them, when nothing is borrowed.
    pub(super) fn shut(&mut self) -> impl Sized + use<> {
        self.is_shut = true;
        self.awaited_count = 0;
        std::mem::take(&mut self.tasks)
    }
}
