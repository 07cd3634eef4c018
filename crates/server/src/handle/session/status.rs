//! What is told of visits to people: never a whole handle.

use std::sync::Arc;

use crate::handle::script::visits::handle::shown;
use crate::handle::script::visits::table::KeepsVisit;
use crate::handle::script::visits::told;
use crate::handle::session::visit::{SessionTable, SessionVisit};
use crate::serve::fleet::{Fleet, now_ms};

/// Visits of a program that are told.
const TOLD_MAX: usize = 100;

/// The visits of all programs.
pub fn told(fleet: &Fleet) -> Vec<told::ProgramVisits> {
    let now_ms = now_ms();
    let of = |table: &Arc<SessionTable>| {
        let all = table.all();
        let first = all.iter().take(TOLD_MAX);
        told::ProgramVisits {
            name: table.name.clone(),
            max: table.count_max(),
            peak: table.peak(),
            count: all.len(),
            visits: first.map(|visit| told_visit(visit, now_ms)).collect(),
        }
    };
    fleet.session_tables().iter().map(of).collect()
}

fn told_visit(visit: &SessionVisit, now_ms: u64) -> told::ToldVisit {
    let known = visit.shown();
    let worker = visit.keeps.resident.pool.0.told().workers.pop();
    let worker = worker.unwrap_or_default();
    let since = |ms: u64| now_ms.saturating_sub(ms) / 1000;
    told::ToldVisit {
        number: visit.number,
        handle: shown(known.handle.as_bytes()),
        client: visit.client.to_string(),
        state: match worker.state.is_empty() {
            true => "starting".to_owned(),
            false => worker.state,
        },
        pid: worker.pid,
        age_s: since(visit.started_ms),
        idle_s: visit.keeps.idle_since_ms().map(since),
        wait_s: known.wait.as_secs(),
        answers: known.answers,
        memory_bytes: worker.memory_bytes,
    }
}
