//! Deadlines: time is an argument.

use super::date;
use crate::deadline::Deadline;
use crate::h1::{AfterAnswer, Http1Connection, Http1Event};
use crate::head::{Fields, RequestHead};
use crate::limits::HttpLimits;
use crate::response::ResponseHead;

const START: u64 = 1_000_000;
const SEC: u64 = 1000;

fn new() -> Http1Connection {
    Http1Connection::new(HttpLimits::default().into(), START)
}

fn read(core: &mut Http1Connection, bytes: &[u8], now_ms: u64) -> Http1Event {
    core.read(bytes, &mut RequestHead::empty(), now_ms).1
}

/// Answers the request that was read; the answer has left at `now_ms`.
fn answer(core: &mut Http1Connection, now_ms: u64) -> AfterAnswer {
    let head = ResponseHead::Fields(200, Fields::new());
    core.push_head(&head, Some(0), false, &date(), &mut Vec::new());
    assert!(core.push_end(None, &mut Vec::new()));
    let next = core.finish();
    core.wrote_all(now_ms);
    next
}

#[test]
fn a_new_connection_has_the_time_of_a_head_for_its_first_byte() {
    let mut core = new();
    assert_eq!(core.deadline(), (START + 10 * SEC, Deadline::Idle));
    // Empty lines are no beginning.
    read(&mut core, b"\r\n\r\n", START + 5 * SEC);
    assert_eq!(core.deadline(), (START + 10 * SEC, Deadline::Idle));
}

#[test]
fn a_head_s_clock_runs_from_its_first_byte_and_is_not_wound_up() {
    let mut core = new();
    assert_eq!(read(&mut core, b"G", START + SEC), Http1Event::NeedMore);
    assert_eq!(core.deadline(), (START + 11 * SEC, Deadline::Head));
    read(&mut core, b"GE", START + 9 * SEC);
    assert_eq!(core.deadline(), (START + 11 * SEC, Deadline::Head));
    let event = read(&mut core, b"GET / HTTP/1.0\r\n\r\n", START + 10 * SEC);
    assert!(matches!(event, Http1Event::Request(_)));
    assert_eq!(core.deadline(), (u64::MAX, Deadline::None));
}

#[test]
fn between_requests_the_idle_clock_runs_from_the_last_byte_taken() {
    let mut core = new();
    read(&mut core, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", START);
    assert!(!core.is_between_requests());
    assert_eq!(answer(&mut core, START + 3 * SEC), AfterAnswer::Request);
    assert_eq!(core.deadline(), (START + 78 * SEC, Deadline::Idle));
    assert!(core.is_between_requests());
    // The next head has its own clock again.
    read(&mut core, b"G", START + 60 * SEC);
    assert_eq!(core.deadline(), (START + 70 * SEC, Deadline::Head));
    assert!(!core.is_between_requests());
}

#[test]
fn a_body_s_clock_runs_only_while_someone_wants_it_and_every_piece_winds_it_up() {
    let mut core = new();
    read(
        &mut core,
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n",
        START,
    );
    assert_eq!(core.deadline().1, Deadline::None);
    core.wait_for_body(START + SEC);
    assert_eq!(core.deadline(), (START + 31 * SEC, Deadline::Body));
    core.wait_for_body(START + 2 * SEC);
    assert_eq!(core.deadline(), (START + 31 * SEC, Deadline::Body));
    read(&mut core, b"abc", START + 20 * SEC);
    assert_eq!(core.deadline(), (START + 50 * SEC, Deadline::Body));
    core.pause_body();
    assert_eq!(core.deadline().1, Deadline::None);
}

#[test]
fn the_write_clock_is_wound_up_by_bytes_taken_and_by_nothing_else() {
    let mut core = new();
    read(&mut core, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", START);
    let head = ResponseHead::Fields(200, Fields::new());
    core.push_head(&head, Some(9), false, &date(), &mut Vec::new());
    core.push_data_prefix(9, &mut Vec::new());
    core.push_end(None, &mut Vec::new());
    assert_eq!(core.finish(), AfterAnswer::Request);
    core.wait_for_write(START);
    core.wait_for_write(START + 30 * SEC);
    assert_eq!(core.deadline(), (START + 60 * SEC, Deadline::Write));
    core.wrote_some(START + 40 * SEC);
    assert_eq!(core.deadline(), (START + 100 * SEC, Deadline::Write));
    // A disk that is slow is not the client's fault.
    core.wait_for_source();
    assert_eq!(core.deadline(), (u64::MAX, Deadline::None));
    core.wrote_all(START + 90 * SEC);
    assert_eq!(core.deadline(), (START + 165 * SEC, Deadline::Idle));
}

#[test]
fn the_earlier_of_two_clocks_counts() {
    let mut core = new();
    let post = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n";
    read(&mut core, post, START);
    core.wait_for_write(START);
    core.wait_for_body(START + 5 * SEC);
    assert_eq!(core.deadline(), (START + 35 * SEC, Deadline::Body));
    read(&mut core, b"abc", START + 34 * SEC);
    assert_eq!(core.deadline(), (START + 60 * SEC, Deadline::Write));
}

#[test]
fn a_tunnel_may_be_silent() {
    let mut core = new();
    read(&mut core, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", START);
    core.push_tunnel_head(101, &Fields::new(), &date(), &mut Vec::new());
    core.wait_for_body(START);
    assert_eq!(core.deadline(), (u64::MAX, Deadline::None));
}

//= rfc9112#9.6
#[test]
fn lingering_has_one_clock_for_all_of_it() {
    let mut core = new();
    read(&mut core, b"\0", START);
    assert_eq!(answer(&mut core, START), AfterAnswer::Linger);
    core.begin_linger(START);
    assert_eq!(core.deadline(), (START + 5 * SEC, Deadline::Linger));
    read(&mut core, b"whatever else", START + 4 * SEC);
    assert_eq!(core.deadline(), (START + 5 * SEC, Deadline::Linger));
}
