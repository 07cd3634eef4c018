//! From a request to its visit, and what the visit adds to the answer.

use std::sync::Arc;

use hob_http::{Answered, Request, Response};
use hob_page::request::PageRequest;

use crate::handle::page::Pages;
use crate::handle::page::answer::PageAsk;
use crate::handle::page::files::KnownFile;
use crate::handle::page::output::PageOutput;
use crate::handle::page::run::{self, WaitingRun};
use crate::handle::page::visits::home::PageVisitHome;
use crate::handle::page::visits::turns::{NoTurn, PageTurn, PageVisit};
use crate::handle::plain;
use crate::handle::script::visits::carrier::{Carried, VisitCarriers};
use crate::handle::script::visits::config::HandlePlace;
use crate::handle::script::visits::refuse as refuse_visit;
use crate::handle::script::visits::repeat::{self, OnDuplicate, RequestLikeness};
use crate::handle::script::visits::table::Opened;
use crate::serve::context::OnRoute;

impl Pages {
    /// Where the part of the path begins that names a page: behind a handle, if there is one.
    pub(in crate::handle::page) fn page_begin(
        &self,
        request: &Request,
        path: &[u8],
        below: usize,
    ) -> usize {
        let Some(home) = &self.visits else {
            return below;
        };
        let in_path = VisitCarriers {
            in_path: home.settings.visits.handle != HandlePlace::Cookie,
            cookie: None,
            weak: None,
        };
        match in_path.find(request, path, below) {
            Carried::Handle { below, .. } => below,
            Carried::Nothing | Carried::Differs => below,
        }
    }

    /// The visit that a request for this page is of; `None` where it has no handle.
    pub(in crate::handle::page) fn asked_visit(
        &self,
        on: &OnRoute<'_>,
        page: &str,
    ) -> Result<Option<Arc<PageVisit>>, Box<Answered>> {
        let Some(home) = &self.visits else {
            return Ok(None);
        };
        let carriers = home.settings.visits.carriers(&self.path, page);
        let reason = match carriers.find(on.request, on.path, on.below) {
            Carried::Nothing => return Ok(None),
            Carried::Differs => refuse_visit::DIFFER,
            Carried::Handle { text, .. } => {
                match home.table.find((text, None), on.desk.now_ms.get()) {
                    // That of another page is none here.
                    Some(visit) if *visit.keeps.page == *page => return Ok(Some(visit)),
                    _ => refuse_visit::STALE,
                }
            }
        };
        let visits = &home.settings.visits;
        let elsewhere = refuse_visit::elsewhere(on, visits, carriers, reason);
        Err(Box::new(elsewhere))
    }
}

impl PageAsk {
    /// Has the page run in its visit, or in a new one, or has what a run of the same request gives
    /// that is under way.
    pub(in crate::handle::page) fn ask_in_visit(
        self,
        home: Arc<PageVisitHome>,
        told: PageRequest,
        file: Option<Arc<KnownFile>>,
        form: &[u8],
    ) -> Answered {
        let form_bytes = form.len();
        let rules = home.settings.visits.duplicates;
        let is_compared = rules.compares(&self.request);
        let is_all = form_bytes as u64 == self.request.body_len().unwrap_or_default();
        let Some(visit) = self.visit.clone().filter(|_| is_compared && is_all) else {
            return Answered::Later(Box::pin(self.wait_in_visit(home, told, file, form_bytes)));
        };
        let rest = self.path.get(self.below..).unwrap_or_default();
        let likeness = RequestLikeness::of(&self.request, rest, form);
        let (request, counters) = (self.request.clone(), Arc::clone(&self.counters));
        let on = OnDuplicate {
            rules,
            waiting_max: home.settings.queue,
            request: &request,
            counters: &counters,
        };
        repeat::once(&visit.under_way, likeness, on, move || {
            Answered::Later(Box::pin(self.wait_in_visit(home, told, file, form_bytes)))
        })
    }

    async fn wait_in_visit(
        mut self,
        home: Arc<PageVisitHome>,
        told: PageRequest,
        file: Option<Arc<KnownFile>>,
        form_bytes: usize,
    ) -> Response {
        let visit = match self.visit.clone() {
            Some(visit) => visit,
            // Its first turn begins before anything is waited for.
            None => match self.open_visit(&home) {
                Ok(visit) => visit,
                Err(response) => return *response,
            },
        };
        self.visit = Some(Arc::clone(&visit));
        let carriers = self.carriers(&home);
        let request = self.request.clone();
        let mut response = self.wait(told, file, form_bytes).await;
        if visit.is_there() {
            carriers.keep(&visit.handle(), &request, &mut response);
        } else if visit.is_kept() && response.status() != 410 {
            carriers.clear_cookie(&mut response);
        }
        response
    }

    fn open_visit(&self, home: &PageVisitHome) -> Result<Arc<PageVisit>, Box<Response>> {
        let client = self.request.facts().peer.map(|peer| peer.ip());
        let Opened { visit, has_evicted } = home.open(&self.name, client).map_err(|refused| {
            let response = refuse_visit::new(&self.request, &self.counters, refused);
            Box::new(response)
        })?;
        self.counters.session_starts.add(1);
        if has_evicted {
            self.counters.limit_session_max.add(1);
        }
        Ok(visit)
    }

    /// Where handles of the page are.
    fn carriers(&self, home: &PageVisitHome) -> VisitCarriers {
        home.settings.visits.carriers(&self.pages.path, &self.name)
    }

    /// Has the run wait for its turn, and then for a thread.
    pub(in crate::handle::page) fn queue_turn(
        &self,
        visit: &Arc<PageVisit>,
        asked: WaitingRun,
        output: Arc<PageOutput>,
    ) -> Result<(), Box<Response>> {
        let pages = Arc::clone(&self.pages);
        let (of, to) = (Arc::clone(visit), Arc::clone(&output));
        let turn = PageTurn {
            output,
            run: Box::new(move |kept, databases| {
                run::turn(&pages, &asked, (&of, kept), databases, &to)
            }),
        };
        let turn = match visit.keeps.enter(turn) {
            Ok(Some(turn)) => turn,
            Ok(None) => return Ok(()),
            Err(NoTurn::Over) => return Err(Box::new(self.refuse_stale())),
            Err(NoTurn::Busy) => {
                return Err(Box::new(refuse_visit::busy(&self.request, &self.counters)));
            }
        };
        let of = Arc::clone(visit);
        let queued = self.pages.threads.run(move |databases| {
            of.keeps.take_turns(turn, databases);
        });
        queued.map_err(|full| {
            visit.keeps.give_up();
            self.refuse_full(full)
        })
    }

    /// The visit was over before its turn came.
    pub(in crate::handle::page) fn refuse_stale(&self) -> Response {
        let Some(home) = &self.pages.visits else {
            return plain::error(410);
        };
        let asked = (&self.request, &*self.counters);
        let carriers = self.carriers(home);
        refuse_visit::stale(&home.settings.visits, &carriers, asked, refuse_visit::STALE)
    }
}
