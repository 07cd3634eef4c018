//! The visits of a route's pages. Those of a route whose section did not change outlive a reload.

use std::net::IpAddr;
use std::sync::Arc;

use crate::handle::page::config::PagesSettings;
use crate::handle::page::visits::clock::VisitClock;
use crate::handle::page::visits::turns::{PageTurns, PageVisitTable};
use crate::handle::script::visits::config::VisitSettings;
use crate::handle::script::visits::table::{KeepsVisit, Opened, VisitRefused};
use crate::serve::ServerState;
use crate::serve::fleet::now_ms;

/// The visits, and who sees to it that they end.
pub(crate) struct PageVisitHome {
    pub(crate) table: Arc<PageVisitTable>,
    pub(super) settings: PageVisitSettings,
    clock: Arc<VisitClock>,
}

/// How pages keep visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageVisitSettings {
    /// As elsewhere.
    pub visits: VisitSettings,
    /// Requests of one visitor that wait.
    pub queue: usize,
}

impl PageVisitHome {
    /// The visits of the pages of a site's route, found or made; `None` where it keeps none.
    pub(crate) fn of(
        (site, path): (&str, &str),
        settings: &PagesSettings,
        shared: &ServerState,
    ) -> Option<Arc<PageVisitHome>> {
        let own = settings.session.as_ref()?;
        // What else a section says is no part of a visit.
        let (dir, database) = (&settings.dir, &settings.database);
        let key = format!("{site} {path} {dir:?} {database:?} {own:?}");
        let home = shared.fleet.page_visits.get_or(&key, || {
            let name = format!("{path} {}", dir.display());
            let table = Arc::new(PageVisitTable::new(name, own.visits.rules));
            PageVisitHome {
                clock: VisitClock::new(&table, shared.counts.counters.new_thread()),
                table,
                settings: own.clone(),
            }
        });
        Some(home)
    }

    /// There is a visit.
    pub(crate) fn has_some(&self) -> bool {
        self.table.has_some()
    }

    /// A new visit to a page, for the request that asks for it.
    pub(super) fn open(
        &self,
        page: &str,
        client: Option<IpAddr>,
    ) -> Result<Opened<PageTurns>, VisitRefused> {
        self.clock.start();
        let (now_ms, queue_max) = (now_ms(), self.settings.queue);
        let age_due_ms = now_ms + self.settings.visits.life.as_millis() as u64;
        self.table.open(client, now_ms, |visit| {
            let clock = Arc::clone(&self.clock);
            PageTurns::new(page, (visit.clone(), clock), queue_max, age_due_ms)
        })
    }
}

impl Drop for PageVisitHome {
    /// The last handler of theirs is gone.
    fn drop(&mut self) {
        for visit in self.table.all() {
            visit.keeps.end();
        }
        self.clock.close();
    }
}
