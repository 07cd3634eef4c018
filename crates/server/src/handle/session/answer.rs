//! From a request to its visit, and what the visit adds to the answer.

use std::rc::Rc;
use std::sync::Arc;

use hob_http::{Answered, Request, Response};
use hob_trace::Fault;
use hob_trace::metric::ThreadCounters;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::resident::DriverThread;
use crate::handle::resident::answer::{OwnVariables, ResidentRequest, answer, refuse_method};
use crate::handle::resident::bound::{BoundTo, PoolBond};
use crate::handle::script::body::ProgramRequestBody;
use crate::handle::script::fail::{broken_body, note};
use crate::handle::script::visits::carrier::Carried;
use crate::handle::script::visits::handle::{UnfitHandle, VisitHandle};
use crate::handle::script::visits::refuse;
use crate::handle::script::visits::repeat::{self, OnDuplicate, RequestLikeness};
use crate::handle::script::visits::said::VisitSaid;
use crate::handle::script::visits::table::{KeepsVisit, Opened};
use crate::handle::session::Session;
use crate::handle::session::visit::{SessionVisit, VisitProcess};
use crate::handle::{AnswersRoute, plain};
use crate::serve::context::OnRoute;

/// The variable that has the visit's handle.
const HANDLE: &[u8] = b"HTSession";
/// The variable that has a fresh one, for programs that change it with each answer.
const NEXT_HANDLE: &[u8] = b"HTSessionNext";

/// A request on its way to its visit's program.
struct VisitAsk {
    session: Arc<Session>,
    visit: Arc<SessionVisit>,
    request: Request,
    home: Rc<DriverThread>,
    /// Who waits for files.
    files: DiskThreads,
    counters: Arc<ThreadCounters>,
    is_new: bool,
}

/// What has the answer of a visit's program before it goes on.
struct VisitAnswer {
    session: Arc<Session>,
    visit: Arc<SessionVisit>,
    request: Request,
    counters: Arc<ThreadCounters>,
    is_new: bool,
}

impl AnswersRoute for Session {
    const OPENS_TUNNELS: bool = true;

    fn answer(self: &Arc<Session>, on: &OnRoute<'_>) -> Answered {
        if on.desk.home.get().is_none() {
            return Answered::Ready(plain::busy());
        }
        if let Some(refusal) = refuse_method(on.request) {
            return Answered::Ready(refusal);
        }
        let (path, below) = (on.path, on.below);
        match self.carriers.find(on.request, path, below) {
            Carried::Nothing => self.open(on),
            Carried::Differs => self.elsewhere(on, refuse::DIFFER),
            Carried::Handle {
                text,
                beside,
                below,
            } => match self.table.find((text, beside), on.desk.now_ms.get()) {
                Some(visit) => self.ask(on, visit, below, false),
                None => self.elsewhere(on, refuse::STALE),
            },
        }
    }
}

impl Session {
    /// A new visit.
    fn open(self: &Arc<Session>, on: &OnRoute<'_>) -> Answered {
        let client = on.request.facts().peer.map(|peer| peer.ip());
        let desk = on.desk;
        let opened = self.table.open(client, desk.now_ms.get(), |visit| {
            let to: std::sync::Weak<dyn BoundTo> = visit.clone();
            let bond = PoolBond { to };
            let means = (self.disk.clone(), &desk.shared.fleet);
            let resident = self
                .parts
                .bound(&self.table.name, self.recipe.clone(), means, bond);
            VisitProcess {
                resident: Arc::new(resident),
                weak: self.settings.weak,
            }
        });
        match opened {
            Ok(Opened { visit, has_evicted }) => {
                desk.counters.session_starts.add(1);
                if has_evicted {
                    desk.counters.limit_session_max.add(1);
                }
                self.ask(on, visit, on.below, true)
            }
            Err(refused) => Answered::Ready(refuse::new(on.request, &desk.counters, refused)),
        }
    }

    /// The visit's program answers.
    fn ask(
        self: &Arc<Session>,
        on: &OnRoute<'_>,
        visit: Arc<SessionVisit>,
        below: usize,
        is_new: bool,
    ) -> Answered {
        let Some(home) = on.desk.home.get() else {
            return Answered::Ready(plain::busy());
        };
        let ask = VisitAsk {
            session: Arc::clone(self),
            visit,
            request: on.request.clone(),
            home: Rc::clone(home),
            files: on.desk.shared.pool.clone(),
            counters: Arc::clone(&on.desk.counters),
            is_new,
        };
        let is_compared = self.settings.visits.duplicates.compares(on.request);
        match (is_compared && !is_new, on.request.body_len()) {
            (false, _) => ask.answered((on.path, below), None),
            (true, Some(0)) => ask.once(on.path.into(), below, ProgramRequestBody::None),
            (true, _) => Answered::Later(Box::pin(ask.collect_and_ask(on.path.into(), below))),
        }
    }

    /// No such visit here.
    fn elsewhere(&self, on: &OnRoute<'_>, reason: &'static str) -> Answered {
        refuse::elsewhere(on, &self.settings.visits, self.carriers.clone(), reason)
    }
}

impl VisitAsk {
    /// Takes all of the request's body, by which it is compared with others.
    async fn collect_and_ask(self, path: Box<[u8]>, below: usize) -> Response {
        let bytes_max = self.session.settings.visits.duplicates.body_bytes_max() as u64;
        let collected = ProgramRequestBody::announced(&self.request, &self.files, bytes_max).await;
        match collected {
            Ok(Some(body)) => self.once(path, below, body).wait().await,
            Ok(None) => self.answered((&path, below), None).wait().await,
            Err(trouble) => broken_body(&self.request, trouble),
        }
    }

    /// The program answers, or has one like it under way.
    fn once(self, path: Box<[u8]>, below: usize, body: ProgramRequestBody) -> Answered {
        let held: &[u8] = match &body {
            ProgramRequestBody::None => &[],
            ProgramRequestBody::Held(bytes) => bytes,
            // It is too long to be held, and so to be compared.
            _ => return self.answered((&path, below), Some(body)),
        };
        let rest = path.get(below..).unwrap_or_default();
        let likeness = RequestLikeness::of(&self.request, rest, held);
        let under_way = Arc::clone(&self.visit.under_way);
        let (request, counters) = (self.request.clone(), Arc::clone(&self.counters));
        let settings = &self.session.settings;
        let on = OnDuplicate {
            rules: settings.visits.duplicates,
            waiting_max: settings.program.queue,
            request: &request,
            counters: &counters,
        };
        let run = move || self.answered((&path, below), Some(body));
        repeat::once(&under_way, likeness, on, run)
    }

    fn answered(self, (path, below): (&[u8], usize), body: Option<ProgramRequestBody>) -> Answered {
        let handle = self.visit.handle();
        let mut variables: OwnVariables = vec![(HANDLE, handle.as_bytes().into())];
        variables
            .extend(VisitHandle::random().map(|next| (NEXT_HANDLE, Box::from(next.as_bytes()))));
        let ask = ResidentRequest {
            resident: Arc::clone(&self.visit.keeps.resident),
            request: self.request.clone(),
            home: self.home,
            files: &self.files,
            variables,
            body,
        };
        let finish = VisitAnswer {
            session: self.session,
            visit: self.visit,
            request: self.request,
            counters: self.counters,
            is_new: self.is_new,
        };
        answer(ask, path, below, move |response| finish.dress(response))
    }
}

impl VisitAnswer {
    /// What the visit adds to its program's answer, and takes out of it.
    fn dress(self, mut response: Response) -> Response {
        let said = VisitSaid::of(response.fields().iter());
        if let Some(note) = said.note {
            self.request.record_mut().note = Some(note);
        }
        let kept = said.kept(self.session.settings.weak);
        let kept = kept.map(|kept| self.visit.own(kept?).ok_or(UnfitHandle::Weak));
        match &kept {
            None if response.status() == 410 && response.is_stand_in => {
                self.session.carriers.clear_cookie(&mut response);
            }
            None if self.visit.is_there() => {}
            None => {
                self.counters.session_ends.add(1);
                self.session.carriers.clear_cookie(&mut response);
            }
            Some(Ok(handle)) if self.visit.has(handle) => {
                self.session
                    .carriers
                    .keep(handle, &self.request, &mut response);
            }
            Some(keeps) => {
                self.counters.session_handles_refused.add(1);
                note(&self.request, Fault::Script, reason_of(keeps));
                response = plain::error(502);
                self.session.carriers.clear_cookie(&mut response);
            }
        }
        VisitSaid::take_out(response.fields_mut());
        response
    }
}

impl Drop for VisitAnswer {
    /// Nobody has the handle of a visit that no answer has kept.
    fn drop(&mut self) {
        if self.is_new && !self.visit.is_kept() {
            self.visit.keeps.end();
        }
    }
}

fn reason_of(keeps: &Result<VisitHandle, UnfitHandle>) -> &'static str {
    match keeps {
        Ok(_) => "Accept-HTSession: another visit has this handle",
        Err(UnfitHandle::Malformed) => {
            "Accept-HTSession: not one handle of letters, digits and `-._~`, 128 at most"
        }
        Err(UnfitHandle::Weak) => {
            "Accept-HTSession: the handle can be guessed; give back the one in `HTSession`"
        }
    }
}
