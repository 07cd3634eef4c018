//! The request path: read this first. One request goes through [`Answers::answer`] top to bottom.
//!
//! 1. the record is open already (`http` made it)
//! 2. the host chooses the site
//! 3. the target is brought into its one normal form
//! 4. the path chooses the route
//! 5. the body limit
//! 6. the rewrite
//! 7. the handler answers, now or later
//! 8. the site's own error page
//!
//! When the answer has left, [`Answers::finished`] counts it and hands the record on.

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hob_http::thread::{Handle, Thread};
use hob_http::{Answer, Answered, Body, Reactor, Request, Response};
use hob_trace::metric::ThreadCounters;
use hob_trace::ring::Producer;
use hob_trace::{CacheOutcome, Fault, HandlerKind, Texts};

use crate::cache::local::Local;
use crate::handle::admin::{self, Admin};
use crate::handle::files::find::{self, Ask};
use crate::handle::{Handler, plain, redirect, respond};
use crate::process::Launcher;
use crate::route::pattern::Captures;
use crate::route::sites::{ErrorPage, Route, Site, Sites};
use crate::route::target;
use crate::route::template::Facts;
use crate::shared::Shared;

/// The number of the control socket among listeners.
pub const CONTROL_LISTENER: u16 = 0xfff0;

/// What one thread answers with.
pub struct Answers {
    shared: Arc<Shared>,
    admin: Arc<Admin>,
    counters: Arc<ThreadCounters>,
    ring: RefCell<Producer>,
    sites: RefCell<Arc<Sites>>,
    generation: Cell<u64>,
    local: RefCell<Local>,
    now_ms: Cell<u64>,
    /// The link to the spawner, once the thread runs.
    launcher: OnceCell<Launcher>,
    /// Room for normal paths and cache keys, used again for each request.
    path: RefCell<Vec<u8>>,
    key: RefCell<Vec<u8>>,
}

impl Answers {
    /// Answers for one thread, counted and recorded in its own blocks.
    pub fn new(
        shared: &Arc<Shared>,
        admin: &Arc<Admin>,
        counters: Arc<ThreadCounters>,
        ring: Producer,
    ) -> Answers {
        Answers {
            sites: RefCell::new(shared.sites()),
            generation: Cell::new(shared.generation()),
            shared: Arc::clone(shared),
            admin: Arc::clone(admin),
            counters,
            ring: RefCell::new(ring),
            local: RefCell::default(),
            now_ms: Cell::new(0),
            launcher: OnceCell::new(),
            path: RefCell::default(),
            key: RefCell::default(),
        }
    }

    /// This thread's link to the spawner; none before the thread runs.
    pub fn launcher(&self) -> Option<&Launcher> {
        self.launcher.get()
    }

    /// Starts programs over this link from now on.
    pub fn attach(&self, link: OwnedFd) {
        if let Some(launcher) = self.launcher.get()
            && let Err(error) = launcher.attach(link)
        {
            tracing::error!(%error, "a link to the spawner cannot be watched");
        }
    }

    fn route(&self, sites: &Sites, request: &Request) -> Answered {
        let head = request.head();
        let site_index = sites.site_of(head.host());
        let Some(site) = sites.site(site_index) else {
            return Answered::Ready(plain::error(404));
        };
        {
            let mut record = request.record_mut();
            record.site = u16::try_from(site_index).unwrap_or(u16::MAX - 1);
            record.log = site.log.unwrap_or_else(|| listener_log(sites, request));
        }
        let raw = head.path();
        if raw == b"*" {
            return Answered::Ready(plain::options(plain::READING));
        }
        if head.method() == b"CONNECT" {
            let mut refusal = plain::wrong_method(b"CONNECT", plain::READING);
            // A client that does not wait for the tunnel may have sent bytes for its other end
            // already: they must not be taken for requests.
            //= rfc9931
            refusal.close = true;
            return self.dress(site, Answered::Ready(refusal), request);
        }
        let mut room = self.path.borrow_mut();
        let normal = match target::normalise(raw, &mut room) {
            Ok(normal) => normal,
            Err(bad) => {
                note_fault(request, Fault::Client, bad.reason());
                return self.dress(site, Answered::Ready(plain::error(400)), request);
            }
        };
        let path = normal.path(raw, &room);
        let Some((index, below)) = site.find(path) else {
            return self.dress(site, Answered::Ready(plain::error(404)), request);
        };
        let route = &site.routes[index as usize];
        {
            let mut record = request.record_mut();
            record.route = index;
            record.handler = route.handler.kind();
            record.log = route.log.unwrap_or_else(|| listener_log(sites, request));
        }
        if !request.limit_body(route.body_bytes_max) {
            // The engine counts it when it sees the status.
            note_fault(
                request,
                Fault::Client,
                "limits.body: the announced body is too large",
            );
            return self.dress(site, Answered::Ready(plain::error(413)), request);
        }
        let answered = if route.rewrite.is_some() {
            self.rewrite_and_handle(route, request, path)
        } else {
            self.handle(route, request, path, below)
        };
        if route.handler.has_own_body() {
            return answered;
        }
        self.dress(site, answered, request)
    }

    /// The handler sees the rewritten path, all of it.
    fn rewrite_and_handle(&self, route: &Route, request: &Request, path: &[u8]) -> Answered {
        let (Some(rewrite), Some(captures)) = (&route.rewrite, route.pattern.matches(path)) else {
            return Answered::Ready(plain::error(500));
        };
        let head = request.head();
        let facts = Facts {
            path,
            query: head.query(),
            host: head.host(),
            captures: &captures,
        };
        let mut rewritten = Vec::new();
        match rewrite.expand_path(&facts, &mut rewritten) {
            Ok(()) => self.handle(route, request, &rewritten, 1),
            Err(bad) => {
                note_fault(request, Fault::Client, bad.reason());
                Answered::Ready(plain::error(400))
            }
        }
    }

    fn handle(&self, route: &Route, request: &Request, path: &[u8], below: usize) -> Answered {
        match &route.handler {
            Handler::Files(files) => {
                let below = if files.settings.keep_prefix { 1 } else { below };
                let ask = Ask {
                    files,
                    request,
                    shared: &self.shared,
                    counters: &self.counters,
                    now_ms: self.now_ms.get(),
                };
                let path = path.get(below..).unwrap_or_default();
                find::answer(
                    &ask,
                    path,
                    &mut self.local.borrow_mut(),
                    &mut self.key.borrow_mut(),
                )
            }
            Handler::Redirect(redirect) => {
                let captures: Option<Captures> = route.pattern.matches(path);
                Answered::Ready(match captures {
                    Some(captures) => redirect::answer(redirect, request, path, &captures),
                    None => plain::error(500),
                })
            }
            Handler::Respond(respond) => Answered::Ready(respond::answer(respond)),
        }
    }

    /// Has every thread begin a turn, in which it lets go of what has left the cache.
    fn wake_all(&self) {
        let crew = &self.admin.crew;
        for index in 0..crew.thread_count() {
            Handle::new(crew, index).run(|_: &mut Thread<Answers>| {});
        }
    }

    /// Puts the site's own page in the place of a built-in error page.
    fn dress(&self, site: &Site, answered: Answered, request: &Request) -> Answered {
        if site.error_pages.is_empty() {
            return answered;
        }
        match answered {
            Answered::Ready(response) => {
                let page = site.error_page(response.status());
                Answered::Ready(match page {
                    Some(page) => with_page(response, page),
                    None => response,
                })
            }
            Answered::Later(future) => {
                let (sites, site) = (Arc::clone(&self.sites.borrow()), request.record().site);
                Answered::Later(Box::pin(async move {
                    let response = future.await;
                    let site = sites.site(u32::from(site));
                    match site.and_then(|site| site.error_page(response.status())) {
                        Some(page) => with_page(response, page),
                        None => response,
                    }
                }))
            }
        }
    }
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

/// The answer with the site's own page as its body.
pub(crate) fn with_page(mut response: Response, page: &ErrorPage) -> Response {
    let fields = response.fields_mut();
    fields.set(b"Content-Type", page.content_type.as_bytes());
    fields.remove(b"Content-Security-Policy");
    response.body = Body::Bytes(page.body.clone());
    response
}

impl Answer for Answers {
    fn answer(&self, request: &Request) -> Answered {
        if request.facts().listener == CONTROL_LISTENER {
            request.record_mut().handler = HandlerKind::Admin;
            return admin::answer(&self.admin, request);
        }
        let sites = self.sites.borrow();
        self.route(&sites, request)
    }

    fn refuse(&self, request: &Request, status: u16) -> Response {
        let sites = self.sites.borrow();
        let log = sites.listener_logs.get(&request.facts().listener).copied();
        request.record_mut().log = log.unwrap_or_default();
        plain::error(status)
    }

    fn finished(&self, request: &Request) {
        let record = request.record();
        if request.facts().listener == CONTROL_LISTENER {
            return;
        }
        let counters = &self.counters;
        counters.requests.add(1);
        counters.count_status(record.status);
        counters.bytes_in.add(record.bytes_in);
        counters
            .bytes_out
            .add(record.head_bytes_out + record.body_bytes_out);
        match record.cache {
            CacheOutcome::None => {}
            CacheOutcome::Hit => counters.cache_hits.add(1),
            CacheOutcome::Revalidated => {
                counters.cache_hits.add(1);
                counters.cache_revalidations.add(1);
            }
            CacheOutcome::Miss => counters.cache_misses.add(1),
        }
        if record.disk_wait_us > 0 {
            counters.disk_jobs.add(1);
            counters.disk_wait_us.add(record.disk_wait_us);
        }
        if record.log != 0 {
            let head = request.head();
            let value = |known| head.value(known).unwrap_or_default();
            let texts = Texts {
                method: head.method(),
                target: head.target(),
                host: head.host(),
                referer: value(hob_http::Known::Referer),
                user_agent: value(hob_http::Known::UserAgent),
                user: b"",
            };
            self.ring.borrow_mut().push(&record, &texts);
        }
    }

    fn start(&self, reactor: &Reactor) {
        let launcher = Launcher::new(reactor, Arc::clone(&self.counters));
        // Called once; a second launcher would have no link.
        let _ = self.launcher.set(launcher);
    }

    fn begin_turn(&self, now_ms: u64) {
        self.now_ms.set(now_ms);
        let generation = self.shared.generation();
        if generation != self.generation.get() {
            self.generation.set(generation);
            *self.sites.borrow_mut() = self.shared.sites();
        }
        self.local.borrow_mut().sweep(&self.shared.store, now_ms);
        if self.shared.store.must_tell() {
            self.wake_all();
        }
    }
}
