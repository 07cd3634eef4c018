//! The request path: read this first. One request goes through [`Answers::answer`] top to bottom.
//!
//! 1. the record is open already (`http` made it)
//! 2. the host chooses the site
//!    and what TLS it wants (`serve/site_tls`), and whether it is down for maintenance; before
//!    that, whether the client is banned (`ban`)
//! 3. the target is brought into its one normal form
//! 4. the path chooses the route, unless it has moved (`redirects`)
//! 5. who may ask, how often, who it is, and how many at once: the route's `cors`, `access`,
//!    `rate`, `require` (`admission`) and `concurrency` (`crowding`)
//! 6. the body limit
//! 7. the rewrite
//! 8. the handler answers, now or later; where another route has to answer for the file that was
//!    found, that one goes from 5 on (`programs`)
//! 9. a program's answer: what the program asks the server for, then conditions, ranges and
//!    compression (`programs`, `after`)
//! 10. the site's own error page, and header rules (`serve::dress`); the route's `bandwidth`
//!     (`pacing`)
//!
//! What another machine's hob asks for, or the server after this one, goes from 1 to 8 at once
//! (`offer`): the rest is done there.
//!
//! When the answer has left, [`Answers::finished`] counts it and hands the record on.

mod admission;
mod after;
mod asked;
mod ban;
mod client;
mod crowding;
mod forward;
mod handles;
mod offer;
mod pacing;
mod pam;
mod programs;
mod proof;
mod timing;
mod token;
mod watch;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use hob_http::{Answered, ConnectionFacts, Reactor, Request, Responder, Response};
use hob_trace::format::AskedValue;
use hob_trace::watch::RequestStage;
use hob_trace::{Fault, Record, Texts};

use self::admission::{Admission, AfterAdmission};
use crate::handle::files::find::ELSEWHERE;
use crate::handle::plain;
use crate::handle::resident::DriverThread;
use crate::otlp::Tracer;
use crate::route::host::ChosenBy;
use crate::route::redirects::MovedTo;
use crate::route::target;
use crate::route::template::TemplateValues;
use crate::serve::context::{Books, HandlerContext, OnRoute};
use crate::serve::dress::dress;
use crate::serve::site_tls;
use crate::serve::sites::{NO_SITE, ServedRoute, ServedSite, Sites};
use crate::step::cors;
use hob_config::{SlashForm, UnknownHost};
use hob_keeper::process::Launcher;

pub use crate::serve::banned::is_spared as ban_is_spared;
pub use crate::serve::context::{Answers, ThreadBooks};
pub use crate::serve::listeners::{ADMIN_LISTENER, CONTROL_LISTENER, VISITS_LISTENER};

impl Books {
    /// Counts a finished request and hands its record on.
    fn enter(&self, desk: &HandlerContext, request: &Request) {
        let record = request.record();
        if request.facts().listener >= CONTROL_LISTENER {
            return;
        }
        let head = request.sent_head();
        self.counts.count(&record, head.method());
        if let Some(settings) = &desk.sites.borrow().overload {
            desk.shared.overload.note(settings, &record);
        }
        let value = |known| head.value(known).unwrap_or_default();
        let user = request.signed_in();
        let texts = Texts {
            method: head.method(),
            target: request.shown_target(),
            host: head.host(),
            referer: request.shown_referer(),
            user_agent: value(hob_http::Known::UserAgent),
            user: user.as_ref().map_or(b"", |known| known.user.as_bytes()),
            detail: &request.detail(),
            asked: b"",
        };
        if record.log != 0 {
            match desk.sites.borrow().log_values.of(record.log) {
                None => _ = self.ring.borrow_mut().push(&record, &texts),
                Some(values) => self.push_with(values, &texts, request, desk),
            }
        }
        if record.trace.is_sampled
            && let Some(tracer) = &*desk.tracer.borrow()
        {
            tracer.finished(&record, &texts);
        }
        self.recorder.finished(&record, &texts);
        let may_be_watched = request.is_traced() || record.route == Record::NO_ROUTE;
        if may_be_watched && request.reactor().station().is_on() {
            let complete = *record;
            drop(record);
            watch::finish(request, &complete, &desk.sites.borrow());
        }
        // Last: who sees that it was counted finds all else of it.
        desk.counters.requests.add(1);
    }

    /// Hands a record to a log that asks for more than every record has.
    #[cold]
    fn push_with(
        &self,
        values: &[AskedValue],
        texts: &Texts<'_>,
        request: &Request,
        desk: &HandlerContext,
    ) {
        let mut asked = self.asked.borrow_mut();
        asked::write(values, request, &desk.counters, &mut asked);
        let texts = Texts {
            asked: &asked,
            ..*texts
        };
        self.ring.borrow_mut().push(&request.record(), &texts);
    }
}

impl HandlerContext {
    /// Traces go where the config in force says.
    fn renew_tracer(&self) {
        let exporter = self.shared.otlp.load();
        let mut tracer = self.tracer.borrow_mut();
        let is_same = match (&*tracer, &*exporter) {
            (Some(tracer), Some(exporter)) => tracer.is_of(exporter),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            *tracer = exporter.as_ref().map(Tracer::new);
        }
    }

    fn choose(self: &Rc<HandlerContext>, sites: &Arc<Sites>, request: &Request) -> Answered {
        if let Some(trust) = sites.trusts.get(&request.facts().listener) {
            client::believe(trust, request);
        }
        if let Some(refusal) = self.refuse_banned(sites, request) {
            return Answered::Ready(refusal);
        }
        let chosen = sites.choose_site(request);
        match (chosen.by, sites.unknown_host) {
            //= rfc9110#7.4
            (ChosenBy::Unknown, UnknownHost::Refuse) => {
                request.record_mut().log = listener_log(sites, request);
                note_fault(request, Fault::Client, NO_SITE);
                Answered::Ready(plain::error(421))
            }
            (ChosenBy::Unknown, UnknownHost::First) => {
                match self.route(sites, chosen.site, request) {
                    Answered::Ready(response) => Answered::Ready(plain::for_now(response)),
                    Answered::Later(future) => {
                        Answered::Later(Box::pin(async move { plain::for_now(future.await) }))
                    }
                }
            }
            _ => self.route(sites, chosen.site, request),
        }
    }

    fn route(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        site_index: u32,
        request: &Request,
    ) -> Answered {
        let head = request.head();
        let Some(site) = sites.site(site_index) else {
            return Answered::Ready(plain::error(404));
        };
        {
            let mut record = request.record_mut();
            record.site = u16::try_from(site_index).unwrap_or(u16::MAX - 1);
            record.tally = site.tally;
            record.series = site.series;
            record.log = site.log.unwrap_or_else(|| listener_log(sites, request));
        }
        if let Some(refusal) = site_tls::check(sites, site, request) {
            return Answered::Ready(refusal);
        }
        if let Some(refusal) = self.refuse_for_maintenance(site, request) {
            return without_route(site, refusal);
        }
        let raw = head.path();
        if raw == b"*" {
            return without_route(site, plain::options(plain::READING));
        }
        if head.method() == b"CONNECT" && head.connect_protocol().is_none() {
            let mut refusal = plain::wrong_method(b"CONNECT", plain::READING);
            // A client that does not wait for the tunnel may have sent bytes for its other end
            // already: they must not be taken for requests.
            //= rfc9931
            refusal.close = true;
            return without_route(site, refusal);
        }
        let mut room = self.path.borrow_mut();
        let normal = match target::normalise(raw, &mut room) {
            Ok(normal) => normal,
            Err(bad) => {
                note_fault(request, Fault::Client, bad.reason());
                return without_route(site, plain::error(400));
            }
        };
        let path = match moved(site, request, normal.path(raw, &room)) {
            Ok(path) => path,
            Err(redirect) => return without_route(site, *redirect),
        };
        let Some((index, below)) = site.find(path, request) else {
            let slashes = site.slashes.as_ref();
            let redirect = slashes.and_then(|slashes| slashes.redirect(request));
            return without_route(site, redirect.unwrap_or_else(|| plain::error(404)));
        };
        let route = &site.routes[index as usize];
        if route.is_internal {
            note_fault(request, Fault::Client, "the route is internal");
            return without_route(site, plain::error(404));
        }
        {
            let mut record = request.record_mut();
            record.route = index;
            record.series = route.series;
            record.handler = route.handler.kind();
            record.log = route.log.unwrap_or_else(|| listener_log(sites, request));
        }
        if route.slash != SlashForm::Keep
            && let Some(redirect) = site.slash_redirect(index, request, path)
        {
            return Answered::Ready(dress(site, Some(route), redirect));
        }
        if sites.has_handles {
            handles::hide(request, route);
        }
        if request.reactor().station().is_on() {
            watch::begin(request, sites, site, route, index);
        }
        self.follow(sites, (site_index, index), request, path, below)
    }

    /// The answer of a site that is down, but for who may see it even then.
    fn refuse_for_maintenance(&self, site: &ServedSite, request: &Request) -> Option<Response> {
        let peer = request.facts().peer.map(|peer| peer.ip());
        let retry_s = self.shared.maintenance.refuses(site, peer)?;
        self.counters.maintenance.add(1);
        note_fault(request, Fault::Server, "the site is down for maintenance");
        Some(plain::busy_for(retry_s))
    }

    /// What a route, named by its site's index and its own, gives for a path, and the steps around
    /// that.
    fn follow(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        at: (u32, u32),
        request: &Request,
        path: &[u8],
        below: usize,
    ) -> Answered {
        let Some((site, route)) = sites.route(at.0, at.1) else {
            return Answered::Ready(plain::error(404));
        };
        let Some(cors) = &route.cors else {
            return self.admit(sites, at, request, (path, below));
        };
        if let Some(fields) = cors::preflight(cors, request) {
            return Answered::Ready(dress(site, Some(route), plain::preflight(&fields)));
        }
        cors::tell(cors, request, self.admit(sites, at, request, (path, below)))
    }

    /// The same for who may have it.
    fn admit(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        at: (u32, u32),
        request: &Request,
        place: (&[u8], usize),
    ) -> Answered {
        let admission = match self.admission(sites, at, request, place.0, None) {
            Admission::Yes => return self.serve(sites, at, request, place),
            Admission::No(refusal) => return self.not_admitted(sites, at, request, refusal),
            Admission::Later(checked) => {
                let (desk, sites, request) = (Rc::clone(self), Arc::clone(sites), request.clone());
                Admission::Later(Box::pin(async move {
                    let refusal = checked.await?;
                    let answered = desk.not_admitted(&sites, at, &request, refusal);
                    Some(answered.wait().await)
                }))
            }
        };
        let serve = (admission, HandlerContext::serve as AfterAdmission);
        self.when_admitted(sites, at, request, place, serve)
    }

    /// What a client gets whom a route does not let in: its refusal, or the next one's answer where
    /// it leaves the request to that.
    fn not_admitted(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        at: (u32, u32),
        request: &Request,
        refusal: Response,
    ) -> Answered {
        if refusal.status() == ELSEWHERE {
            let way = programs::ProgramDispatch::new(self, sites, request, at);
            return Answered::Later(Box::pin(way.finish(Answered::Ready(refusal))));
        }
        Answered::Ready(match sites.route(at.0, at.1) {
            Some((site, route)) => dress(site, Some(route), refusal),
            None => refusal,
        })
    }

    /// The same for who has it.
    fn serve(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        (site_index, index): (u32, u32),
        request: &Request,
        (path, below): (&[u8], usize),
    ) -> Answered {
        let Some((site, route)) = sites.route(site_index, index) else {
            return Answered::Ready(plain::error(404));
        };
        // Files take no body, and a program that answers in their place has a limit of its own.
        if !request.limit_body(route.body_bytes_max) && !site.leads_on(route) {
            // The engine counts it when it sees the status.
            note_fault(
                request,
                Fault::Client,
                "limits.body: the announced body is too large",
            );
            return Answered::Ready(dress(site, Some(route), plain::error(413)));
        }
        let is_tunnel = request.head().connect_protocol().is_some();
        if is_tunnel && !route.handler.opens_tunnels() {
            // Nothing there speaks through a tunnel.
            //= rfc9220#3
            note_fault(request, Fault::Client, "no tunnels are opened here");
            return Answered::Ready(dress(site, Some(route), plain::error(501)));
        }
        let answered = self.ask(sites, site, route, request, (path, below));
        if route.is_final && !may_lead_on(site, route, &answered) {
            return answered;
        }
        let is_timed = route.server_timing;
        let answered = self.finish(sites, (site_index, index), request, answered);
        match is_timed {
            true => timing::tell(request, answered),
            false => answered,
        }
    }

    /// The steps after the handler of a route, which is named by its site's index and its own.
    fn finish(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        (site_index, index): (u32, u32),
        request: &Request,
        answered: Answered,
    ) -> Answered {
        let Some((site, route)) = sites.route(site_index, index) else {
            return answered;
        };
        match answered {
            answered if route.handler.runs_programs() || may_lead_on(site, route, &answered) => {
                let way = programs::ProgramDispatch::new(self, sites, request, (site_index, index));
                Answered::Later(Box::pin(way.finish(answered)))
            }
            Answered::Ready(response) => Answered::Ready(dress(site, Some(route), response)),
            Answered::Later(future) => {
                let sites = Arc::clone(sites);
                Answered::Later(Box::pin(async move {
                    let response = future.await;
                    match sites.route(site_index, index) {
                        Some((site, route)) => dress(site, Some(route), response),
                        None => response,
                    }
                }))
            }
        }
    }

    /// What the handler of a site's route gives for a path.
    fn ask(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        site: &ServedSite,
        route: &ServedRoute,
        request: &Request,
        (path, below): (&[u8], usize),
    ) -> Answered {
        if let Some(hints) = &route.early_hints {
            hints.send(request);
        }
        if let Some(countries) = &sites.countries
            && route.handler.runs_programs()
        {
            let peer = request.facts().peer.map(|peer| peer.ip());
            request.set_country(countries.find(peer).code());
        }
        if route.rewrite.is_some() {
            self.rewrite_and_handle(sites, site, route, request, path)
        } else {
            self.handle(sites, site, route, request, (path, path, below))
        }
    }

    /// The handler sees the rewritten path, all of it, and the rewritten query if there is one.
    fn rewrite_and_handle(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        site: &ServedSite,
        route: &ServedRoute,
        request: &Request,
        path: &[u8],
    ) -> Answered {
        let (Some(rewrite), Some(captures)) = (&route.rewrite, route.pattern.matches(path)) else {
            return Answered::Ready(plain::error(500));
        };
        let head = request.head();
        let facts = TemplateValues {
            path,
            raw_path: head.path(),
            query: head.query(),
            host: head.host(),
            captures: &captures,
        };
        let mut rewritten = Vec::new();
        match rewrite.expand_path(&facts, &mut rewritten) {
            Ok(()) => {
                let shown = target::PathDisplay(&rewritten);
                request.tell(RequestStage::Step, format_args!("rewritten to {shown:#}"));
                if let Some(query) = rewrite.expand_query(&facts) {
                    request.rewrite_query(&query);
                }
                self.handle(sites, site, route, request, (path, &rewritten, 1))
            }
            Err(bad) => {
                note_fault(request, Fault::Client, bad.reason());
                Answered::Ready(plain::error(400))
            }
        }
    }

    fn handle(
        self: &Rc<HandlerContext>,
        sites: &Arc<Sites>,
        site: &ServedSite,
        route: &ServedRoute,
        request: &Request,
        (matched, path, below): (&[u8], &[u8], usize),
    ) -> Answered {
        route.handler.answer(&OnRoute {
            desk: self,
            sites,
            site,
            route,
            request,
            matched,
            path,
            below,
            call: None,
        })
    }
}

/// True when it may turn out that another route answers for the file that was found.
fn may_lead_on(site: &ServedSite, route: &ServedRoute, answered: &Answered) -> bool {
    match answered {
        Answered::Ready(response) => response.status() == ELSEWHERE,
        Answered::Later(_) => site.leads_on(route),
    }
}

/// The path that a site answers for a normal one. An error sends the client to another form of it,
/// or to where it has moved.
fn moved<'a>(
    site: &'a ServedSite,
    request: &Request,
    path: &'a [u8],
) -> Result<&'a [u8], Box<Response>> {
    let head = request.head();
    if let Some(form) = &site.address_form
        && let Some(location) = form.location(request, path)
    {
        return Err(Box::new(plain::move_for_good(head.method(), &location)));
    }
    let moved = { site.redirects.as_ref() }.and_then(|redirects| redirects.find(path));
    match moved.map(|moved| &moved.to) {
        None => Ok(path),
        Some(MovedTo::Redirect(target)) => {
            let location = target.location(head.query());
            Err(Box::new(plain::redirect(target.status, &location)))
        }
        Some(MovedTo::Rewrite(path, query)) => {
            let shown = target::PathDisplay(path);
            request.tell(RequestStage::Step, format_args!("rewritten to {shown:#}"));
            request.rewrite_path(path);
            if let Some(query) = query {
                request.rewrite_query(query);
            }
            Ok(path)
        }
    }
}

/// An answer that no route gives.
fn without_route(site: &ServedSite, response: Response) -> Answered {
    Answered::Ready(dress(site, None, response))
}

/// The listener's own log, 0 for none.
fn listener_log(sites: &Sites, request: &Request) -> u16 {
    let log = sites.listener_logs.get(&request.facts().listener);
    log.copied().unwrap_or_default()
}

fn note_fault(request: &Request, fault: Fault, reason: &'static str) {
    let mut record = request.record_mut();
    record.fault = fault;
    record.reason = Some(reason);
}

impl Responder for Answers {
    fn answer(&self, request: &Request) -> Answered {
        if request.facts().listener >= CONTROL_LISTENER {
            return Arc::clone(&self.desk.inside).answer(request);
        }
        if let Some(tracer) = &*self.desk.tracer.borrow() {
            tracer.begin(request);
        }
        let sites = self.desk.sites.borrow();
        if let Some(page) = proof::page(&self.desk.crew, &sites, request) {
            return Answered::Ready(page);
        }
        let listener = request.facts().listener;
        let answered = match sites.offers.listeners.contains_key(&listener) {
            true => self.desk.answer_offered(&sites, request),
            false if listener == VISITS_LISTENER => self.desk.answer_successor(&sites, request),
            false => self.desk.choose(&sites, request),
        };
        let log = request.record().log;
        let answered = match sites.log_values.of_answer(log) {
            Some(values) => asked::note_answer(values, request, answered),
            None => answered,
        };
        let answered = match sites.has_bandwidth {
            true => self.desk.pace(&sites, request, answered),
            false => answered,
        };
        match request.is_traced() {
            true => watch::tap(request, answered),
            false => answered,
        }
    }

    fn has_more_to_come(&self) -> bool {
        let shared = &self.desk.shared;
        let predecessor = shared.predecessor.get();
        shared.fleet.has_visits_to_keep(predecessor)
    }

    fn leave(&self) -> Duration {
        self.desk.shared.fleet.leave()
    }

    fn refuse(&self, request: &Request, status: u16) -> Response {
        let sites = self.desk.sites.borrow();
        let log = sites.listener_logs.get(&request.facts().listener).copied();
        request.record_mut().log = log.unwrap_or_default();
        plain::error(status)
    }

    fn may_name_clients(&self, facts: &ConnectionFacts) -> bool {
        let sites = self.desk.sites.borrow();
        let trust = sites.trusts.get(&facts.listener);
        trust.is_none_or(|trust| trust.peers.has_peer(facts.peer.map(|peer| peer.ip())))
    }

    fn lets_connect(&self, peer: Option<SocketAddr>, listener: u16) -> bool {
        self.desk.lets_connect(peer, listener)
    }

    fn handshake_failed(&self, facts: &ConnectionFacts, why: &'static str) {
        self.desk.count_handshake(facts, why);
    }

    fn error_leaves(&self, request: &Request) {
        self.desk.count_error(request);
    }

    fn begun(&self, request: &Request) {
        if request.facts().listener < CONTROL_LISTENER {
            self.desk.counters.requests_begun.add(1);
        }
    }

    fn finished(&self, request: &Request) {
        let Some(aftermath) = request.take_aftermath() else {
            return self.books.enter(&self.desk, request);
        };
        // Mostly it is known by now.
        let mut now = Context::from_waker(Waker::noop());
        if aftermath.poll_told(&mut now, request).is_ready() {
            return self.books.enter(&self.desk, request);
        }
        let (books, desk) = (Rc::clone(&self.books), Rc::clone(&self.desk));
        let request = request.clone();
        request.reactor().clone().spawn(async move {
            poll_fn(|cx| aftermath.poll_told(cx, &request)).await;
            books.enter(&desk, &request);
        });
    }

    fn start(&self, reactor: &Reactor) {
        let launcher = Launcher::new(reactor, Arc::clone(&self.desk.counters));
        let home = DriverThread {
            thread: self.desk.thread,
            reactor: reactor.clone(),
            launcher: launcher.clone(),
            counters: Arc::clone(&self.desk.counters),
            fleet: Arc::clone(&self.desk.shared.fleet),
        };
        let _ = self.desk.home.set(Rc::new(home));
        reactor.station().set_server(self.desk.servers_started);
        reactor.station().set_hub(&self.desk.shared.watching.hub);
        // Called once; a second launcher would have no link.
        let _ = self.desk.launcher.set(launcher);
    }

    fn begin_turn(&self, now_ms: u64) {
        let desk = &self.desk;
        desk.now_ms.set(now_ms);
        self.books.recorder.turn(now_ms);
        let generation = desk.shared.generation();
        if generation != desk.generation.get() {
            desk.generation.set(generation);
            *desk.sites.borrow_mut() = desk.shared.sites();
            desk.renew_tracer();
            if desk.sites.borrow().overload.is_none() {
                desk.shared.overload.end(&desk.counters);
            }
        }
        if let Some(settings) = &desk.sites.borrow().overload {
            desk.shared.overload.turn(settings, now_ms, &desk.counters);
        }
        if desk.shared.bans.is_any() {
            desk.shared.bans.sweep(hob_http::unix_ms());
        }
        if let Some(home) = desk.home.get() {
            home.reactor.station().refresh();
        }
        desk.local.borrow_mut().sweep(&desk.shared.store, now_ms);
        if desk.shared.store.must_tell() {
            self.wake_all();
        }
    }
}
