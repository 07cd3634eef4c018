//! What a client may do without end, and what not: each budget has its end.

use super::super::budget::{Budgets, Flood};
use super::super::conn::Http2Event;
use super::super::frame;
use super::{Server, data, fields, frame as raw, get, post, reset, settings, window};
use crate::limits::{self, HttpLimits};

/// Feeds `frame_of(n)` until the connection is over; returns how often, and why.
fn until_over(server: &mut Server, mut frame_of: impl FnMut(u32) -> Vec<u8>) -> (u32, Flood) {
    for number in 0..100_000 {
        let bytes = frame_of(number);
        let mut rest = &bytes[..];
        loop {
            server.head.clear();
            let (used, event) = server.core.read(rest, &mut server.head, &mut server.out, 0);
            rest = &rest[used..];
            match event {
                Http2Event::NeedMore => break,
                Http2Event::Over(failure) => {
                    let sent = std::mem::take(&mut server.out);
                    assert!(
                        sent.ends_with(failure.reason.as_bytes()),
                        "the client is told"
                    );
                    return (number, failure.flood.expect("it is a flood"));
                }
                _ => {}
            }
        }
        // The client reads what it is sent.
        server.out.clear();
    }
    panic!("the connection goes on for ever");
}

fn stream(number: u32) -> u32 {
    number * 2 + 1
}

#[test]
fn rapid_reset_ends_the_connection() {
    let mut server = Server::greeted();
    let rapid = |number| [get(stream(number), "/"), reset(stream(number))].concat();
    let (count, flood) = until_over(&mut server, rapid);
    assert_eq!((count, flood), (limits::H2_RESETS.most, Flood::Resets));
}

#[test]
fn requests_made_to_be_reset_end_the_connection() {
    let mut server = Server::greeted();
    // The client never resets one itself: it has us do it.
    let made = |number| [get(stream(number), "/"), window(stream(number), 0)].concat();
    let (count, flood) = until_over(&mut server, made);
    assert_eq!((count, flood), (limits::H2_RESETS.most, Flood::Resets));
    let mut server = Server::greeted();
    let malformed = |number| super::request(stream(number), &[(":method", "GET")], true);
    assert_eq!(until_over(&mut server, malformed).1, Flood::Resets);
    // More streams than are allowed at a time.
    let mut server = Server::greeted();
    let (count, flood) = until_over(&mut server, |number| get(stream(number), "/"));
    let most = limits::H2_STREAMS_MAX as u32 + limits::H2_RESETS.most;
    assert_eq!((count, flood), (most, Flood::Resets));
}

#[test]
fn client_that_gets_its_answers_may_take_back_as_many_requests() {
    let mut server = Server::greeted();
    for number in 0..5_000 {
        let (answered, left) = (stream(number * 2), stream(number * 2 + 1));
        server.feed(&[get(answered, "/"), get(left, "/"), reset(left)].concat());
        server.answer(answered, 0);
        server.out.clear();
    }
    assert!(!server.is_over);
}

#[test]
fn continuation_without_end_ends_the_connection() {
    let mut server = Server::greeted();
    let empty = |number| match number {
        0 => raw(frame::HEADERS, 0, 1, b""),
        _ => raw(frame::CONTINUATION, 0, 1, b""),
    };
    let (count, flood) = until_over(&mut server, empty);
    assert_eq!(
        (count, flood),
        (limits::H2_BLOCK_FRAMES_MAX, Flood::Continuation)
    );
    let mut server = Server::greeted();
    let full = |number| match number {
        0 => raw(frame::HEADERS, 0, 1, &[0x82; 16_384]),
        _ => raw(frame::CONTINUATION, 0, 1, &[0x82; 16_384]),
    };
    let (count, flood) = until_over(&mut server, full);
    let most = HttpLimits::default().head_bytes / 16_384;
    assert_eq!((count as usize, flood), (most, Flood::Continuation));
}

#[test]
fn settings_and_pings_without_end_end_the_connection() {
    let (count, flood) = until_over(&mut Server::greeted(), |_| settings(&[(4, 1)]));
    assert_eq!(
        (count, flood),
        (limits::H2_SETTINGS.most - 1, Flood::Settings)
    );
    let ping = |_| raw(frame::PING, 0, 0, b"abcdefgh");
    let (count, flood) = until_over(&mut Server::greeted(), ping);
    assert_eq!((count, flood), (limits::H2_PING.most, Flood::Ping));
}

#[test]
fn tiny_and_empty_frames_without_end_end_the_connection() {
    let mut server = Server::greeted();
    server.feed(&post(1, &[]));
    let (count, flood) = until_over(&mut server, |_| data(1, b"a", false));
    assert_eq!((count, flood), (limits::H2_TINY_DATA.most, Flood::TinyData));
    let most = limits::H2_EMPTY.most;
    let mut server = Server::greeted();
    server.feed(&post(1, &[]));
    let (count, flood) = until_over(&mut server, |_| data(1, b"", false));
    assert_eq!((count, flood), (most, Flood::Empty));
    for bytes in [
        raw(frame::PRIORITY, 0, 1, &[0, 0, 0, 3, 0]),
        raw(frame::PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 1, b'i']),
        raw(0x77, 0, 0, b""),
    ] {
        let (count, flood) = until_over(&mut Server::greeted(), |_| bytes.clone());
        assert_eq!((count, flood), (most, Flood::Empty));
    }
}

#[test]
fn windows_that_grow_by_bytes_end_the_connection() {
    let mut server = Server::greeted();
    server.feed(&get(1, "/"));
    server.answer(1, 1_000_000);
    server.feed(&settings(&[(4, 0)]));
    let mut sent = 0;
    let (count, flood) = until_over(&mut server, |_| {
        sent += 1;
        window(1, 1)
    });
    assert_eq!((count, flood), (limits::H2_WINDOW.most, Flood::Window));
    // One byte goes out for each: that does not pay for them.
    let mut server = Server::greeted();
    server.feed(&get(1, "/"));
    server.answer(1, 1_000_000);
    server.feed(&settings(&[(4, 0)]));
    let mut over_after = 0;
    while !server.is_over {
        server.feed(&window(1, 1));
        server.fill();
        server.out.clear();
        over_after += 1;
    }
    assert_eq!(over_after, limits::H2_WINDOW.most + 1);
}

#[test]
fn client_that_takes_what_it_is_sent_may_say_so_for_ever() {
    let mut server = Server::greeted();
    server.feed(&get(1, "/"));
    server.answer(1, usize::MAX >> 2);
    for _ in 0..limits::H2_WINDOW.most {
        server.fill();
        server.out.clear();
        server.feed(&[window(1, 16_384), window(0, 16_384)].concat());
    }
    assert!(!server.is_over, "{}", server.seen());
}

#[test]
fn header_bomb_is_refused_and_costs_little() {
    let mut server = Server::greeted();
    // A large entry, then references to it that come to three heads of the longest.
    let value = vec![b'v'; 4000];
    let mut block = super::block(&super::fields("GET", "/", &[]));
    block.extend_from_slice(&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e]);
    block.extend_from_slice(&value);
    let head = raw(frame::HEADERS, frame::END_STREAM, 1, &block);
    let bomb = raw(frame::CONTINUATION, frame::END_HEADERS, 1, &[0xbe; 46]);
    server.feed(&[head, bomb, get(3, "/")].concat());
    let seen = server.seen();
    assert!(seen.starts_with("1 431 "), "{seen}");
    assert!(seen.ends_with("3 GET / host=h\n"), "{seen}");
    assert!(server.head.bytes.capacity() < 200_000);
}

#[test]
fn block_that_grows_without_end_ends_the_connection() {
    // One entry of 4,000 bytes, and then a byte for each time it is named again.
    let named = "n".repeat(4_000);
    let mut block = super::block(&fields("GET", "/", &[]));
    block.extend_from_slice(&[0x40, 1, b'x', 0x7f]);
    block.extend_from_slice(&[0xa1, 0x1e]);
    block.extend_from_slice(named.as_bytes());
    block.extend_from_slice(&[0xbe; 200]);
    for number in [1, 2] {
        // A new request, and one that comes after its stream was reset: both are read.
        let mut server = Server::greeted();
        if number == 2 {
            server.feed(&[get(1, "/"), window(1, 0)].concat());
        }
        let headers = raw(
            frame::HEADERS,
            frame::END_HEADERS | frame::END_STREAM,
            1,
            &block,
        );
        let (_, flood) = until_over(&mut server, |_| headers.clone());
        assert_eq!(flood, Flood::Continuation);
    }
}

#[test]
fn blocks_for_a_stream_that_was_reset_are_counted() {
    let mut server = Server::greeted();
    server.feed(&[get(1, "/"), window(1, 0)].concat());
    let (count, flood) = until_over(&mut server, |_| get(1, "/"));
    assert_eq!((count, flood), (limits::H2_EMPTY.most, Flood::Empty));
}

#[test]
fn time_gives_back_what_was_used() {
    let mut budgets = Budgets::new(0);
    for _ in 0..limits::H2_PING.most {
        assert_eq!(budgets.take(Flood::Ping, 0), Ok(()));
    }
    assert_eq!(budgets.take(Flood::Ping, 1), Err(Flood::Ping));
    assert_eq!(budgets.take(Flood::Ping, 1001), Ok(()));
}
