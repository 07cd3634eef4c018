//! What programs are told to use, and what a move up the ladder is said to save: real scripts,
//! real requests, and arithmetic that must hold.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "cgi/site.rs"]
mod site;
#[path = "watch/watcher.rs"]
mod watcher;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use harness::DEADLINE;
use rustix::process::Signal;
use serde_json::Value;
use site::Programs;
use watcher::{history_of, object, object_when};

/// Enough of them for advice.
const RUNS: u64 = 25;

const SHELL: &str = "echo run >> ran\nprintf 'Content-Type: text/plain\\n\\nx'\n";
const PYTHON: &str = "#!/usr/bin/env python3\nprint('Content-Type: text/plain\\n\\nx')\n";

/// What is told of programs once it is as it should be.
fn programs_when(site: &Programs, is_it: impl Fn(&Value) -> bool) -> Value {
    object_when(&site.place, "/v1/programs", |told| is_it(&told["programs"]))
}

/// The script of this name in the first route.
fn script<'a>(programs: &'a Value, name: &str) -> &'a Value {
    let scripts = programs[0]["scripts"].as_array().unwrap();
    let mut its = scripts.iter();
    let found = its.find(|one| one["file"].as_str().unwrap().ends_with(name));
    found.unwrap_or(&Value::Null)
}

/// Waits until so many runs of a script are counted and it is known what to advise.
fn learned(site: &Programs, name: &str, runs: u64) -> Value {
    programs_when(site, |programs| {
        let script = script(programs, name);
        let why = script["why_not"].as_str().unwrap_or_default();
        script["requests"] == runs && !why.contains("is being measured")
    })
}

fn run(site: &Programs, path: &str, count: u64) {
    for _ in 0..count {
        assert_eq!(site.text(path).trim(), "x");
    }
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn has(program: &str) -> bool {
    let is_there = Path::new("/usr/bin").join(program).exists();
    if !is_there {
        println!("skipped: {program} is not installed");
    }
    is_there
}

#[test]
fn scripts_are_told_with_what_they_used_and_what_a_move_would_save() {
    if !has("python3") {
        return;
    }
    let site = Programs::new().with_sh("a.sh", SHELL).with("b.py", PYTHON);
    std::fs::set_permissions(site.path(""), PermissionsExt::from_mode(0o777)).unwrap();
    let site = site.serve("");
    run(&site, "/cgi/a.sh", RUNS);
    run(&site, "/cgi/b.py", RUNS + 5);
    learned(&site, "a.sh", RUNS);
    let told = learned(&site, "b.py", RUNS + 5);
    let programs = &told["programs"];
    assert_eq!(programs[0]["handler"], "cgi");
    assert_eq!(programs[0]["route"], "/cgi/*");
    assert_eq!(programs[0]["requests_today"], 2 * RUNS + 5);
    let mut used_us = 0.0;
    for (name, interpreter, to) in [("a.sh", "sh", "resident"), ("b.py", "python3", "warm")] {
        let one = script(programs, name);
        let advice = one["advice"].as_str().unwrap_or_else(|| panic!("{one:#}"));
        assert_eq!(one["interpreter"], interpreter, "{one:#}");
        let (runs, run_us) = (number(&one["requests"]), number(&one["cpu_us"]));
        used_us += number(&one["used_us"]);
        assert!(
            (runs * run_us - number(&one["used_us"])).abs() <= runs,
            "{one:#}"
        );
        let start_us = number(&one["start_cpu_us"]);
        assert!(start_us > 0.0, "{one:#}");
        let start_us = start_us.min(run_us);
        let expected_us = match to {
            "warm" => start_us - (start_us * 0.06).floor(),
            _ => start_us,
        };
        let saves = &one["saves"];
        assert_eq!(saves["to"], to, "{one:#}");
        assert!(
            (number(&saves["cpu_us"]) - expected_us).abs() <= 1.0,
            "{one:#}"
        );
        // Told a moment apart, so the rate is about the same.
        let cores = number(&saves["cpu_us"]) * number(&one["rate_s"]) / 1e6;
        let rounding = number(&saves["cpu_us"]) * 0.006 / 1e6;
        assert!(
            (number(&saves["cores"]) - cores).abs() <= rounding,
            "{one:#}"
        );
        let runs = format!("the mean of {runs} runs today");
        for words in [name, &runs, interpreter, "Measured:", "Estimated:"] {
            assert!(advice.contains(words), "{words:?} in {advice}");
        }
    }
    let lately = &programs[0]["cpu"]["minute"];
    assert_eq!(lately["requests"], 2 * RUNS + 5);
    assert_eq!(number(&lately["used_us"]), used_us, "{lately}");
    let all = programs[0]["advice"].as_str().unwrap();
    assert!(all.starts_with("2 scripts of /cgi/* could move"), "{all}");
    // Nothing was run that nobody asked for.
    let ran = std::fs::read_to_string(site.path("ran")).unwrap();
    assert_eq!(ran.lines().count() as u64, RUNS);
}

#[test]
fn nothing_is_advised_for_few_requests_and_nothing_measured() {
    let text = "printf 'Content-Type: text/plain\\n\\nx'\n";
    let site = Programs::new().with_sh("a.sh", text).with_sh("b.sh", text);
    let site = site.serve("");
    run(&site, "/cgi/a.sh", 3);
    let told = programs_when(&site, |programs| script(programs, "a.sh")["requests"] == 3);
    let one = script(&told["programs"], "a.sh");
    assert_eq!(one["why_not"], "fewer than 20 requests today");
    assert_eq!(
        (&one["advice"], &one["saves"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(told["programs"][0]["advice"], Value::Null);
    // Had it been looked at, that would have been before the next one.
    run(&site, "/cgi/b.sh", RUNS);
    let told = learned(&site, "b.sh", RUNS);
    let one = script(&told["programs"], "a.sh");
    assert_eq!(
        (&one["interpreter"], &one["start_cpu_us"]),
        (&Value::Null, &Value::Null)
    );
}

/// A folder into which programs may write.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    folder
}

/// A site whose `.py` scripts are run by this interpreter.
fn with_interpreter(text: &str) -> Programs {
    let site = Programs::new().with_mode("x.py", "x", 0o644);
    let site = site.with_mode("y.py", "y", 0o644);
    let path = site.place.script("python3", text);
    let keys = format!("interpreters = {{ \".py\" = \"{}\" }}", path.display());
    site.serve(&keys)
}

const ANSWERS: &str = "printf 'Content-Type: text/plain\\n\\nx'\n";

#[test]
fn interpreter_that_hangs_is_ended_and_said_to_hang() {
    let text = format!("#!/bin/sh\ntest \"$1\" = -I && exec sleep 4711\n{ANSWERS}");
    let site = with_interpreter(&text);
    run(&site, "/cgi/x.py", RUNS);
    let told = learned(&site, "x.py", RUNS);
    let why = script(&told["programs"], "x.py")["why_not"]
        .as_str()
        .unwrap();
    assert!(
        why.contains("could not be measured: it did not end within 10 s"),
        "{why}"
    );
    assert_eq!(told["programs"][0]["advice"], Value::Null);
    let until = Instant::now() + DEADLINE;
    while !harness::children_of(site.hob().spawner()).is_empty() {
        assert!(Instant::now() < until, "it is still there");
        std::thread::yield_now();
    }
}

#[test]
fn interpreter_that_fails_or_is_gone_or_strange_is_said_to_be() {
    let folder = open_folder();
    let starts = folder.path().join("starts");
    let text = format!(
        "#!/bin/sh\ntest \"$1\" = -I && echo start >> {} && exit 3\n{ANSWERS}",
        starts.display()
    );
    let site = with_interpreter(&text);
    run(&site, "/cgi/x.py", RUNS);
    let told = learned(&site, "x.py", RUNS);
    let why = &script(&told["programs"], "x.py")["why_not"];
    assert!(
        why.as_str().unwrap().contains("it ended with exit code 3"),
        "{why}"
    );
    // What is known of it is not measured again for another script.
    run(&site, "/cgi/y.py", RUNS);
    let told = learned(&site, "y.py", RUNS);
    assert_eq!(&script(&told["programs"], "y.py")["why_not"], why);
    assert_eq!(std::fs::read_to_string(starts).unwrap(), "start\n");

    let site = with_interpreter(&format!("#!/bin/sh\n{ANSWERS}"));
    run(&site, "/cgi/x.py", RUNS);
    std::fs::remove_file(site.place.path("python3")).unwrap();
    let told = learned(&site, "x.py", RUNS);
    let why = &script(&told["programs"], "x.py")["why_not"];
    assert!(
        why.as_str().unwrap().ends_with("python3 is not there"),
        "{why}"
    );

    let awk = "#!/usr/bin/awk -f\nBEGIN { print \"Content-Type: text/plain\\n\\nx\" }\n";
    let site = Programs::new().with("x.awk", awk).serve("");
    run(&site, "/cgi/x.awk", RUNS);
    let told = learned(&site, "x.awk", RUNS);
    let why = &script(&told["programs"], "x.awk")["why_not"];
    assert!(
        why.as_str()
            .unwrap()
            .contains("hob does not know how to start it"),
        "{why}"
    );
}

#[test]
fn warm_scripts_are_told_beside_those_that_are_started() {
    if !has("python3") {
        return;
    }
    let site = Programs::new().with("b.py", PYTHON);
    let site = site
        .serve_route("path = \"/cgi/*\"\nwarm = { dir = \"cgi\", interpreter = \"python3\" }\n");
    run(&site, "/cgi/b.py", RUNS);
    let told = learned(&site, "b.py", RUNS);
    let program = &told["programs"][0];
    assert_eq!(
        (&program["handler"], &program["route"]),
        (&"warm".into(), &"/cgi/*".into())
    );
    let one = script(&told["programs"], "b.py");
    assert!(
        number(&one["start_cpu_us"]) > number(&one["cpu_us"]),
        "a fork is cheaper: {one:#}"
    );
    // What a program that stays would save is the fork.
    let (start_us, run_us) = (number(&one["start_cpu_us"]), number(&one["cpu_us"]));
    let fork_us = (start_us * 0.06).floor().min(run_us);
    if fork_us * 100.0 < run_us * 5.0 {
        let why = one["why_not"].as_str().unwrap();
        assert!(
            why.starts_with("moving it to resident would save nothing"),
            "{why}"
        );
    } else {
        assert_eq!(one["saves"]["to"], "resident", "{one:#}");
        let saved_us = number(&one["saves"]["cpu_us"]);
        assert!((saved_us - fork_us).abs() <= 1.0, "{one:#}");
    }
}

#[test]
fn programs_that_stay_are_told_with_route_and_cpu_time() {
    let site = Programs::new().with(
        "stay",
        "#!/bin/sh\nwhile IFS= read -r beginning; do\n\
         while IFS= read -r line && [ -n \"$line\" ]; do :; done\n\
         printf 'Content-Type: text/plain\\n\\nx\\n%s\\n' \"$CGIPLUSEOF\"\n\
         done <\"$CGIPLUSIN\"\n",
    );
    let site = site.serve_route(
        "path = \"/app/*\"\nresident = { run = [\"./cgi/stay\"], carrier = \"lines\", workers = { \
         min = 1, max = 1 } }\n",
    );
    run(&site, "/app/x", RUNS);
    let is_told = |programs: &Value| {
        let worker = &programs[0]["workers"][0];
        worker["cpu_us"].is_u64() && programs[0]["cpu"]["minute"]["requests"] == RUNS
    };
    let told = programs_when(&site, is_told);
    let program = &told["programs"][0];
    assert_eq!(
        (&program["site"], &program["route"]),
        (&"*".into(), &"/app/*".into())
    );
    assert_eq!(program["routes"][0]["route"], "/app/*");
    let lately = &program["cpu"]["minute"];
    let each_us = number(&lately["used_us"]) / RUNS as f64;
    assert_eq!(number(&lately["request_us"]), each_us.round());
    assert!(number(&lately["used_us"]) <= number(&program["workers"][0]["cpu_us"]));
    assert_eq!(program["advice"], Value::Null, "there is no rung above");

    let history = history_of(&site.place, "handler=resident", RUNS);
    let requests = history["requests"].as_array().unwrap();
    let mut times = requests.iter().map(|one| number(&one["program_us"]));
    assert!(
        times.any(|us| us % 1000.0 != 0.0),
        "times are not whole milliseconds: {history}"
    );
}

#[test]
fn when_a_cgi_program_ran_is_told_with_its_end() {
    let site = Programs::new().with_sh("a.sh", SHELL).serve("");
    run(&site, "/cgi/a.sh", 1);
    let history = history_of(&site.place, "handler=cgi", 1);
    let one = &history["requests"][0];
    assert!(one["program_us"].as_u64().unwrap() > 0, "{one}");
    assert!(
        one["start_us"].as_u64() < one["program_us"].as_u64(),
        "{one}"
    );
    let routes = object(&site.place, "/v1/routes?by=handler");
    let routes = routes["routes"].as_array().unwrap();
    let cgi = routes.iter().find(|one| one["handler"] == "cgi").unwrap();
    assert_eq!(
        (&cgi["queue"]["count"], &cgi["start"]["count"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn interpreter_whose_start_was_cut_short_is_tried_again() {
    let folder = open_folder();
    let begun = folder.path().join("begun");
    let text = format!(
        "#!/bin/sh\ntest \"$1\" = -I && mkdir {} 2>/dev/null && exec sleep 4711\n{ANSWERS}",
        begun.display()
    );
    let site = with_interpreter(&text);
    run(&site, "/cgi/x.py", RUNS);
    let until = Instant::now() + DEADLINE;
    while !begun.exists() {
        object(&site.place, "/v1/programs");
        assert!(Instant::now() < until, "it was not started");
    }
    harness::send_signal(site.hob().spawner(), Signal::KILL);
    programs_when(&site, |programs| {
        script(programs, "x.py")["start_cpu_us"].is_u64()
    });
}

#[test]
fn script_of_a_warm_route_that_is_not_forked_is_told_with_its_own_interpreter() {
    if !has("python3") {
        return;
    }
    let site = Programs::new().with_sh("a.sh", SHELL).with("b.py", PYTHON);
    std::fs::set_permissions(site.path(""), PermissionsExt::from_mode(0o777)).unwrap();
    let site = site
        .serve_route("path = \"/cgi/*\"\nwarm = { dir = \"cgi\", interpreter = \"python3\" }\n");
    run(&site, "/cgi/a.sh", RUNS);
    run(&site, "/cgi/b.py", RUNS);
    learned(&site, "b.py", RUNS);
    let told = learned(&site, "a.sh", RUNS);
    for (name, interpreter) in [("a.sh", "sh"), ("b.py", "python3")] {
        let one = script(&told["programs"], name);
        assert_eq!(one["interpreter"], interpreter, "{one:#}");
    }
}

#[test]
fn reload_that_leaves_a_route_as_it_is_forgets_nothing_of_it() {
    let site = Programs::new().with_sh("a.sh", ANSWERS).serve("");
    run(&site, "/cgi/a.sh", RUNS);
    let before = learned(&site, "a.sh", RUNS);
    let text = std::fs::read_to_string(site.place.path("hob.toml")).unwrap();
    // Another program before it, and one behind it.
    let site_begin = "[[site]]\nroot = \"site\"\n";
    let first =
        "[[site.route]]\npath = \"/first/*\"\ncgi = { dir = \"cgi\", env = { A = \"b\" } }\n";
    let changed = text.replace(site_begin, &format!("{site_begin}{first}"));
    assert_ne!(text, changed);
    site.reload(&changed);
    let told = object(&site.place, "/v1/programs");
    let its = |told: &Value| {
        let programs = told["programs"].as_array().unwrap();
        let mut its = programs.iter().filter(|one| one["route"] == "/cgi/*");
        its.next().unwrap().clone()
    };
    let (before, after) = (its(&before), its(&told));
    let start = |program: &Value| program["scripts"][0]["start_cpu_us"].clone();
    assert!(start(&before).is_u64(), "{before:#}");
    assert_eq!(start(&before), start(&after), "{after:#}");
    assert_eq!(after["cpu"]["minute"]["requests"], RUNS, "{after:#}");
}

#[test]
fn cpu_time_of_a_worker_has_that_of_its_children() {
    let site = Programs::new().with(
        "stay",
        "#!/bin/sh\nwhile IFS= read -r beginning; do\n\
         while IFS= read -r line && [ -n \"$line\" ]; do :; done\n\
         sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'\n\
         printf 'Content-Type: text/plain\\n\\nx\\n%s\\n' \"$CGIPLUSEOF\"\n\
         done <\"$CGIPLUSIN\"\n",
    );
    let site = site.serve_route(
        "path = \"/app/*\"\nresident = { run = [\"./cgi/stay\"], carrier = \"lines\", workers = { \
         min = 1, max = 1 } }\n",
    );
    run(&site, "/app/x", 1);
    let pid = object(&site.place, "/v1/programs")["programs"][0]["workers"][0]["pid"].clone();
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let ticks = |field: usize| fields[field].parse::<f64>().unwrap();
        (ticks(11) + ticks(12), ticks(13) + ticks(14))
    };
    let tick_us = 1e6 / rustix::param::clock_ticks_per_second() as f64;
    let (own, children) = used();
    assert!(children > own, "{own} {children}");
    let told = object(&site.place, "/v1/programs");
    let worker = &told["programs"][0]["workers"][0];
    let (own_later, children_later) = used();
    let range = (own + children) * tick_us..=(own_later + children_later) * tick_us;
    assert!(
        range.contains(&number(&worker["cpu_us"])),
        "{worker} {range:?}"
    );
    let lately = &told["programs"][0]["cpu"]["minute"];
    assert!(number(&lately["used_us"]) >= children * tick_us, "{lately}");
}
