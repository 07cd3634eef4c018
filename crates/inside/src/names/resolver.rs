//! The resolver as the rest of the server sees it, and the threads that ask.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, PoisonError};
use std::time::{Duration, Instant};

use hob_machine::read;
use hob_trace::Mutex;
use hob_trace::ThreadCounters;
use hob_trace::metric::Counters;

use super::asking::{ReverseLookup, name_of};
use super::cache::{Cache, NameCacheLookup};
use crate::api::Names;
use hob_config as config;
use hob_server::dns::asking::NameServers;
use hob_server::dns::files;
use hob_server::serve::fleet::now_ms;

/// Threads that ask: one slow answer does not keep the others waiting.
const THREAD_COUNT: usize = 2;
/// A name holds at least so long, whatever its owner says: it is for people.
const KEEP_MIN: Duration = Duration::from_secs(60);
/// How long it holds that nobody answered.
const KEEP_FAILURE: Duration = Duration::from_secs(30);
/// Longest wait for names that logs want, all names of a span together: their writer must keep up.
const LOG_WAIT_MAX: Duration = Duration::from_secs(1);
/// That span, in milliseconds.
const LOG_SPAN_MS: u64 = 10_000;

/// Names of clients: what is known at once, the rest soon.
pub struct ClientNameResolver {
    state: Mutex<ResolverState>,
    /// Something is to be looked up, or it is over.
    wanted: Condvar,
    /// Something was looked up.
    settled: Condvar,
}

/// How often limits were reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameLimitHits {
    /// Names forgotten to make room for others.
    pub(crate) entries: u64,
    /// Names that a log did not wait for, or no longer.
    pub(crate) wait: u64,
}

struct ResolverState {
    /// None while names are off.
    settings: Option<ResolverSettings>,
    cache: Cache,
    /// Of `/etc/hosts`.
    own: HashMap<IpAddr, Arc<str>>,
    /// Addresses for which there was no room, since a thread last counted them.
    refused: u64,
    /// When the span began in which logs have waited, on the loop's clock, and for how long.
    log_span_ms: u64,
    log_waited: Duration,
    /// How often a log did not wait, or no longer, as it had waited for as long as it may.
    unwaited: u64,
    has_threads: bool,
    is_over: bool,
}

#[derive(Clone, PartialEq)]
struct ResolverSettings {
    servers: Arc<NameServers>,
    keep: Duration,
    keep_unknown: Duration,
}

impl ClientNameResolver {
    /// Off.
    pub fn new() -> Arc<ClientNameResolver> {
        Arc::new(ClientNameResolver {
            state: Mutex::new(ResolverState {
                settings: None,
                cache: Cache::default(),
                own: HashMap::new(),
                refused: 0,
                log_span_ms: 0,
                log_waited: Duration::ZERO,
                unwaited: 0,
                has_threads: false,
                is_over: false,
            }),
            wanted: Condvar::new(),
            settled: Condvar::new(),
        })
    }

    /// Starts the threads that ask, unless they run. They end with the server; nothing of theirs is
    /// waited for.
    pub fn start(self: &Arc<Self>, counters: &Counters) -> io::Result<()> {
        if std::mem::replace(&mut self.state.lock().has_threads, true) {
            return Ok(());
        }
        for _ in 0..THREAD_COUNT {
            let (names, counters) = (Arc::clone(self), counters.new_thread());
            let thread = std::thread::Builder::new().name("hob-names".to_owned());
            thread.spawn(move || names.run(&counters))?;
        }
        Ok(())
    }

    /// Puts settings in force; none turns names off. What is known is forgotten when they differ.
    pub fn set(&self, names: Option<&config::ClientNamesSettings>) {
        let text = names.map_or(String::new(), |_| read("/etc/hosts"));
        let mut own = HashMap::new();
        for (address, name) in files::hosts(&text) {
            // Of several lines for an address the first counts, as everywhere.
            own.entry(address).or_insert_with(|| Arc::from(name));
        }
        let settings = names.map(ResolverSettings::of);
        let mut state = self.state.lock();
        state.own = own;
        if state.settings != settings {
            state.cache.clear();
            state.log_waited = Duration::ZERO;
            state.settings = settings;
        }
        if let Some(names) = names {
            state.cache.entry_count_max = names.entries;
            state.cache.waiting_count_max = names.queue;
        }
        drop(state);
        self.settled.notify_all();
    }

    /// The threads may end.
    pub fn end(&self) {
        self.state.lock().is_over = true;
        self.wanted.notify_all();
        self.settled.notify_all();
    }

    /// The name of a client, if it is known. Where it is not, it is looked up: ask again later.
    pub fn name_of(&self, client: IpAddr) -> Option<Arc<str>> {
        match self.ask(&mut self.state.lock(), client.to_canonical()) {
            NameCacheLookup::Name(name) | NameCacheLookup::Wanted(name) => name,
            NameCacheLookup::Full => None,
        }
    }

    /// The name of a client, waited for a while: for the thread that writes a log, and no other.
    pub fn await_name(&self, client: IpAddr) -> Option<Arc<str>> {
        let client = client.to_canonical();
        let mut state = self.state.lock();
        let known = match self.ask(&mut state, client) {
            NameCacheLookup::Name(name) => return name,
            NameCacheLookup::Full => return None,
            NameCacheLookup::Wanted(known) => known,
        };
        let now_ms = now_ms();
        if now_ms.saturating_sub(state.log_span_ms) >= LOG_SPAN_MS {
            state.log_span_ms = now_ms;
            state.log_waited = Duration::ZERO;
        }
        let left = LOG_WAIT_MAX.saturating_sub(state.log_waited);
        if state.is_over {
            return known;
        }
        if left.is_zero() {
            state.unwaited += 1;
            return known;
        }
        let begin = Instant::now();
        let is_wanted =
            |state: &mut ResolverState| !state.cache.is_settled(client) && !state.is_over;
        let waited = self.settled.wait_timeout_while(state, left, is_wanted);
        let ended;
        (state, ended) = waited.unwrap_or_else(PoisonError::into_inner);
        state.log_waited += begin.elapsed();
        if ended.timed_out() {
            state.unwaited += 1;
        }
        match self.ask(&mut state, client) {
            NameCacheLookup::Name(name) => name,
            NameCacheLookup::Wanted(_) | NameCacheLookup::Full => known,
        }
    }

    /// How often its limits were reached.
    pub(crate) fn limits(&self) -> NameLimitHits {
        let state = self.state.lock();
        NameLimitHits {
            entries: state.cache.forgotten,
            wait: state.unwaited,
        }
    }

    /// How full it is.
    pub(crate) fn told(&self) -> Names {
        let state = self.state.lock();
        let (entries, waiting) = state.cache.counts();
        Names {
            on: state.settings.is_some(),
            entries,
            entries_max: state.cache.entry_count_max,
            waiting,
            waiting_max: state.cache.waiting_count_max,
        }
    }

    fn ask(&self, state: &mut ResolverState, client: IpAddr) -> NameCacheLookup {
        if state.settings.is_none() || client.is_unspecified() {
            return NameCacheLookup::Name(None);
        }
        if let Some(name) = state.own.get(&client) {
            return NameCacheLookup::Name(Some(Arc::clone(name)));
        }
        let (_, before) = state.cache.counts();
        let found = state.cache.ask(client, now_ms());
        if found == NameCacheLookup::Full {
            state.refused += 1;
        }
        if state.cache.counts().1 > before {
            self.wanted.notify_one();
        }
        found
    }

    fn run(&self, counters: &ThreadCounters) {
        while let Some((client, settings)) = self.next(counters) {
            let looked = name_of(&settings.servers, client);
            counters.names_asked.add(1);
            let (name, keep) = match looked {
                ReverseLookup::Name(name, ttl_s) => {
                    counters.names_found.add(1);
                    let keep = Duration::from_secs(ttl_s.into());
                    (Some(Arc::from(name)), keep.min(settings.keep).max(KEEP_MIN))
                }
                ReverseLookup::Nothing => (None, settings.keep_unknown),
                ReverseLookup::Mismatch => {
                    counters.names_mismatched.add(1);
                    (None, settings.keep_unknown)
                }
                ReverseLookup::Failed => {
                    counters.names_failed.add(1);
                    (None, KEEP_FAILURE)
                }
            };
            let until_ms = now_ms() + keep.as_millis() as u64;
            self.state.lock().cache.settle(client, name, until_ms);
            self.settled.notify_all();
        }
    }

    /// Waits for the next address; none when it is over.
    fn next(&self, counters: &ThreadCounters) -> Option<(IpAddr, ResolverSettings)> {
        let mut state = self.state.lock();
        loop {
            counters
                .limit_names_queue
                .add(std::mem::take(&mut state.refused));
            if state.is_over {
                return None;
            }
            let settings = state.settings.clone();
            if let Some(settings) = settings
                && let Some(client) = state.cache.next()
            {
                return Some((client, settings));
            }
            // Without a time: there is nothing to do until somebody asks, or it is over.
            let waited = self.wanted.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl hob_trace::format::ClientNameSource for ClientNameResolver {
    fn name(&self, client: IpAddr) -> Option<Arc<str>> {
        self.await_name(client)
    }
}

impl std::fmt::Debug for ClientNameResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientNames").finish_non_exhaustive()
    }
}

impl ResolverSettings {
    fn of(names: &config::ClientNamesSettings) -> ResolverSettings {
        let addresses = match names.server {
            Some(server) => vec![server],
            None => files::name_servers(&read("/etc/resolv.conf")).collect(),
        };
        ResolverSettings {
            servers: Arc::new(NameServers {
                addresses,
                time: names.time,
            }),
            keep: names.keep,
            keep_unknown: names.keep_unknown,
        }
    }
}

#[cfg(test)]
mod tests;
