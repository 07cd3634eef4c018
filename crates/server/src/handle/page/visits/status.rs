//! What is told of visits to people, never a whole handle; and ending one.

use std::sync::Arc;

use crate::handle::page::visits::home::PageVisitHome;
use crate::handle::page::visits::turns::PageVisit;
use crate::handle::script::visits::handle::shown;
use crate::handle::script::visits::table::KeepsVisit;
use crate::handle::script::visits::told;
use crate::serve::fleet::{Fleet, now_ms};

/// Visits of a route that are told.
const TOLD_MAX: usize = 100;

/// The visits of all pages.
pub fn told(fleet: &Fleet) -> Vec<told::ProgramVisits> {
    let now_ms = now_ms();
    let of = |home: &Arc<PageVisitHome>| {
        let table = &home.table;
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
    fleet.page_visits.all().iter().map(of).collect()
}

/// Ends the visit of this number; what it has under way is finished. False where there is none.
pub fn end_visit(fleet: &Fleet, number: u64) -> bool {
    let homes = fleet.page_visits.all();
    let mut all = homes.iter().flat_map(|home| home.table.all());
    let found = all.find(|visit| visit.number == number);
    found.is_some_and(|visit| {
        visit.keeps.end();
        true
    })
}

fn told_visit(visit: &PageVisit, now_ms: u64) -> told::ToldVisit {
    let known = visit.shown();
    let since = |ms: u64| now_ms.saturating_sub(ms) / 1000;
    let idle_since_ms = visit.keeps.idle_since_ms();
    told::ToldVisit {
        number: visit.number,
        handle: shown(known.handle.as_bytes()),
        client: visit.client.to_string(),
        state: match idle_since_ms {
            Some(_) => "idle".to_owned(),
            None => "busy".to_owned(),
        },
        pid: None,
        age_s: since(visit.started_ms),
        idle_s: idle_since_ms.map(since),
        wait_s: known.wait.as_secs(),
        answers: known.answers,
        memory_bytes: visit.keeps.kept_bytes(),
    }
}
