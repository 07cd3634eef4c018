//! What all threads of a server share, and what outlives a reload.

pub(crate) mod accounts;
pub mod address_form;
pub(crate) mod banned;
pub mod bans;
mod building;
pub mod captured;
pub(crate) mod claims;
pub mod concurrency;
pub(crate) mod context;
pub mod countries;
pub(crate) mod dress;
pub mod fleet;
pub(crate) mod hosts;
pub mod listeners;
pub mod log_values;
pub mod maintenance;
pub mod offers;
pub mod old_visits;
pub mod overload;
pub mod predecessor;
mod route_limits;
pub(crate) mod site_tls;
pub mod sites;
mod slash_form;
pub mod workers;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hob_http::thread::{Listening, Visits};
use hob_http::{listen, unix_ms};
use hob_trace::series::SeriesRegistry;
use hob_trace::{Mutex, ServerCounts};
use rustix::process::{Resource, getrlimit};
use tokio::sync::Semaphore;

use crate::cache::changes::FolderChanges;
use crate::cache::disk_threads::DiskThreads;
use crate::cache::flight::Flights;
use crate::cache::store::Store;
use crate::handle::files::Files;
use crate::handle::files::find::Fetched;
use crate::handle::files::load::FileLoadContext;
use crate::handle::script::gate::Gate;
use crate::handle::script::used::Scripts;
use crate::handle::upstream::check::CheckProtocol;
use crate::handle::upstream::config::UpstreamSettings;
use crate::handle::upstream::members::Upstream;
use crate::handle::upstream::run::program::RunPrograms;
use crate::handle::upstream::terms::{TermsFiles, UpstreamTerms};
use crate::handle::upstream::told::UpstreamReport;
use crate::handle::warm::Hosts;
use crate::otlp::Exporter;
use crate::serve::bans::Bans;
use crate::serve::captured::Captured;
use crate::serve::concurrency::KeyGates;
use crate::serve::fleet::{Fleet, now_ms};
use crate::serve::maintenance::Maintenance;
use crate::serve::overload::Overload;
use crate::serve::predecessor::Predecessor;
use crate::serve::sites::Sites;
use crate::serve::workers::Workers;
use crate::step::auth::failures::SignInFailures;
use crate::step::auth::tokens::issuer::Issuers;
use crate::step::offences::{BanRule, Offenders};
use crate::step::rate::RateClients;
use crate::watch::Watching;
use hob_config::{BanSettings, CacheSettings, Metrics};
use hob_keeper::KeyFiles;

/// What all threads share.
pub struct ServerState {
    /// Files that are known.
    pub store: Store,
    /// Threads that may wait for a disk.
    pub pool: DiskThreads,
    /// Looks at the disk under way.
    pub flights: Flights<Fetched>,
    /// In force; threads fetch them anew when `generation` has moved.
    sites: ArcSwap<Sites>,
    /// Moves whenever other sites come into force.
    generation: AtomicU64,
    /// Numbers of files handlers by their settings.
    handler_ids: Mutex<HashMap<String, u64>>,
    /// The next of those numbers.
    next_handler_id: AtomicU64,
    /// Files of routes with captures in their roots, by their settings.
    captured_files: Mutex<HashMap<String, Weak<Captured<Files>>>>,
    /// Clients of each rate.
    rates: Mutex<HashMap<String, Weak<RateClients>>>,
    /// Gates of each limit of requests in service.
    services: Mutex<HashMap<String, Weak<KeyGates>>>,
    /// Attempts to sign in that failed.
    pub sign_ins: Arc<SignInFailures>,
    /// Whose keys tokens are signed with.
    pub issuers: Issuers,
    /// So many passwords are checked at a time: those who serve are to have CPUs, too.
    pub password_places: Arc<Semaphore>,
    /// Gates of programs, by name.
    gates: Mutex<HashMap<String, RegisteredGate>>,
    /// By what people call them and who asks them.
    upstreams: Mutex<BTreeMap<(String, &'static str), RegisteredUpstream>>,
    /// Programs with numbers of their own in `/metrics`.
    program_labels: AtomicUsize,
    /// Addresses listened on, and the connections that came to each.
    listeners: ArcSwap<Vec<(String, Arc<Visits>)>>,
    /// Routes by their numbers, which outlive reloads.
    pub series: Arc<SeriesRegistry>,
    /// Workers of resident programs.
    pub fleet: Arc<Fleet>,
    /// The server before this one, where it was an upgrade that brought this one.
    pub predecessor: OnceLock<Predecessor>,
    /// What scripts have used today.
    pub scripts: Scripts,
    /// Interpreters that are kept.
    pub hosts: Hosts,
    /// Programs that are run to be asked.
    pub runs: RunPrograms,
    /// Who is banned.
    pub bans: Bans,
    /// How long requests wait.
    pub overload: Overload,
    /// Whom rules that ban have counted.
    offenders: Mutex<HashMap<String, Weak<Offenders>>>,
    /// Which sites are down for maintenance.
    pub maintenance: Maintenance,
    /// Who watches requests as they live.
    pub watching: Watching,
    /// Where traces go; nowhere most of the time.
    pub otlp: ArcSwapOption<Exporter>,
    /// What threads count.
    pub counts: ServerCounts,
    /// Of the config: `cache.bytes`.
    cache_bytes: AtomicU64,
    /// What the kernel tells of folders.
    pub changes: Arc<FolderChanges>,
    /// Likewise: the largest file whose bytes are kept.
    content_bytes_max: AtomicU64,
    /// Likewise: the largest that is copied for answers that cannot leave by sendfile.
    copy_bytes_max: AtomicU64,
    /// Likewise: how old what is known of a file may get.
    recheck_ms: AtomicU64,
}

/// A gate, and what its program is called.
struct RegisteredGate {
    program: String,
    gate: Weak<Gate>,
}

/// What is left of an upstream as one config after the other has it, the newest last: that of a
/// config that does not come into force goes, and the one before it is still there.
#[derive(Default)]
struct RegisteredUpstream(Vec<Weak<Upstream>>);

impl RegisteredUpstream {
    fn newest(&self) -> Option<Arc<Upstream>> {
        self.0.iter().rev().find_map(Weak::upgrade)
    }

    fn is_left(&mut self) -> bool {
        self.0.retain(|one| one.strong_count() > 0);
        !self.0.is_empty()
    }
}

impl ServerState {
    /// Nothing cached, no sites, for so many threads.
    pub fn new(cache: &CacheSettings, thread_count: usize) -> ServerState {
        let shared = ServerState {
            store: Store::new(0, descriptors_max()),
            pool: DiskThreads::default(),
            flights: Flights::default(),
            sites: ArcSwap::from_pointee(Sites::default()),
            generation: AtomicU64::new(0),
            handler_ids: Mutex::default(),
            next_handler_id: AtomicU64::new(0),
            captured_files: Mutex::default(),
            rates: Mutex::default(),
            services: Mutex::default(),
            sign_ins: Arc::default(),
            issuers: Issuers::default(),
            password_places: Arc::new(Semaphore::new(thread_count.div_ceil(2))),
            gates: Mutex::default(),
            upstreams: Mutex::default(),
            program_labels: AtomicUsize::new(0),
            listeners: ArcSwap::default(),
            series: Arc::new(SeriesRegistry::new(thread_count)),
            fleet: Fleet::new(),
            predecessor: OnceLock::new(),
            scripts: Scripts::new(unix_ms()),
            hosts: Hosts::default(),
            runs: RunPrograms::default(),
            bans: Bans::default(),
            offenders: Mutex::default(),
            overload: Overload::default(),
            maintenance: Maintenance::default(),
            watching: Watching::default(),
            otlp: ArcSwapOption::empty(),
            counts: ServerCounts::default(),
            cache_bytes: AtomicU64::new(0),
            changes: Arc::default(),
            content_bytes_max: AtomicU64::new(0),
            copy_bytes_max: AtomicU64::new(0),
            recheck_ms: AtomicU64::new(0),
        };
        shared.set_cache(cache);
        shared
    }

    /// The cache's settings in force.
    pub fn cache(&self) -> CacheSettings {
        CacheSettings {
            bytes: Some(self.cache_bytes.load(Ordering::Relaxed)),
            max_file: self.content_bytes_max.load(Ordering::Relaxed),
            max_file_tls: self.copy_bytes_max(),
            recheck: Duration::from_millis(self.recheck_ms()),
        }
    }

    /// Puts the cache's settings in force.
    pub fn set_cache(&self, cache: &CacheSettings) {
        let bytes = cache.bytes.unwrap_or_else(free_share);
        self.cache_bytes.store(bytes, Ordering::Relaxed);
        self.content_bytes_max
            .store(cache.max_file, Ordering::Relaxed);
        self.copy_bytes_max
            .store(cache.max_file_tls, Ordering::Relaxed);
        self.recheck_ms
            .store(cache.recheck.as_millis() as u64, Ordering::Relaxed);
        self.store.set_bytes_max(bytes);
    }

    /// Puts sites in force; threads see them in their next turn.
    pub fn set_sites(&self, sites: Sites) {
        sites.end_bans(&self.bans);
        self.sites.store(Arc::new(sites));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The sites in force.
    pub fn sites(&self) -> Arc<Sites> {
        self.sites.load_full()
    }

    /// A number that moves whenever other sites come into force.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The number of a files handler with these settings.
    pub fn handler_id(&self, settings: String) -> u64 {
        let mut ids = self.handler_ids.lock();
        *ids.entry(settings).or_insert_with(|| self.new_handler_id())
    }

    /// A number that no files handler has had.
    pub fn new_handler_id(&self) -> u64 {
        self.next_handler_id.fetch_add(1, Ordering::Relaxed)
    }

    /// What is open for these settings of files with captures in their root: what was open before
    /// a reload stays, with room for `most` from now on.
    pub(crate) fn captured_files(
        &self,
        settings: String,
        most: usize,
        make: impl FnOnce() -> Result<Captured<Files>, String>,
    ) -> Result<Arc<Captured<Files>>, String> {
        let mut all = self.captured_files.lock();
        all.retain(|_, known| known.strong_count() > 0);
        let known = all.get(&settings).and_then(Weak::upgrade);
        let captured = known.map_or_else(|| make().map(Arc::new), Ok)?;
        captured.set_most(most);
        all.insert(settings, Arc::downgrade(&captured));
        Ok(captured)
    }

    /// The gate of this name: the one that is there already, with these limits from now on, of
    /// those inside and of those who wait.
    /// `program` is what people call who goes through it.
    pub fn gate(&self, name: &str, program: String, limits: (usize, usize)) -> Arc<Gate> {
        let (running_max, queue_max) = limits;
        let mut gates = self.gates.lock();
        gates.retain(|_, known| known.gate.strong_count() > 0);
        if let Some(gate) = gates.get(name).and_then(|known| known.gate.upgrade()) {
            gate.set_limits(running_max, queue_max);
            return gate;
        }
        let gate = Arc::new(Gate::new(running_max, queue_max));
        let known = RegisteredGate {
            program,
            gate: Arc::downgrade(&gate),
        };
        gates.insert(name.to_owned(), known);
        gate
    }

    /// A rule that bans, with whom it has counted already where there are places for as many.
    pub fn ban_rule(&self, settings: &BanSettings) -> BanRule {
        let mut offenders = self.offenders.lock();
        offenders.retain(|_, known| known.strong_count() > 0);
        let known = offenders.get(&settings.name).and_then(Weak::upgrade);
        let known = known.filter(|known| known.keys == settings.keys);
        let clients = known.unwrap_or_else(|| Arc::new(Offenders::new(settings.keys)));
        offenders.insert(settings.name.clone(), Arc::downgrade(&clients));
        BanRule {
            settings: settings.clone(),
            clients,
        }
    }

    /// The upstream of this name: the one that is there already, if nothing of it has changed. Else
    /// another one, in which members that both have are the same.
    pub(crate) fn upstream(
        &self,
        name: String,
        settings: &UpstreamSettings,
        protocol: CheckProtocol,
    ) -> Arc<Upstream> {
        let mut upstreams = self.upstreams.lock();
        upstreams.retain(|_, known| known.is_left());
        let registered = upstreams.entry((name, protocol.handler)).or_default();
        let known = registered.newest();
        let is_same = |known: &&Arc<Upstream>| {
            known.settings == *settings && known.protocol.asks_as(&protocol)
        };
        if let Some(upstream) = known.as_ref().filter(is_same) {
            return Arc::clone(upstream);
        }
        let upstream = Upstream::new(settings, protocol, known.as_deref(), now_ms());
        registered.0.push(Arc::downgrade(&upstream));
        upstream
    }

    /// Has the members and services looked at of upstreams that are new and want it. Those that had
    /// the same before look at them no more.
    pub fn begin_upstream_checks(&self) {
        let upstreams = self.upstreams.lock();
        let all = upstreams.values().filter_map(RegisteredUpstream::newest);
        for (turn, upstream) in all.filter(Upstream::take_checks_over).enumerate() {
            self.fleet.begin_checks(turn, upstream);
        }
    }

    /// Has members of the upstreams of this name get no new requests, or get them again. How many
    /// upstreams there are of the name, and how many members of the address.
    pub fn set_draining(&self, name: &str, member: &str, is_draining: bool) -> (usize, usize) {
        let upstreams = self.upstreams.lock();
        let of_name = upstreams.iter().filter(|((known, _), _)| known == name);
        let all: Vec<_> = of_name.filter_map(|(_, one)| one.newest()).collect();
        let found = all
            .iter()
            .filter(|one| one.set_draining(member, is_draining, now_ms()));
        (all.len(), found.count())
    }

    /// Gives upstreams the TLS that their settings and these files make. What is as it was stays,
    /// with its sessions.
    ///
    /// # Errors
    /// A file that is no good, or a system without authorities.
    pub fn set_upstream_terms(&self, keys: &KeyFiles) -> Result<(), String> {
        let upstreams = self.upstreams.lock();
        let all: Vec<_> = upstreams
            .values()
            .filter_map(RegisteredUpstream::newest)
            .collect();
        let mut known: Vec<_> = all.iter().filter_map(|one| one.terms.load_full()).collect();
        for upstream in all {
            let Some(tls) = &upstream.settings.tls else {
                continue;
            };
            // Those of an earlier config go on as they are.
            let Some(files) = TermsFiles::of(tls, keys) else {
                continue;
            };
            let same = known.iter().find(|terms| terms.is(tls, &files));
            let terms = match same {
                Some(same) => Arc::clone(same),
                None => Arc::new(UpstreamTerms::new(tls, files, keys)?),
            };
            known.push(Arc::clone(&terms));
            upstream.terms.store(Some(terms));
        }
        Ok(())
    }

    /// Upstreams that are in use, and what their members are at.
    pub fn upstreams(&self) -> Vec<UpstreamReport> {
        let upstreams = self.upstreams.lock();
        let told = upstreams.iter().filter_map(|((name, _), known)| {
            let known = known.newest()?;
            Some(known.told(name, now_ms(), |address| self.runs.told(address)))
        });
        told.collect()
    }

    /// Each gate's program, how many of it run and how many requests wait for it.
    pub fn gate_loads(&self) -> Vec<(String, (usize, usize))> {
        let gates = self.gates.lock();
        let loads = gates.values().filter_map(|known| {
            let gate = known.gate.upgrade()?;
            Some((known.program.clone(), gate.load()))
        });
        let mut loads: Vec<_> = loads.collect();
        loads.sort();
        loads
    }

    /// Programs with numbers of their own in `/metrics`.
    pub fn program_labels(&self) -> usize {
        self.program_labels.load(Ordering::Relaxed)
    }

    /// Addresses listened on, and the connections that came to each.
    pub fn listeners(&self) -> Arc<Vec<(String, Arc<Visits>)>> {
        self.listeners.load_full()
    }

    /// Says which listeners there are. Sockets of one address, such as two that systemd hands down,
    /// count as the first of them.
    pub fn set_listeners(&self, listeners: &[Listening]) {
        let mut all: Vec<(String, Arc<Visits>)> = Vec::new();
        let is_told = |one: &&Listening| one.is_counted && !one.outlasts_drain;
        for listening in listeners.iter().filter(is_told) {
            let name = listen::shown(&*listening.socket);
            if !all.iter().any(|(known, _)| *known == name) {
                all.push((name, Arc::clone(&listening.visits)));
            }
        }
        self.listeners.store(Arc::new(all));
    }

    /// Says how many sites and programs have numbers of their own.
    pub fn set_labels(&self, metrics: &Metrics) {
        self.counts.tallies.set_sites_max(metrics.sites);
        self.program_labels
            .store(metrics.programs, Ordering::Relaxed);
    }

    /// Adds who runs behind gates, and who waits at them.
    pub(crate) fn add_gates_to(&self, workers: &mut Workers) {
        let gates = self.gates.lock();
        for gate in gates.values().filter_map(|known| known.gate.upgrade()) {
            let (running, waiting) = gate.load();
            workers.busy += running;
            workers.queued += waiting;
            workers.max += gate.running_max();
        }
    }

    /// True when there is a cache at all.
    pub fn is_cache_on(&self) -> bool {
        self.cache_bytes.load(Ordering::Relaxed) > 0
    }

    /// How old what is known of a file may get, in milliseconds.
    pub fn recheck_ms(&self) -> u64 {
        self.recheck_ms.load(Ordering::Relaxed)
    }

    /// Largest file copied into memory for answers that cannot leave by sendfile, in bytes.
    pub fn copy_bytes_max(&self) -> u64 {
        self.copy_bytes_max.load(Ordering::Relaxed)
    }

    /// What holds for a look at a file at this moment.
    pub fn moment(&self, now_ms: u64) -> FileLoadContext {
        FileLoadContext {
            now_ms,
            recheck_ms: self.recheck_ms(),
            content_bytes_max: self.content_bytes_max.load(Ordering::Relaxed),
        }
    }
}

/// Memory of a cache whose config names none, in bytes: a part of what was free when it was first
/// asked for, so that a reload finds what it left.
fn free_share() -> u64 {
    const LEAST: u64 = 64 << 20;
    const MOST: u64 = 1 << 30;
    static SHARE: OnceLock<u64> = OnceLock::new();
    *SHARE.get_or_init(|| {
        let free = hob_machine::hardware::memory_available_bytes().unwrap_or(0);
        (free.min(hob_machine::usable_memory_bytes()) / 8).clamp(LEAST, MOST)
    })
}

/// Open files the cache may hold: a quarter of what the process may have, the rest is for
/// connections.
fn descriptors_max() -> u64 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (limit / 4).min(1 << 20)
}
