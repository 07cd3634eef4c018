//! Windows, both ways, and bodies.

use super::super::answer::AfterHead;
use super::{Server, data, date, get, post, reset, settings, window};
use crate::head::Fields;
use crate::response::ResponseHead;

/// The body bytes sent in these frames, by stream.
fn sent_bytes(sent: &str, stream: u32) -> usize {
    let start = format!("{stream} DATA ");
    sent.lines()
        .filter_map(|line| line.strip_prefix(&start))
        .map(|rest| rest.trim_end_matches(" END").parse::<usize>().unwrap())
        .sum()
}

//= rfc9113#6.9.1
#[test]
fn no_more_is_sent_than_the_windows_have_room_for() {
    let mut server = Server::greeted();
    server.feed(&[get(1, "/"), get(3, "/")].concat());
    server.answer(1, 50_000);
    server.answer(3, 50_000);
    server.fill();
    let sent = server.sent();
    assert_eq!(sent_bytes(&sent, 1), 50_000);
    assert_eq!(sent_bytes(&sent, 3), 15_535);
    assert!(sent.contains("1 DATA 848 END\n"), "{sent}");
    server.feed(&window(3, 100_000));
    server.fill();
    assert_eq!(server.sent(), "", "the connection's window is full");
    server.feed(&window(0, 1));
    server.fill();
    assert_eq!(server.sent(), "3 DATA 1\n");
    server.feed(&window(0, 100_000));
    server.fill();
    assert_eq!(sent_bytes(&server.sent(), 3), 34_464);
    assert!(server.core.is_idle());
}

//= rfc9113#6.9.2
#[test]
fn windows_that_shrink_may_fall_below_zero() {
    let mut server = Server::greeted();
    server.feed(&get(1, "/"));
    server.answer(1, 100);
    server.feed(&settings(&[(4, 10)]));
    server.fill();
    assert_eq!(
        server.sent(),
        "1 HEADERS :status=200 content-length=100\nSETTINGS ACK\n1 DATA 10\n"
    );
    server.feed(&settings(&[(4, 3)]));
    server.feed(&window(1, 7));
    server.fill();
    assert_eq!(
        server.sent(),
        "SETTINGS ACK\n",
        "seven of the missing bytes came"
    );
    assert!(server.core.is_held_up(1));
    server.feed(&window(1, 2));
    server.fill();
    assert_eq!(server.sent(), "1 DATA 2\n");
    server.feed(&settings(&[(4, 1000)]));
    server.fill();
    assert_eq!(server.sent(), "SETTINGS ACK\n1 DATA 88 END\n");
}

//= rfc9113#6.9
#[test]
fn stream_window_grows_as_its_body_is_read_and_the_connection_s_as_it_comes() {
    let mut server = Server::greeted();
    server.feed(&post(1, &[]));
    for _ in 0..3 {
        server.feed(&data(1, &[b'a'; 16_384], false));
    }
    assert_eq!(server.sent(), "");
    // Nobody has read a byte: there is nothing to offer.
    server.core.offer(1, 3 * 16_384, &mut server.out);
    assert_eq!(server.sent(), "");
    server.core.offer(1, 16_384, &mut server.out);
    assert_eq!(server.sent(), "1 WINDOW 32768\n");
    server.core.offer(1, 16_384, &mut server.out);
    assert_eq!(server.sent(), "", "it was offered already");
    for _ in 0..4 {
        server.core.offer(1, 0, &mut server.out);
        server.feed(&data(1, &[b'a'; 16_384], false));
    }
    // One byte more than was offered.
    let mut full = Server::greeted();
    full.feed(&post(1, &[]));
    for _ in 0..4 {
        full.feed(&data(1, &[b'a'; 16_384], false));
    }
    assert_eq!(
        full.seen(),
        "1 POST / host=h body\n1 broken: DATA beyond the window of its stream\n"
    );
    assert_eq!(full.sent(), "1 RST 3\n");
}

/// What a stream's window is once a body of this many bytes has come, each read at once or not.
fn window_after(server: &mut Server, id: u32, bytes: usize, is_read: bool) -> i64 {
    server.feed(&post(id, &[]));
    for _ in 0..bytes / 16_384 {
        server.feed(&data(id, &[b'a'; 16_384], false));
        if is_read {
            server.core.offer(id, 0, &mut server.out);
        }
    }
    server.core.streams.find(id).unwrap().receive_window
}

#[test]
fn window_of_a_body_that_is_read_as_it_comes_grows_up_to_its_limits() {
    const MIB: i64 = 1024 * 1024;
    let mut server = Server::greeted();
    assert_eq!(window_after(&mut server, 1, 32_768, true), 2 * 65_535);
    let windows = [3, 5, 7].map(|id| window_after(&mut server, id, 1 << 24, true));
    // Two grow to their limit, and the third to what is left for the connection.
    let grown = 2 * MIB - (2 * 65_535 - 65_535) - 2 * (MIB - 65_535);
    assert!(windows[0] > MIB / 2 && windows[0] <= MIB, "{windows:?}");
    assert!(windows[1] > MIB / 2 && windows[1] <= MIB, "{windows:?}");
    assert!(windows[2] <= 65_535 + grown, "{windows:?}");
    assert_eq!(server.core.streams.grown_bytes(), 2 * MIB);
    assert_eq!(window_after(&mut server, 9, 32_768, true), 65_535);
    // What ends makes room again.
    server.feed(&[reset(3), reset(5)].concat());
    assert_eq!(window_after(&mut server, 11, 32_768, true), 2 * 65_535);
    assert!(!server.seen().contains("broken"));
}

#[test]
fn window_of_a_body_that_is_read_late_stays_small() {
    let mut server = Server::greeted();
    assert_eq!(window_after(&mut server, 1, 49_152, false), 16_383);
    for _ in 0..40 {
        server.core.offer(1, 16_384, &mut server.out);
        server.feed(&data(1, &[b'a'; 16_384], false));
        server.core.offer(1, 16_384, &mut server.out);
    }
    assert_eq!(server.core.streams.grown_bytes(), 0);
    assert!(!server.seen().contains("broken"));
}

#[test]
fn bodies_nobody_reads_do_not_stop_others() {
    let mut server = Server::greeted();
    let mut ids = (1..).step_by(2).take(60);
    let mut updates = 0;
    for id in &mut ids {
        server.feed(&post(id, &[]));
        for _ in 0..3 {
            server.feed(&data(id, &[b'a'; 16_384], false));
        }
        updates += server.sent().matches("0 WINDOW").count();
    }
    assert_eq!(updates, 5);
    assert!(!server.seen().contains("over"));
    // What is padding, or of streams that are gone, counts and is given back too.
    server.feed(&post(121, &[]));
    server.feed(&reset(121));
    server.seen();
    for _ in 0..100 {
        let mut padded = vec![255];
        padded.extend_from_slice(&[0; 300]);
        server.feed(&super::frame(0, 8, 1, &padded));
    }
    assert!(!server.seen().contains("broken"));
}

#[test]
fn request_that_goes_on_after_its_answer() {
    let mut server = Server::greeted();
    // A short rest may come.
    server.feed(&post(1, &[("content-length", "10")]));
    server.answer(1, 0);
    assert_eq!(
        server.sent(),
        "1 HEADERS :status=200 content-length=0 END\n"
    );
    server.feed(&data(1, b"01234", false));
    assert!(!server.core.streams.is_empty());
    server.feed(&data(1, b"56789", true));
    assert!(server.core.streams.is_empty());
    // A long one is not wanted, as soon as that is known.
    server.feed(&post(3, &[("content-length", "1000000")]));
    server.answer(3, 0);
    assert_eq!(
        server.sent(),
        "3 HEADERS :status=200 content-length=0 END\n3 RST 0\n"
    );
    server.feed(&data(3, b"late", true));
    server.feed(&post(5, &[]));
    server.answer(5, 0);
    assert_eq!(
        server.sent(),
        "5 HEADERS :status=200 content-length=0 END\n"
    );
    server.feed(&data(5, &[b'a'; 16_384], false));
    server.feed(&data(5, &[b'a'; 16_383], false));
    assert_eq!(server.sent(), "");
    server.feed(&data(5, b"abc", false));
    assert_eq!(server.sent(), "5 RST 0\n");
    // Nothing would show of one that has no window left.
    server.feed(&post(7, &[]));
    for len in [16_384, 16_384, 16_384, 16_383] {
        server.feed(&data(7, &vec![b'a'; len], false));
    }
    server.sent();
    server.answer(7, 0);
    assert!(server.sent().ends_with("END\n7 RST 0\n"));
    assert!(server.core.is_idle());
    assert!(!server.seen().contains("broken"));
    // The rules hold for what nobody reads as well.
    server.feed(&post(9, &[]));
    server.answer(9, 0);
    server.feed(&super::request(9, &[("a", "b")], false));
    assert!(server.sent().ends_with("9 RST 1\n"));
}

#[test]
fn bodies_without_a_size_end_by_themselves_or_with_trailers() {
    let mut server = Server::greeted();
    server.feed(&[get(1, "/"), get(3, "/")].concat());
    let head = ResponseHead::Fields(200, Fields::new());
    for id in [1, 3] {
        let out = &mut server.out;
        server.core.push_head(id, &head, None, &super::date(), out);
        assert_eq!(server.core.push_data(id, 5, out), Some(AfterHead::Body));
        out.extend_from_slice(b"hello");
    }
    assert!(server.core.push_end(1, None, &mut server.out));
    let mut trailers = Fields::new();
    trailers.add(b"Check", b"sum");
    assert!(server.core.push_end(3, Some(&trailers), &mut server.out));
    assert_eq!(
        server.sent(),
        "1 HEADERS :status=200\n1 DATA 5\n3 HEADERS :status=200\n3 DATA 5\n1 DATA 0 END\n\
         3 HEADERS check=sum END\n"
    );
}

#[test]
fn body_of_another_size_than_announced_breaks_the_answer() {
    let mut server = Server::greeted();
    server.feed(&[get(1, "/"), get(3, "/")].concat());
    server.answer(1, 3);
    server.answer(3, 3);
    server.sent();
    assert_eq!(server.core.push_data(1, 4, &mut server.out), None);
    assert!(!server.core.push_end(3, None, &mut server.out));
    assert_eq!(server.sent(), "3 RST 2\n");
}

//= rfc9113#6.9.1
#[test]
fn an_end_waits_for_no_window() {
    let mut server = Server::greeted();
    server.feed(&settings(&[(4, 0)]));
    server.feed(&get(1, "/"));
    let head = ResponseHead::Fields(200, Fields::new());
    server
        .core
        .push_head(1, &head, None, &date(), &mut server.out);
    server.core.set_ready(1, true);
    assert_eq!(server.core.next_turn(), None);
    assert!(server.core.is_held_up(1));
    server.core.set_may_end(1, true);
    assert!(!server.core.is_held_up(1) && !server.core.is_full());
    let turn = server.core.next_turn().unwrap();
    assert_eq!((turn.stream, turn.bytes_max), (1, 0));
    server.sent();
    assert!(server.core.push_end(1, None, &mut server.out));
    assert_eq!(server.sent(), "1 DATA 0 END\n");
}
