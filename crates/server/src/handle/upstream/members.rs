//! The members of an upstream: who of them is asked next. All threads see the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use arc_swap::{ArcSwap, ArcSwapOption};
use hob_http::{Request, Response};
use hob_trace::Mutex;

use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::balance::{self, Balance, Candidate};
use crate::handle::upstream::check::{self, CheckMeans, CheckProtocol};
use crate::handle::upstream::config::{MemberSettings, UpstreamSettings};
use crate::handle::upstream::member::{Member, MemberStanding};
use crate::handle::upstream::roster::{BACKUP_RANK, ConfiguredMember, ListedMember, Roster};
use crate::handle::upstream::run::told::RunReport;
use crate::handle::upstream::services::{self, Service};
use crate::handle::upstream::terms::UpstreamTerms;
use crate::handle::upstream::told::{MemberReport, UpstreamReport};

/// An upstream.
#[derive(Debug)]
pub struct Upstream {
    pub(crate) settings: UpstreamSettings,
    /// What stands in the config: members, and services that have some.
    configured: Vec<ConfiguredMember>,
    /// Who there is now.
    roster: ArcSwap<Roster>,
    /// Services that have not been looked up yet.
    unsought: AtomicUsize,
    /// TLS with them, on terms that are there before the first request.
    pub(crate) terms: ArcSwapOption<UpstreamTerms>,
    /// Requests so far, for those that are given out in turn.
    turn: AtomicUsize,
    /// Retries that may be made now, in hundredths.
    budget: AtomicU64,
    /// Requests that wait until a member has fewer, where members have limits of their own.
    waiting: Arc<Mutex<Vec<Waker>>>,
    pub(crate) protocol: CheckProtocol,
    /// Its members are its own to look at, from time to time or never.
    has_checks: AtomicBool,
    /// Which one is in force, of this and those before and after it: its number.
    in_force: Arc<AtomicUsize>,
}

/// Most retries that can be saved up, in hundredths.
const BUDGET_MAX: u64 = 1_000;
/// Whom a request would like to have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemberWish<'a> {
    /// Those that it was given to already.
    pub(crate) tried: &'a [Arc<Member>],
    /// What requests have in common that are to come to one member.
    pub(crate) key: Option<u64>,
    /// The one that it was with before, which may be draining.
    pub(crate) own: Option<&'a Arc<Member>>,
}

/// Why nobody gets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NobodyFree {
    /// All are left out, or were tried.
    Out,
    /// Each that is asked at all has as many as it may.
    Full,
}

/// A request on its way to a member, which has it until this is dropped.
#[derive(Debug)]
pub(crate) struct MemberUse {
    upstream: Arc<Upstream>,
    member: Arc<Member>,
    /// The place in the config of it, or of its service.
    configured: usize,
}

impl Drop for MemberUse {
    fn drop(&mut self) {
        self.member.end_use();
        if self.upstream.settings.members[self.configured].connections > 0 {
            self.upstream.wake_waiting();
        }
    }
}

impl MemberUse {
    pub(crate) fn member(&self) -> &Member {
        &self.member
    }

    pub(crate) fn member_arc(&self) -> &Arc<Member> {
        &self.member
    }

    /// What the config says of it and the others.
    pub(crate) fn settings(&self) -> &UpstreamSettings {
        &self.upstream.settings
    }

    /// On which terms TLS is spoken with it.
    pub(crate) fn terms(&self) -> Option<Arc<UpstreamTerms>> {
        self.upstream.terms_for(self.member())
    }

    /// The place in the config of the member, or of its service.
    pub(crate) fn configured(&self) -> usize {
        self.configured
    }

    /// It has begun to answer, after so long.
    pub(crate) fn answered(&self, after_us: u64, now_ms: u64) {
        self.member.answered(after_us, now_ms);
    }

    /// It has failed. True when that leaves it out.
    pub(crate) fn failed(&self, now_ms: u64) -> bool {
        let limits = Some(self.upstream.settings.fail);
        let limits = limits.filter(|limits| limits.count > 0 && self.upstream.len() > 1);
        self.member.failed(limits, now_ms)
    }
}

impl Upstream {
    /// Members that `before` has too are the same: with their connections, and what is known of
    /// them.
    pub(crate) fn new(
        settings: &UpstreamSettings,
        protocol: CheckProtocol,
        before: Option<&Upstream>,
        now_ms: u64,
    ) -> Arc<Upstream> {
        let known = |one: &MemberSettings| {
            let mut members = before?
                .configured
                .iter()
                .filter_map(ConfiguredMember::member);
            let known = members.find(|member| member.is_at(one, settings))?;
            known.kept.set_limits(settings.keep, settings.keep_limits);
            Some(Arc::clone(known))
        };
        let terms = before.filter(|before| before.settings.tls == settings.tls);
        let in_since_ms = before.map_or(0, |_| now_ms);
        let configured = |one: &MemberSettings| match one.address.place() {
            MemberAddress::Service(name) => {
                ConfiguredMember::Service(Service::new(name, settings, before))
            }
            _ => {
                let new = || Arc::new(Member::new(&one.address, settings, in_since_ms));
                ConfiguredMember::Member(known(one).unwrap_or_else(new))
            }
        };
        let configured: Vec<_> = settings.members.iter().map(configured).collect();
        Arc::new(Upstream {
            protocol,
            roster: ArcSwap::from_pointee(Roster::of(settings, &configured)),
            unsought: AtomicUsize::new(unsought(&configured)),
            configured,
            terms: ArcSwapOption::new(terms.and_then(|before| before.terms.load_full())),
            turn: AtomicUsize::new(0),
            budget: AtomicU64::new(BUDGET_MAX),
            waiting: before.map_or_else(Arc::default, |before| Arc::clone(&before.waiting)),
            has_checks: AtomicBool::new(false),
            in_force: before.map_or_else(Arc::default, |before| Arc::clone(&before.in_force)),
            settings: settings.clone(),
        })
    }

    /// What its members are at, those that hob runs by `run`.
    pub(crate) fn told(
        &self,
        name: &str,
        now_ms: u64,
        run: impl Fn(&MemberAddress) -> Option<RunReport>,
    ) -> UpstreamReport {
        let told = |one: &ListedMember| MemberReport {
            weight: one.weight,
            is_backup: one.rank > 0,
            requests_max: Some(self.settings.members[one.configured].connections)
                .filter(|max| *max > 0),
            run: run(&one.member.address),
            ..one.member.told(now_ms)
        };
        let mut members: Vec<_> = self.roster.load().all.iter().map(told).collect();
        members.extend(self.services().flat_map(|service| service.gone(now_ms)));
        UpstreamReport {
            name: name.to_owned(),
            members,
            services: self.services().map(|one| one.told(now_ms)).collect(),
        }
    }

    /// On which terms TLS is spoken with a member.
    pub(crate) fn terms_for(&self, member: &Member) -> Option<Arc<UpstreamTerms>> {
        let is_tls = member.address.peer_name().is_some();
        is_tls.then(|| self.terms.load_full()).flatten()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.roster.load().all.len()
    }

    /// Who there is now.
    pub(crate) fn roster(&self) -> Arc<Roster> {
        self.roster.load_full()
    }

    /// What stands in the config.
    pub(crate) fn configured(&self) -> &[ConfiguredMember] {
        &self.configured
    }

    /// Those that have members which come and go.
    pub(crate) fn services(&self) -> impl Iterator<Item = &Service> {
        self.configured.iter().filter_map(ConfiguredMember::service)
    }

    /// The host that a member is called by, where it is a server of a service.
    pub(crate) fn service_host(&self, member: &Arc<Member>) -> Option<&str> {
        let roster = self.roster.load();
        let listed = &roster.all[roster.place(member)?];
        let address = &self.settings.members[listed.configured].address;
        address.service_host()
    }

    /// A service was looked up, and may have others now. Those are all looked up by one thread.
    pub(crate) fn services_changed(&self, is_other: bool) {
        if is_other {
            let roster = Roster::of(&self.settings, &self.configured);
            self.roster.store(Arc::new(roster));
        }
        let left = unsought(&self.configured);
        let had = self.unsought.swap(left, Ordering::Release);
        if is_other || had != left {
            self.wake_waiting();
        }
    }

    /// Whether nobody is there, or backups alone, as a service has not been looked up yet.
    pub(crate) fn is_unsought(&self) -> bool {
        let is_backup = |one: &ListedMember| one.rank >= BACKUP_RANK;
        self.unsought.load(Ordering::Acquire) > 0 && self.roster.load().all.iter().all(is_backup)
    }

    /// Why there is nobody at all; `None` where there is somebody.
    pub(crate) fn why_nobody(&self) -> Option<String> {
        let is_nobody = self.roster.load().all.is_empty();
        is_nobody.then(|| {
            let mut reasons = self.services().filter_map(Service::why);
            reasons.next().unwrap_or_default()
        })
    }

    /// The member that a client was with before.
    pub(crate) fn own_member(&self, request: &Request) -> Option<Arc<Member>> {
        let roster = self.roster.load();
        let place = roster.sticky.as_ref()?.member(request)?;
        let listed = roster.all.get(place)?;
        Some(Arc::clone(&listed.member))
    }

    /// Has a client come back to the member that answered it.
    pub(crate) fn keep_member(
        &self,
        member: &Arc<Member>,
        request: &Request,
        response: &mut Response,
    ) {
        let roster = self.roster.load();
        if let (Some(sticky), Some(place)) = (&roster.sticky, roster.place(member)) {
            sticky.keep(place, request, response);
        }
    }

    /// What a request has in common with others that are to come to the same member.
    pub(crate) fn hash_key(&self, request: &Request) -> Option<u64> {
        match &self.settings.balance {
            Balance::Hash(key) => key.of(request),
            _ => None,
        }
    }

    /// From now on its members and services are looked at as it says, and not as another one said
    /// that may still have requests. True where somebody is to begin with that.
    pub(crate) fn take_checks_over(self: &Arc<Self>) -> bool {
        if self.has_checks.swap(true, Ordering::Relaxed) {
            return false;
        }
        self.in_force.store(self.number(), Ordering::Relaxed);
        if self.settings.check.is_none() {
            for one in &self.roster.load().all {
                // Nobody would find it well again.
                one.member.forget_checks();
            }
        }
        self.settings.check.is_some() || self.services().next().is_some()
    }

    /// Whether what this one finds of its members still counts.
    pub(crate) fn is_in_force(self: &Arc<Self>) -> bool {
        self.in_force.load(Ordering::Relaxed) == self.number()
    }

    /// Another one for each that is there.
    fn number(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }

    /// Begins to look at its members and services, on this thread.
    pub(crate) fn begin_checks(self: &Arc<Self>, means: &CheckMeans) {
        if self.settings.check.is_some() {
            for one in &self.roster().all {
                check::begin(self, &one.member, means);
            }
        }
        services::start(self, means);
    }

    /// Has the member of this address get no new requests, or get them again. False where there is
    /// none of this address.
    pub(crate) fn set_draining(&self, address: &str, is_draining: bool, now_ms: u64) -> bool {
        let roster = self.roster.load();
        let mut members = roster.all.iter().map(|one| &one.member);
        let Some(member) = members.find(|member| &*member.text == address) else {
            return false;
        };
        member.set_draining(is_draining, now_ms);
        self.wake_waiting();
        true
    }

    /// Chooses who gets a request.
    pub(crate) fn pick(
        self: &Arc<Self>,
        wish: &MemberWish<'_>,
        now_ms: u64,
    ) -> Result<MemberUse, NobodyFree> {
        let roster = self.roster.load();
        let place = self.choose(&roster, wish, now_ms)?;
        let ListedMember {
            member, configured, ..
        } = &roster.all[place];
        member.begin_use();
        Ok(MemberUse {
            upstream: Arc::clone(self),
            member: Arc::clone(member),
            configured: *configured,
        })
    }

    /// The place of one of them.
    fn choose(
        &self,
        roster: &Roster,
        wish: &MemberWish<'_>,
        now_ms: u64,
    ) -> Result<usize, NobodyFree> {
        let own = wish.own.and_then(|own| roster.place(own));
        if let Some(own) = own.filter(|own| wish.may_stay(&roster.all[*own])) {
            let is_free = self.has_room(&roster.all[own]);
            return is_free.then_some(own).ok_or(NobodyFree::Full);
        }
        if let [one] = &roster.all[..] {
            return self.lone(one, wish);
        }
        for rank in &roster.ranks {
            let (mut inside, mut is_full) = (Vec::with_capacity(roster.all.len()), false);
            for (place, one) in roster.all.iter().enumerate() {
                if one.rank != *rank || wish.has_tried(one) {
                    continue;
                }
                match one.member.standing() {
                    MemberStanding::In if self.has_room(one) => inside.push(place),
                    MemberStanding::In => is_full = true,
                    // Who has been out for long enough is tried by one request.
                    MemberStanding::Failed(until_ms)
                        if until_ms <= now_ms && one.member.begin_trial(until_ms, now_ms) =>
                    {
                        return Ok(place);
                    }
                    _ => {}
                }
            }
            if !inside.is_empty() {
                return Ok(self.balance(roster, inside, wish, now_ms));
            }
            if is_full {
                return Err(NobodyFree::Full);
            }
        }
        self.last_resort(roster, wish, now_ms)
    }

    /// A lone member is asked whether or not it failed before.
    fn lone(&self, one: &ListedMember, wish: &MemberWish<'_>) -> Result<usize, NobodyFree> {
        let is_left_out = match one.member.standing() {
            MemberStanding::In | MemberStanding::Failed(_) => false,
            MemberStanding::Ill => !self.settings.last_resort,
            MemberStanding::Draining => true,
        };
        match () {
            () if is_left_out || !wish.tried.is_empty() => Err(NobodyFree::Out),
            () if !self.has_room(one) => Err(NobodyFree::Full),
            () => Ok(0),
        }
    }

    /// Somebody who is left out, where that is better than nobody.
    fn last_resort(
        &self,
        roster: &Roster,
        wish: &MemberWish<'_>,
        now_ms: u64,
    ) -> Result<usize, NobodyFree> {
        let is_left = |place: &usize| {
            let one = &roster.all[*place];
            !wish.has_tried(one)
                && one.member.standing() != MemberStanding::Draining
                && self.has_room(one)
        };
        let left: Vec<_> = (0..roster.all.len()).filter(is_left).collect();
        match !left.is_empty() && self.settings.last_resort {
            true => Ok(self.balance(roster, left, wish, now_ms)),
            false => Err(NobodyFree::Out),
        }
    }

    /// One of these, at least one.
    fn balance(
        &self,
        roster: &Roster,
        mut of: Vec<usize>,
        wish: &MemberWish<'_>,
        now_ms: u64,
    ) -> usize {
        let member = |place: usize| &*roster.all[place].member;
        let slow_ms = self.settings.slow_start_ms;
        if slow_ms > 0 && of.len() > 1 {
            let begun = |place: &usize| member(*place).passes_slow_start(slow_ms, now_ms);
            let passed: Vec<_> = of.iter().copied().filter(begun).collect();
            if !passed.is_empty() {
                of = passed;
            }
        }
        if let [only] = of[..] {
            return only;
        }
        let candidate = |place: &usize| Candidate {
            index: *place,
            weight: u64::from(roster.all[*place].weight),
            load: member(*place).load() as u64,
        };
        if let (Balance::Hash(_), Some(key)) = (&self.settings.balance, wish.key) {
            let all = of.iter().map(candidate).collect::<Vec<_>>();
            return balance::by_hash(&all, key, |place| &member(place).text);
        }
        let turn = || self.turn.fetch_add(1, Ordering::Relaxed);
        match self.settings.balance {
            Balance::RoundRobin => balance::in_turn(&roster.schedule, &of, turn()),
            Balance::Requests => {
                // Where several have as few, each has its turn.
                let begin = turn() % of.len();
                of.rotate_left(begin);
                balance::fewest(&of.iter().map(candidate).collect::<Vec<_>>())
            }
            Balance::Latency | Balance::Hash(_) => {
                let all = of.iter().map(candidate).collect::<Vec<_>>();
                // What answers took lately they took beside others, so that the number of others
                // now counts by its root: a member with many workers has many under way and is
                // as fast.
                balance::better_of_two(&all, |one| {
                    let latency_us = member(one.index).latency_us(now_ms);
                    latency_us * ((one.load + 1) as f64 / one.weight as f64).sqrt()
                })
            }
        }
    }

    fn has_room(&self, one: &ListedMember) -> bool {
        match self.settings.members[one.configured].connections {
            0 => true,
            max => one.member.load() < max,
        }
    }

    /// Has a task look again once a member has fewer requests.
    pub(crate) fn wait(&self, waker: &Waker) {
        let mut waiting = self.waiting.lock();
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// A request was made: it adds its share, so many hundredths, to the budget of retries.
    pub(crate) fn count_request(&self, budget_percent: u64) {
        if self.len() > 1 {
            let add = |budget: u64| (budget < BUDGET_MAX).then(|| budget + budget_percent);
            let _ = self
                .budget
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }

    /// Takes a retry out of the budget; false when there is none.
    pub(crate) fn take_retry(&self) -> bool {
        let take = |budget: u64| budget.checked_sub(100);
        self.budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }
}

impl MemberWish<'_> {
    fn has_tried(&self, one: &ListedMember) -> bool {
        let mut tried = self.tried.iter();
        tried.any(|tried| Arc::ptr_eq(tried, &one.member))
    }

    /// Whether a request may stay with the member it was with before.
    fn may_stay(&self, one: &ListedMember) -> bool {
        let standing = one.member.standing();
        !self.has_tried(one) && matches!(standing, MemberStanding::In | MemberStanding::Draining)
    }
}

/// How many services have not been looked up yet.
fn unsought(configured: &[ConfiguredMember]) -> usize {
    let services = configured.iter().filter_map(ConfiguredMember::service);
    services.filter(|service| !service.is_sought()).count()
}

#[cfg(test)]
mod tests;
