//! Whose turn it is (RFC 9218), and clocks.

use super::super::frame;
use super::{Server, fields, frame as raw, get, post, request, window};
use crate::deadline::Deadline;
use crate::limits::HttpLimits;

fn asked(stream: u32, priority: &str) -> Vec<u8> {
    request(stream, &fields("GET", "/", &[("priority", priority)]), true)
}

fn update(stream: u32, priority: &str) -> Vec<u8> {
    let payload = [&stream.to_be_bytes()[..], priority.as_bytes()].concat();
    raw(frame::PRIORITY_UPDATE, 0, 0, &payload)
}

/// The streams that send, in their order, each with a body of so many full frames.
fn order(requests: &[Vec<u8>], frames: usize) -> Vec<u32> {
    let mut server = Server::greeted();
    server.feed(&requests.concat());
    let ids: Vec<u32> = server.core.streams.iter().map(|stream| stream.id).collect();
    server.feed(&window(0, 10_000_000));
    for id in ids {
        server.feed(&window(id, 1_000_000));
        server.answer(id, frames * 16_384);
    }
    server.sent();
    server.fill();
    let sent = server.sent();
    sent.lines()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect()
}

//= rfc9218#10
#[test]
fn answers_of_use_as_a_whole_go_one_after_the_other() {
    assert_eq!(
        order(&[get(1, "/"), get(3, "/"), get(5, "/")], 2),
        [1, 1, 3, 3, 5, 5]
    );
}

#[test]
fn answers_of_use_in_pieces_take_turns() {
    let requests = [asked(1, "i"), asked(3, "i"), asked(5, "i")];
    assert_eq!(order(&requests, 2), [1, 3, 5, 1, 3, 5]);
}

#[test]
fn urgent_answers_go_first() {
    let requests = [
        get(1, "/"),
        asked(3, "u=5"),
        asked(5, "u=0, i"),
        asked(7, "u=1"),
    ];
    assert_eq!(order(&requests, 2), [5, 5, 7, 7, 1, 1, 3, 3]);
}

#[test]
fn neither_kind_starves_beside_the_other() {
    let requests = [get(1, "/"), asked(3, "i"), asked(5, "i")];
    assert_eq!(order(&requests, 2), [1, 3, 1, 5, 3, 5]);
}

//= rfc9218#7.1
#[test]
fn updates_hold_for_streams_that_are_open_and_for_those_to_come() {
    let requests = [
        update(3, "u=1"),
        update(5, "u=2"),
        update(3, "u=0"),
        get(1, "/"),
        asked(3, "u=7"),
        get(5, "/"),
        update(1, "u=6"),
        get(7, "/"),
        update(99, "u=1"),
    ];
    assert_eq!(order(&requests, 1), [3, 5, 7, 1]);
}

#[test]
fn clocks_run_for_the_first_frame_a_half_frame_and_between_requests() {
    let limits = HttpLimits::default();
    let (head_ms, idle_ms) = (
        limits.head_time.as_millis() as u64,
        limits.idle.as_millis() as u64,
    );
    let mut server = Server::new(limits);
    assert_eq!(server.core.deadline(), (head_ms, Deadline::Idle));
    server.now_ms = 5;
    server.feed(&frame::PREFACE[..]);
    assert_eq!(server.core.deadline(), (head_ms, Deadline::Idle));
    server.feed(&super::settings(&[]));
    assert_eq!(server.core.deadline(), (5 + idle_ms, Deadline::Idle));
    server.now_ms = 10;
    let bytes = get(1, "/");
    server.feed(&bytes[..12]);
    assert_eq!(server.core.deadline(), (10 + head_ms, Deadline::Head));
    server.now_ms = 20;
    server.feed(&bytes[12..14]);
    assert_eq!(server.core.deadline(), (10 + head_ms, Deadline::Head));
    server.feed(&bytes[14..]);
    assert_eq!(server.core.deadline(), (u64::MAX, Deadline::None));
    server.now_ms = 30;
    server.answer(1, 0);
    server.core.settle(30);
    assert_eq!(server.core.deadline(), (30 + idle_ms, Deadline::Idle));
    // Pings do not make an idle connection busy, half a block does.
    server.now_ms = 40;
    server.feed(&raw(frame::PING, 0, 0, b"abcdefgh"));
    assert_eq!(server.core.deadline(), (30 + idle_ms, Deadline::Idle));
    server.feed(&raw(frame::HEADERS, 0, 3, b""));
    assert_eq!(server.core.deadline(), (40 + head_ms, Deadline::Head));
    let mut other = Server::greeted();
    other.feed(&post(1, &[]));
    assert_eq!(other.core.deadline().1, Deadline::None);
}

#[test]
fn clocks_stop_for_whole_frames_and_run_for_what_nobody_reads() {
    let limits = HttpLimits::default();
    let (head_ms, idle_ms) = (
        limits.head_time.as_millis() as u64,
        limits.idle.as_millis() as u64,
    );
    let mut server = Server::greeted();
    server.feed(&post(1, &[]));
    // Every read ends amid a frame, but frames come.
    let update = window(0, 1);
    server.feed(&update[..5]);
    for now_ms in [5_000, 9_000, 14_000] {
        server.now_ms = now_ms;
        server.feed(&[&update[5..], &update[..5]].concat());
        assert_eq!(server.core.deadline(), (now_ms + head_ms, Deadline::Head));
    }
    server.feed(&update[5..]);
    assert_eq!(server.core.deadline(), (u64::MAX, Deadline::None));
    // Half a frame of a body whose request has its answer: the connection is idle all the same.
    server.feed(&super::data(1, &[7; 100], true)[..50]);
    server.answer(1, 0);
    server.core.settle(14_000);
    assert_eq!(server.core.deadline(), (14_000 + idle_ms, Deadline::Idle));
    assert!(server.core.is_idle());
    // Frames that ask for nothing, cut or not, do not put that off.
    server.now_ms = 20_000;
    server.feed(&[7; 59]);
    let ping = raw(frame::PING, 0, 0, b"abcdefgh");
    server.feed(&ping[..4]);
    server.feed(&ping[4..]);
    assert_eq!(server.core.deadline(), (14_000 + idle_ms, Deadline::Idle));
}
