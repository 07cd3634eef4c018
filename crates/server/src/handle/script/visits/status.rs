//! What is told of visits to people, never a whole handle; and ending one.

use crate::handle::script::visits::handle::shown;
use crate::handle::script::visits::table::{KeepsVisit, KeptVisit, VisitTable};
use crate::handle::script::visits::told::{ProgramVisits, ToldVisit};

/// Visits of a program that are told.
const TOLD_MAX: usize = 100;

/// What is told of whatever keeps a visit.
#[derive(Default)]
pub(crate) struct ToldKept {
    pub(crate) state: String,
    pub(crate) pid: Option<u32>,
    pub(crate) memory_bytes: Option<u64>,
}

impl<K: KeepsVisit> VisitTable<K> {
    /// The visits, as people are told of them.
    pub(crate) fn told(&self, now_ms: u64) -> ProgramVisits {
        let all = self.all();
        let first = all.iter().take(TOLD_MAX);
        ProgramVisits {
            name: self.name.clone(),
            max: self.count_max(),
            peak: self.peak(),
            count: all.len(),
            visits: first.map(|visit| told(visit, now_ms)).collect(),
            server_pid: None,
        }
    }

    /// Ends the visit of this number; what it has under way is finished. False where it is not.
    pub(crate) fn end(&self, number: u64) -> bool {
        let all = self.all();
        let found = all.iter().find(|visit| visit.number == number);
        found.inspect(|visit| visit.keeps.end()).is_some()
    }
}

fn told<K: KeepsVisit>(visit: &KeptVisit<K>, now_ms: u64) -> ToldVisit {
    let (known, kept) = (visit.shown(), visit.keeps.told());
    let since = |ms: u64| now_ms.saturating_sub(ms) / 1000;
    ToldVisit {
        number: visit.number,
        handle: shown(known.handle.as_bytes()),
        client: visit.client.to_string(),
        state: kept.state,
        pid: kept.pid,
        age_s: since(visit.started_ms),
        idle_s: visit.keeps.idle_since_ms().map(since),
        wait_s: known.wait.as_secs(),
        answers: known.answers,
        memory_bytes: kept.memory_bytes,
    }
}
