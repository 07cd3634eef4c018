//! `early_hints`: what a browser is told while its page is made (103), as curl sees it.
#![allow(clippy::unwrap_used)]

mod harness;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use harness::{Hob, Place, text_of};
use rustix::fs::{CWD, Mode, mkfifoat};

/// Answers once somebody writes into a pipe, so that the hints are seen to come before.
const SLOW: &str = "#!/bin/sh\ncat pipe\nprintf 'Content-Type: text/plain\\n\\npage'\n";

fn serve(place: &Place) -> Hob {
    place.script("slow.sh", SLOW);
    place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[[site]]\nroot = \"site\"\n\
         early_hints = [\"</a.css>; rel=preload; as=style\", \"</b.js>; rel=modulepreload\"]\n\
         [[site.route]]\npath = \"/slow\"\ncgi = { script = \"slow.sh\" }\n\
         early_hints = [\"</slow.css>; rel=preload; as=style\"]\n\
         [[site.route]]\npath = \"/off\"\nrespond = { body = \"off\" }\nearly_hints = []\n\
         [[site.route]]\npath = \"/try/*\"\nfiles = { try = [\"{path}\", \"next\"] }\n\
         [[site.route]]\npath = \"/try/*\"\nrespond = { body = \"next\" }\n",
    )
}

fn curl(hob: &Hob, path: &str, arguments: &[&str]) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["-q", "-sSik", "--noproxy", "*", "--max-time", "60"]);
    curl.args(arguments);
    curl.arg(format!("https://127.0.0.1:{}{path}", hob.tls_port()));
    curl
}

/// All heads and the body that curl has got.
fn told(hob: &Hob, path: &str, arguments: &[&str]) -> String {
    let output = curl(hob, path, arguments).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap().to_lowercase()
}

const GOES: &str = "Sec-Fetch-Mode: navigate";

#[test]
fn browsers_that_go_to_a_page_are_told_before_it_is_there() {
    let place = Place::new();
    mkfifoat(CWD, place.path("pipe"), Mode::RWXU | Mode::RWXO).unwrap();
    let hob = serve(&place);
    // What curl tells beside its output is not held back.
    let mut waiting = curl(&hob, "/slow", &["--http2", "-v", "-H", GOES])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let mut lines = lines.filter_map(|line| {
        let line = line.unwrap();
        Some(line.strip_prefix("< ")?.trim_end().to_owned())
    });
    // The program waits for what comes only after the hints. Where they end curl tells later.
    let hints: Vec<String> = lines.by_ref().take(2).collect();
    let link = "link: </slow.css>; rel=preload; as=style";
    assert_eq!(hints, ["HTTP/2 103", link]);
    std::fs::write(place.path("pipe"), "").unwrap();
    let status = lines.find(|line| !line.is_empty());
    assert_eq!(status.as_deref(), Some("HTTP/2 200"));
    // What else it tells is read, so that it can end.
    lines.for_each(drop);
    assert!(waiting.wait().unwrap().success());
    hob.stop();
}

#[test]
fn hints_are_for_those_who_understand_them() {
    let place = Place::new();
    let hob = serve(&place);
    let count = |path: &str, arguments: &[&str]| {
        let text = told(&hob, path, arguments);
        assert!(text.contains(" 200"), "{text}");
        text.matches("http/2 103").count() + text.matches("http/1.1 103").count()
    };
    assert_eq!(count("/hello.txt", &["--http2", "-H", GOES]), 1);
    let all = told(&hob, "/hello.txt", &["--http2", "-H", GOES]);
    for link in [
        "link: </a.css>; rel=preload; as=style",
        "link: </b.js>; rel=modulepreload",
    ] {
        assert_eq!(all.matches(link).count(), 1, "{all}");
    }
    // Once, by the route that answers.
    assert_eq!(count("/try/x", &["--http2", "-H", GOES]), 1);
    for (path, arguments) in [
        ("/hello.txt", &["--http1.1", "-H", GOES][..]),
        ("/hello.txt", &["--http2"]),
        ("/hello.txt", &["--http2", "-H", "Sec-Fetch-Mode: no-cors"]),
        ("/hello.txt", &["--http2", "-H", GOES, "--head"]),
        ("/off", &["--http2", "-H", GOES]),
    ] {
        assert_eq!(count(path, arguments), 0, "{path} {arguments:?}");
    }
    hob.stop();
}
