//! A rate that clients ask beyond from several threads at once: as many are answered as it says, no
//! more and no fewer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::harness::client::Connection;
use crate::harness::{Place, text_of};
use crate::watch::{besieged, take_turn};

/// Requests in a second, and as many as may come at once: those of three seconds, for which clients
/// may be held up.
const RATE: u32 = 300;
const BURST: u32 = 3 * RATE;
const CLIENTS: usize = 4;

fn config(dry_run: bool) -> String {
    format!(
        "threads = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         rate = {{ requests = \"{RATE}/s\", burst = {BURST}, by = \"all\", dry_run = {dry_run} }}\n"
    )
}

/// What clients saw of a rate.
struct Seen {
    answered: u64,
    refused: u64,
    /// From before the first request until after the last answer.
    longest: Duration,
    /// From the first answer until the last request was sent that was refused.
    shortest: Duration,
}

#[test]
fn rate_holds_exactly_whichever_thread_answers() {
    let _turn = take_turn();
    let place = Place::new();
    let hob = place.serve_text(&config(true));
    let dry = ask_on_and_on(hob.port(), || {
        place.counter("rate_dry_run") > u64::from(RATE)
    });
    assert_eq!(dry.refused, 0);
    let would_be = place.counter("rate_dry_run");
    tell("dry run", &dry, dry.answered - would_be, f64::from(BURST));
    place.write("hob.toml", &config(false));
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation 2");
    let full = || place.counter("limit_rate") > u64::from(RATE);
    let seen = ask_on_and_on(hob.port(), full);
    assert_eq!(place.counter("limit_rate"), seen.refused);
    assert_eq!(place.counter("rate_dry_run"), would_be);
    // Some of the burst may still be used up.
    let least = seen.shortest.as_secs_f64() * f64::from(RATE) - 1.0;
    tell("for real", &seen, seen.answered, least);
    hob.stop();
}

/// That as many were answered as may be.
fn tell(what: &str, seen: &Seen, within: u64, least: f64) {
    let most = seen.longest.as_secs_f64() * f64::from(RATE) + f64::from(BURST) + 1.0;
    println!(
        "{what}: {within} of {} within the rate in {:.1} s, {least:.0} to {most:.0} may be",
        seen.answered + seen.refused,
        seen.longest.as_secs_f64()
    );
    assert!((within as f64) <= most, "{within} of at most {most}");
    assert!((within as f64) >= least, "{within} of at least {least}");
}

/// Asks over several connections for as long as it has to be, and until this is so.
fn ask_on_and_on(port: u16, is_enough: impl Fn() -> bool) -> Seen {
    let goes_on = besieged();
    let (is_over, begun) = (&AtomicBool::new(false), Instant::now());
    let all: Vec<_> = std::thread::scope(|scope| {
        let _over = Over(is_over);
        let clients = [(); CLIENTS].map(|()| scope.spawn(move || client(port, is_over, begun)));
        while !is_enough() || goes_on() {
            assert!(!clients.iter().any(|client| client.is_finished()));
        }
        is_over.store(true, Ordering::SeqCst);
        clients.map(|client| client.join().unwrap()).into()
    });
    let longest = begun.elapsed();
    let sum = |count: fn(&(u64, u64, Duration, Duration)) -> u64| all.iter().map(count).sum();
    let first = all.iter().map(|one| one.2).min().unwrap();
    let last = all.iter().map(|one| one.3).max().unwrap();
    Seen {
        answered: sum(|one| one.0),
        refused: sum(|one| one.1),
        longest,
        shortest: last.saturating_sub(first),
    }
}

/// Clients end, also where their test has failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// How many were answered and refused, when the first answer had come, and when the last request
/// was sent that was refused.
fn client(port: u16, is_over: &AtomicBool, begun: Instant) -> (u64, u64, Duration, Duration) {
    let mut connection = Connection::open(port).unwrap();
    let (mut answered, mut refused) = (0, 0);
    let (mut first, mut last) = (None, Duration::ZERO);
    while !is_over.load(Ordering::SeqCst) {
        let sent = begun.elapsed();
        connection
            .send(b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let status = connection.read().unwrap().status;
        first.get_or_insert_with(|| begun.elapsed());
        match status {
            200 => answered += 1,
            429 => (refused, last) = (refused + 1, sent),
            status => panic!("{status}"),
        }
    }
    (answered, refused, first.unwrap(), last)
}
