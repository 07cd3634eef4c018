//! The server process: threads that answer, and this one, which listens to the keeper.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, UNIX_EPOCH};

use hob_http::acme::Challenges;
use hob_http::limits::HttpLimits;
use hob_http::thread::{Crew, Drain, Handle, Listening, Thread};
use hob_http::tls::{Offer, TicketKeys, TlsHosts};
use hob_http::unix_ms;
use hob_trace::Mutex;
use hob_trace::access_log::{AccessLog, LogId};
use hob_trace::format::AskedValue;
use hob_trace::history::{RequestHistory, Retention, SegmentOrigin};
use hob_trace::ring::Consumer;
use hob_trace::watch::{Hidden, Hub};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

use super::old_logs::OldLogs;
use hob_inside::activity::{Hook, Inside, Sampler, SamplerFiles};
use hob_inside::admin::helm::WishOutcome;
use hob_inside::admin::{Admin, Configured, GenerationReport, certificates};
use hob_inside::resources::{self};
use hob_keeper::process;
use hob_keeper::tls;
use hob_keeper::{KeeperFailure, KeyFiles};
use hob_server::answer::{ADMIN_LISTENER, Answers, CONTROL_LISTENER, VISITS_LISTENER};
use hob_server::authorities;
use hob_server::config::{CacheMode, Config, Listener, LogChoice, Purpose};
use hob_server::handle::HandlerSettings;
use hob_server::handle::files::pin;
use hob_server::limits::limits;
use hob_server::otlp::Exporter;
use hob_server::serve::ServerState;
use hob_server::serve::fleet::now_ms;
use hob_server::serve::predecessor::Predecessor;
use hob_server::serve::sites::Sites;

/// What one generation of the config is served with.
type Generation = hob_keeper::Generation<HandlerSettings>;
/// What the keeper tells the server.
type Event = hob_keeper::KeeperEvent<HandlerSettings>;
/// The server's life as far as the keeper has a part in it.
type ServerLife = hob_keeper::ServerLife<HandlerSettings>;

/// How long the access log may take to write what is left at the end.
const LOG_PATIENCE: Duration = Duration::from_secs(3);
/// Numbers of admin listeners: one config and the one before it have four at most.
const ADMIN_LISTENERS_MAX: u16 = 14;
/// How often it is tried again to take a message of the keeper for which descriptors lack.
const ROOM_LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// How long running answers may take when the keeper is gone.
const ORPHAN_DRAIN: Duration = Duration::from_secs(2);

/// Runs a server process until it is drained.
pub(crate) fn run() -> Result<(), KeeperFailure> {
    let mut life = ServerLife::from_stdin()?;
    let generation = life.start()?;
    match ServingProcess::start(generation) {
        Ok(mut server) => {
            life.ready();
            server.run(&mut life);
            life.drained();
            Ok(())
        }
        Err(text) => {
            life.start_failed(&text);
            Err(KeeperFailure::Config(text))
        }
    }
}

pub(super) struct ServingProcess {
    pub(super) shared: Arc<ServerState>,
    pub(super) admin: Arc<Admin>,
    pub(super) crew: Arc<Crew>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) signals: Arc<ThreadNotices>,
    pub(super) log: Option<AccessLog>,
    /// Rings of threads while there is no log to read them.
    pub(super) rings: Vec<Consumer>,
    /// What each log asks for that requests may name.
    pub(super) asked: Vec<(LogId, Arc<[AskedValue]>)>,
    /// Numbers of the logs of the config in force, by its index.
    logs: Vec<LogId>,
    /// Numbers of the config before: answers under way may still bear them.
    old_logs: OldLogs,
    /// The config in force.
    config: Arc<Config>,
    /// Keys of session tickets; they outlive reloads.
    ticket_keys: Arc<TicketKeys>,
    listeners: Vec<Listening>,
    next_listener: u16,
    /// Where the server after this one asks for visits; it outlives reloads.
    visits: Option<Listening>,
    /// Those whose connections were made to ask for what is offered.
    offer_listeners: HashSet<u16>,
    next_admin: u16,
    /// The server's own end to the spawner; while it is open the spawner has a server.
    spawner: Option<OwnedFd>,
    /// Looks at all of it once a second.
    sampler: Option<Sampler>,
}

/// What other threads tell the one that runs the server.
pub(super) struct ThreadNotices {
    bell: OwnedFd,
    pub(super) running: AtomicUsize,
    pub(super) to_rotate: Mutex<Vec<LogId>>,
}

impl ThreadNotices {
    fn new() -> io::Result<ThreadNotices> {
        let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(ThreadNotices {
            bell,
            running: AtomicUsize::new(0),
            to_rotate: Mutex::default(),
        })
    }

    pub(super) fn ring(&self) {
        // A full counter is as good as a ring.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

impl ServingProcess {
    fn start(mut generation: Generation) -> Result<ServingProcess, String> {
        let config = &generation.config;
        let thread_count = config.threads.unwrap_or_else(hob_keeper::usable_cores);
        let text = |error: io::Error| error.to_string();
        let crew = Crew::new(thread_count).map_err(text)?;
        generation.tell(&crew);
        let shared = Arc::new(ServerState::new(&config.cache, thread_count));
        shared.fleet.set_crew(&crew);
        crew.set_challenges(Challenges::new(&generation.challenges)?);
        let signals = Arc::new(ThreadNotices::new().map_err(text)?);
        let inside = Inside::new(history(&generation), !generation.config.activity.is_off);
        let configured = Configured::new(config, &generation.sources);
        let admin = Admin::new(&crew, &shared, inside, report(&generation), configured);
        let admin = Arc::new(admin.map_err(text)?);
        let admin_token = generation.facts.admin_token.clone();
        let mut server = ServingProcess {
            shared,
            admin,
            crew,
            threads: Vec::new(),
            signals,
            log: None,
            rings: Vec::new(),
            asked: Vec::new(),
            logs: Vec::new(),
            old_logs: OldLogs::default(),
            config: Arc::clone(&generation.config),
            ticket_keys: TicketKeys::new(),
            listeners: Vec::new(),
            next_listener: 0,
            visits: generation.visits.own.take().map(visits_listener),
            offer_listeners: HashSet::new(),
            next_admin: 0,
            spawner: None,
            sampler: None,
        };
        let files = SamplerFiles {
            history: generation.history_file.take(),
            history_bytes_max: generation.config.history.file_bytes,
            activity: generation.activity_file.take(),
        };
        if let Some(file) = generation.maintenance_file.take() {
            server.shared.maintenance.open(file.into());
        }
        if let Some(file) = generation.bans_file.take() {
            server.shared.bans.open(file.into(), unix_ms());
        }
        if let Some((socket, process)) = generation.visits.before.take() {
            // Called once.
            let _ = server
                .shared
                .predecessor
                .set(Predecessor::new(socket, process));
        }
        let roots = authorities::of_or_none(&generation.config);
        let (listeners, limits) = server.put_in_force(generation, roots)?;
        if let Some(token) = admin_token {
            server.admin.door.take_token(&token, now_ms());
        }
        server.start_threads(thread_count, &limits, &listeners)?;
        let sampler =
            Sampler::start(server.admin.sampled(), files, hooks(&server.admin)).map_err(text)?;
        server.sampler = Some(sampler);
        Ok(server)
    }

    /// Makes a generation the one that is served; `roots` is the text of its `otlp.ca`. Returns
    /// what threads must be given.
    #[allow(clippy::type_complexity)]
    fn put_in_force(
        &mut self,
        generation: Generation,
        roots: Vec<u8>,
    ) -> Result<(Vec<Listening>, HttpLimits), String> {
        let report = report(&generation);
        let Generation {
            number,
            config,
            sources,
            listeners,
            datagrams,
            logs,
            keys,
            control,
            ..
        } = generation;
        let terms = self.terms(&config, &keys)?;
        let audit = Admin::audit_file(&config)?;
        let new_logs = self.open_logs(&config, logs)?;
        let numbers: Vec<u16> = new_logs.iter().map(|log| log.number()).collect();
        let mut sites = match self.build_sites(&config, number, &numbers, &keys) {
            Ok(sites) => sites,
            Err(text) => {
                self.retire(new_logs);
                return Err(text);
            }
        };
        sites.set_client_rules(&tls::client_rules(&config, &keys)?);
        let purposes: Vec<Purpose> = config.listeners.iter().map(|one| one.purpose).collect();
        let mut numbered = self.number_listeners(listeners, &purposes, control);
        self.join_datagrams(&mut numbered, datagrams);
        for (listening, listener) in numbered.iter_mut().zip(&config.listeners) {
            let port = listener.tls.as_ref().and_then(|tls| tls.http3_port);
            listening.tell_of_datagrams(port);
            listening.proxy_protocol = listener.proxy_protocol;
        }
        for (listening, terms) in numbered.iter_mut().zip(terms) {
            listening.tls = terms;
        }
        sites.https_port = https_port(&numbered, &config.listeners);
        sites.number_listeners(numbered.iter().map(|one| one.number));
        for (listening, listener) in numbered.iter_mut().zip(&config.listeners) {
            listening.is_for_hobs = listener.purpose == Purpose::Offers;
            tell_of_listener(&mut sites, listening, listener, &numbers);
        }
        self.shared.watching.set_hidden(hidden(&config));
        let fleet = &self.shared.fleet;
        fleet.set_workers_max(config.limits.workers);
        self.admin
            .configure(&config, &sources, &report.addresses, audit);
        *self.admin.certificates.lock() = certificates::held(&config, &keys, &report.addresses);
        self.admin.inside.history.set_retention(retention(&config));
        self.set_otlp(&config, roots);
        self.set_bans_max(config.limits.bans);
        self.shared.set_sites(sites);
        self.shared.fleet.tend();
        self.shared.hosts.tend(&self.shared.fleet);
        self.shared.runs.tend(&self.shared.fleet);
        self.shared.begin_upstream_checks();
        let before = std::mem::replace(&mut self.logs, new_logs);
        let unused = self.old_logs.renew(before, &self.crew);
        self.retire(unused);
        self.tell(report);
        self.shared.set_listeners(&numbered);
        self.admin.names.set(config.names.as_ref());
        if config.names.is_some()
            && let Err(error) = self.admin.names.start(&self.shared.counts.counters)
        {
            tracing::error!(%error, "clients have no names");
        }
        self.listeners.clone_from(&numbered);
        let limits = limits(&config.limits);
        self.config = config;
        Ok((numbered, limits))
    }

    /// Another server writes down who is banned from now on.
    fn leave_bans(&self) {
        if let Err(error) = self.shared.bans.leave_file(unix_ms()) {
            tracing::error!(%error, "bans cannot be written down");
        }
    }

    /// So many clients may be banned from now on.
    fn set_bans_max(&self, count_max: usize) {
        let let_go = self.shared.bans.set_count_max(count_max);
        if let_go > 0 {
            tracing::warn!(let_go, "bans ended early: `limits.bans` allows fewer");
        }
    }

    /// The report of the generation that is served now; what the keeper tells besides stays.
    fn tell(&self, report: GenerationReport) {
        let mut told = self.admin.report.lock();
        let spawner_pid = told.spawner_pid;
        let certificates = std::mem::take(&mut told.certificates);
        *told = GenerationReport {
            spawner_pid,
            certificates,
            ..report
        };
    }

    /// Sends traces where the config says. What the exporter before still has, it sends.
    /// `roots` is who may have signed the collector's certificate.
    fn set_otlp(&self, config: &Config, roots: Vec<u8>) {
        let current = self.shared.otlp.load();
        let is_as_before = match (current.as_ref(), &config.otlp) {
            (Some(exporter), Some(settings)) => exporter.is(settings, &roots),
            (None, None) => true,
            _ => false,
        };
        if is_as_before {
            return;
        }
        let exporter = config.otlp.clone().and_then(|settings| {
            let series = Arc::clone(&self.shared.series);
            let counters = self.shared.counts.counters.new_thread();
            let started = Exporter::start(settings, roots, series, counters);
            started
                .inspect_err(|error| tracing::error!(%error, "traces are not sent"))
                .ok()
        });
        self.shared.otlp.store(exporter.map(Arc::new));
    }

    /// TLS of each listener.
    fn terms(
        &self,
        config: &Config,
        keys: &KeyFiles,
    ) -> Result<Vec<Option<Arc<TlsHosts>>>, String> {
        let offers = tls::offers(config, keys)?;
        let terms = |offer: Option<Offer>| match offer {
            Some(offer) => {
                TlsHosts::new(&offer, &self.ticket_keys).map(|terms| Some(Arc::new(terms)))
            }
            None => Ok(None),
        };
        let all: Result<Vec<_>, _> = offers.into_iter().map(terms).collect();
        all.map_err(|error| error.to_string())
    }

    fn build_sites(
        &self,
        config: &Config,
        generation: u64,
        log_numbers: &[u16],
        keys: &KeyFiles,
    ) -> Result<Sites, String> {
        self.shared.set_labels(&config.metrics);
        let mut sites = Sites::build(config, generation, log_numbers, &self.shared)?;
        sites.log_values = self.log_values();
        self.shared.set_upstream_terms(keys)?;
        let before = self.shared.cache();
        self.shared.set_cache(&config.cache);
        let handlers = sites.files_handlers().map(|files| files.id).collect();
        self.shared.store.unpin_all_but(&handlers);
        for files in sites.files_handlers() {
            if files.settings.cache == CacheMode::Pin
                && let Err(text) = pin::load_all(files, &self.shared)
            {
                self.shared.set_cache(&before);
                return Err(text);
            }
        }
        Ok(sites)
    }

    /// Gives listening sockets their numbers; a socket that stays keeps its number.
    fn number_listeners(
        &mut self,
        sockets: Vec<OwnedFd>,
        purposes: &[Purpose],
        control: Option<OwnedFd>,
    ) -> Vec<Listening> {
        let identity = |socket: &OwnedFd| {
            rustix::fs::fstat(socket)
                .map(|stat| (stat.st_dev, stat.st_ino))
                .ok()
        };
        let known: HashMap<_, _> = self
            .listeners
            .iter()
            .map(|listening| (identity(&listening.socket), listening.clone()))
            .collect();
        let mut numbered = Vec::new();
        for (socket, purpose) in sockets.into_iter().zip(purposes) {
            let place = known.get(&identity(&socket)).cloned();
            // An address that changes its purpose changes its number.
            let is_ours = |place: &Listening| {
                (place.number >= ADMIN_LISTENER) == (*purpose == Purpose::Admin)
                    && self.offer_listeners.contains(&place.number) == (*purpose == Purpose::Offers)
            };
            let place = place.filter(is_ours);
            numbered.push(place.unwrap_or_else(|| self.new_listener(socket, *purpose)));
        }
        if let Some(control) = control {
            let place = known.get(&identity(&control)).cloned();
            // A full server still tells its operator so, and lets itself be stopped.
            let new = || Listening::aside(CONTROL_LISTENER, Arc::new(control));
            numbered.push(place.unwrap_or_else(new));
        }
        numbered.extend(self.visits.clone());
        numbered
    }

    fn new_listener(&mut self, socket: OwnedFd, purpose: Purpose) -> Listening {
        let socket = Arc::new(socket);
        match purpose {
            Purpose::Sites | Purpose::Offers => {
                self.next_listener = (self.next_listener + 1) % VISITS_LISTENER;
                match purpose {
                    Purpose::Offers => self.offer_listeners.insert(self.next_listener),
                    _ => self.offer_listeners.remove(&self.next_listener),
                };
                Listening::new(self.next_listener, socket)
            }
            Purpose::Admin => {
                self.next_admin = (self.next_admin + 1) % ADMIN_LISTENERS_MAX;
                // A full server still shows its operator so.
                Listening::aside(ADMIN_LISTENER + self.next_admin, socket)
            }
        }
    }

    /// Gives listeners their sockets for HTTP/3; those that stay keep theirs.
    fn join_datagrams(&self, listeners: &mut [Listening], sockets: Vec<Vec<OwnedFd>>) {
        let identity = |socket: &OwnedFd| {
            rustix::fs::fstat(socket)
                .map(|stat| (stat.st_dev, stat.st_ino))
                .ok()
        };
        for (listening, sockets) in listeners.iter_mut().zip(sockets) {
            let before = listening.datagrams.iter().map(|socket| identity(socket));
            if !before.eq(sockets.iter().map(identity)) {
                listening.set_datagrams(sockets.into_iter().map(Arc::new).collect());
            }
        }
    }

    /// Listens to the keeper until all threads have ended.
    fn run(&mut self, life: &mut ServerLife) {
        let mut is_draining = false;
        loop {
            while let Some(event) = life.next() {
                is_draining |= matches!(event, Event::Drain { .. } | Event::KeeperGone);
                self.handle(life, event);
            }
            self.admin.helm.pass_on(|wish| life.ask(wish));
            self.pass_rotations(life);
            if self.signals.running.load(Ordering::SeqCst) == 0 {
                break;
            }
            let mut polled = [
                PollFd::new(self.admin.helm.bell(), PollFlags::IN),
                PollFd::new(&self.signals.bell, PollFlags::IN),
                PollFd::from_borrowed_fd(life.fd(), PollFlags::IN),
            ];
            let (polled, most) = match life.lacks_room() {
                true => (&mut polled[..2], Some(&ROOM_LOOK)),
                false => (&mut polled[..], None),
            };
            let _ = rustix::event::poll(polled, most);
            let _ = rustix::io::read(&self.signals.bell, &mut [0u8; 8]);
        }
        if !is_draining {
            tracing::error!("all server threads have ended");
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        // A log that still waits for a name has it or goes without.
        self.admin.names.end();
        // After the threads, which have handed over what they had.
        drop(self.sampler.take());
        if let Some(exporter) = self.shared.otlp.swap(None)
            && !exporter.close(LOG_PATIENCE)
        {
            tracing::warn!("the collector did not take the last traces in time");
        }
        if let Some(log) = self.log.take()
            && !log.close(LOG_PATIENCE)
        {
            tracing::warn!("the access log could not be written to its end in time");
        }
    }

    fn handle(&mut self, life: &mut ServerLife, event: Event) {
        match event {
            Event::Reload(generation) => {
                let number = generation.number;
                match self.reload(*generation) {
                    Ok(()) => life.reloaded(number),
                    Err(text) => life.reload_failed(&text),
                }
            }
            Event::Drain { deadline, grace } => self.drain(Drain { deadline, grace }),
            Event::KeeperGone => {
                self.drain(Drain {
                    deadline: ORPHAN_DRAIN,
                    grace: Duration::ZERO,
                });
            }
            Event::LogFile { index, file } => {
                if let (Some(log), Some(id)) = (&self.log, self.logs.get(index)) {
                    log.replace(*id, File::from(file));
                }
            }
            Event::Answer {
                request,
                is_ok,
                text,
            } => {
                self.admin.helm.answer(request, WishOutcome { is_ok, text });
            }
            Event::Spawner { pid, end } => self.take_spawner(pid, end),
            Event::Keys(keys) => {
                if let Err(text) = self.take_keys(&keys) {
                    tracing::error!("changed certificates are not served: {text}");
                }
            }
            Event::Challenges { number, challenges } => match Challenges::new(&challenges) {
                Ok(challenges) => {
                    self.crew.set_challenges(challenges);
                    life.challenged(number);
                }
                Err(error) => tracing::error!(error, "challenges cannot be answered"),
            },
            Event::Servers(living) => self.crew.set_living(&living),
            Event::Certificates(states) => self.admin.report.lock().certificates = states,
            Event::Note { text } => {
                let mut report = self.admin.report.lock();
                if !report.warnings.contains(&text) {
                    report.warnings.push(text);
                }
            }
        }
    }

    /// Serves with other certificates from now on.
    fn take_keys(&mut self, keys: &KeyFiles) -> Result<(), String> {
        let terms = self.terms(&self.config, keys)?;
        self.shared.set_upstream_terms(keys)?;
        let addresses = self.admin.report.lock().addresses.clone();
        let held = certificates::held(&self.config, keys, &addresses);
        *self.admin.certificates.lock() = held;
        for (listening, terms) in self.listeners.iter_mut().zip(terms) {
            listening.tls = terms;
        }
        self.give_listeners(self.listeners.clone(), |_| {});
        Ok(())
    }

    fn reload(&mut self, generation: Generation) -> Result<(), String> {
        let roots = authorities::of(&generation.config)?;
        let (listeners, limits) = self.put_in_force(generation, roots)?;
        self.give_listeners(listeners, move |thread| thread.set_limits(limits.clone()));
        Ok(())
    }

    /// Has every thread watch these listeners, and do something before.
    fn give_listeners(
        &self,
        listeners: Vec<Listening>,
        before: impl Fn(&mut Thread<Answers>) + Clone + Send + 'static,
    ) {
        for index in 0..self.crew.thread_count() {
            let (listeners, before) = (listeners.clone(), before.clone());
            Handle::new(&self.crew, index).run(move |thread: &mut Thread<Answers>| {
                before(thread);
                if let Err(error) = thread.set_listeners(listeners) {
                    tracing::error!(%error, "listening sockets could not be changed");
                }
            });
        }
    }

    /// Gives every thread a link to the spawner.
    fn take_spawner(&mut self, pid: u32, end: OwnedFd) {
        self.admin.report.lock().spawner_pid = Some(pid);
        for index in 0..self.crew.thread_count() {
            let link = match process::end_for_thread(&end) {
                Ok(link) => link,
                // The keeper sees the spawner's end as well, and brings the next one.
                Err(error) => {
                    tracing::error!(%error, "a thread has no link to the spawner");
                    continue;
                }
            };
            Handle::new(&self.crew, index)
                .run(move |thread: &mut Thread<Answers>| thread.answer_mut().attach(link));
        }
        self.spawner = Some(end);
    }

    fn drain(&self, drain: Drain) {
        self.admin.readers.end_all();
        self.leave_bans();
        self.shared.fleet.drain_tunnels();
        self.shared.fleet.keep_visits(!drain.grace.is_zero());
        let watching = Arc::new(EndOfWatching(Arc::clone(&self.shared.watching.hub)));
        for index in 0..self.crew.thread_count() {
            let watching = Arc::clone(&watching);
            Handle::new(&self.crew, index).run(move |thread: &mut Thread<Answers>| {
                thread.drain(drain);
                drop(watching);
            });
        }
    }

    fn pass_rotations(&self, life: &mut ServerLife) {
        let due = std::mem::take(&mut *self.signals.to_rotate.lock());
        for log in due {
            if let Some(index) = self.logs.iter().position(|known| *known == log) {
                life.rotate(index);
            }
        }
    }
}

/// Where the server after this one asks for visits.
fn visits_listener(socket: OwnedFd) -> Listening {
    Listening {
        is_for_hobs: true,
        outlasts_drain: true,
        ..Listening::new(VISITS_LISTENER, Arc::new(socket))
    }
}

/// Ends what is watched once the last thread takes no more connections: whoever watches the next
/// server from then on misses no new one.
struct EndOfWatching(Arc<Hub>);

impl Drop for EndOfWatching {
    fn drop(&mut self) {
        self.0.end_all();
    }
}

/// What is done each second beside the activity.
fn hooks(admin: &Arc<Admin>) -> Vec<Hook> {
    let mut resources = resources::Sampler::new(admin);
    let (admin, shared) = (Arc::clone(admin), Arc::clone(&admin.shared));
    vec![
        Box::new(move |unix_s| resources.sample(unix_s * 1000)),
        Box::new(move |unix_s| {
            let now_s = admin.started.elapsed().as_secs();
            admin.advice.tick(&admin.shared, now_s, unix_s * 1000);
        }),
        Box::new(move |_| shared.look_at_countries()),
    ]
}

/// Where the requests of a listener are logged, and whom it believes on its clients.
fn tell_of_listener(sites: &mut Sites, at: &Listening, listener: &Listener, logs: &[u16]) {
    let number = at.number;
    if let LogChoice::Log(index) = listener.log {
        let log = logs.get(index).copied().unwrap_or(0);
        sites.listener_logs.insert(number, log);
    }
    if let Some(trust) = &listener.trust {
        sites.trusts.insert(number, trust.clone());
    }
    if let (Purpose::Offers, Some(tls)) = (listener.purpose, &at.tls) {
        sites.offers.listeners.insert(number, Arc::clone(tls));
    }
}

/// The port of TLS that a client in clear text can be sent to: the usual one, else the first.
fn https_port(listeners: &[Listening], settings: &[Listener]) -> u16 {
    let port = |(listening, settings): (&Listening, &Listener)| {
        let address = rustix::net::getsockname(&listening.socket).ok()?;
        let address = std::net::SocketAddr::try_from(address).ok()?;
        let is_of_sites = settings.purpose == Purpose::Sites;
        (listening.tls.is_some() && is_of_sites).then_some(address.port())
    };
    let ports: Vec<u16> = listeners.iter().zip(settings).filter_map(port).collect();
    let first = ports.first().copied().unwrap_or(443);
    if ports.contains(&443) { 443 } else { first }
}

/// What those who watch are not shown.
fn hidden(config: &Config) -> Hidden {
    let watch = &config.watch;
    Hidden::new(&watch.hidden_query, &watch.hidden_fields)
}

fn report(generation: &Generation) -> GenerationReport {
    let facts = &generation.facts;
    GenerationReport {
        generation: generation.number,
        keeper_pid: facts.keeper_pid,
        keeper_uid: facts.keeper_uid,
        keeper_started: facts.started,
        servers_started: facts.servers_started,
        spawner_pid: None,
        certificates: Vec::new(),
        config: facts.config.clone(),
        addresses: facts.addresses.clone(),
        warnings: facts.warnings.clone(),
        sites: generation
            .config
            .sites
            .iter()
            .map(|site| site.name())
            .collect(),
    }
}

/// The history as a config wants it.
fn history(generation: &Generation) -> RequestHistory {
    let facts = &generation.facts;
    let started = facts.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let origin = SegmentOrigin {
        run: u64::try_from(started.as_millis()).unwrap_or(0),
        server: facts.servers_started,
    };
    RequestHistory::new(origin, retention(&generation.config))
}

fn retention(config: &Config) -> Retention {
    Retention {
        bytes_max: config.history.bytes,
        time_max: config.history.time,
    }
}
