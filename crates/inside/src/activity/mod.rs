//! What can be seen of the server as a whole: activity by the second, the numbers of the overview,
//! and the history's way to readers.
//!
//! - `sampler` the thread `hob-activity`, which looks once a second and writes the files
//! - `recent` response times of the last minute, requests of each route in it
//! - `processes` CPU time and memory as the kernel counts them

pub(crate) mod processes;
pub(crate) mod recent;
mod sampler;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hob_trace::Mutex;
use hob_trace::activity::{Activity, ActivityRow};
use hob_trace::history::{PendingEntries, RequestHistory};

use crate::activity::recent::Recent;
use hob_server::serve::workers::Workers;

pub use sampler::{Hook, SampledServer, Sampler, SamplerFiles};

/// What the API tells of history and activity.
pub struct Inside {
    /// Finished requests.
    pub history: Arc<RequestHistory>,
    /// Rows by second and minute.
    pub activity: Activity,
    /// The config wants those, and histograms by route.
    pub has_activity: bool,
    /// For each thread, whether it has requests that only it can hand over.
    waiting: Mutex<Vec<(usize, Arc<PendingEntries>)>>,
    /// What was seen last.
    seen: Mutex<SamplerSnapshot>,
    /// Searches of the history that had an end before they had looked at everything.
    cut_searches: AtomicU64,
}

/// What the sampler saw last.
#[derive(Clone, Debug, Default)]
pub(crate) struct SamplerSnapshot {
    /// Who is at work.
    pub(crate) workers: Workers,
    /// Memory of the server, in bytes.
    pub(crate) server_bytes: u64,
    /// Memory of programs, in bytes.
    pub(crate) programs_bytes: u64,
    /// The last minute.
    pub(crate) recent: Arc<Recent>,
    /// The last ten seconds, as one row.
    pub(crate) last: ActivityRow,
    /// Why the file of history or activity cannot be written, while that is so.
    pub(crate) failed_write: Option<String>,
    /// Writes to the files that failed.
    pub(crate) failed_writes: u64,
}

impl Inside {
    /// Nothing seen yet.
    pub fn new(history: RequestHistory, has_activity: bool) -> Inside {
        Inside {
            history: Arc::new(history),
            activity: Activity::new(),
            has_activity,
            waiting: Mutex::default(),
            seen: Mutex::default(),
            cut_searches: AtomicU64::new(0),
        }
    }

    /// How many searches had an end before they had looked at everything.
    pub(crate) fn cut_searches(&self) -> u64 {
        self.cut_searches.load(Ordering::Relaxed)
    }

    /// One more of those.
    pub(crate) fn count_cut_search(&self) {
        self.cut_searches.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread keeps requests to itself for a while, and this tells whether it has some.
    pub fn watch(&self, thread: usize, waiting: Arc<PendingEntries>) {
        self.waiting.lock().push((thread, waiting));
    }

    /// Threads that have something to hand over.
    fn waiting_threads(&self) -> Vec<usize> {
        let all = self.waiting.lock();
        let waiting = all.iter().filter(|(_, waiting)| waiting.is_any());
        waiting.map(|(thread, _)| *thread).collect()
    }

    /// What was seen last.
    pub(crate) fn seen(&self) -> SamplerSnapshot {
        self.seen.lock().clone()
    }
}
