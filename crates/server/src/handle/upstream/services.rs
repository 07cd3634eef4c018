//! A service (SRV) of an upstream: its servers are members of their own, with the order and the
//! shares that their records say. A task on one of the threads has it looked up, off that thread,
//! whenever what was found holds no more. A server that is there before and after is the same
//! member, with its connections and what is known of it; one that is gone keeps the requests it
//! has. Where a look fails, those that were found last go on to be asked.

use std::sync::{Arc, Weak};
use std::time::Duration;

use hob_trace::Mutex;

use crate::dns::lookup::{self, FoundServer, FoundService, HOLDS_UNTOLD};
use crate::handle::upstream::check::{self, CheckMeans};
use crate::handle::upstream::config::UpstreamSettings;
use crate::handle::upstream::member::Member;
use crate::handle::upstream::members::Upstream;
use crate::handle::upstream::names::LANE;
use crate::handle::upstream::told::{MemberReport, ServiceReport};

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    name: String,
    found: Mutex<Found>,
}

/// One of its servers.
#[derive(Clone, Debug)]
pub(crate) struct ServiceMember {
    pub(crate) member: Arc<Member>,
    /// Those with the lowest are asked first.
    pub(crate) priority: u16,
    /// Its share among those of the same priority.
    pub(crate) weight: u16,
}

#[derive(Clone, Debug, Default)]
struct Found {
    servers: Vec<ServiceMember>,
    /// Members that it has no more; they may have requests.
    gone: Vec<Weak<Member>>,
    /// So many were named beyond as many as may be.
    surplus: usize,
    /// It has been looked up.
    is_sought: bool,
    /// For so long what was found last held, when it was.
    held: Option<Duration>,
    /// Then it is to be looked up again, in milliseconds of loop time.
    until_ms: u64,
    /// Why it was not found last.
    why: Option<String>,
}

/// While nobody is known, it is looked up so often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What another look brought.
#[derive(Debug, Default)]
struct Change {
    /// Servers that were not there before.
    come: Vec<Arc<Member>>,
    /// Who there is, in which order or with which shares, is not as before.
    is_other: bool,
}

impl Service {
    /// Where `before` looked up the same, what that found.
    pub(crate) fn new(
        name: &str,
        settings: &UpstreamSettings,
        before: Option<&Upstream>,
    ) -> Service {
        let before = before.filter(|before| before.settings.resolver == settings.resolver);
        let mut known = before.into_iter().flat_map(Upstream::services);
        let mut found = known
            .find(|known| known.name == name)
            .map_or_else(Found::default, |known| known.found.lock().clone());
        for server in &found.servers {
            let kept = &server.member.kept;
            kept.set_limits(settings.keep, settings.keep_limits);
        }
        if before.is_some_and(|before| before.settings.service_members != settings.service_members)
        {
            found.until_ms = 0;
        }
        Service {
            name: name.to_owned(),
            found: Mutex::new(found),
        }
    }

    /// Those that were found.
    pub(crate) fn servers(&self) -> Vec<ServiceMember> {
        self.found.lock().servers.clone()
    }

    /// Whether it has been looked up.
    pub(crate) fn is_sought(&self) -> bool {
        self.found.lock().is_sought
    }

    /// Why there is none, as far as that is known.
    pub(crate) fn why(&self) -> Option<String> {
        self.found.lock().why.clone()
    }

    /// What is told of it.
    pub(crate) fn told(&self, now_ms: u64) -> ServiceReport {
        let found = self.found.lock();
        ServiceReport {
            name: format!("srv:{}", self.name),
            servers: found.servers.len(),
            surplus: found.surplus,
            again_in_s: found.until_ms.saturating_sub(now_ms).div_ceil(1000),
            why: found.why.clone(),
        }
    }

    /// Members that it has no more and that have requests still.
    pub(crate) fn gone(&self, now_ms: u64) -> Vec<MemberReport> {
        let gone = self.found.lock().gone.clone();
        let there = gone.iter().filter_map(Weak::upgrade);
        let told = there.map(|member| MemberReport {
            state: "draining".to_owned(),
            out_for_s: None,
            why: Some(format!("srv:{} has it no more", self.name)),
            ..member.told(now_ms)
        });
        told.filter(|told| told.requests > 0).collect()
    }

    /// Looks it up, and lets everybody know. Returns after how long that is to be done again.
    async fn look(&self, upstream: &Arc<Upstream>, means: &CheckMeans) -> Duration {
        let settings = &upstream.settings;
        let (name, resolver) = (self.name.clone(), settings.resolver.clone());
        let servers_max = settings.service_members;
        let job = move || lookup::servers_of(&name, &resolver, servers_max);
        let looked = match means.pool.for_lane(LANE).run(job) {
            Ok(job) => job.in_time(&means.reactor).await.ok(),
            Err(_) => None,
        };
        let late = || Err(format!("{} was not found in time", self.name));
        let looked = looked.unwrap_or_else(late);
        match &looked {
            Ok(found) if found.surplus > 0 => means.counters.limit_upstream_service.add(1),
            Ok(_) => {}
            Err(_) => means.counters.upstream_lookups_failed.add(1),
        }
        let now_ms = means.reactor.now_ms();
        let change = self.take(looked, settings, now_ms);
        upstream.services_changed(change.is_other);
        if settings.check.is_some() {
            for member in change.come {
                check::begin(upstream, &member, means);
            }
        }
        let until_ms = self.found.lock().until_ms;
        Duration::from_millis(until_ms.saturating_sub(now_ms))
    }

    /// Takes over what was found.
    fn take(
        &self,
        looked: Result<FoundService, String>,
        settings: &UpstreamSettings,
        now_ms: u64,
    ) -> Change {
        let mut found = self.found.lock();
        let was_sought = std::mem::replace(&mut found.is_sought, true);
        let (change, holds, why) = match looked {
            Ok(looked) => {
                let (holds, surplus) = (looked.holds, looked.surplus);
                if surplus > 0 && found.surplus == 0 {
                    tracing::warn!(
                        service = %self.name, surplus,
                        "upstream: it has more servers than `service_members` says"
                    );
                }
                found.surplus = surplus;
                found.held = Some(holds);
                let is_offered = !looked.servers.is_empty();
                // The first time nobody has been there before; later, who comes begins slowly.
                let in_since_ms = if was_sought { now_ms } else { 0 };
                let (change, why) = found.take(looked.servers, settings, in_since_ms);
                let unoffered = || format!("{} is not offered: its target is `.`", self.name);
                (change, holds, why.or((!is_offered).then(unoffered)))
            }
            Err(why) => {
                let holds = found.held.unwrap_or(LOOK_AGAIN).min(HOLDS_UNTOLD);
                (Change::default(), holds, Some(why))
            }
        };
        let holds = match found.servers.is_empty() {
            true => holds.min(LOOK_AGAIN),
            false => holds,
        };
        found.until_ms = now_ms + holds.as_millis() as u64;
        match (&why, &found.why) {
            (Some(why), None) => tracing::warn!(
                service = %self.name, known = found.servers.len(),
                "upstream: not all of its servers are known: {why}"
            ),
            (None, Some(_)) => tracing::info!(service = %self.name, "upstream: it is found again"),
            _ => {}
        }
        found.why = why;
        change
    }
}

impl Found {
    /// Has these servers from now on. Returns besides why one of them was not found.
    fn take(
        &mut self,
        servers: Vec<FoundServer>,
        settings: &UpstreamSettings,
        in_since_ms: u64,
    ) -> (Change, Option<String>) {
        let (mut now, mut come, mut failed) = (Vec::new(), Vec::new(), None);
        for FoundServer { server, addresses } in servers {
            let place = (server.target.as_str(), server.port);
            let known = self.servers.iter().find(|one| one.member.is_server(place));
            let member = match (known, addresses) {
                (Some(known), Ok(addresses)) => {
                    if let Some(name) = &known.member.name {
                        name.lead_to(addresses);
                    }
                    Arc::clone(&known.member)
                }
                // Where it was is known still.
                (Some(known), Err(why)) => {
                    failed = Some(why);
                    Arc::clone(&known.member)
                }
                (None, Ok(addresses)) => {
                    let member = Member::of_service(place, addresses, (settings, in_since_ms));
                    come.push(Arc::clone(&member));
                    member
                }
                (None, Err(why)) => {
                    failed = Some(why);
                    continue;
                }
            };
            now.push(ServiceMember {
                member,
                priority: server.priority,
                weight: server.weight,
            });
        }
        let is_same = |(a, b): (&ServiceMember, &ServiceMember)| {
            let shares = |one: &ServiceMember| (one.priority, one.weight);
            Arc::ptr_eq(&a.member, &b.member) && shares(a) == shares(b)
        };
        let is_other =
            now.len() != self.servers.len() || !now.iter().zip(&self.servers).all(is_same);
        let has = |one: &ServiceMember| now.iter().any(|it| Arc::ptr_eq(&it.member, &one.member));
        self.gone.retain(|gone| gone.strong_count() > 0);
        let left = self.servers.iter().filter(|one| !has(one));
        self.gone
            .extend(left.map(|one| Arc::downgrade(&one.member)));
        self.servers = now;
        (Change { come, is_other }, failed)
    }
}

/// Begins to look up each service of an upstream, on this thread, for as long as it is the one in
/// force.
pub(crate) fn start(upstream: &Arc<Upstream>, means: &CheckMeans) {
    for place in 0..upstream.configured().len() {
        let Some(service) = upstream.configured()[place].service() else {
            continue;
        };
        let until_ms = service.found.lock().until_ms;
        let first_ms = until_ms.saturating_sub(means.reactor.now_ms());
        let (upstream, means) = (Arc::downgrade(upstream), means.clone());
        let reactor = means.reactor.clone();
        reactor.spawn_standing(async move {
            let timer = means.reactor.timer();
            let mut pause = Duration::from_millis(first_ms);
            loop {
                if !pause.is_zero() {
                    timer.set(pause);
                    timer.elapsed().await;
                }
                let Some(upstream) = upstream.upgrade().filter(Upstream::is_in_force) else {
                    return;
                };
                let Some(service) = upstream.configured()[place].service() else {
                    return;
                };
                pause = service.look(&upstream, &means).await;
            }
        });
    }
}
