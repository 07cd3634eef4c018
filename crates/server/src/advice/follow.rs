//! Programs followed over time: every few seconds it is noted what each has used so far.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hob_trace::HandlerKind;

use super::learner::Learner;
use super::trend::{MINUTE_EVERY_S, Span, Trend, Used};
use crate::activity::processes::Processes;
use crate::handle::Handler;
use crate::handle::admin::Admin;
use crate::handle::cgi::Cgi;
use crate::handle::resident::pool::Pool;

/// What was seen of programs, and what was learned of interpreters.
#[derive(Default)]
pub struct Advice {
    followed: Mutex<HashMap<String, Followed>>,
    pub(crate) learner: Arc<Learner>,
}

/// One program over time.
struct Followed {
    trend: Trend,
    /// Workers' processes, and the CPU time they were seen to use.
    processes: Processes,
    cpu_us: u64,
}

/// What a program used of late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lately {
    pub(crate) minute: Span,
    pub(crate) hour: Span,
}

/// All programs of the config in force, and workers of earlier ones that still end.
pub(crate) struct Inventory {
    /// Routes with a process for each request, in the config's order.
    pub(crate) routes: Vec<RunRoute>,
    /// Programs that stay.
    pub(crate) pools: Vec<KeptPool>,
}

/// A route with a process for each request.
pub(crate) struct RunRoute {
    pub(crate) site: String,
    pub(crate) route: String,
    pub(crate) handler: HandlerKind,
    pub(crate) cgi: Arc<Cgi>,
}

/// A program that stays, and the routes it answers.
pub(crate) struct KeptPool {
    pub(crate) pool: Arc<Pool>,
    /// Site and route of each, and its number among series.
    pub(crate) routes: Vec<(String, String, u16)>,
}

impl Inventory {
    /// As it is now.
    pub(crate) fn of(admin: &Admin) -> Inventory {
        let shared = &admin.shared;
        let kept = |pool| KeptPool {
            pool,
            routes: Vec::new(),
        };
        let mut pools: Vec<KeptPool> = shared.fleet.pools().into_iter().map(kept).collect();
        let mut routes = Vec::new();
        let sites = shared.sites();
        for (site, route) in sites.each_route() {
            match &route.handler {
                Handler::Cgi(cgi) => routes.push(RunRoute {
                    site: site.name.clone(),
                    route: route.path.clone(),
                    handler: route.handler.kind(),
                    cgi: Arc::clone(cgi),
                }),
                Handler::Resident(resident) => {
                    let mut pools = pools.iter_mut();
                    let its = pools.find(|one| Arc::ptr_eq(&one.pool, &resident.pool.0));
                    if let Some(its) = its {
                        let names = (site.name.clone(), route.path.clone(), route.series);
                        its.routes.push(names);
                    }
                }
                _ => {}
            }
        }
        Inventory { routes, pools }
    }
}

impl RunRoute {
    /// What it is called among all programs.
    pub(crate) fn key(&self) -> String {
        format!("{} {} {}", self.handler.word(), self.site, self.route)
    }
}

impl Advice {
    /// To be called every second: notes what programs have used, when that is due.
    pub(crate) fn tick(&self, admin: &Admin, unix_ms: u64) {
        admin.shared.scripts.tick(unix_ms);
        let now_s = admin.started.elapsed().as_secs();
        if !now_s.is_multiple_of(MINUTE_EVERY_S) {
            return;
        }
        let inventory = Inventory::of(admin);
        let mut keys = HashSet::new();
        for route in &inventory.routes {
            let key = route.key();
            self.look(&key, route.cgi.scripts.ever(), now_s);
            keys.insert(key);
        }
        let requests = admin.shared.series.requests();
        for one in &inventory.pools {
            keys.insert(self.look_at_pool(one, &requests, now_s).0);
        }
        lock(&self.followed).retain(|key, _| keys.contains(key));
    }

    /// Notes what a program has used in all by now, if that is due; what it used of late.
    pub(crate) fn look(&self, key: &str, used: Used, now_s: u64) -> Lately {
        let mut followed = lock(&self.followed);
        let one = followed
            .entry(key.to_owned())
            .or_insert_with(|| Followed::new(now_s));
        one.look(used, now_s)
    }

    /// The same of a program that stays; also gives its name among all.
    pub(crate) fn look_at_pool(
        &self,
        one: &KeptPool,
        requests: &HashMap<u16, u64>,
        now_s: u64,
    ) -> (String, Lately) {
        let load = one.pool.load();
        // Pools of two sites, or of two configs, may have one name.
        let key = format!("resident {} {:p}", load.name, Arc::as_ptr(&one.pool));
        let counts = one.routes.iter().map(|(_, _, series)| requests.get(series));
        let requests = counts.flatten().fold(0, |sum: u64, n| sum.wrapping_add(*n));
        let mut followed = lock(&self.followed);
        let seen = followed
            .entry(key.clone())
            .or_insert_with(|| Followed::new(now_s));
        seen.cpu_us += seen.processes.look(&load.pids).0;
        let used = Used {
            requests,
            cpu_us: seen.cpu_us,
        };
        (key, seen.look(used, now_s))
    }
}

impl Followed {
    /// It was not there when all were last looked at.
    fn new(now_s: u64) -> Followed {
        Followed {
            trend: Trend::new(now_s.saturating_sub(MINUTE_EVERY_S)),
            processes: Processes::from_begin(),
            cpu_us: 0,
        }
    }

    fn look(&mut self, used: Used, now_s: u64) -> Lately {
        self.trend.take_in(now_s, used);
        Lately {
            minute: self.trend.minute(now_s, used),
            hour: self.trend.hour(now_s, used),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
