//! `hob watch`: events as they happen, as lines and as JSON, and how it ends.
#![allow(clippy::unwrap_used)]

mod harness;

use std::path::Path;

use harness::client::{ask, get};
use harness::terminal::on_terminal;
use harness::{Hob, Place, send_signal, text_of};
use rustix::process::Signal;
use serde_json::Value;

/// A place with a script that prints to standard error.
fn serve() -> (Place, Hob) {
    let place = Place::new();
    place.folder("cgi");
    let script = place.path("cgi/loud");
    let text = "#!/bin/sh\nprintf 'bad \\033[2J news\\n' >&2\n\
                printf 'Content-Type: text/plain\\n\\nbody\\n'\n";
    std::fs::write(&script, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n",
    );
    (place, hob)
}

/// A `hob watch` that watches.
fn watch(place: &Place, arguments: &[&str]) -> Hob {
    let mut command = place.command();
    command.arg("watch").args(arguments);
    let watch = Hob::start(command);
    watch.wait_for("hob: watching");
    watch
}

/// Ends it by Ctrl-C and gives all it printed.
fn interrupted(mut watch: Hob) -> String {
    watch.signal(Signal::INT);
    assert_eq!(watch.exit_code(), Some(0), "{}", watch.printed());
    let text = watch.all_printed();
    assert!(text.contains(" events were shown, "), "{text}");
    text
}

#[test]
fn life_of_a_request_is_a_line_for_each_stage() {
    let (place, hob) = serve();
    let watch = watch(&place, &[]);
    assert_eq!(get(hob.port(), "/hello.txt?a=b").unwrap().status, 200);
    watch.wait_for("  done  ");
    let text = interrupted(watch);
    for stage in ["  request  ", "  route  ", "  done  ", "/hello.txt?a=b"] {
        assert!(text.contains(stage), "{stage} is not in\n{text}");
    }
    // Not for a terminal: no colours.
    assert!(!text.contains('\x1b'), "{text:?}");
    assert!(text.contains(", 0 were dropped"), "{text}");
    hob.stop();
}

#[test]
fn filters_choose_and_count_ends() {
    let (place, hob) = serve();
    let mut watch = watch(&place, &["path=/cgi/*", "--count", "2", "--json"]);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    assert_eq!(get(hob.port(), "/cgi/loud").unwrap().status, 200);
    assert_eq!(watch.exit_code(), Some(0), "{}", watch.printed());
    let text = watch.all_printed();
    assert!(text.contains("2 events were shown"), "{text}");
    let events: Vec<Value> = text
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 2, "{text}");
    assert!(
        events.iter().all(|event| event["id"] == events[0]["id"]),
        "{text}"
    );
    assert!(!text.contains("hello.txt"), "{text}");
    hob.stop();
}

#[test]
fn heads_bodies_and_what_scripts_print_steer_no_terminal() {
    let (place, hob) = serve();
    let script = place.path("site/asked");
    let ask = format!(
        "import sys, urllib.request\n\
         request = urllib.request.Request('http://127.0.0.1:{}/cgi/loud',\n\
             headers={{'User-Agent': 'evil\\xc2\\x9b2J'}})\n\
         urllib.request.urlopen(request).read()\n",
        hob.port()
    );
    std::fs::write(&script, ask).unwrap();
    let program = place.path("hob");
    let steps = r#"[
        ["wait", "hob: watching"], ["run", "site/asked"], ["wait", "done"], ["type", "\u0003"]
    ]"#;
    let text = on_terminal(
        place.command_of(Path::new("python3")),
        steps,
        &[program.to_str().unwrap(), "watch", "--head", "--body"],
    );
    assert!(text.ends_with("\nEXIT 0 ECHO True\n"), "{text}");
    assert!(text.contains("bad \\x1b[2J news"), "{text:?}");
    assert!(text.contains("evil\\u{9b}2J"), "{text:?}");
    assert!(
        !text.contains("\x1b[2J") && !text.contains('\u{9b}'),
        "{text:?}"
    );
    // Bytes of the body as hexadecimal and as text; stages in colours.
    assert!(
        text.contains("62 6f 64 79 0a") && text.contains("body."),
        "{text}"
    );
    assert!(text.contains("\x1b[31mstderr"), "{text:?}");
    hob.stop();
}

#[test]
fn secrets_are_left_out_unless_asked_for() {
    let (place, hob) = serve();
    for (arguments, is_shown) in [(&["--head"][..], false), (&["--head", "--secrets"], true)] {
        let watch = watch(&place, arguments);
        let fields = "Authorization: Bearer hunter2\r\n";
        assert_eq!(ask(hob.port(), "GET", "/hello.txt", fields).status, 200);
        watch.wait_for("  done  ");
        let text = interrupted(watch);
        assert_eq!(text.contains("hunter2"), is_shown, "{text}");
    }
    hob.stop();
}

#[test]
fn server_that_is_followed_by_another_is_watched_on() {
    let (place, hob) = serve();
    let watch = watch(&place, &[]);
    send_signal(hob.server(), Signal::KILL);
    hob.wait_for_count("server ready", 2);
    watch.wait_for("waiting for the next one");
    watch.wait_for("hob: watching again");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    watch.wait_for("  done  ");
    interrupted(watch);
    hob.stop();
}

#[test]
fn time_ends_it_and_what_is_wrong_is_refused() {
    let (place, hob) = serve();
    let output = place.run(&["watch", "--for", "10ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    assert!(text_of(&output).contains("0 events were shown, 0 were dropped"));
    for wrong in [
        &["watch", "plain"][..],
        &["watch", "slower=x"],
        &["watch", "--keep", "5"],
    ] {
        let output = place.run(wrong);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{wrong:?}: {}",
            text_of(&output)
        );
    }
    // What only the server can tell.
    let output = place.run(&["watch", "path=~("]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    assert!(
        text_of(&output).contains("regular expression"),
        "{}",
        text_of(&output)
    );
    hob.stop();
    assert_eq!(place.run(&["watch"]).status.code(), Some(3));
}
