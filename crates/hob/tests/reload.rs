//! Reloads: the new config is served by the same processes on the same sockets, or the old one is.

#![allow(clippy::unwrap_used)]

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

/// What the site answers with a text that a config holds.
fn said(place: &Place, port: u16) -> (String, u64) {
    let text = get(port, "/said").unwrap().text();
    let generation = place.status()["generation"].as_u64().unwrap();
    (text, generation)
}

fn saying(text: &str) -> String {
    config(
        "",
        &format!(
            "site\"\n[[site.route]]\npath = \"/said\"\nrespond = {{ body = \"{text}\" }}\n# \""
        ),
    )
}

#[test]
fn config_that_is_applied_is_in_force_and_can_be_taken_back() {
    let place = Place::new();
    let hob = place.serve_text(&saying("one"));
    let port = hob.port();
    let file = |name: &str| std::fs::read_to_string(place.path(name)).ok();
    place.write("new.toml", &saying("two"));
    let run = |words: &[&str]| {
        let output = place.run(&[&["config"], words].concat());
        (output.status.code(), text_of(&output))
    };
    let (code, text) = run(&["apply", "new.toml", "--dry-run"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("\n-respond = { body = \"one\" }\n+respond = { body = \"two\" }\n"),
        "{text}"
    );
    assert_eq!(said(&place, port), ("one".to_owned(), 1));
    assert_eq!(
        (file("hob.toml"), file("hob.toml.before")),
        (Some(saying("one")), None)
    );

    let (code, text) = run(&["apply", "new.toml"]);
    assert!(
        code == Some(0) && text.ends_with("reloaded, generation 2\n"),
        "{text}"
    );
    assert_eq!(said(&place, port), ("two".to_owned(), 2));
    assert_eq!(file("hob.toml.before"), Some(saying("one")));
    for (word, generation) in [("one", 3), ("two", 4)] {
        assert_eq!(run(&["rollback"]).0, Some(0));
        assert_eq!(said(&place, port), (word.to_owned(), generation));
        assert_eq!(file("hob.toml"), Some(saying(word)));
    }
    hob.stop();
    // Nobody is told of it: nothing is changed.
    let (code, text) = run(&["rollback"]);
    assert_eq!(code, Some(3), "{text}");
    assert_eq!(file("hob.toml"), Some(saying("two")));
}

#[test]
fn config_that_is_not_applied_leaves_all_as_it_was() {
    let place = Place::new();
    let hob = place.serve_text(&saying("one"));
    let run = |words: &[&str], told: &str| {
        let output = place.run(&[&["config"], words].concat());
        let text = text_of(&output);
        assert!(text.contains(told), "{words:?}: {text}");
        assert_eq!(said(&place, hob.port()), ("one".to_owned(), 1), "{words:?}");
        let now = std::fs::read_to_string(place.path("hob.toml")).unwrap();
        assert_eq!(now, saying("one"), "{words:?}");
        assert!(!place.path("hob.toml.before").exists(), "{words:?}");
        output.status.code()
    };
    place.write("wrong.toml", &saying("two").replace("respond", "respnd"));
    assert_eq!(run(&["apply", "wrong.toml"], "respnd"), Some(2));
    // It is right, and cannot be served: another has the port.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("\"{}\"", taken.local_addr().unwrap());
    place.write(
        "taken.toml",
        &saying("two").replace("\"127.0.0.1:0\"", &address),
    );
    assert_eq!(
        run(&["apply", "taken.toml"], "is as it was before"),
        Some(1)
    );
    place.write("new.toml", &saying("two"));
    assert_eq!(
        run(&["apply", "--base", "0-0", "new.toml"], "look at it again"),
        Some(1)
    );
    assert_eq!(
        run(
            &["apply", "--file", "new.toml", "new.toml"],
            "is no file of"
        ),
        Some(2)
    );
    assert_eq!(run(&["apply", "none.toml"], "none.toml: "), Some(2));
    assert_eq!(
        run(&["apply", "--file", "none.toml", "new.toml"], "none.toml: "),
        Some(2)
    );
    assert_eq!(run(&["rollback"], "nothing was applied"), Some(1));
    // Standard input of these is empty.
    assert_eq!(run(&["apply", "-"], "hob.toml is as it was"), Some(2));
    hob.stop();
}
