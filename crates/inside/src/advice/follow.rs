//! Programs followed over time: every few seconds it is noted what each has used so far.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hob_trace::HandlerKind;
use hob_trace::Mutex;

use super::learner::Learner;
use super::trend::{MINUTE_EVERY_S, Trend, UsageWindow};
use crate::activity::processes::Processes;
use hob_server::handle::cgi::Cgi;
use hob_server::handle::resident::pool::Pool;
use hob_server::handle::script::used::ProgramUsage;
use hob_server::serve::ServerState;

/// What was seen of programs, and what was learned of interpreters.
#[derive(Default)]
pub struct Advice {
    followed: Mutex<HashMap<String, Followed>>,
    rounds: Mutex<Rounds>,
    pub(crate) learner: Arc<Learner>,
}

/// When all programs were last looked at.
#[derive(Default)]
struct Rounds {
    /// Seconds of uptime, and the number of the sites that were in force.
    last: Option<(u64, u64)>,
}

impl Rounds {
    /// Whether it is time to look again: some seconds have passed, or other sites are in force,
    /// whose programs are followed from the begin.
    fn is_due(&mut self, now_s: u64, generation: u64) -> bool {
        let is_due = self.last.is_none_or(|(last_s, seen)| {
            seen != generation || now_s >= last_s.saturating_add(MINUTE_EVERY_S)
        });
        if is_due {
            self.last = Some((now_s, generation));
        }
        is_due
    }
}

/// One program over time.
struct Followed {
    trend: Trend,
    /// Of one that stays: its workers' processes, requests of its routes by their numbers among
    /// series, and what both were seen to use.
    processes: Processes,
    series: HashMap<u16, u64>,
    used: ProgramUsage,
}

/// What a program used of late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lately {
    pub(crate) minute: UsageWindow,
    pub(crate) hour: UsageWindow,
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
    pub(crate) fn of(shared: &ServerState) -> Inventory {
        let kept = |pool| KeptPool {
            pool,
            routes: Vec::new(),
        };
        let mut pools: Vec<KeptPool> = shared.fleet.pools().into_iter().map(kept).collect();
        let mut routes = Vec::new();
        let sites = shared.sites();
        for (site, route) in sites.each_route() {
            if let Some(cgi) = route.handler.runs() {
                routes.push(RunRoute {
                    site: site.name.clone(),
                    route: route.label.clone(),
                    handler: route.handler.kind(),
                    cgi: Arc::clone(cgi),
                });
            } else if let Some(resident) = route.handler.resident() {
                let mut pools = pools.iter_mut();
                let its = pools.find(|one| Arc::ptr_eq(&one.pool, &resident.pool.0));
                if let Some(its) = its {
                    let names = (site.name.clone(), route.label.clone(), route.series);
                    its.routes.push(names);
                }
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
    /// To be called every second: notes what programs have used, when that is due. `now_s` is for
    /// how long the server has run, in seconds.
    pub fn tick(&self, shared: &ServerState, now_s: u64, unix_ms: u64) {
        shared.scripts.tick(unix_ms);
        let generation = shared.generation();
        let is_due = self.rounds.lock().is_due(now_s, generation);
        if !is_due {
            return;
        }
        let inventory = Inventory::of(shared);
        let mut keys = HashSet::new();
        for route in &inventory.routes {
            let key = route.key();
            self.look(&key, route.cgi.scripts.ever(), now_s);
            keys.insert(key);
        }
        let requests = shared.series.requests();
        for one in &inventory.pools {
            keys.insert(self.look_at_pool(one, &requests, now_s).0);
        }
        self.followed.lock().retain(|key, _| keys.contains(key));
    }

    /// Notes what a program has used in all by now, if that is due; what it used of late.
    pub(crate) fn look(&self, key: &str, used: ProgramUsage, now_s: u64) -> Lately {
        let mut followed = self.followed.lock();
        let one = followed
            .entry(key.to_owned())
            .or_insert_with(|| Followed::new(now_s, used));
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
        let key = format!("resident {} {}", load.name, one.pool.number);
        let counts = one.routes.iter();
        let counts = counts.map(|(_, _, number)| {
            let count = requests.get(number).copied().unwrap_or(0);
            (*number, count)
        });
        let mut followed = self.followed.lock();
        let seen = followed
            .entry(key.clone())
            .or_insert_with(|| Followed::new(now_s, ProgramUsage::default()));
        seen.take_in(counts.collect(), now_s);
        seen.used.cpu_us += seen.processes.look(&load.pids).0;
        (key, seen.look(seen.used, now_s))
    }
}

impl Followed {
    /// It was not there when all were last looked at, and has used so much by now. That was not of
    /// late, unless the server has only just begun.
    fn new(now_s: u64, used: ProgramUsage) -> Followed {
        let (begun_s, used, processes) = match is_begin(now_s) {
            true => (
                0,
                ProgramUsage::default(),
                Processes::with_children().since_begin(),
            ),
            false => (now_s, used, Processes::with_children()),
        };
        Followed {
            trend: Trend::new(begun_s, used),
            processes,
            series: HashMap::new(),
            used: ProgramUsage::default(),
        }
    }

    /// Requests of its routes. What one had that it has not been seen with is not of late.
    fn take_in(&mut self, counts: HashMap<u16, u64>, now_s: u64) {
        for (number, count) in &counts {
            let unseen = if is_begin(now_s) { 0 } else { *count };
            let before = self.series.get(number).copied().unwrap_or(unseen);
            let new = count.saturating_sub(before);
            self.used.requests = self.used.requests.wrapping_add(new);
        }
        self.series = counts;
    }

    fn look(&mut self, used: ProgramUsage, now_s: u64) -> Lately {
        self.trend.take_in(now_s, used);
        Lately {
            minute: self.trend.minute(now_s, used),
            hour: self.trend.hour(now_s, used),
        }
    }
}

/// Whether all that was ever used was used of late.
fn is_begin(now_s: u64) -> bool {
    now_s < MINUTE_EVERY_S
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(requests: u64) -> ProgramUsage {
        ProgramUsage {
            requests,
            cpu_us: 1000 * requests,
        }
    }

    #[test]
    fn what_a_program_had_when_it_came_is_not_of_late() {
        let mut one = Followed::new(5000, used(700));
        assert_eq!(one.look(used(700), 5000).minute.used, used(0));
        let lately = one.look(used(703), 5020);
        assert_eq!((lately.minute.used, lately.hour.used), (used(3), used(3)));
        assert_eq!(lately.minute.seconds, 20);
        // When the server has just begun it is.
        let mut one = Followed::new(2, used(7));
        assert_eq!(one.look(used(7), 2).minute.used, used(7));
    }

    #[test]
    fn routes_that_a_program_gets_or_loses_do_not_count_as_requests() {
        let mut one = Followed::new(5000, ProgramUsage::default());
        let mut requests = |counts: &[(u16, u64)], now_s| {
            one.take_in(counts.iter().copied().collect(), now_s);
            one.used.requests
        };
        assert_eq!(requests(&[(1, 700)], 5000), 0);
        assert_eq!(requests(&[(1, 705)], 5010), 5);
        assert_eq!(requests(&[(1, 705), (2, 900)], 5020), 5);
        assert_eq!(requests(&[(2, 901)], 5030), 6);
        assert_eq!(requests(&[(1, 800), (2, 901)], 5040), 6);
    }

    #[test]
    fn a_second_that_is_skipped_skips_no_round() {
        let mut rounds = Rounds::default();
        let due: Vec<u64> = [1, 2, 10, 11, 12, 20, 22, 40]
            .into_iter()
            .filter(|now_s| rounds.is_due(*now_s, 1))
            .collect();
        assert_eq!(due, [1, 11, 22, 40]);
        assert!(rounds.is_due(41, 2), "other sites");
        assert!(!rounds.is_due(42, 2));
    }
}
