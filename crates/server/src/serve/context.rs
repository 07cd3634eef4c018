//! What a thread answers with, and what its handlers work with.

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use hob_http::thread::{Crew, Handle, Thread};
use hob_http::{Reactor, Request};
use hob_keeper::process::Launcher;
use hob_trace::metric::ThreadCounters;
use hob_trace::ring::Producer;
use hob_trace::{Recorder, ThreadCounts};

use crate::cache::local::Local;
use crate::handle::cgi::answer::Places;
use crate::handle::resident::DriverThread;
use crate::handle::resident::grow::WorkerStart;
use crate::handle::script::call::ProgramCall;
use crate::handle::script::lives::Means;
use crate::handle::upstream::check::CheckMeans;
use crate::handle::upstream::http2::Http2Connections;
use crate::handle::upstream::members::Upstream;
use crate::handle::upstream::run;
use crate::handle::upstream::run::program::RunProgram;
use crate::handle::warm;
use crate::handle::warm::{HostLinks, WarmHost};
use crate::inside::AnswersInside;
use crate::otlp::Tracer;
use crate::serve::ServerState;
use crate::serve::captured::CapturedRequest;
use crate::serve::sites::{ServedRoute, ServedSite, Sites};

/// What one thread answers with.
pub struct Answers {
    pub(crate) desk: Rc<HandlerContext>,
    pub(crate) books: Rc<Books>,
}

/// Where a thread counts its requests and keeps them.
pub struct ThreadBooks {
    /// The thread's number.
    pub index: usize,
    /// Its block of counters.
    pub counters: Arc<ThreadCounters>,
    /// Its part of history and series.
    pub recorder: Recorder,
    /// Where the access log takes finished requests from.
    pub ring: Producer,
}

/// Where a thread's finished requests are counted and kept.
pub(crate) struct Books {
    pub(crate) ring: RefCell<Producer>,
    /// Room for what the format of a log asks for.
    pub(crate) asked: RefCell<Vec<u8>>,
    pub(crate) counts: ThreadCounts,
    pub(crate) recorder: Recorder,
}

/// What a thread's handlers work with; answers that take a while hold it, to ask handlers again.
pub(crate) struct HandlerContext {
    /// What all threads share.
    pub(crate) shared: Arc<ServerState>,
    /// This thread's block: handlers count in it.
    pub(crate) counters: Arc<ThreadCounters>,
    /// Gives requests their traces, where they have any.
    pub(crate) tracer: RefCell<Option<Tracer>>,
    /// The threads.
    pub(crate) crew: Arc<Crew>,
    /// Who answers the control socket and the admin listener.
    pub(crate) inside: Arc<dyn AnswersInside>,
    /// The number of this server process among those the keeper started.
    pub(crate) servers_started: u64,
    /// The sites in force as of this turn; a request keeps those it began with.
    pub(crate) sites: RefCell<Arc<Sites>>,
    /// Of these sites; another number at the begin of a turn has them fetched anew.
    pub(crate) generation: Cell<u64>,
    /// What this thread knows of cached files without a lock.
    pub(crate) local: RefCell<Local>,
    /// When this turn began, in milliseconds of loop time.
    pub(crate) now_ms: Cell<u64>,
    /// Where programs were found a moment ago.
    pub(crate) places: Rc<Places>,
    /// This thread's links to interpreters that scripts are forked from.
    pub(crate) links: Rc<HostLinks>,
    /// Its connections to members that speak HTTP/2.
    pub(crate) http2: Rc<Http2Connections>,
    /// The link to the spawner, once the thread runs.
    pub(crate) launcher: OnceCell<Launcher>,
    /// The thread's number, and the thread as workers of resident programs see it.
    pub(crate) thread: usize,
    pub(crate) home: OnceCell<Rc<DriverThread>>,
    /// Room for normal paths and cache keys, used again for each request.
    pub(crate) path: RefCell<Vec<u8>>,
    pub(crate) key: RefCell<Vec<u8>>,
}

/// A request on its route, and what its thread answers with.
pub(crate) struct OnRoute<'a> {
    pub(crate) desk: &'a Rc<HandlerContext>,
    /// Those that the route is of.
    pub(crate) sites: &'a Arc<Sites>,
    pub(crate) site: &'a ServedSite,
    pub(crate) route: &'a ServedRoute,
    pub(crate) request: &'a Request,
    /// The path in its normal form by which the route was found.
    pub(crate) matched: &'a [u8],
    /// The same, rewritten where the route says so.
    pub(crate) path: &'a [u8],
    /// Where it leaves the route's fixed folder.
    pub(crate) below: usize,
    /// A page asks, and not the client.
    pub(crate) call: Option<&'a Rc<ProgramCall>>,
}

impl OnRoute<'_> {
    /// What its captures make paths of.
    pub(crate) fn captured(&self) -> CapturedRequest<'_> {
        CapturedRequest {
            pattern: &self.route.pattern,
            matched: self.matched,
            host: self.request.head().host(),
        }
    }
}

impl Answers {
    /// Answers for one thread, counted and recorded in its own blocks.
    pub fn new(
        shared: &Arc<ServerState>,
        crew: &Arc<Crew>,
        servers_started: u64,
        inside: Arc<dyn AnswersInside>,
        thread: ThreadBooks,
    ) -> Answers {
        let ThreadBooks {
            index,
            counters,
            recorder,
            ring,
        } = thread;
        let counts = shared.counts.new_thread(Arc::clone(&counters));
        Answers {
            desk: Rc::new(HandlerContext {
                sites: RefCell::new(shared.sites()),
                generation: Cell::new(shared.generation()),
                shared: Arc::clone(shared),
                counters,
                tracer: RefCell::new(shared.otlp.load().as_ref().map(Tracer::new)),
                crew: Arc::clone(crew),
                inside,
                servers_started,
                local: RefCell::default(),
                now_ms: Cell::new(0),
                places: Rc::default(),
                links: Rc::default(),
                http2: Rc::default(),
                launcher: OnceCell::new(),
                thread: index,
                home: OnceCell::new(),
                path: RefCell::default(),
                key: RefCell::default(),
            }),
            books: Rc::new(Books {
                recorder,
                counts,
                ring: RefCell::new(ring),
                asked: RefCell::default(),
            }),
        }
    }

    /// Starts programs over this link from now on.
    pub fn attach(&self, link: OwnedFd) {
        if let Some(launcher) = self.desk.launcher.get()
            && let Err(error) = launcher.attach(link)
        {
            tracing::error!(%error, "a link to the spawner cannot be watched");
        }
    }

    /// Lets readers of the history see what this thread has kept to itself.
    pub fn hand_over(&self) {
        self.books.recorder.hand_over();
    }

    /// Entries of the cache that this thread has views of.
    pub fn view_count(&self) -> usize {
        self.desk.local.borrow().count()
    }

    /// Entries of the cache hear how often this thread was asked for them: a piece of them, from
    /// this view on.
    pub fn hand_over_hits(&self, first: usize) {
        self.desk.local.borrow().hand_over_hits(first);
    }

    /// Starts a worker of a resident program on this thread.
    pub(crate) fn start_worker(&self, order: WorkerStart) {
        if let Some(home) = self.desk.home.get() {
            home.start(order);
        }
    }

    /// Starts an interpreter that scripts are forked from, on this thread.
    pub(crate) fn start_host(&self, host: &Arc<WarmHost>) {
        if let Some(means) = self.means() {
            warm::keep::start(host, &means);
        }
    }

    /// Starts a program that is run to be asked, on this thread.
    pub(crate) fn start_run(&self, program: &Arc<RunProgram>) {
        if let Some(means) = self.means() {
            run::keep::start(program, &means);
        }
    }

    fn means(&self) -> Option<Means> {
        let home = self.desk.home.get()?;
        Some(Means {
            launcher: home.launcher.clone(),
            reactor: home.reactor.clone(),
            counters: Arc::clone(&home.counters),
        })
    }

    /// Looks at the members of an upstream from now on, on this thread.
    pub(crate) fn begin_checks(&self, upstream: &Arc<Upstream>) {
        if let Some(home) = self.desk.home.get() {
            upstream.begin_checks(&CheckMeans {
                reactor: home.reactor.clone(),
                pool: self.desk.shared.pool.clone(),
                counters: Arc::clone(&home.counters),
            });
        }
    }

    /// What starts programs on this thread, and what it waits with; nothing before the thread runs.
    pub fn launching(&self) -> Option<(&Launcher, &Reactor)> {
        let home = self.desk.home.get()?;
        Some((&home.launcher, &home.reactor))
    }

    /// Has every thread begin a turn, in which it lets go of what has left the cache.
    pub(crate) fn wake_all(&self) {
        let crew = &self.desk.crew;
        for index in 0..crew.thread_count() {
            Handle::new(crew, index).run(|_: &mut Thread<Answers>| {});
        }
    }
}
