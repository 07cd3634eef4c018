//! Reloads: the new config is served by the same processes on the same sockets, or the old one is.

mod harness;

use std::os::unix::net::UnixStream;

use harness::client::get;
use harness::{Place, config, text_of};
use rustix::process::Signal;

#[test]
fn sighup_serves_the_new_config_in_the_same_process_on_the_same_port() {
    let place = Place::new();
    let hob = place.serve_config("");
    let (port, server) = (hob.port(), hob.server());
    std::fs::create_dir(place.path("other")).unwrap();
    place.write("other/hello.txt", "other\n");
    place.write_config("", "other");
    hob.signal(Signal::HUP);
    hob.wait_for("reloaded, generation 2");
    assert_eq!(get(port, "/hello.txt").unwrap().text(), "other\n");
    assert_eq!(hob.server(), server);
    hob.stop();
}

#[test]
fn bad_config_is_reported_and_the_old_one_stays() {
    let place = Place::new();
    let hob = place.serve_config("");
    let port = hob.port();
    place.write("hob.toml", &config("drian = \"10s\"", "site"));
    hob.signal(Signal::HUP);
    hob.wait_for("the old one stays");
    hob.wait_for("drian");
    assert_eq!(get(port, "/hello.txt").unwrap().text(), "hello\n");

    let output = place.run(&["reload"]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("drian"), "{text}");

    place.write_config("", "site");
    let output = place.run(&["reload"]);
    assert_eq!(
        (output.status.code(), text_of(&output).as_str()),
        (Some(0), "reloaded, generation 2\n")
    );
    hob.stop();
}

#[test]
fn listeners_come_and_go_with_the_config() {
    let place = Place::new();
    let hob = place.serve_config("");
    let socket = place.path("web.sock");
    let more = format!("[[listen]]\naddress = \"unix:{}\"\n", socket.display());
    place.write_config(&more, "site");
    assert_eq!(place.run(&["reload"]).status.code(), Some(0));
    hob.wait_for(&format!("listening on unix:{}", socket.display()));
    UnixStream::connect(&socket).unwrap();

    place.write_config("", "site");
    assert_eq!(place.run(&["reload"]).status.code(), Some(0));
    assert!(!socket.exists());
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    assert_eq!(
        hob.printed().matches("listening on http://").count(),
        1,
        "said once"
    );
    hob.stop();
}

#[test]
fn address_that_is_taken_fails_the_reload_and_changes_nothing() {
    let place = Place::new();
    let hob = place.serve_config("");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    place.write_config(&format!("[[listen]]\naddress = \"{address}\"\n"), "site");
    let output = place.run(&["reload"]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains(&format!("cannot bind to {address}")),
        "{text}"
    );
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    hob.stop();
}

#[test]
fn sighup_opens_logs_again_even_when_the_config_is_bad() {
    let place = Place::new();
    let log = "[[log]]\nname = \"main\"\nfile = \"access.txt\"\n";
    let hob = place.serve_config(log);
    let file = place.path("access.txt");
    let put_aside = |name: &str| std::fs::rename(&file, place.path(name)).unwrap();

    put_aside("access.1");
    hob.signal(Signal::HUP);
    hob.wait_for("reloaded, generation 2");
    assert!(file.exists());

    put_aside("access.2");
    place.write("hob.toml", "no toml");
    hob.signal(Signal::HUP);
    hob.wait_for("the old one stays");
    assert!(file.exists());
    hob.stop();
}

#[test]
fn keys_that_need_a_new_server_are_named() {
    let place = Place::new();
    let hob = place.serve_config("");
    place.write_config("nice = 3", "site");
    let output = place.run(&["reload"]);
    assert_eq!(
        text_of(&output),
        "reloaded, generation 2; `hob upgrade` or a restart applies: nice\n"
    );
    hob.stop();
}

#[test]
fn signals_that_come_close_together_lose_no_reload() {
    let place = Place::new();
    let hob = place.serve_config("");
    place.write_config("", ".");
    for _ in 0..20 {
        hob.signal(Signal::HUP);
    }
    // However many of them fell together: the last one was seen after the config was written.
    hob.wait_for("reloaded, generation");
    assert_eq!(
        get(hob.port(), "/site/hello.txt").unwrap().text(),
        "hello\n"
    );
    hob.stop();
}
