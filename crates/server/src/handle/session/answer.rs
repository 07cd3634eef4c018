//! From a request to its visit, and what the visit adds to the answer.

use std::rc::Rc;
use std::sync::Arc;

use hob_http::{Answered, Request, Response};
use hob_trace::Fault;
use hob_trace::metric::ThreadCounters;

use crate::handle::resident::answer::{OwnVariables, ResidentRequest, answer, refuse_method};
use crate::handle::resident::bound::{BoundTo, PoolBond};
use crate::handle::script::visits::carrier::Carried;
use crate::handle::script::visits::handle::{UnfitHandle, VisitHandle};
use crate::handle::script::visits::said::VisitSaid;
use crate::handle::script::visits::table::{KeepsVisit, Opened, VisitRefused};
use crate::handle::session::Session;
use crate::handle::session::config::Duplicate;
use crate::handle::session::visit::{SessionVisit, VisitProcess};
use crate::handle::{AnswersRoute, plain};
use crate::serve::context::OnRoute;

/// The variable that has the visit's handle.
const HANDLE: &[u8] = b"HTSession";
/// The variable that has a fresh one, for programs that change it with each answer.
const NEXT_HANDLE: &[u8] = b"HTSessionNext";

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
            Carried::Differs => {
                Answered::Ready(self.refuse_stale(on.request, &on.desk.counters, DIFFER))
            }
            Carried::Handle { text, below } => match self.table.find(text, on.desk.now_ms.get()) {
                Some(visit) => self.ask(on, visit, below, false),
                None => self.ask_predecessor(on),
            },
        }
    }
}

const STALE: &str = "the visit is over, or there never was one of this handle";
const DIFFER: &str = "the handles in path and cookie are not one";

impl Session {
    /// A new visit.
    fn open(self: &Arc<Session>, on: &OnRoute<'_>) -> Answered {
        let client = on.request.facts().peer.map(|peer| peer.ip());
        let desk = on.desk;
        let opened = self.table.open(client, desk.now_ms.get(), |visit| {
            let to: std::sync::Weak<dyn BoundTo> = visit.clone();
            let bond = PoolBond {
                to,
                refuses_duplicates: self.settings.duplicate == Duplicate::Refuse,
            };
            let means = (self.disk.clone(), &desk.shared.fleet);
            let resident = self
                .parts
                .bound(&self.table.name, self.recipe.clone(), means, bond);
            VisitProcess {
                resident: Arc::new(resident),
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
            Err(refused) => Answered::Ready(refuse_new(on, refused)),
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
        let mut variables: OwnVariables = vec![(HANDLE, visit.handle().as_bytes().into())];
        variables
            .extend(VisitHandle::random().map(|next| (NEXT_HANDLE, Box::from(next.as_bytes()))));
        let ask = ResidentRequest {
            resident: Arc::clone(&visit.keeps.resident),
            request: on.request.clone(),
            home: Rc::clone(home),
            files: &on.desk.shared.pool,
            variables,
        };
        let finish = VisitAnswer {
            session: Arc::clone(self),
            visit,
            request: on.request.clone(),
            counters: Arc::clone(&on.desk.counters),
            is_new,
        };
        answer(ask, on.path, below, move |response| finish.dress(response))
    }

    /// No such visit here: the server before this one may have it.
    fn ask_predecessor(self: &Arc<Session>, on: &OnRoute<'_>) -> Answered {
        let (session, request) = (Arc::clone(self), on.request.clone());
        let counters = Arc::clone(&on.desk.counters);
        let over = move || session.refuse_stale(&request, &counters, STALE);
        match on.desk.shared.predecessor.get() {
            Some(predecessor) => predecessor.ask(on, over),
            None => Answered::Ready(over()),
        }
    }

    /// No such visit: never a new one, and told alike whatever there was.
    fn refuse_stale(
        &self,
        request: &Request,
        counters: &ThreadCounters,
        reason: &'static str,
    ) -> Response {
        counters.session_stale.add(1);
        note(request, Fault::Client, reason);
        let mut response = match &self.settings.stale {
            Some(target) => plain::redirect(303, target.as_bytes()),
            None => plain::error(410),
        };
        self.clear_cookie(&mut response);
        response
    }

    /// The client is not to send a handle again that is over.
    fn clear_cookie(&self, response: &mut Response) {
        if let Some(name) = &self.carriers.cookie {
            let field = format!("{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
            response.fields_mut().add(b"Set-Cookie", field.as_bytes());
        }
    }
}

impl VisitAnswer {
    /// What the visit adds to its program's answer, and takes out of it.
    fn dress(self, mut response: Response) -> Response {
        let said = VisitSaid::of(response.fields().iter());
        if let Some(note) = said.note {
            self.request.record_mut().note = Some(note);
        }
        match &said.keeps {
            None if response.status() == 410 && response.is_stand_in => {
                self.session.clear_cookie(&mut response);
            }
            None if self.visit.is_there() => {}
            None => {
                self.counters.session_ends.add(1);
                self.session.clear_cookie(&mut response);
            }
            Some(Ok(handle)) if self.visit.has(handle) => {
                self.keep(handle, &mut response);
            }
            Some(keeps) => {
                self.counters.session_handles_refused.add(1);
                note(&self.request, Fault::Script, reason_of(keeps));
                response = plain::error(502);
                self.session.clear_cookie(&mut response);
            }
        }
        VisitSaid::take_out(response.fields_mut());
        response
    }

    fn keep(&self, handle: &VisitHandle, response: &mut Response) {
        let fields = response.fields_mut();
        if fields.value(b"Referrer-Policy").is_none() {
            fields.add(b"Referrer-Policy", b"same-origin");
        }
        let Some(name) = &self.session.carriers.cookie else {
            return;
        };
        let text = handle.as_bytes();
        if !self.session.carriers.has_cookie(&self.request, text) {
            let mut field = format!("{name}=").into_bytes();
            field.extend_from_slice(text);
            field.extend_from_slice(b"; Path=/; Secure; HttpOnly; SameSite=Lax");
            fields.add(b"Set-Cookie", &field);
        }
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

fn refuse_new(on: &OnRoute<'_>, refused: VisitRefused) -> Response {
    let counters = &on.desk.counters;
    let (counter, status, reason) = match refused {
        VisitRefused::Client => (
            &counters.limit_session_client,
            429,
            "limits: session.visits.per_client: the client has as many visits as one may",
        ),
        VisitRefused::Rate => (
            &counters.limit_session_rate,
            503,
            "limits: session.visits.rate: too many visits begin",
        ),
        VisitRefused::Full => (
            &counters.limit_session_full,
            503,
            "limits: session.visits.max: as many visits as may be, and all are busy",
        ),
        VisitRefused::NoHandle => {
            note(
                on.request,
                Fault::Server,
                "there is no randomness for a handle",
            );
            return plain::error(500);
        }
    };
    counter.add(1);
    let fault = match status {
        429 => Fault::Client,
        _ => Fault::Server,
    };
    note(on.request, fault, reason);
    match status {
        429 => plain::error(429),
        _ => plain::busy(),
    }
}

fn note(request: &Request, fault: Fault, reason: &'static str) {
    let mut record = request.record_mut();
    (record.fault, record.reason) = (fault, Some(reason));
}
