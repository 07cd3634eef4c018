//! What is worth an alert, and what is not.

use super::*;
use crate::resources::minute::Link;

const MINUTE: u64 = 60_000;

fn texts(alarms: &Alarms) -> Vec<String> {
    let alerts = alarms.alerts().into_iter();
    alerts.map(|alert| alert.text).collect()
}

#[test]
fn every_counter_that_is_named_is_either_known_or_made_by_another_part() {
    let metrics: Vec<&str> = Snapshot::default().metrics().map(|one| one.name).collect();
    for name in QUIET.iter().chain(REFUSING) {
        assert!(metrics.contains(name), "{name}");
    }
    for (name, ..) in EVENTS {
        assert!(metrics.contains(name), "{name}");
    }
}

#[test]
fn link_is_told_past_its_share_after_five_minutes() {
    let mut alarms = Alarms::default();
    let mut minute = Minute::default();
    minute.links[0] = Link {
        bytes_out_s: 77_500_000,
        ..Link::default()
    };
    for number in 1..=6 {
        let links = [("eth0", Some(1_000_000_000)), ("veth1", None)];
        machine(&mut alarms, &minute, links.into_iter(), number * MINUTE);
        assert_eq!(alarms.alerts().len(), usize::from(number >= 5), "{number}");
    }
    assert_eq!(texts(&alarms), ["eth0 sends 620 of 1000 Mbit/s for 5 min"]);
}

#[test]
fn drops_overflows_and_waits_are_told() {
    let mut alarms = Alarms::default();
    let mut minute = Minute {
        listen_overflows: 3,
        memory_wait_permille: 120,
        disk_wait_permille: 500,
        ..Minute::default()
    };
    minute.links[0] = Link {
        packets_in_s: 100,
        drops: 60,
        ..Link::default()
    };
    machine(&mut alarms, &minute, [("eth0", None)].into_iter(), MINUTE);
    let told = texts(&alarms).join("\n");
    for text in [
        "eth0 has dropped 60 packets lately",
        "3 connections to this machine found a full queue",
        "processes waited for memory 12 % of a minute",
        "processes waited for a disk 50 % of a minute",
    ] {
        assert!(told.contains(text), "{told}");
    }
    minute.memory_wait_permille = 20;
    machine(
        &mut alarms,
        &minute,
        [("eth0", None)].into_iter(),
        2 * MINUTE,
    );
    assert!(!texts(&alarms).join("\n").contains("memory"));
}

#[test]
fn descriptors_connections_and_workers_are_told_of_when_few_are_left() {
    let mut alarms = Alarms::default();
    let facts = Facts {
        descriptors: 640,
        descriptors_max: Some(1024),
        connections_max: 100,
        workers: 8,
        workers_max: 8,
        ..Facts::default()
    };
    for second in 0..5 {
        levels(&mut alarms, &facts, second * 1000);
    }
    assert_eq!(
        texts(&alarms),
        ["workers: 8 of 8", "descriptors: 640 of 1024"]
    );
    let endless = Facts {
        descriptors_max: None,
        ..facts
    };
    levels(&mut alarms, &endless, 6_000);
    assert_eq!(alarms.alerts()[0].level, Level::Bad);
}

#[test]
fn counters_that_grow_are_told_with_their_own_words() {
    let mut alarms = Alarms::default();
    let before = Facts::default();
    let mut now = Facts::default();
    now.counters.limit_connections = 2;
    now.counters.limit_body = 1;
    now.counters.limit_idle = 50;
    now.counters.log_dropped = 9;
    events(&mut alarms, &before, &now, MINUTE);
    let told = texts(&alarms);
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(alarms.alerts()[2].level, Level::Notice);
    assert_eq!(
        told[2],
        "Requests refused: body larger than its limit (413): 1 lately (limit_body)"
    );
    events(&mut alarms, &now, &now, 30 * MINUTE);
    assert_eq!(alarms.alerts(), []);
}

#[test]
fn pools_are_told_of_while_they_are_there() {
    let mut alarms = Alarms::default();
    let full = PoolFacts {
        name: "/api/*".to_owned(),
        waiting: 64,
        waiting_max: 64,
        failures: 3,
        last_failure: "exit code 1:\n  at line 1\nno such file\n".to_owned(),
    };
    let mut facts = Facts {
        pools: vec![full],
        ..Facts::default()
    };
    pools(&mut alarms, &facts, 1);
    let told = texts(&alarms);
    assert!(told.contains(&"/api/*: 64 of 64 places in its queue are taken".to_owned()));
    let start = "/api/*: its workers do not start (3 in a row): no such file";
    assert!(told.contains(&start.to_owned()), "{told:?}");
    facts.pools.clear();
    pools(&mut alarms, &facts, 2);
    assert_eq!(alarms.alerts(), []);
}

#[test]
fn certificates_are_told_of_before_they_end() {
    let told = |life_days: i64, left_days: i64| {
        let mut alarms = Alarms::default();
        let now_s = 1_000 * DAY_S;
        let facts = Facts {
            certificates: vec![Expiry {
                name: "a.example".to_owned(),
                from_unix_s: now_s + (left_days - life_days) * DAY_S,
                until_unix_s: now_s + left_days * DAY_S,
            }],
            ..Facts::default()
        };
        certificates(&mut alarms, &facts, (now_s * 1000).unsigned_abs());
        texts(&alarms)
    };
    assert_eq!(
        told(90, 13),
        ["the certificate of a.example ends in 13 days"]
    );
    assert_eq!(told(90, 0), ["the certificate of a.example ends today"]);
    assert_eq!(told(90, -3), ["the certificate of a.example has ended"]);
    assert_eq!(told(90, 15), [""; 0]);
    assert_eq!(told(6, 3), [""; 0], "it lives a few days only");
    assert_eq!(told(6, 1), ["the certificate of a.example ends in 1 days"]);
}

#[test]
fn cache_is_small_when_it_misses_and_throws_out() {
    let told = |hits: u64, misses: u64, evictions: u64| {
        let mut alarms = Alarms::default();
        let holdings = |evictions| Holdings {
            entries: 1,
            bytes: 1,
            pinned_bytes: 0,
            bytes_max: 64 << 20,
            evictions,
        };
        let now = Snapshot {
            cache_hits: hits,
            cache_misses: misses,
            ..Snapshot::default()
        };
        let before = Snapshot::default();
        cache(
            &mut alarms,
            (&before, &holdings(0)),
            (&now, &holdings(evictions)),
            1,
        );
        texts(&alarms).len()
    };
    assert_eq!(told(400, 600, 500), 1);
    assert_eq!(told(900, 100, 100), 0);
    assert_eq!(told(400, 600, 0), 0, "files that were never there before");
    assert_eq!(told(4, 6, 5), 0, "nobody asks");
    assert_eq!(told(0, 0, 0), 0);
}

#[test]
fn what_goes_on_keeps_its_time_and_what_is_over_is_not_told() {
    let mut alarms = Alarms::default();
    let fine = Facts::default();
    let bad = Facts {
        requests: 100,
        errors: 5,
        ..Facts::default()
    };
    let busy = Facts {
        queued: 3,
        busy: 2,
        failed_write: Some("no space".to_owned()),
        ..bad.clone()
    };
    now(&mut alarms, &fine, 1);
    assert_eq!(alarms.alerts(), []);
    now(&mut alarms, &bad, 1);
    assert_eq!(texts(&alarms), ["5 of the last 100 requests failed"]);
    now(&mut alarms, &busy, 9);
    let times: Vec<u64> = alarms
        .alerts()
        .iter()
        .map(|one| one.since_unix_ms)
        .collect();
    assert_eq!(times, [1, 9, 9]);
    now(&mut alarms, &fine, 10);
    assert_eq!(alarms.alerts(), []);
}
