//! What each script of a CGI or warm route has used today (UTC, or since the server started).
//!
//! A run is counted by its overseer when the process has ended, when its answer has mostly left
//! already. One lock per route, held for a look into a map: two threads meet there only when runs
//! of one route end at the same time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use hob_trace::Mutex;

/// Scripts of one route that are told apart; runs of further ones are counted together.
pub const SCRIPTS_MAX: usize = 256;
/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// Requests, and CPU time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramUsage {
    /// Requests.
    pub requests: u64,
    /// Their CPU time, in microseconds.
    pub cpu_us: u64,
}

impl ProgramUsage {
    /// One more request, which used so much.
    pub fn add(&mut self, cpu_us: u64) {
        self.requests = self.requests.wrapping_add(1);
        self.cpu_us = self.cpu_us.wrapping_add(cpu_us);
    }

    /// CPU time of a request, on the average; `None` without one.
    pub fn each_us(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.cpu_us as f64 / self.requests as f64)
    }

    /// What came to it since it was `before`.
    pub fn since(&self, before: ProgramUsage) -> ProgramUsage {
        ProgramUsage {
            requests: self.requests.saturating_sub(before.requests),
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
        }
    }
}

/// Scripts of all routes. Routes keep theirs over a reload.
#[derive(Debug)]
pub struct Scripts {
    routes: Mutex<HashMap<String, Weak<RouteScripts>>>,
    /// Since when runs of today are counted, as Unix time.
    since_unix_ms: AtomicU64,
}

/// Scripts of one route.
#[derive(Debug, Default)]
pub struct RouteScripts(Mutex<Tallies>);

#[derive(Debug, Default)]
struct Tallies {
    by_file: HashMap<Box<[u8]>, ScriptTally>,
    others: ScriptTally,
    /// Since the route is there.
    ever: ProgramUsage,
}

/// Runs of today.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptTally {
    /// Their number and the CPU time they used.
    pub used: ProgramUsage,
    /// When the last one ended, in loop time.
    pub last_ms: u64,
}

/// What is known of a route's scripts.
#[derive(Clone, Debug, Default)]
pub struct RouteScriptTallies {
    /// By file, those first that used most.
    pub scripts: Vec<(Box<[u8]>, ScriptTally)>,
    /// Those that are not told apart.
    pub others: ScriptTally,
}

impl Scripts {
    /// Nothing counted, from this Unix time on.
    pub fn new(unix_ms: u64) -> Scripts {
        Scripts {
            routes: Mutex::default(),
            since_unix_ms: AtomicU64::new(unix_ms),
        }
    }

    /// The scripts of a route: those it had before a reload, if it was there.
    pub fn route(&self, name: &str) -> Arc<RouteScripts> {
        let mut routes = self.routes.lock();
        routes.retain(|_, known| known.strong_count() > 0);
        if let Some(scripts) = routes.get(name).and_then(Weak::upgrade) {
            return scripts;
        }
        let scripts = Arc::new(RouteScripts::default());
        routes.insert(name.to_owned(), Arc::downgrade(&scripts));
        scripts
    }

    /// Begins the day's counts anew when there is a new day. To be called every second or so.
    pub fn tick(&self, unix_ms: u64) {
        if self.since_unix_ms() / DAY_MS == unix_ms / DAY_MS {
            return;
        }
        self.since_unix_ms.store(unix_ms, Ordering::Relaxed);
        let routes = self.routes.lock();
        for scripts in routes.values().filter_map(Weak::upgrade) {
            let mut tallies = scripts.0.lock();
            tallies.by_file.clear();
            tallies.others = ScriptTally::default();
        }
    }

    /// Since when runs of today are counted, as Unix time.
    pub fn since_unix_ms(&self) -> u64 {
        self.since_unix_ms.load(Ordering::Relaxed)
    }
}

impl RouteScripts {
    /// A run has ended that used so much CPU time, in microseconds.
    pub fn note(&self, file: &[u8], cpu_us: u64, now_ms: u64) {
        let mut tallies = self.0.lock();
        tallies.ever.add(cpu_us);
        let is_known = tallies.by_file.contains_key(file);
        let tally = match is_known || tallies.by_file.len() < SCRIPTS_MAX {
            true if is_known => tallies.by_file.get_mut(file),
            true => Some(tallies.by_file.entry(file.into()).or_default()),
            false => None,
        };
        let tally = match tally {
            Some(tally) => tally,
            None => &mut tallies.others,
        };
        tally.used.add(cpu_us);
        tally.last_ms = now_ms;
    }

    /// What all of them have used since the route is there.
    pub fn ever(&self) -> ProgramUsage {
        self.0.lock().ever
    }

    /// What is known by now.
    pub fn told(&self) -> RouteScriptTallies {
        let tallies = self.0.lock();
        let scripts = tallies.by_file.iter();
        let mut told = RouteScriptTallies {
            scripts: scripts
                .map(|(file, tally)| (file.clone(), *tally))
                .collect(),
            others: tallies.others,
        };
        drop(tallies);
        let order = |(file, tally): &(Box<[u8]>, ScriptTally)| {
            (std::cmp::Reverse(tally.used.cpu_us), file.clone())
        };
        told.scripts.sort_by_cached_key(order);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_file_and_beyond_the_limit_together() {
        let route = RouteScripts::default();
        for number in 0..SCRIPTS_MAX as u64 {
            route.note(format!("/{number}").as_bytes(), number, 1);
        }
        route.note(b"/new", 7, 2);
        route.note(b"/newer", 8, 3);
        route.note(b"/1", 10_000, 4);
        let told = route.told();
        assert_eq!(told.scripts.len(), SCRIPTS_MAX);
        let first = &told.scripts[0];
        assert_eq!((&*first.0, first.1.last_ms), (&b"/1"[..], 4));
        let used = |requests, cpu_us| ProgramUsage { requests, cpu_us };
        assert_eq!(first.1.used, used(2, 10_001));
        assert_eq!((told.others.used, told.others.last_ms), (used(2, 15), 3));
        let sum: u64 = (0..SCRIPTS_MAX as u64).sum();
        assert_eq!(route.ever(), used(SCRIPTS_MAX as u64 + 3, sum + 10_015));
    }

    #[test]
    fn a_new_day_begins_with_nothing_and_a_reload_does_not() {
        let scripts = Scripts::new(5);
        let route = scripts.route("a");
        route.note(b"/x", 3, 1);
        scripts.tick(DAY_MS - 1);
        assert_eq!(scripts.route("a").told().scripts.len(), 1);
        assert!(scripts.route("b").told().scripts.is_empty());
        scripts.tick(DAY_MS);
        assert_eq!(scripts.since_unix_ms(), DAY_MS);
        assert!(route.told().scripts.is_empty());
        assert_eq!(route.ever().requests, 1, "what it used stays used");
        drop(route);
        assert_eq!(scripts.route("a").ever().requests, 0, "the route had gone");
    }
}
