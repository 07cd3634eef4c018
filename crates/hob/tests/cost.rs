//! `hob cost`: every way of running a script that there is, and in words why another is not; time
//! is told in its stage; a script that fails is named with its reason; nothing is left behind.
//! Times are only held against each other where one is many times the other.
#![allow(clippy::unwrap_used)]

mod harness;
#[path = "bench/schema.rs"]
mod schema;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use harness::{Place, User, send_signal, text_of, wait_for_end};
use rustix::fs::{CWD, FileType, Mode};
use rustix::process::Signal;
use schema::conforms;
use serde_json::Value;

const PYTHON: &str = "#!/usr/bin/env python3\nprint('Content-Type: text/plain\\n\\nhello')\n";
const PERL: &str = "#!/usr/bin/perl\nprint \"Content-Type: text/plain\\n\\nhello\\n\";\n";
const SHELL: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nhello\\n'\n";

/// A folder for scripts, and one that temporary folders are made in.
struct Study {
    place: Place,
}

impl Study {
    fn new() -> Study {
        let place = Place::for_user(User::Same);
        place.folder("temporary");
        Study { place }
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        self.place.script(name, text)
    }

    /// A pipe with a name that scripts write into.
    fn pipe(&self, name: &str) -> (PathBuf, File) {
        let path = self.place.path(name);
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from(0o666), 0).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        // Open at both ends, so that nobody waits for somebody to open it.
        let both = File::options().read(true).write(true).open(&path);
        (path, both.unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        // Not the copy in the place: beside this one cargo has built nothing that is native.
        let mut command = Command::new(harness::program());
        command.arg("cost").args(arguments).stdin(Stdio::null());
        command.current_dir(self.place.path(""));
        command.env("TMPDIR", self.place.path("temporary"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        self.assert_nothing_is_left();
        output
    }

    /// The result of a study that must be made, which is always what the schema says.
    fn result(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        let result = serde_json::from_slice(&output.stdout).unwrap();
        let schema = self.run(&["--schema"]);
        let schema = serde_json::from_slice(&schema.stdout).unwrap();
        conforms(&result, &schema, &schema, "");
        result
    }

    /// What a study is refused with.
    fn refusal(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", text_of(&output));
        assert!(output.stdout.is_empty(), "{}", text_of(&output));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Neither files nor processes that were started with a file of ours.
    fn assert_nothing_is_left(&self) {
        let folder = self.place.path("temporary");
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(processes_with(folder.to_str().unwrap()), [0u32; 0]);
    }
}

/// Processes whose arguments have a text in them.
fn processes_with(text: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let number = |entry: std::fs::DirEntry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line)
            .contains(text)
            .then_some(number)
    };
    entries.filter_map(number).collect()
}

/// The rung of a result by handler, carrier and whose program it is.
fn rung<'a>(result: &'a Value, handler: &str, carrier: Option<&str>, program: &str) -> &'a Value {
    let rungs = result["rungs"].as_array().unwrap();
    let is_it = |rung: &&Value| {
        rung["handler"] == handler
            && rung["carrier"].as_str() == carrier
            && rung["program"] == program
    };
    rungs
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {handler} {carrier:?} {program} in {result:#}"))
}

fn cpu(rung: &Value) -> f64 {
    rung["cpu_us"]["total"]
        .as_f64()
        .unwrap_or_else(|| panic!("no CPU time: {rung:#}"))
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// CPU time of the stages is that of the whole request: no stage is missing or told twice.
fn assert_cpu_adds_up(stages: &Value) {
    let rows = stages["rows"].as_array().unwrap();
    let cpu: f64 = rows.iter().filter_map(|row| row["cpu_us"].as_f64()).sum();
    let total = number(&stages["cpu_us"]["total"]);
    assert!((cpu - total).abs() < 0.01, "{cpu} {total}");
}

fn stage_names(result: &Value) -> Vec<&str> {
    let rows = result["stages"]["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect()
}

#[test]
fn python_script_is_cheaper_warm_and_could_be_written_to_stay() {
    let study = Study::new();
    study.script("hello.py", PYTHON);
    let result = study.result(&["hello.py", "--count", "20", "--rate", "50"]);
    assert_eq!(
        (&result["format"], &result["count"]),
        (&1.into(), &20.into())
    );
    assert_eq!(result["request"]["method"], "GET");
    let cgi = cpu(rung(&result, "cgi", None, "script"));
    let warm = cpu(rung(&result, "warm", None, "script"));
    assert!(warm < cgi, "{warm} {cgi}");
    let resident = rung(&result, "resident", None, "script");
    let reason = resident["not_possible"].as_str().unwrap();
    assert!(
        reason.contains("it answers one request and ends"),
        "{reason}"
    );
    let stays = cpu(rung(&result, "resident", Some("stream"), "echo"));
    assert!(stays < cgi, "{stays} {cgi}");
    let sentence = result["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("Moving hello.py from cgi to ") && sentence.contains("at 50 requests"),
        "{sentence}"
    );
    assert_cpu_adds_up(&result["stages"]);
    let names = stage_names(&result);
    for name in [
        "accept, first read",
        "parse, route",
        "environment, hand-over",
        "program",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(names.contains(&"interpreter start"), "{names:?}");
}

#[test]
fn perl_script_stays_unchanged_over_the_socket() {
    let study = Study::new();
    study.script("hello.pl", PERL);
    let result = study.result(&["hello.pl", "-n", "40", "--part", "ladder"]);
    let cgi = cpu(rung(&result, "cgi", None, "script"));
    let kept = cpu(rung(&result, "resident", Some("stream"), "script"));
    assert!(kept < cgi, "{kept} {cgi}");
    let lines = rung(&result, "resident", Some("lines"), "script");
    assert_eq!(lines["not_possible"], "it does not speak lines");
    assert_eq!(result["stages"], Value::Null);
}

#[test]
fn shell_script_has_no_other_rung_and_that_is_said() {
    let study = Study::new();
    study.script("hello.sh", SHELL);
    let html = study.place.path("page.html");
    let html = html.to_str().unwrap();
    let output = study.run(&["hello.sh", "-n", "5", "--html", html]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "not as warm, script (shell): there is no warm host for shell, only for Python and Perl",
        "Where one request to hello.sh as cgi goes",
        "hello.sh runs only as cgi, so there is nothing to move it to.",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("interpreter start"));
}

#[test]
fn script_is_asked_what_was_said() {
    let study = Study::new();
    let check = "#!/bin/sh\nread -r body\n\
        [ \"$REQUEST_METHOD $QUERY_STRING $HTTP_X_TEA $CONTENT_LENGTH $body\" = \
        'PUT a=b green 4 tea' ] || exit 1\n\
        printf 'Content-Type: text/plain\\n\\nyes\\n'\n";
    study.script("check.sh", check);
    study.place.write("body.txt", "tea\n");
    let arguments = [
        "check.sh",
        "-n",
        "3",
        "-X",
        "PUT",
        "--query",
        "a=b",
        "-H",
        "X-Tea: green",
    ];
    let result = study.result(&[&arguments[..], &["--body", "body.txt"]].concat());
    assert_eq!(result["request"]["body_bytes"], 4);
    // Bare it was asked the same, or it would have failed.
    assert_cpu_adds_up(&result["stages"]);
}

#[test]
fn time_before_and_after_the_first_byte_is_told_in_its_stage() {
    const SLEPT_US: f64 = 300_000.0;
    let study = Study::new();
    let slow = "#!/bin/sh\nsleep 0.3\nprintf 'Content-Type: text/plain\\n\\nhello\\n'\nsleep 0.3\n";
    study.script("slow.sh", slow);
    let result = study.result(&["slow.sh", "-n", "2", "--part", "stages"]);
    let stages = &result["stages"];
    let rows = stages["rows"].as_array().unwrap();
    let (slept, others): (Vec<&Value>, Vec<&Value>) = rows
        .iter()
        .partition(|row| row["name"] == "program" || row["name"] == "rest of the output, exit");
    assert_eq!(slept.len(), 2, "{stages:#}");
    // On a busy machine everything takes longer, but not by so much that it changes its place.
    for row in slept {
        assert!(number(&row["wall_us"]) > SLEPT_US / 2.0, "{stages:#}");
        for other in &others {
            assert!(
                number(&other["wall_us"]) < number(&row["wall_us"]),
                "{stages:#}"
            );
        }
    }
    assert!(
        number(&stages["total"]["p50_us"]) >= 2.0 * SLEPT_US,
        "{stages:#}"
    );
    assert_cpu_adds_up(stages);
}

#[test]
fn part_that_fails_is_named_and_the_others_are_told() {
    let study = Study::new();
    // Answers under a server, and fails with nothing around it.
    let text = "#!/bin/sh\n[ \"$UNIQUE_ID\" = 0-0-0 ] && exit 7\n\
        printf 'Content-Type: text/plain\\n\\nhello\\n'\n";
    study.script("picky.sh", text);
    let page = study.place.path("page.html");
    let arguments = ["picky.sh", "-n", "3", "--json", "--html"];
    let output = study.run(&[&arguments[..], &[page.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(cpu(rung(&result, "cgi", None, "script")) >= 0.0);
    assert_eq!(result["stages"], Value::Null);
    assert_eq!(result["failed"][0]["part"], "stages", "{result:#}");
    assert!(result["environment"]["kernel"].is_string(), "{result:#}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("stages is not measured: "), "{said}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("stages is not measured: ") && page.contains("Ways to run it"));
}

#[test]
fn script_that_hangs_bare_ends_with_the_study() {
    let study = Study::new();
    let (path, running) = study.pipe("running");
    let text = format!(
        "#!/bin/sh\n[ \"$UNIQUE_ID\" = 0-0-0 ] && echo $$ >>'{}' && exec sleep 1000\n\
         printf 'Content-Type: text/plain\\n\\nhello\\n'\n",
        path.display()
    );
    study.script("hangs.sh", &text);
    let mut command = study.command(&["hangs.sh", "--count", "2", "--part", "stages"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut said = BufReader::new(running).lines();
    let script: u32 = said.next().unwrap().unwrap().parse().unwrap();
    send_signal(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    wait_for_end(script);
    study.assert_nothing_is_left();
}

#[test]
fn echo_is_measured_in_every_way_this_machine_has() {
    let study = Study::new();
    let result = study.result(&["--count", "5", "--part", "ladder"]);
    assert_eq!(result["subject"], "the built-in echo");
    assert_eq!(result["request"]["body_bytes"], 542);
    let rungs = result["rungs"].as_array().unwrap();
    let measured = |handler: &str, language: &str| {
        let is_it = |rung: &&Value| rung["handler"] == handler && rung["language"] == language;
        let found = rungs.iter().filter(is_it);
        found.filter(|rung| rung["wall"].is_object()).count()
    };
    for language in ["shell", "perl", "python"] {
        assert_eq!(measured("cgi", language), 1, "{language}: {result:#}");
        assert!(
            measured("resident", language) >= 1,
            "{language}: {result:#}"
        );
    }
    assert_eq!(
        (measured("warm", "perl"), measured("warm", "python")),
        (1, 1)
    );
    assert!(
        result["sentence"]
            .as_str()
            .unwrap()
            .starts_with("Moving the echo in ")
    );
}

#[test]
fn processes_made_bare_are_told_by_way_and_by_parent() {
    let study = Study::new();
    let result = study.result(&["--count", "3", "--part", "bare"]);
    let rows = result["bare"].as_array().unwrap();
    assert_eq!(rows.len(), 15);
    let wall = |made_by: &str, exec: bool, parent: u64| {
        let is_it = |row: &&Value| {
            row["made_by"] == made_by && row["exec"] == exec && row["parent_bytes"] == parent
        };
        rows.iter()
            .find(is_it)
            .and_then(|row| row["cpu_us"].as_f64())
    };
    let small = wall("fork", false, 0).unwrap();
    assert!(wall("posix_spawn", true, 0).is_some() && wall("vfork", true, 0).is_some());
    // Copying the tables of 100 MB costs many times a whole small process.
    let large = wall("fork", false, 100_000_000);
    assert!(large.is_none_or(|large| large > small), "{large:?} {small}");
}

#[test]
fn url_is_told_by_packets_bytes_and_round_trips() {
    let place = Place::new();
    let hob = place.serve_config("");
    let study = Study::new();
    let url = format!("http://127.0.0.1:{}/hello.txt", hob.port());
    let result = study.result(&[&url, "--count", "20"]);
    let ways = result["wire"]["ways"].as_array().unwrap();
    let way = |name: &str| {
        let found = ways
            .iter()
            .find(|way| way["name"].as_str().unwrap().contains(name));
        found.unwrap_or_else(|| panic!("no {name} in {result:#}"))
    };
    let (each, kept) = (way("a connection each"), way("HTTP/1.1, connection kept"));
    assert!(number(&each["packets_out"]) > number(&kept["packets_out"]));
    let bytes = |way: &Value| number(&way["bytes_out"]);
    // The field that asks for the end of the connection.
    assert_eq!(
        bytes(each) - bytes(kept),
        "Connection: close\r\n".len() as f64
    );
    assert!(number(&each["round_trips"]) >= 1.0);
    for name in ["TLS, full", "HTTP/2", "HTTP/3, connection kept"] {
        assert_eq!(way(name)["not_measured"], "the URL is http");
    }
    assert!(
        result["wire"]["no_calls"]
            .as_str()
            .unwrap()
            .contains("--pid")
    );
    let refusal = study.refusal(&[&url, "--part", "stages"], 2);
    assert!(refusal.contains("of a URL only the part wire"), "{refusal}");
}

#[test]
fn script_over_tls_resumes_and_its_server_makes_calls() {
    let study = Study::new();
    study.script("hello.sh", SHELL);
    let result = study.result(&["hello.sh", "-n", "10", "--part", "wire"]);
    assert!(result["wire"]["mtu"].as_u64() > Some(1000), "{result:#}");
    let ways = result["wire"]["ways"].as_array().unwrap();
    let names = [
        "TLS, full handshake each",
        "TLS, session resumed each",
        "TLS, connection kept",
        "HTTP/2 over TLS, connection kept",
        "HTTP/3, full handshake each",
        "HTTP/3, session resumed each",
        "HTTP/3, connection kept",
    ];
    let way = |name: &str| ways.iter().find(|way| way["name"] == name).unwrap();
    for name in names {
        let way = way(name);
        assert!(
            way["tls"].as_str().unwrap_or_default().contains("TLSv1_3"),
            "{way:#}"
        );
        assert!(number(&way["bytes_in"]) > 0.0, "{way:#}");
    }
    let (full, kept) = (way(names[4]), way(names[6]));
    // The first datagram each way is filled up. //= rfc9000#14.1
    for bytes in ["bytes_out", "bytes_in"] {
        assert!(number(&full[bytes]) >= 1200.0, "{full:#}");
        assert!(number(&full[bytes]) > number(&kept[bytes]), "{kept:#}");
    }
    for packets in ["packets_out", "packets_in"] {
        assert!(number(&full[packets]) >= 2.0, "{full:#}");
        assert!(number(&kept[packets]) >= 1.0, "{kept:#}");
    }
    assert!(number(&full["round_trips"]) > 0.0, "{full:#}");
    // Where strace is there and may attach; else it is said why not.
    let calls = &ways[1]["calls"]["by_name"];
    match result["wire"]["no_calls"].as_str() {
        Some(why) => println!("skipped: no system calls: {why}"),
        None => {
            assert!(number(&calls["close"]) >= 1.0, "{calls}");
            assert!(
                number(&full["calls"]["by_name"]["sendmsg"]) >= 1.0,
                "{full:#}"
            );
        }
    }
}

#[test]
fn server_without_http3_is_told_over_tls() {
    let place = Place::new();
    let listener = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { http3 = false }\n";
    let hob = place.serve_text(&format!("{listener}[[site]]\nroot = \"site\"\n"));
    let study = Study::new();
    let url = format!("https://127.0.0.1:{}/hello.txt", hob.tls_port());
    let result = study.result(&[&url, "--count", "5"]);
    let ways = result["wire"]["ways"].as_array().unwrap();
    for way in ways {
        let name = way["name"].as_str().unwrap();
        let why = way["not_measured"].as_str();
        match name {
            _ if name.starts_with("HTTP/1.1") => assert_eq!(why, Some("the URL is https")),
            _ if name.starts_with("HTTP/3") => {
                let is_said = why.is_some_and(|why| why.contains("no request was answered"));
                assert!(is_said, "{way:#}");
            }
            _ => assert_eq!(why, None, "{way:#}"),
        }
    }
}

#[test]
fn starts_are_measured_with_a_server_that_has_grown_and_many_at_once() {
    const MB: f64 = 1e6;
    let study = Study::new();
    study.script("hello.sh", SHELL);
    let arguments = ["hello.sh", "-n", "3", "--part", "growth", "--part", "burst"];
    let result = study.result(&arguments);
    let grown = result["growth"].as_array().unwrap();
    let wanted: Vec<f64> = grown
        .iter()
        .map(|row| number(&row["wanted_bytes"]))
        .collect();
    assert_eq!(wanted, [10.0 * MB, 100.0 * MB, 1000.0 * MB]);
    for row in grown {
        if let Some(why) = row["not_possible"].as_str() {
            assert_eq!(why, "there is not enough free memory");
            continue;
        }
        // The cache is filled with whole files of 4 MB.
        let bytes = number(&row["server_bytes"]);
        assert!(bytes > number(&row["wanted_bytes"]) - 4.0 * MB, "{row:#}");
        assert!(number(&row["wall"]["p50_us"]) > 0.0, "{row:#}");
    }
    let bursts = result["burst"].as_array().unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let limits: Vec<Option<u64>> = bursts.iter().map(|row| row["limit"].as_u64()).collect();
    assert_eq!(limits, [Some(2 * cpus as u64), None]);
    for row in bursts {
        assert_eq!(row["starts"], 200);
        assert!(number(&row["wall"]["p99_us"]) >= number(&row["wall"]["p50_us"]));
        assert!(number(&row["cpu_us"]["total"]) > 0.0, "{row:#}");
    }
    assert_eq!(
        (&result["rungs"], &result["stages"]),
        (&Value::Array(vec![]), &Value::Null)
    );
}

#[test]
fn script_that_fails_is_refused_with_its_reason() {
    let study = Study::new();
    study.script("broken.sh", "#!/bin/sh\necho no tea >&2\nexit 3\n");
    let refusal = study.refusal(&["broken.sh", "-n", "5"], 1);
    for part in [
        "broken.sh fails as a CGI program: answered 502",
        "exit code 3",
        "no tea",
    ] {
        assert!(refusal.contains(part), "{refusal}");
    }
}

#[test]
fn what_is_no_script_is_refused_with_what_to_do() {
    let study = Study::new();
    study.place.write("plain.txt", "hello\n");
    study.place.write("notes.sh", SHELL);
    for (arguments, part) in [
        (&["none.py"][..], "none.py: cannot read the script"),
        (&["."], "that is no file"),
        (
            &["plain.txt"],
            "it needs a first line such as #!/usr/bin/python3",
        ),
        (&["notes.sh"], "it is not executable: chmod +x "),
        (&["--count", "0"], "requests of each kind: from 1 to "),
        (&["--rate", "0"], "the rate must be more"),
        (&["ftp://a/"], "the scheme is neither http nor https"),
    ] {
        let refusal = study.refusal(arguments, 2);
        assert!(refusal.contains(part), "{refusal}");
    }
}

#[test]
fn interrupt_leaves_nothing_behind() {
    let study = Study::new();
    // It says that it runs, so that the signal comes in the middle.
    let (running, both) = study.pipe("running");
    let mut said = BufReader::new(both).lines();
    let text = format!(
        "#!/bin/sh\necho x >>'{}'\nprintf 'Content-Type: text/plain\\n\\nhello\\n'\n",
        running.display()
    );
    study.script("slow.sh", &text);
    let mut command = study.command(&["slow.sh", "--count", "1000000", "--part", "ladder"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..10 {
        assert_eq!(said.next().unwrap().unwrap(), "x");
    }
    send_signal(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    assert!(
        text_of(&output).contains("interrupted"),
        "{}",
        text_of(&output)
    );
    study.assert_nothing_is_left();
}

#[test]
fn script_has_the_variables_and_modules_of_its_route() {
    let study = Study::new();
    study.script(
        "wiki.py",
        "#!/usr/bin/env python3\nimport os\n\
         print('Content-Type: text/plain\\n\\n' + os.environ['WIKI_ROOT'])\n",
    );
    study.place.write(
        "site.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n[[site.route]]\npath = \"/wiki/*\"\n\
         warm = { script = \"wiki.py\", preload = [\"json\"], env = { WIKI_ROOT = \"/srv\" } }\n",
    );
    let of_route = [
        "--route",
        "/wiki",
        "--config",
        "site.toml",
        "-n",
        "3",
        "--part",
        "ladder",
    ];
    let result = study.result(&of_route);
    for handler in ["cgi", "warm"] {
        let rung = rung(&result, handler, None, "script");
        assert!(rung["wall"].is_object(), "{rung}");
        assert!(rung["not_possible"].is_null(), "{rung}");
    }
    let none = study.refusal(&["--route", "/none", "--config", "site.toml"], 2);
    assert!(
        none.contains("site.toml has no route /none; it has /wiki/*"),
        "{none}"
    );
}
