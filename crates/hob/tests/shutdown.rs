//! How it ends: what is in progress finishes, what takes too long is cut, and the exit code is 0.

mod harness;

use std::time::{Duration, Instant};

use harness::client::{begin_download, get};
use harness::{BIG_BYTES, Place, send_signal, text_of, wait_for_end};
use rustix::process::Signal;

#[test]
fn sigterm_finishes_the_download_in_progress_and_exits_0() {
    let place = Place::new();
    let mut hob = place.serve_config("");
    let port = hob.port();
    let (mut download, headers) = begin_download(port, "/big.bin");
    hob.signal(Signal::TERM);
    hob.wait_for("stopping");
    assert_eq!(download.read_body(&headers).unwrap().len(), BIG_BYTES);
    assert_eq!(hob.exit_code(), Some(0));
    assert!(get(port, "/hello.txt").is_err());
}

#[test]
fn idle_hob_stops_at_once_and_leaves_no_file_behind() {
    let place = Place::new();
    let listen = format!("unix:{}", place.path("web.sock").display());
    let mut hob = place.serve(&["site", "--listen", "0", "--listen", &listen]);
    hob.wait_for("listening on unix:");
    assert!(place.path("web.sock").exists() && place.path("run/hob/control.sock").exists());
    let began = Instant::now();
    hob.signal(Signal::TERM);
    assert_eq!(hob.exit_code(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "far below the drain deadline of 30 s"
    );
    assert!(!place.path("web.sock").exists() && !place.path("run/hob/control.sock").exists());
}

#[test]
fn download_that_outlasts_the_deadline_is_cut_and_the_exit_code_is_0() {
    let place = Place::new();
    let mut hob = place.serve_config("drain = \"100ms\"");
    let (mut download, headers) = begin_download(hob.port(), "/big.bin");
    hob.signal(Signal::TERM);
    assert_eq!(hob.exit_code(), Some(0));
    assert!(download.read_body(&headers).is_err());
}

#[test]
fn second_ctrl_c_does_not_wait() {
    let place = Place::new();
    let mut hob = place.serve_config("drain = \"600s\"");
    let (_download, _) = begin_download(hob.port(), "/big.bin");
    let server = hob.server();
    hob.signal(Signal::INT);
    hob.wait_for("stopping deadline");
    hob.signal(Signal::INT);
    assert_eq!(hob.exit_code(), Some(0));
    wait_for_end(server);
}

#[test]
fn hob_stop_drains_too() {
    let place = Place::new();
    let mut hob = place.serve(&["site", "--listen", "0"]);
    let (mut download, headers) = begin_download(hob.port(), "/big.bin");
    let output = place.run(&["stop"]);
    assert_eq!(
        (output.status.code(), text_of(&output).as_str()),
        (Some(0), "stopping\n")
    );
    assert_eq!(download.read_body(&headers).unwrap().len(), BIG_BYTES);
    assert_eq!(hob.exit_code(), Some(0));
    let output = place.run(&["stop"]);
    assert_eq!(output.status.code(), Some(3), "{}", text_of(&output));
}

#[test]
fn signals_of_a_terminal_do_not_reach_past_the_keeper() {
    let place = Place::new();
    let hob = place.serve_config("");
    let server = hob.server();
    for signal in [Signal::INT, Signal::HUP, Signal::USR2] {
        send_signal(server, signal);
    }
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
    assert_eq!(hob.server(), server);
    hob.stop();
}

#[test]
fn whole_group_told_to_end_ends_once() {
    let place = Place::new();
    let mut hob = place.serve_config("");
    let (mut download, headers) = begin_download(hob.port(), "/big.bin");
    let server = hob.server();
    hob.signal(Signal::TERM);
    send_signal(server, Signal::TERM);
    hob.wait_for("stopping");
    assert_eq!(download.read_body(&headers).unwrap().len(), BIG_BYTES);
    assert_eq!(hob.exit_code(), Some(0));
    wait_for_end(server);
}
