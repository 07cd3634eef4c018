//! Who is asked, by shares, limits, keys and what is known of members.

use std::time::Duration;

use hob_http::tls::peer::PeerVersions;

use super::*;
use crate::handle::upstream::balance::HashKey;
use crate::handle::upstream::check::ChecksMembers;
use crate::handle::upstream::config::CheckSettings;
use crate::handle::upstream::kept::KeepLimits;
use crate::handle::upstream::member::FailureLimits;

fn settings(members: usize, balance: Balance) -> UpstreamSettings {
    let member = |port: usize| {
        let text = format!("127.0.0.1:{}", port + 1);
        MemberSettings {
            address: MemberAddress::parse(&text, |path| path.into()).unwrap(),
            weight: 1,
            backup: false,
            connections: 0,
        }
    };
    UpstreamSettings {
        tls: None,
        name: None,
        members: (0..members).map(member).collect(),
        balance,
        sticky: None,
        connections: 1,
        keep: 0,
        resolver: Vec::new(),
        service_members: 64,
        keep_limits: KeepLimits {
            requests: 0,
            time: Duration::ZERO,
            idle: Duration::from_secs(60),
        },
        proxy_protocol: None,
        queue: 0,
        wait: Duration::ZERO,
        fail: FailureLimits {
            count: 3,
            window_ms: 10_000,
            pause_ms: 1_000,
        },
        check: None,
        slow_start_ms: 0,
        last_resort: false,
    }
}

#[derive(Debug)]
struct Unasked;

impl ChecksMembers for Unasked {
    fn versions(&self) -> PeerVersions {
        PeerVersions::Http1
    }

    fn request(&self, _: &str, _: &str, _: bool) -> Vec<u8> {
        Vec::new()
    }

    fn status(&self, _: &[u8], _: bool) -> Result<Option<u16>, String> {
        Ok(None)
    }
}

fn upstream(members: usize, balance: Balance) -> Arc<Upstream> {
    made(&settings(members, balance), None)
}

fn made(settings: &UpstreamSettings, before: Option<&Upstream>) -> Arc<Upstream> {
    Upstream::new(settings, protocol(), before, 5)
}

fn protocol() -> CheckProtocol {
    CheckProtocol {
        handler: "proxy",
        asks: Arc::new(Unasked),
    }
}

impl Upstream {
    fn pick_but(self: &Arc<Self>, tried: &[usize], now_ms: u64) -> Option<MemberUse> {
        let members = self.members();
        let tried: Vec<_> = tried.iter().map(|at| Arc::clone(&members[*at])).collect();
        let wish = MemberWish {
            tried: &tried,
            ..MemberWish::default()
        };
        self.pick(&wish, now_ms).ok()
    }

    fn members(&self) -> Vec<Arc<Member>> {
        let roster = self.roster();
        roster
            .all
            .iter()
            .map(|one| Arc::clone(&one.member))
            .collect()
    }

    fn members_told(&self, now_ms: u64) -> Vec<MemberReport> {
        self.told("app", now_ms, |_| None).members
    }
}

impl MemberUse {
    fn index(&self) -> usize {
        self.upstream.roster().place(&self.member).unwrap()
    }
}

#[test]
fn each_has_its_turn_and_who_was_tried_is_left_out() {
    let upstream = upstream(3, Balance::RoundRobin);
    let picked: Vec<_> = (0..6)
        .map(|_| upstream.pick_but(&[], 0).unwrap().index())
        .collect();
    assert_eq!(picked, [0, 1, 2, 0, 1, 2]);
    assert_eq!(upstream.pick_but(&[0, 2], 0).unwrap().index(), 1);
    assert!(upstream.pick_but(&[0, 1, 2], 0).is_none());
}

#[test]
fn fewest_requests_win() {
    let upstream = upstream(3, Balance::Requests);
    let held: Vec<_> = (0..3).map(|_| upstream.pick_but(&[], 0).unwrap()).collect();
    let mut indexes: Vec<_> = held.iter().map(MemberUse::index).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, [0, 1, 2]);
    let free = held[1].index();
    drop(held.into_iter().nth(1));
    let again = upstream.pick_but(&[], 0).unwrap();
    // The others were dropped as well: all are free but for this one.
    assert_ne!(upstream.pick_but(&[], 0).unwrap().index(), again.index());
    assert!(free < 3);
}

#[test]
fn slow_member_gets_few_requests_and_is_tried_again_with_time() {
    let upstream = upstream(4, Balance::Latency);
    let mut counts = [0; 4];
    for round in 0..4_000_u64 {
        let used = upstream.pick_but(&[], round / 10).unwrap();
        counts[used.index()] += 1;
        let latency_us = if used.index() == 3 { 10_000 } else { 1_000 };
        used.answered(latency_us, round / 10);
    }
    assert!(counts[3] < 40, "{counts:?}");
    assert!(counts[..3].iter().all(|count| *count > 800), "{counts:?}");
    // A minute later nothing is known of anybody.
    let mut later = [0; 4];
    for _ in 0..400 {
        later[upstream.pick_but(&[], 400_000).unwrap().index()] += 1;
    }
    assert!(later[3] > 40, "{later:?}");
}

#[test]
fn who_fails_is_left_out_and_comes_back_by_one_trial() {
    let upstream = upstream(2, Balance::RoundRobin);
    let fail = |now_ms| {
        let used = upstream.pick_but(&[1], now_ms).unwrap();
        used.failed(now_ms)
    };
    assert_eq!([fail(1), fail(2), fail(3)], [false, false, true]);
    for now_ms in [4, 900] {
        assert_eq!(upstream.pick_but(&[], now_ms).unwrap().index(), 1);
        assert!(upstream.pick_but(&[1], now_ms).is_none());
    }
    let trial = upstream.pick_but(&[], 1_003).unwrap();
    assert_eq!(trial.index(), 0);
    assert!(upstream.pick_but(&[1], 1_003).is_none());
    // It failed once more: twice as long.
    assert!(!trial.failed(1_010));
    assert!(upstream.pick_but(&[1], 3_009).is_none());
    let trial = upstream.pick_but(&[1], 3_010).unwrap();
    trial.answered(100, 3_011);
    assert!(upstream.pick_but(&[1], 3_011).is_some());
    assert!(!fail(3_012));
}

#[test]
fn failures_far_apart_and_those_of_a_lone_member_leave_nobody_out() {
    let two = upstream(2, Balance::RoundRobin);
    for at in [0, 20_000, 40_000, 60_000] {
        assert!(!two.pick_but(&[1], at).unwrap().failed(at));
    }
    let alone = upstream(1, Balance::Latency);
    for _ in 0..100 {
        assert!(!alone.pick_but(&[], 1).unwrap().failed(1));
    }
}

#[test]
fn retries_are_a_share_of_requests() {
    let upstream = upstream(2, Balance::Latency);
    let saved = (0..100).filter(|_| upstream.take_retry()).count();
    assert_eq!(saved, 10);
    for _ in 0..100 {
        upstream.count_request(20);
    }
    assert_eq!((0..100).filter(|_| upstream.take_retry()).count(), 10);
}

#[test]
fn weights_are_shares_of_the_requests() {
    for balance in [Balance::RoundRobin, Balance::Requests, Balance::Latency] {
        let mut settings = settings(3, balance.clone());
        settings.members[0].weight = 4;
        settings.members[1].weight = 2;
        settings.members[2].weight = 2;
        let upstream = made(&settings, None);
        let mut counts = [0; 3];
        let mut held = Vec::new();
        for _ in 0..800 {
            let used = upstream.pick_but(&[], 0).unwrap();
            used.answered(1_000, 0);
            counts[used.index()] += 1;
            held.push(used);
        }
        assert!((380..=420).contains(&counts[0]), "{balance:?}: {counts:?}");
        assert!((180..=220).contains(&counts[1]), "{balance:?}: {counts:?}");
    }
}

#[test]
fn shares_of_many_parts_are_rounded_and_nobody_has_none() {
    let mut settings = settings(3, Balance::RoundRobin);
    for (member, weight) in settings.members.iter_mut().zip([9_973, 2, 4_987]) {
        member.weight = weight;
    }
    let upstream = made(&settings, None);
    let length = upstream.roster().schedule.len();
    assert!(length <= 1_025, "{length}");
    let mut counts = [0; 3];
    for _ in 0..length {
        counts[upstream.pick_but(&[], 0).unwrap().index()] += 1;
    }
    assert_eq!(counts, [682, 1, 341]);
}

#[test]
fn backup_is_asked_where_all_others_are_out() {
    let mut settings = settings(3, Balance::RoundRobin);
    settings.members[2].backup = true;
    let upstream = made(&settings, None);
    assert!((0..10).all(|_| upstream.pick_but(&[], 0).unwrap().index() < 2));
    for index in 0..2 {
        assert!(upstream.set_draining(&format!("127.0.0.1:{}", index + 1), true, 0));
    }
    assert_eq!(upstream.pick_but(&[], 0).unwrap().index(), 2);
    assert!(upstream.set_draining("127.0.0.1:1", false, 0));
    assert_eq!(upstream.pick_but(&[], 0).unwrap().index(), 0);
    assert!(!upstream.set_draining("127.0.0.1:9", true, 0));
}

#[test]
fn member_with_a_limit_of_its_own_gets_no_more_and_who_waits_is_woken() {
    let mut settings = settings(2, Balance::RoundRobin);
    settings.members[0].connections = 1;
    settings.members[1].connections = 2;
    let upstream = made(&settings, None);
    let mut held: Vec<_> = (0..3).map(|_| upstream.pick_but(&[], 0).unwrap()).collect();
    assert_eq!(
        upstream.pick(&MemberWish::default(), 0).unwrap_err(),
        NobodyFree::Full
    );
    upstream.wait(Waker::noop());
    assert_eq!(upstream.waiting.lock().len(), 1);
    let freed = held.pop().unwrap().index();
    assert!(upstream.waiting.lock().is_empty());
    assert_eq!(upstream.pick_but(&[], 0).unwrap().index(), freed);
}

#[test]
fn same_key_comes_to_the_same_member_and_others_stay_where_one_goes() {
    let upstream = upstream(5, Balance::Hash(HashKey::Path));
    let of = |key: u64| {
        let wish = MemberWish {
            key: Some(balance::hash(&key.to_le_bytes())),
            ..MemberWish::default()
        };
        upstream.pick(&wish, 0).unwrap().index()
    };
    let before: Vec<_> = (0..1_000).map(of).collect();
    assert_eq!(before, (0..1_000).map(of).collect::<Vec<_>>());
    for member in 0..5 {
        let count = before.iter().filter(|one| **one == member).count();
        assert!((150..=250).contains(&count), "{member}: {count}");
    }
    upstream.set_draining("127.0.0.1:3", true, 0);
    for (key, before) in (0..1_000).zip(before) {
        match (before, of(key)) {
            (2, now) => assert_ne!(now, 2),
            (_, now) => assert_eq!(now, before),
        }
    }
}

#[test]
fn key_that_everybody_asks_for_is_not_one_members_alone() {
    let upstream = upstream(4, Balance::Hash(HashKey::Path));
    let wish = MemberWish {
        key: Some(7),
        ..MemberWish::default()
    };
    let held: Vec<_> = (0..400).map(|_| upstream.pick(&wish, 0).unwrap()).collect();
    let of = |index| held.iter().filter(|used| used.index() == index).count();
    let most = (0..4).map(of).max();
    assert!(most.is_some_and(|most| most <= 126), "{most:?}");
}

#[test]
fn who_comes_back_begins_slowly() {
    let mut settings = settings(2, Balance::RoundRobin);
    settings.slow_start_ms = 10_000;
    let upstream = made(&settings, None);
    upstream.set_draining("127.0.0.1:1", true, 1);
    upstream.set_draining("127.0.0.1:1", false, 20_000);
    let share = |now_ms| {
        let of = (0..2_000).filter(|_| upstream.pick_but(&[], now_ms).unwrap().index() == 0);
        of.count()
    };
    assert!((40..=200).contains(&share(20_000)), "{}", share(20_000));
    assert!((600..=820).contains(&share(27_000)), "{}", share(27_000));
    assert_eq!(share(30_000), 1_000);
}

#[test]
fn last_resort_is_asked_where_all_are_out() {
    let mut settings = settings(2, Balance::RoundRobin);
    settings.fail.count = 1;
    for is_last_resort in [false, true] {
        settings.last_resort = is_last_resort;
        let upstream = made(&settings, None);
        for tried in [[1], [0]] {
            assert!(upstream.pick_but(&tried, 5).unwrap().failed(5));
        }
        assert_eq!(upstream.pick_but(&[], 6).is_some(), is_last_resort);
        assert!(upstream.pick_but(&[0, 1], 6).is_none());
    }
}

#[test]
fn client_stays_with_its_member_while_that_drains_and_not_once_it_failed() {
    let upstream = upstream(3, Balance::RoundRobin);
    let members = upstream.members();
    let wish = MemberWish {
        own: Some(&members[1]),
        ..MemberWish::default()
    };
    upstream.set_draining("127.0.0.1:2", true, 0);
    assert!((0..5).all(|_| upstream.pick(&wish, 0).unwrap().index() == 1));
    let tried = MemberWish {
        tried: &members[1..2],
        ..wish
    };
    assert_ne!(upstream.pick(&tried, 0).unwrap().index(), 1);
}

#[test]
fn checks_leave_out_and_bring_back_after_so_many_in_a_row() {
    let upstream = upstream(1, Balance::Latency);
    let member = &upstream.members()[0];
    let ill = || member.check_found(Err("no connection".to_owned()), (2, 2), 1);
    let well = || member.check_found(Ok(()), (2, 2), 1);
    assert!(!ill() && !well() && !ill());
    assert!(upstream.pick_but(&[], 1).is_some());
    assert!(ill());
    assert!(upstream.pick_but(&[], 1).is_none());
    let told = upstream.members_told(1);
    assert_eq!(
        (told[0].state.as_str(), told[0].why.as_deref()),
        ("out", Some("no connection"))
    );
    assert!(!well() && well());
    assert!(upstream.pick_but(&[], 1).is_some());
}

#[test]
fn reload_that_checks_no_more_brings_back_who_a_check_left_out() {
    let mut checked = settings(2, Balance::RoundRobin);
    checked.check = Some(CheckSettings {
        path: String::new(),
        every: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        expect: 200..=399,
        fall: 1,
        rise: 1,
    });
    let before = made(&checked, None);
    assert!(before.take_checks_over() && !before.take_checks_over());
    let member = Arc::clone(&before.members()[0]);
    assert!(before.is_in_force());
    assert!(member.check_found(Err("ill".to_owned()), (1, 1), 1));
    let after = made(&settings(2, Balance::RoundRobin), Some(&before));
    assert_eq!(&*after.members_told(1)[0].state, "out");
    assert!(!after.take_checks_over());
    assert_eq!(&*after.members_told(1)[0].state, "in");
    // What the one before finds late counts no more.
    assert!(!before.is_in_force());
}

#[test]
fn members_outlive_their_upstream_where_another_has_them_too() {
    let before = upstream(2, Balance::RoundRobin);
    let used = before.pick_but(&[1], 0).unwrap();
    assert!(before.set_draining("127.0.0.1:2", true, 0));
    let mut other = settings(3, Balance::Latency);
    other.keep = 4;
    let after = made(&other, Some(&before));
    assert!(after.members()[0].kept.is_any() && before.members()[0].kept.is_any());
    let told = after.members_told(5);
    assert_eq!((told[0].requests, &*told[1].state), (1, "draining"));
    assert_eq!((told[2].requests, &*told[2].state), (0, "in"));
    drop(used);
    assert_eq!(after.members_told(5)[0].requests, 0);
}

#[test]
fn one_whose_config_does_not_come_into_force_leaves_the_one_before_it() {
    let cache = hob_config::CacheSettings {
        bytes: Some(0),
        max_file: 0,
        max_file_tls: 0,
        recheck: Duration::ZERO,
    };
    let state = crate::serve::ServerState::new(&cache, 1);
    let named = |members| {
        let settings = settings(members, Balance::Requests);
        state.upstream("app".to_owned(), &settings, protocol())
    };
    let told = || {
        state
            .upstreams()
            .iter()
            .map(|one| one.members.len())
            .collect::<Vec<_>>()
    };
    let in_force = named(1);
    let failed = named(2);
    assert!(!Arc::ptr_eq(&in_force, &failed));
    drop(failed);
    assert_eq!(told(), [1]);
    assert_eq!(state.set_draining("app", "127.0.0.1:1", true), (1, 1));
    assert!(Arc::ptr_eq(&named(1), &in_force));
    let next = named(2);
    assert!(Arc::ptr_eq(&next.members()[0], &in_force.members()[0]));
    drop(in_force);
    assert_eq!(told(), [2]);
    drop(next);
    assert_eq!(told(), [0_usize; 0]);
}
