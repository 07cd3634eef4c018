//! Access logs of configs that are no more in force: each is kept as long as a request may be under
//! way that is to have a line in it, over as many reloads as that takes.
//!
//! A reload asks the threads which logs their requests name, and the next one ends those that none
//! did: nobody waits, and a log that is not used outlives its config by two reloads.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hob_http::thread::{Crew, Handle, Thread};
use hob_trace::Mutex;
use hob_trace::access_log::LogId;

use hob_server::answer::Answers;

/// Logs that requests may still name, though the config in force has none of them.
#[derive(Default)]
pub(crate) struct OldLogs {
    kept: Vec<LogId>,
    asked: Option<Arc<LogUseQuery>>,
}

/// What the threads were asked.
struct LogUseQuery {
    /// No new request can have had one of these when it was asked.
    logs: Vec<LogId>,
    answers_due: AtomicUsize,
    in_use: Mutex<HashSet<u16>>,
}

impl OldLogs {
    /// Logs that are no more in force. Gives those that no request can name any more, to be ended.
    pub(crate) fn renew(&mut self, before: Vec<LogId>, crew: &Arc<Crew>) -> Vec<LogId> {
        let unused = self.take_unused();
        self.asked = Some(ask(self.kept.clone(), crew));
        self.kept.extend(before);
        unused
    }

    fn take_unused(&mut self) -> Vec<LogId> {
        let Some(asked) = self.asked.take() else {
            return Vec::new();
        };
        if asked.answers_due.load(Ordering::Acquire) > 0 {
            return Vec::new();
        }
        let in_use = asked.in_use.lock();
        let is_unused = |log: &LogId| asked.logs.contains(log) && !in_use.contains(&log.number());
        self.kept.extract_if(.., |log| is_unused(log)).collect()
    }
}

fn ask(logs: Vec<LogId>, crew: &Arc<Crew>) -> Arc<LogUseQuery> {
    let asked = Arc::new(LogUseQuery {
        logs,
        answers_due: AtomicUsize::new(crew.thread_count()),
        in_use: Mutex::default(),
    });
    for index in 0..crew.thread_count() {
        let asked = Arc::clone(&asked);
        Handle::new(crew, index).run(move |thread: &mut Thread<Answers>| {
            let mut in_use = asked.in_use.lock();
            thread.each_request(|request| {
                in_use.insert(request.record().log);
            });
            drop(in_use);
            asked.answers_due.fetch_sub(1, Ordering::Release);
        });
    }
    asked
}
