//! What watchers are told, held back from, and lose.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::*;
use crate::HandlerKind;
use crate::watch::{
    DECIDED_COUNT_MAX, FLUSH_BYTES, FieldsOf, Hidden, QUEUE_BYTES_MAX, Refused, WatchTerms,
};

struct NoFields;

impl FieldsOf for NoFields {
    fn any(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A hub and a station of it.
fn pair() -> (Arc<Hub>, Station) {
    let (hub, station) = (Arc::new(Hub::default()), Station::default());
    station.set_hub(&hub);
    (hub, station)
}

fn begin(hub: &Hub, terms: &str) -> Arc<Watcher> {
    let terms = WatchTerms::parse(terms).unwrap();
    hub.add(terms, Hidden::default()).unwrap()
}

/// The trail of a request for `/a`, the `request`th.
fn trail(station: &Station, request: u32, started_us: u64) -> Trail {
    let subject = WatchCandidate {
        client: IpAddr::from([127, 0, 0, 1]),
        site: "*",
        path: b"/a",
        method: b"GET",
        handler: HandlerKind::Files,
        fields: &NoFields,
    };
    assert!(station.is_on());
    let (live, held) = station.match_begin(&subject);
    Trail {
        connection: 1,
        request,
        live,
        held,
        generation: station.generation(),
        started_us,
    }
}

fn tell(station: &Station, trail: &Trail, text: &str) {
    station.tell(trail, RequestStage::Step, trail.started_us, |pen, _| {
        pen.text("text", text.as_bytes());
    });
}

fn texts(watcher: &Watcher) -> Vec<String> {
    let bytes = String::from_utf8(watcher.take()).unwrap();
    let lines = bytes.lines().filter_map(|line| line.strip_prefix("data: "));
    let text = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        match value["text"].as_str() {
            Some(text) => text.to_owned(),
            None => format!("dropped {}", value["count"]),
        }
    };
    lines.map(text).collect()
}

#[test]
fn station_is_off_until_somebody_watches_and_after() {
    let (hub, station) = pair();
    assert!(!station.is_on());
    let watcher = begin(&hub, "");
    assert!(station.is_on());
    hub.remove(&watcher);
    assert!(!station.is_on() && hub.count() == 0);
}

#[test]
fn events_go_to_those_whom_the_request_matches() {
    let (hub, station) = pair();
    let all = begin(&hub, "");
    let other = begin(&hub, "path=/b");
    let own = begin(&hub, "path=/a");
    let trail = trail(&station, 0, 200);
    tell(&station, &trail, "one");
    assert_eq!(
        (texts(&all), texts(&own)),
        (vec!["one".to_owned()], vec!["one".to_owned()])
    );
    assert!(texts(&other).is_empty());
}

#[test]
fn events_are_held_until_the_end_decides() {
    let (hub, station) = pair();
    let watcher = begin(&hub, "status=5xx");
    let mut record = Record::empty();
    for (request, status) in [(0, 200), (1, 500)] {
        let trail = trail(&station, request, 200);
        let count = Arc::new(Count::default());
        watcher.waiting_bytes(&Waker::from(Arc::clone(&count)));
        tell(&station, &trail, "within");
        assert!(texts(&watcher).is_empty());
        record.status = status;
        let whole = |text: &'static str| {
            let (station, trail) = (&station, &trail);
            move |out: &mut Vec<u8>, _: Option<&Hidden>| {
                station.write(trail, RequestStage::Done, 300, out, |pen| {
                    pen.text("text", text.as_bytes())
                });
            }
        };
        station.end(&trail, &record, whole("begin"), whole("end"));
        let expected: &[&str] = match status {
            200 => &[],
            _ => &["begin", "within", "end"],
        };
        let wakes = usize::from(status == 500);
        assert_eq!(count.0.load(Ordering::SeqCst), wakes);
        assert_eq!(texts(&watcher), expected);
    }
}

#[test]
fn what_a_program_prints_after_its_end_is_shown_as_the_end_decided() {
    let (hub, station) = pair();
    let watcher = begin(&hub, "status=5xx");
    let mut record = Record::empty();
    record.handler = HandlerKind::Cgi;
    for (request, status, expected) in [(0, 200, &[][..]), (1, 500, &["late"][..])] {
        let trail = trail(&station, request, 200);
        record.status = status;
        station.end(&trail, &record, |_, _| {}, |_, _| {});
        let count = Arc::new(Count::default());
        watcher.waiting_bytes(&Waker::from(Arc::clone(&count)));
        tell(&station, &trail, "late");
        assert_eq!(count.0.load(Ordering::SeqCst), expected.len());
        assert_eq!(texts(&watcher), expected);
    }
    // So many are remembered and no more; of older ones it is as if they began anew.
    for request in 2..2 + DECIDED_COUNT_MAX as u32 {
        station.end(
            &trail(&station, request, 200),
            &record,
            |_, _| {},
            |_, _| {},
        );
    }
    tell(&station, &trail(&station, 1, 200), "too late");
    assert!(texts(&watcher).is_empty());
}

#[test]
fn connection_without_a_request_is_told_to_who_asks_for_no_more_than_its_client() {
    let (hub, station) = pair();
    let told = ["", "client=10.0.0.0/8", "status=0", "slower=1ms"];
    let told = told.map(|terms| begin(&hub, terms));
    let others = [
        "path=/*",
        "site=a",
        "method=GET",
        "header=A:.",
        "status=200",
        "slower=1s",
    ];
    let others = others.map(|terms| begin(&hub, terms));
    assert!(station.is_on());
    let mut record = Record::empty();
    record.client = IpAddr::from([10, 0, 0, 1]);
    (record.started_us, record.total_us) = (200, 2000);
    station.tell_of_connection(&record, RequestStage::Tls, |pen| {
        pen.text("text", b"failed")
    });
    for watcher in told {
        assert_eq!(texts(&watcher), ["failed"], "{:?}", watcher.terms);
    }
    for watcher in others {
        assert!(texts(&watcher).is_empty(), "{:?}", watcher.terms);
    }
}

#[test]
fn request_of_an_earlier_watcher_in_its_place_is_not_told() {
    let (hub, station) = pair();
    let first = begin(&hub, "");
    let old = trail(&station, 0, 150);
    hub.remove(&first);
    // All places are taken once before that one is again.
    let mut last = first;
    for _ in 0..WATCHERS_MAX {
        last = hub.add(WatchTerms::default(), Hidden::default()).unwrap();
    }
    assert_eq!(
        hub.add(WatchTerms::default(), Hidden::default()).err(),
        Some(Refused::Full)
    );
    assert_eq!(hub.refused(), 1);
    assert!(station.is_on());
    assert_eq!(last.bit(), old.live);
    tell(&station, &old, "late");
    assert!(texts(&last).is_empty());
    tell(&station, &trail(&station, 1, 150), "new");
    assert_eq!(texts(&last), ["new"]);
    // Whoever stays in another place is told of both.
    hub.remove(&last);
    let again = begin(&hub, "");
    let stays = trail(&station, 2, 150);
    assert!(stays.live & again.bit() != 0);
    tell(&station, &stays, "its own");
    assert_eq!(texts(&again), ["its own"]);
}

#[test]
fn nobody_begins_to_watch_a_server_that_ends() {
    let (hub, _) = pair();
    let watcher = begin(&hub, "");
    hub.end_all();
    hub.remove(&watcher);
    let refused = hub.add(WatchTerms::default(), Hidden::default()).err();
    assert_eq!((refused, hub.count()), (Some(Refused::Over), 0));
}

#[test]
fn request_of_a_turn_that_had_begun_when_its_watcher_came_is_told() {
    let (hub, station) = pair();
    station.refresh();
    let watcher = begin(&hub, "");
    assert!(station.is_on());
    tell(&station, &trail(&station, 0, 1), "first");
    assert_eq!(texts(&watcher), ["first"]);
}

#[test]
fn what_does_not_fit_is_dropped_and_counted_and_others_are_not_touched() {
    let (hub, station) = pair();
    let slow = begin(&hub, "");
    let quick = begin(&hub, "");
    let trail = trail(&station, 0, 200);
    let text = "x".repeat(1000);
    let count = QUEUE_BYTES_MAX / 1000 + 10;
    let mut quick_count = 0;
    for _ in 0..count {
        tell(&station, &trail, &text);
        quick_count += texts(&quick).len();
    }
    assert_eq!(quick_count, count);
    let found = texts(&slow);
    let (kept, dropped) = (found.len() - 1, slow.dropped_so_far());
    assert_eq!(kept as u64 + dropped, count as u64);
    assert_eq!(found.last().unwrap(), &format!("dropped {dropped}"));
    assert!(hub.dropped() == dropped && dropped > 10);
    tell(&station, &trail, "again");
    assert_eq!(texts(&slow), ["again"]);
}

#[test]
fn reader_is_woken_for_the_first_event_and_for_many() {
    let (hub, station) = pair();
    let watcher = begin(&hub, "");
    let trail = trail(&station, 0, 200);
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    assert_eq!(watcher.waiting_bytes(&waker), 0);
    tell(&station, &trail, "first");
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(watcher.waiting_bytes(&waker) > 0);
    for _ in 0..=FLUSH_BYTES / 1000 {
        tell(&station, &trail, &"x".repeat(1000));
    }
    assert_eq!(count.0.load(Ordering::SeqCst), 2);
}

#[test]
fn trigger_lets_through_what_was_kept_and_what_follows() {
    let (hub, station) = pair();
    let watcher = begin(&hub, "trigger=~panic keep=2");
    let trail = trail(&station, 0, 200);
    for text in ["1", "2", "3"] {
        tell(&station, &trail, text);
    }
    assert!(texts(&watcher).is_empty());
    tell(&station, &trail, "a panic");
    tell(&station, &trail, "4");
    assert_eq!(texts(&watcher), ["2", "3", "a panic", "4"]);
}
