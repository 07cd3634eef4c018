//! Bursts, rates and places, at times that tests say.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Ten a second, five at once.
const PACE: Pace = Pace {
    interval_ns: SECOND / 10,
    early_ns: SECOND / 10 * 4,
};

fn taken(clients: &RateClients, client: &[u8], now_ns: u64) -> bool {
    let (outcome, _) = clients.take(client, b"", PACE, now_ns);
    outcome == RateOutcome::Within
}

#[test]
fn burst_then_the_rate_and_no_more() {
    let clients = RateClients::new(10);
    let at_once = (0..20).filter(|_| taken(&clients, b"a", SECOND)).count();
    assert_eq!(at_once, 5);
    // Another client has its own.
    assert!(taken(&clients, b"b", SECOND));
    // One for each tenth of a second that has passed, at whatever times it asks.
    let step = SECOND / 1000;
    let later = (1..=60_000)
        .filter(|ms| taken(&clients, b"a", SECOND + ms * step))
        .count();
    assert_eq!(later, 600);
    // What it has not used is there again, and no more than that.
    let now = 100 * SECOND;
    assert_eq!((0..20).filter(|_| taken(&clients, b"a", now)).count(), 5);
}

#[test]
fn refusal_says_when_to_come_again_and_changes_nothing() {
    let clients = RateClients::new(10);
    while taken(&clients, b"a", 0) {}
    for _ in 0..10 {
        let (outcome, _) = clients.take(b"a", b"", PACE, SECOND / 40);
        assert_eq!(outcome, RateOutcome::Above(Duration::from_millis(75)));
    }
    assert!(!taken(&clients, b"a", SECOND / 10 - 1));
    assert!(taken(&clients, b"a", SECOND / 10));
}

#[test]
fn threads_together_take_no_more_than_one() {
    let clients = RateClients::new(10);
    let count: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let times = (0..30_000).map(|ms| ms * (SECOND / 1000));
                    times.filter(|now| taken(&clients, b"a", *now)).count()
                })
            })
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).sum()
    });
    // Thirty seconds: the burst and ten for each, whichever thread's clock is ahead.
    assert!((300..=305).contains(&count), "{count}");
}

#[test]
fn as_many_clients_as_are_said_are_counted_each_for_itself() {
    let clients = RateClients::new(100_000);
    for round in 0..3 {
        for client in 0_u32..100_000 {
            let (outcome, is_alone) = clients.take(client.to_be_bytes(), b"", PACE, SECOND);
            assert!(
                is_alone && outcome == RateOutcome::Within,
                "{client} {round}"
            );
        }
    }
}

#[test]
fn few_clients_take_little_memory_and_have_places_all_the_same() {
    for keys in [1, 10, 100, 1000] {
        let clients = RateClients::new(keys);
        let places: usize = clients.shards.iter().map(|one| one.lock().len()).sum();
        assert!(places <= (keys * 4).max(PLACES_TRIED), "{keys}: {places}");
        for client in 0..keys {
            let (_, is_alone) = clients.take(client.to_be_bytes(), b"", PACE, SECOND);
            assert!(is_alone, "{client} of {keys}");
        }
    }
}

/// In `make siege` ten times as many.
#[test]
fn ten_million_clients_hold_no_more_memory_and_those_beyond_share() {
    let is_siege = std::env::var_os("HOB_SIEGE_SECONDS").is_some();
    let count: u32 = if is_siege { 100_000_000 } else { 10_000_000 };
    let clients = RateClients::new(10_000);
    let places: usize = clients.shards.iter().map(|one| one.lock().len()).sum();
    assert!(places <= 4 * 10_000, "{places}");
    let mut shared = 0;
    for client in 0..count {
        let crowd = (client % 100).to_be_bytes();
        let (_, is_alone) = clients.take(client.to_be_bytes(), crowd, PACE, SECOND);
        shared += u32::from(!is_alone);
    }
    assert!(shared > count - 100_000, "{shared}");
    let places_after: usize = clients.shards.iter().map(|one| one.lock().len()).sum();
    assert_eq!(places_after, places);
    // Whoever comes into a crowd that has had its share is refused, and has a place once others
    // have been silent for long enough.
    let (outcome, is_alone) = clients.take(b"late", 7_u32.to_be_bytes(), PACE, SECOND);
    assert!(!is_alone && outcome != RateOutcome::Within);
    let (outcome, is_alone) = clients.take(b"late", 7_u32.to_be_bytes(), PACE, 3 * SECOND);
    assert!(is_alone && outcome == RateOutcome::Within);
}
