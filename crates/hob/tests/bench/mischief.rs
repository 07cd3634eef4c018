//! `conformance/mischief`: hob stands it over every protocol, acts follow from their seed, servers
//! that do wrong are found out, and nobody else's server is touched.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};

use serde_json::Value;

use super::harness::over::example;
use super::harness::{Place, text_of};
use super::others::nginx;
use super::schema::conforms;
use super::{bench, number};

const CONFIG: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[listen]]\naddress = \
                      \"127.0.0.1:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n";

/// Runs it to its end.
fn mischief(arguments: &[&str]) -> Output {
    let path = example("mischief");
    let output = Command::new(&path).args(arguments).output();
    let hint = "`cargo build -p hob --example mischief` builds it";
    output.unwrap_or_else(|error| panic!("{}: {error}; {hint}", path.display()))
}

/// The command that a result says repeats an act, carried out.
fn repeated(command: &str, more: &[&str]) -> Output {
    let arguments = command
        .strip_prefix("cargo run -qp hob-mischief -- ")
        .unwrap();
    let arguments: Vec<&str> = arguments.split(' ').collect();
    mischief(&[&arguments[..], more].concat())
}

/// What a run says that ends with this code.
fn exercised(code: i32, url: &str, arguments: &[&str]) -> Value {
    let output = mischief(&[&[url, "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{}", text_of(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The faults that were found: kind, detail, what is wrong.
fn faults(result: &Value) -> Vec<[&str; 3]> {
    let acts = result["acts"].as_array().unwrap().iter();
    let wrong = acts.filter(|act| !act["fault"].is_null());
    wrong
        .map(|act| ["name", "detail", "fault"].map(|key| act[key].as_str().unwrap()))
        .collect()
}

#[test]
fn hob_stands_every_kind_of_act_over_every_protocol() {
    let place = Place::new();
    let hob = place.serve_text(CONFIG);
    let clear = format!("http://127.0.0.1:{}/hello.txt", hob.clear_port());
    let secure = format!("https://localhost:{}/hello.txt", hob.tls_port());
    let schema: Value = serde_json::from_slice(&mischief(&["--schema"]).stdout).unwrap();
    for (url, http, kind_count) in [
        (&clear, "1.1", 32),
        (&secure, "1.1", 39),
        (&clear, "2", 26),
        (&secure, "3", 13),
    ] {
        // Every kind comes once before one comes again.
        let count = kind_count.to_string();
        // As long as it takes: what hangs is for the harness to end.
        let arguments = [
            "--http",
            http,
            "--seed",
            "3",
            "-n",
            &count,
            "--timeout",
            "60s",
        ];
        let result = exercised(0, url, &arguments);
        conforms(&result, &schema, &schema, "");
        let acts = result["acts"].as_array().unwrap();
        let mut names: Vec<_> = acts
            .iter()
            .map(|act| act["name"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), kind_count, "HTTP/{http}: {names:?}");
        assert_eq!(number(&result, "unexpected"), 0);
        assert_eq!(number(&result, "beside.failed"), 0);
        assert_eq!(number(&result, "afterwards"), 200);
    }
    hob.stop();
}

#[test]
fn server_behind_a_unix_socket_is_exercised() {
    let place = Place::new();
    let hob = place.serve_text(&CONFIG.replacen("127.0.0.1:0", "unix:run/web.sock", 1));
    let socket = place.path("run/web.sock").display().to_string();
    let url = "http://example.org/hello.txt";
    let unix = ["--unix", &socket, "--timeout", "60s"];
    let result = exercised(0, url, &[&unix[..], &["-n", "32"]].concat());
    assert_eq!(number(&result, "unexpected"), 0);
    assert_eq!(number(&result, "beside.failed"), 0);
    assert_eq!(number(&result, "afterwards"), 200);
    let repeat = result["acts"][0]["repeat"].as_str().unwrap();
    assert!(repeat.contains(&format!(" --unix {socket} ")), "{repeat}");
    for (more, says) in [
        (&["--http", "3"][..], "without --unix"),
        (&["--unix", "/nonexistent"], "no server answers at"),
    ] {
        let unix = if more[0] == "--unix" {
            &[][..]
        } else {
            &unix[..]
        };
        let output = mischief(&[&[url], unix, more].concat());
        assert_ne!(output.status.code(), Some(0));
        assert!(text_of(&output).contains(says), "{}", text_of(&output));
    }
    hob.stop();
}

/// A server that changes to whatever protocol it is asked to, and then does nothing any more.
fn clinging() -> String {
    fn serve(mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            head.extend_from_slice(&buffer[..count]);
            if head.ends_with(b"\r\n\r\n") {
                let is_change = head.windows(9).any(|text| text == b"websocket");
                head.clear();
                if is_change {
                    let change = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n";
                    stream.write_all(change.as_bytes())?;
                    // It has the connection for good: nobody sends on this.
                    let (_keep, never) = std::sync::mpsc::channel::<()>();
                    let _ = never.recv();
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")?;
            }
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    format!("http://{address}/")
}

#[test]
fn websocket_that_is_never_let_go_is_found_out() {
    let result = exercised(6, &clinging(), &["-n", "64", "--timeout", "1s"]);
    let faults = faults(&result);
    for name in ["websocket, broken frame", "websocket, many frames"] {
        let is_it = |found: &&[&str; 3]| {
            found[0] == name && found[2] == "the server neither answered nor ended the connection"
        };
        assert!(
            faults.iter().any(|found| is_it(&found)),
            "{name}: {faults:#?}"
        );
    }
}

#[test]
fn same_seed_has_the_same_acts_and_one_of_them_can_be_repeated() {
    let place = Place::new();
    let hob = place.serve_text(CONFIG);
    let url = format!("http://127.0.0.1:{}/hello.txt", hob.clear_port());
    let run = |more: &[&str]| exercised(0, &url, &[more, &["--timeout", "60s"]].concat());
    let first = run(&["--seed", "5", "-n", "10"]);
    let again = run(&["--seed", "5", "-n", "10"]);
    let other = run(&["--seed", "6", "-n", "10"]);
    assert_eq!(first["sequence"], again["sequence"]);
    assert_ne!(first["sequence"], other["sequence"]);
    let alone = run(&["--seed", "5", "--act", "7"]);
    let [one] = &alone["acts"].as_array().unwrap()[..] else {
        panic!("{alone:#}");
    };
    for key in ["number", "name", "detail", "repeat"] {
        assert_eq!(one[key], first["acts"][7][key]);
    }
    let command = format!("cargo run -qp hob-mischief -- {url} --seed 5 --act 7 --timeout 60s");
    assert_eq!(one["repeat"], command);
    let output = repeated(&command, &["--plain"]);
    let text = text_of(&output);
    let line = format!(
        "act 7: {}: {}: {}\n",
        one["name"].as_str().unwrap(),
        one["detail"].as_str().unwrap(),
        one["outcome"].as_str().unwrap()
    );
    assert!(text.starts_with(&line), "{text}");
    assert!(text.ends_with("\npassed\n"), "{text}");
    hob.stop();
}

/// A server that takes everything up to an empty line for a request, and answers it well.
fn gullible() -> String {
    fn serve(mut stream: TcpStream) -> std::io::Result<()> {
        let mut matched = 0;
        let mut buffer = [0; 4096];
        loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            for byte in &buffer[..count] {
                matched = match *byte {
                    byte if byte == b"\r\n\r\n"[matched] => matched + 1,
                    b'\r' => 1,
                    _ => 0,
                };
                if matched == 4 {
                    matched = 0;
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")?;
                }
            }
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    format!("http://{address}/")
}

#[test]
fn server_that_takes_anything_for_a_request_is_found_out() {
    let url = gullible();
    let result = exercised(6, &url, &["-n", "56", "--timeout", "5s"]);
    assert_eq!(result["passed"], false);
    let faults = faults(&result);
    let has = |name: &str, fault: &str| {
        let is_it = |found: &&[&str; 3]| found[0] == name && found[2].contains(fault);
        assert!(
            faults.iter().any(|found| is_it(&found)),
            "{name}: {faults:#?}"
        );
    };
    has("contradicting lengths", "is 200, not a refusal");
    has("bad length", "is 200, not a refusal");
    has("bad transfer coding", "is 200, not a refusal");
    has("length beside chunks", "answers, where 1 at most may come");
    let first = result["acts"].as_array().unwrap();
    let first = first.iter().find(|act| !act["fault"].is_null()).unwrap();
    // What the report says repeats it does.
    let command = first["repeat"].as_str().unwrap();
    let output = repeated(command, &[]);
    assert_eq!(output.status.code(), Some(6), "{}", text_of(&output));
    let text = text_of(&output);
    let fault = first["fault"].as_str().unwrap();
    assert!(text.contains("\nunexpected: 1\n"), "{text}");
    assert!(text.contains(fault) && text.contains(command), "{text}");
    assert!(text.ends_with("\nFAILED\n"), "{text}");
}

#[test]
fn nginx_is_found_to_do_what_is_known_of_it() {
    let Some((_place, nginx)) = nginx("") else {
        return;
    };
    let url = format!("http://127.0.0.1:{}/f.txt", nginx.port);
    let output = mischief(&[
        &url,
        "--json",
        "--seed",
        "1",
        "-n",
        "140",
        "--timeout",
        "60s",
    ]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    for [name, detail, fault] in faults(&result) {
        // It takes a tabulator before a value for a part of it.
        let is_known = detail == "white space around values";
        assert!(is_known, "{name}: {detail}: {fault}");
    }
    assert_eq!(number(&result, "beside.failed"), 0);
    assert_eq!(number(&result, "afterwards"), 200);
}

#[test]
fn nobody_elses_server_is_touched_unless_somebody_answers_for_it() {
    // It leads to this machine, and is no loopback address: nobody must come.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("http://0.0.0.0:{port}/");
    let output = mischief(&[&url]);
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
    let text = text_of(&output);
    assert!(
        text.contains("0.0.0.0 is not an address of this machine alone"),
        "{text}"
    );
    assert!(text.contains("--i-own-this-host"), "{text}");
    listener.set_nonblocking(true).unwrap();
    let nobody = listener.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
    let url = gullible().replace("127.0.0.1", "0.0.0.0");
    let owned = ["--i-own-this-host", "--act", "0", "--timeout", "60s"];
    let output = mischief(&[&[url.as_str(), "--json"], &owned[..]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["acts"].as_array().unwrap().len(), 1);
    for wrong in [
        &["--rate", "5"][..],
        &["--sources", "2"],
        &["--page"],
        &["--urls", "/dev/null"],
        &["--replay", "/dev/null"],
        &["--fail-if", "p99>1s"],
        &["--act", "1", "-n", "5"],
        &["-n", "0"],
        &["-n", "1000000"],
        &["--timeout", "1h"],
    ] {
        let output = mischief(&[&["http://127.0.0.1:1/"], wrong].concat());
        assert_eq!(
            output.status.code(),
            Some(2),
            "{wrong:?}: {}",
            text_of(&output)
        );
    }
}

#[test]
fn bench_says_where_it_is_now() {
    for gone in [&["--exercise"][..], &["--act", "7"], &["--i-own-this-host"]] {
        let output = bench(&[&["http://127.0.0.1:1/"], gone].concat());
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains("'cargo run -p hob-mischief -- URL'"),
            "{text}"
        );
    }
}
