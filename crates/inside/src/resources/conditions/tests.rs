//! What is worth an alert, and what is not.

use super::*;
use crate::resources::alarms::{ALERT_COUNT_MAX, EVENT_MS, SHARE_BAD, SHARE_OFF};
use crate::resources::minute::InterfaceTraffic;

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
    minute.links[0] = InterfaceTraffic {
        bytes_out_s: 77_500_000,
        ..InterfaceTraffic::default()
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
    minute.links[0] = InterfaceTraffic {
        packets_in_s: 100,
        drops: 60,
        ..InterfaceTraffic::default()
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
    let facts = ServerVitals {
        descriptors: 640,
        descriptors_max: Some(1024),
        connections_max: 100,
        workers: 8,
        workers_max: 8,
        ..ServerVitals::default()
    };
    for second in 0..5 {
        levels(&mut alarms, &facts, second * 1000);
    }
    assert_eq!(
        texts(&alarms),
        ["workers: 8 of 8", "descriptors: 640 of 1024"]
    );
    let endless = ServerVitals {
        descriptors_max: None,
        ..facts
    };
    levels(&mut alarms, &endless, 6_000);
    assert_eq!(alarms.alerts()[0].level, Level::Bad);
}

#[test]
fn counters_that_grow_are_told_with_their_own_words() {
    let mut alarms = Alarms::default();
    let before = ServerVitals::default();
    let mut now = ServerVitals::default();
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
    let mut facts = ServerVitals {
        pools: vec![full],
        ..ServerVitals::default()
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
fn cause_of_a_failed_start_is_told_and_not_what_perl_says_after_it() {
    let first = "Can't locate No/Such.pm in @INC (you may need to install it) at app.pl line 2.";
    let after = "BEGIN failed--compilation aborted at app.pl line 2.";
    let required = "Compilation failed in require at host.pl line 9.";
    let text = format!("exit code 2; it printed: Loading\n{first}\n{after}\n{required}\n\n");
    assert_eq!(cause(&text), first);
    assert_eq!(cause(after), after);
    assert_eq!(cause("Traceback:\nValueError: no\n"), "ValueError: no");
    assert_eq!(cause("\n"), "");
}

#[test]
fn certificates_are_told_of_before_they_end() {
    let told = |life_days: i64, left_days: i64| {
        let mut alarms = Alarms::default();
        let now_s = 1_000 * DAY_S;
        let facts = ServerVitals {
            certificates: vec![Expiry {
                name: "a.example".to_owned(),
                from_unix_s: now_s + (left_days - life_days) * DAY_S,
                until_unix_s: now_s + left_days * DAY_S,
            }],
            ..ServerVitals::default()
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
    let fine = ServerVitals::default();
    let bad = ServerVitals {
        requests: 100,
        errors: 5,
        ..ServerVitals::default()
    };
    let busy = ServerVitals {
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

#[test]
fn page_tells_every_threshold() {
    let page = include_str!("../../../../../docs/src/how-to/machine.md");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let percent = |share: f64| (share * 100.0).round() as u64;
    let (on, off, bad) = (percent(SHARE_ON), percent(SHARE_OFF), percent(SHARE_BAD));
    let event_minutes = EVENT_MS / 60_000;
    for text in [
        format!(
            "{on} % of a link or of a CPU for soft interrupts are used for {LOOKS_MINUTES} minutes"
        ),
        format!("{on} % of the descriptors, connections or workers for {LOOKS_QUICK} seconds"),
        format!("less than {off} %, and from {bad} % on it is bad"),
        format!("{on} % of the places in a program's queue"),
        format!("one in {ERRORS_ONE_IN} requests of the last 10 seconds failed"),
        format!("at least {ERRORS_MIN} did"),
        format!("for {event_minutes} minutes after it has happened last"),
        format!("ends within {CERTIFICATE_DAYS} days"),
        format!("the last of {CERTIFICATE_LIFE_PART} parts of a shorter life"),
        format!("bad from {CERTIFICATE_BAD_DAYS} days on"),
        format!("memory for {} % of a minute", PRESSURE_PERMILLE / 10),
        format!("a disk for {} %", DISK_PERMILLE / 10),
        "one in 1,000 packets".to_owned(),
        format!("at least {CACHE_ASKED_MIN} questions in a minute"),
        format!("less than {} % are answered", CACHE_HIT_PERMILLE_MIN / 10),
        format!("one file for {CACHE_EVICTED_ONE_IN} of them"),
        format!("At most {ALERT_COUNT_MAX} are told"),
    ] {
        assert!(page.contains(&text), "{text}");
    }
    assert_eq!(DROPS_PERMILLE, 1, "as the page says");
}

#[test]
fn thresholds_are_where_they_are_said_to_be() {
    let failing = |errors, requests| {
        let mut alarms = Alarms::default();
        let facts = ServerVitals {
            errors,
            requests,
            ..ServerVitals::default()
        };
        now(&mut alarms, &facts, 1);
        alarms.alerts().len()
    };
    assert_eq!((failing(5, 100), failing(5, 101), failing(4, 4)), (1, 0, 0));
    let waiting = |queued, idle| {
        let mut alarms = Alarms::default();
        let facts = ServerVitals {
            queued,
            idle,
            ..ServerVitals::default()
        };
        now(&mut alarms, &facts, 1);
        alarms.alerts().len()
    };
    assert_eq!((waiting(1, 0), waiting(1, 1), waiting(0, 0)), (1, 0, 0));
    let minutes = |minute: &Minute, count: u64| {
        let mut alarms = Alarms::default();
        for number in 1..=count {
            machine(
                &mut alarms,
                minute,
                [("eth0", None)].into_iter(),
                number * MINUTE,
            );
        }
        texts(&alarms)
    };
    let waits = |memory_wait_permille, disk_wait_permille| {
        let minute = Minute {
            memory_wait_permille,
            disk_wait_permille,
            ..Minute::default()
        };
        minutes(&minute, 1).len()
    };
    assert_eq!(
        (waits(100, 0), waits(99, 0), waits(0, 400), waits(0, 399)),
        (1, 0, 1, 0)
    );
    let soft = |softirq_permille, count| {
        let minute = Minute {
            softirq_permille,
            ..Minute::default()
        };
        minutes(&minute, count)
    };
    assert_eq!((soft(600, 4), soft(599, 9)), (vec![], vec![]));
    let told = "one CPU spends 60 % of its time in soft interrupts, most of it network for 4 min";
    assert_eq!(soft(600, 5), [told]);
    let dropped = |drops| {
        let mut minute = Minute::default();
        let link = InterfaceTraffic {
            packets_in_s: 1000,
            packets_out_s: 1000,
            drops,
            ..InterfaceTraffic::default()
        };
        minute.links[0] = link;
        minutes(&minute, 1).len()
    };
    assert_eq!((dropped(121), dropped(120)), (1, 0));
}

#[test]
fn queue_of_a_pool_is_told_from_its_share_on_and_is_bad_when_it_is_full() {
    let told = |waiting| {
        let mut alarms = Alarms::default();
        let pool = PoolFacts {
            name: "p".to_owned(),
            waiting,
            waiting_max: 10,
            ..PoolFacts::default()
        };
        let facts = ServerVitals {
            pools: vec![pool],
            ..ServerVitals::default()
        };
        pools(&mut alarms, &facts, 1);
        alarms.alerts().first().map(|alert| alert.level)
    };
    assert_eq!(told(5), None);
    assert_eq!(
        (told(6), told(10)),
        (Some(Level::Warning), Some(Level::Bad))
    );
}

#[test]
fn certificate_that_an_authority_refuses_is_told_until_it_is_there() {
    let mut alarms = Alarms::default();
    let refused = vec![("a.example".to_owned(), "it has no address".to_owned())];
    let facts = ServerVitals {
        refused_certificates: refused,
        ..ServerVitals::default()
    };
    certificates(&mut alarms, &facts, 1);
    assert_eq!(
        texts(&alarms),
        ["no certificate for a.example: it has no address"]
    );
    certificates(&mut alarms, &ServerVitals::default(), 2);
    assert_eq!(alarms.alerts(), []);
}
