//! `hob compare`: what it measures is told with every round, rivals that are missing or do not
//! start are said, and nothing of what it started stays, whatever ends it.
#![allow(clippy::unwrap_used)]

mod harness;
#[path = "bench/schema.rs"]
mod schema;

#[path = "compare/distant.rs"]
mod distant;
#[path = "compare/link.rs"]
mod link;
#[path = "compare/programs.rs"]
mod programs;
#[path = "compare/releases.rs"]
mod releases;
#[path = "compare/rows.rs"]
mod rows;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use harness::{DEADLINE, Place, User, children_of, is_root, send_signal, text_of, wait_for_end};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use schema::conforms;
use serde_json::Value;

/// One row, as short as it can be and still be one.
const SHORT: [&str; 6] = [
    "--only",
    "file.h1.clear.keep.1k.c1",
    "--round",
    "20ms",
    "--rounds",
    "2",
];

/// `hob compare` with a temporary folder that shows what it leaves behind.
fn compare(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.env("TMPDIR", place.path("run")).arg("compare");
    command.args(arguments);
    command
}

fn has_nginx() -> bool {
    let is_there = ["/usr/sbin/nginx", "/usr/bin/nginx"].map(|path| Path::new(path).is_file());
    if !is_there.contains(&true) {
        println!("skipped: nginx is not installed: apt-get install nginx-light");
    }
    is_there.contains(&true)
}

/// The result in a file, which is what the schema says.
fn result(place: &Place, json: &str) -> Value {
    let told = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let schema = compare(place, &["--schema"]).output().unwrap();
    let schema = serde_json::from_slice(&schema.stdout).unwrap();
    conforms(&told, &schema, &schema, "");
    told
}

/// What is left in the temporary folder.
fn left(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("run")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A program of that name, which says a version when it is asked for one.
fn fake(place: &Place, name: &str, otherwise: &str) -> PathBuf {
    let text = format!("#!/bin/sh\n[ \"$1\" = -v ] && echo 'v9.8.7' && exit 0\n{otherwise}\n");
    place.script(&format!("bin/{name}"), &text);
    place.path("bin")
}

#[test]
fn row_is_measured_for_each_server_and_told_with_every_round() {
    if !has_nginx() {
        return;
    }
    let place = Place::new();
    let (json, html) = (place.path("run/it.json"), place.path("run/it.html"));
    let (json, html) = (json.to_str().unwrap(), html.to_str().unwrap());
    let other = place.path("hob");
    let more = ["--servers", "nginx", "--rival", other.to_str().unwrap()];
    let files = ["--json", json, "--html", html];
    let output = compare(&place, &[&SHORT[..], &more, &files].concat()).output();
    let output = output.unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("[file.h1.clear.keep.1k.c1]"), "{text}");

    let told = result(&place, json);
    assert_eq!(told["format"], 2);
    assert_eq!(told["interrupted"], false);
    let names = |list: &Value, field: &str| -> Vec<String> {
        let all = list.as_array().unwrap().iter();
        all.map(|one| one[field].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(&told["servers"], "name"),
        ["hob", "other hob", "nginx"]
    );
    for server in told["servers"].as_array().unwrap() {
        let configuration = server["configuration"].as_str().unwrap();
        assert!(configuration.contains("127.0.0.1"), "{server:#}");
    }
    let environment = &told["environment"];
    assert!(environment["kernel"].is_string(), "{environment:#}");
    assert!(names(&environment["more"], "name").contains(&"server's CPU".to_owned()));
    // Tests are built without optimization, which must be said.
    let program = environment["program"].as_str().unwrap();
    assert_eq!(
        program.ends_with("a debug build"),
        text.contains("built without optimization"),
        "{text}"
    );
    let rows = told["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:#?}");
    let cells = &rows[0]["cells"];
    assert_eq!(names(cells, "label"), ["hob", "other hob", "nginx"]);
    for cell in cells.as_array().unwrap() {
        assert_eq!(
            (&cell["failed"], &cell["not_measured"], &cell["doubtful"]),
            (&0.into(), &Value::Null, &Value::Null)
        );
        assert_eq!(cell["cpu_us"]["n"], 2);
        let rounds = cell["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2, "{cell:#}");
        for round in rounds {
            assert!(round["good"].as_u64().unwrap() > 0, "{cell:#}");
            // Where the kernel counts how long threads wait.
            let is_counted = std::fs::read("/proc/self/schedstat").is_ok();
            for field in ["waited_us", "client_waited_us"] {
                assert_eq!(round[field].is_number(), is_counted, "{field}: {round:#}");
            }
            let is_told = round["cpu_mhz"].as_f64().is_none_or(|mhz| mhz > 1.0);
            assert!(is_told, "{round:#}");
        }
    }
    // Only a full run has what the documents claim.
    assert_eq!(told["claims"], serde_json::json!([]));
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("nginx"));
    std::fs::remove_file(json).unwrap();
    std::fs::remove_file(html).unwrap();
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn old_figures_stand_beside_the_row_with_their_id_and_what_is_odd_about_them() {
    let place = Place::new();
    let only = ["--only", "file.h1.clear.close.64k.c1", "--servers", "caddy"];
    let (json, html) = (place.path("run/it.json"), place.path("run/it.html"));
    let json = json.to_str().unwrap();
    let short = [
        "--round",
        "20ms",
        "--rounds",
        "1",
        "--json",
        json,
        "--html",
        html.to_str().unwrap(),
    ];
    let output = compare(&place, &[&only[..], &short].concat())
        .output()
        .unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let line = "WASD 5.2 43 req/s (1), 4.74 s (200 requests) [A.file.cache.64k.c1]";
    assert!(text.contains(&format!("then: {line}")), "{text}");
    // What is odd about an old figure is said below it, on the page too.
    let remark = "(1) 200 requests in the printed 4.74 s are 42.2/s";
    assert!(text.contains(remark), "{text}");
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains(line) && page.contains(remark));
    let then = &result(&place, json)["rows"][0]["then"][0];
    assert_eq!(
        (&then["figure"], &then["server"]),
        (&43.0.into(), &"WASD 5.2".into())
    );
    assert!(
        text.contains("WASD Hypertext Services technical overview"),
        "{text}"
    );
}

#[test]
fn full_run_ends_with_each_claim_of_the_documents_and_what_is_so_here() {
    let place = Place::new();
    let (json, html) = (place.path("run/it.json"), place.path("run/it.html"));
    let (json, html) = (json.to_str().unwrap(), html.to_str().unwrap());
    let arguments = [
        "--full",
        "--only",
        "file.h1.clear.close.0k",
        "--servers",
        "caddy",
        "--round",
        "200ms",
        "--rounds",
        "2",
        "--json",
        json,
        "--html",
        html,
    ];
    let output = compare(&place, &arguments).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let told = result(&place, json);
    let claims = told["claims"].as_array().unwrap();
    let of = |start: &str| {
        let is_it = |one: &&Value| one["claim"].as_str().unwrap().starts_with(start);
        claims.iter().find(is_it).unwrap()
    };
    let measured = of("ten connections do more than one");
    assert_eq!(
        (&measured["document"], &measured["then"]),
        (&"A".into(), &"1.16 x".into())
    );
    match measured["now"]["median"].as_f64() {
        Some(ratio) => assert!(ratio > 0.0),
        // No figure is told where it says nothing.
        None => {
            let why = measured["not_measured"].as_str().unwrap();
            assert!(why.contains("the machine was busy"), "{measured:#}");
        }
    }
    let other = of("the cache of files doubles");
    let why = "these rows have no \"cache off\" in file.h1.clear.uncached.0k.c10";
    assert_eq!(
        (&other["now"], &other["not_measured"]),
        (&Value::Null, &why.into())
    );
    let page = std::fs::read_to_string(html).unwrap();
    for claim in claims {
        let named = claim["claim"].as_str().unwrap();
        assert_eq!(
            text.matches(&format!("  {named}\n")).count(),
            1,
            "{named}\n{text}"
        );
        // Each says what is so here, or why nobody knows.
        assert_ne!(
            claim["now"].is_null(),
            claim["not_measured"].is_null(),
            "{claim:#}"
        );
    }
    assert!(
        text.contains(&format!("here not measured: {why}")),
        "{text}"
    );
    let written = why.replace('"', "&quot;");
    assert!(page.contains(&written) && page.contains("why they differ"));
}

#[test]
fn what_it_costs_to_be_looked_at_is_measured_while_somebody_looks() {
    let place = Place::new();
    let json = place.path("run/it.json");
    let json = json.to_str().unwrap();
    let only = ["--only", "cost.inside.clear.keep.0k.c10", "--json", json];
    let output = compare(&place, &[&only[..], &SHORT[2..]].concat()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let told = result(&place, json);
    let cells = told["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    for cell in cells {
        // It says so where nobody got to look.
        assert_eq!(cell["not_measured"], Value::Null, "{cell:#}");
        assert_eq!(cell["cpu_us"]["n"], 2, "{cell:#}");
    }
    std::fs::remove_file(json).unwrap();
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn rival_that_does_not_start_is_said_with_what_it_printed() {
    let place = Place::new();
    let folder = fake(&place, "nginx", "echo 'no way to start' >&2\nexit 3");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let mut command = compare(&place, &[&SHORT[..], &["--servers", "nginx"]].concat());
    let output = command.env("PATH", path).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("not measured: ended at once: nginx exit status: 3"),
        "{text}"
    );
    assert!(text.contains("no way to start"), "{text}");
    let own = text.lines().find(|line| line.starts_with("  hob "));
    assert!(own.is_some_and(|line| line.contains(" us ")), "{text}");
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn rival_that_is_not_there_is_said() {
    let place = Place::new();
    place.folder("bin");
    let mut command = compare(
        &place,
        &["--list", "--only", ".clear.keep.1k.", "--servers", "caddy"],
    );
    let output = command.env("PATH", place.path("bin")).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("quick  file.h1.clear.keep.1k.c1"), "{text}");
    assert!(
        text.contains("caddy is not compared: caddy is not installed"),
        "{text}"
    );
    assert!(!text.contains("nginx"), "{text}");
}

#[test]
fn rival_that_is_closed_to_whoever_compares_is_not_told_as_missing() {
    let place = Place::new();
    let folder = fake(&place, "caddy", "exit 3");
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    let told = || {
        let arguments = ["--list", "--only", ".clear.keep.1k.", "--servers", "caddy"];
        let mut command = compare(&place, &arguments);
        let output = command.env("PATH", &folder).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        text_of(&output)
    };
    let user = if is_root() {
        65534
    } else {
        rustix::process::getuid().as_raw()
    };
    let program = folder.join("caddy");
    mode(&program, 0o644);
    let why = format!("user {user} may not run {}", program.display());
    let text = told();
    assert!(
        text.contains(&format!("caddy is not compared: {why}")),
        "{text}"
    );
    mode(&folder, 0);
    let why = format!(
        "not installed where user {user} may look; {}",
        folder.display()
    );
    let text = told();
    assert!(text.contains(&why), "{text}");
    mode(&folder, 0o755);
}

#[test]
fn what_cannot_be_compared_is_refused_with_what_to_write() {
    let place = Place::new();
    for (arguments, wanted) in [
        (
            &["--only", "nonsense.clear."][..],
            "no row has nonsense.clear. in its id",
        ),
        (
            &["--servers", "iis"],
            "known are hob, nginx, apache, lighttpd, h2o, caddy, php-fpm, uwsgi, granian",
        ),
        (
            &["--rival", "/nowhere/hob"],
            "--rival /nowhere/hob cannot be run",
        ),
    ] {
        let output = compare(&place, arguments).output().unwrap();
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(wanted), "{text}");
    }
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

/// A comparison that goes on until somebody ends it, and all that is below it by now: the keepers,
/// hob and its processes, nginx and its worker.
fn endless(place: &Place) -> (Child, Vec<u32>) {
    let only = ["--only", "file.h1.clear.keep.1k.c1", "--servers", "nginx"];
    endless_with(place, &only, "nginx")
}

/// The same with these arguments, once two processes of that name run.
fn endless_with(place: &Place, only: &[&str], awaited: &str) -> (Child, Vec<u32>) {
    let mut command = compare(place, &[only, &["--round", "200ms"]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let begun = Instant::now();
    let is_there = |pids: &[u32]| {
        let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm"));
        let names = pids.iter().filter_map(|pid| name(pid).ok());
        names.filter(|name| name.trim() == awaited).count() >= 2
    };
    let mut all = below(child.id());
    while !is_there(&all) {
        assert!(begun.elapsed() < DEADLINE, "{awaited} does not run");
        std::thread::yield_now();
        all = below(child.id());
    }
    (child, all)
}

fn below(pid: u32) -> Vec<u32> {
    let mut all = children_of(pid);
    let mut index = 0;
    while index < all.len() {
        all.extend(children_of(all[index]));
        index += 1;
    }
    all
}

/// Control groups of this comparison, in either version.
fn groups(pid: u32) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with(&format!("hob-compare-{pid}-")) {
                    found.push(entry.path());
                }
                open.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn interrupted_comparison_reports_and_leaves_nothing() {
    if !has_nginx() {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::for_user(User::Same);
        let (child, below) = endless(&place);
        let pid = child.id();
        send_signal(pid, signal);
        let output = child.wait_with_output().unwrap();
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(
            text.contains("interrupted: rows at the end are missing"),
            "{text}"
        );
        for pid in below {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} lives");
        }
        assert_eq!(left(&place), Vec::<PathBuf>::new());
        assert_eq!(groups(pid), Vec::<PathBuf>::new());
    }
}

#[test]
fn killed_comparison_leaves_nothing_either() {
    if !has_nginx() {
        return;
    }
    let place = Place::for_user(User::Same);
    let (mut child, below) = endless(&place);
    send_signal(child.id(), Signal::KILL);
    child.wait().unwrap();
    for pid in below {
        wait_for_end(pid);
    }
    // The last keeper removes the folder as the last thing it does.
    assert_eq!(left(&place), Vec::<PathBuf>::new());
    assert_eq!(groups(child.id()), Vec::<PathBuf>::new());
}

#[test]
fn what_a_killed_keeper_held_ends_with_the_comparison() {
    if !has_nginx() {
        return;
    }
    let place = Place::for_user(User::Same);
    let (child, below) = endless(&place);
    let pid = child.id();
    for keeper in children_of(pid) {
        send_signal(keeper, Signal::KILL);
    }
    send_signal(pid, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    for pid in below {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} lives");
    }
    assert_eq!(left(&place), Vec::<PathBuf>::new());
    assert_eq!(groups(pid), Vec::<PathBuf>::new());
}

#[test]
fn help_has_examples_and_exit_codes() {
    let place = Place::new();
    let output = compare(&place, &["--help"]).output().unwrap();
    let text = text_of(&output);
    for wanted in ["Examples:", "hob compare --quick", "--rival", "Exit codes:"] {
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn servers_over_tls_speak_the_same() {
    if !has_nginx() {
        return;
    }
    let place = Place::new();
    let json = place.path("run/it.json");
    let only = ["--only", "file.h1.tls.close.1k.c1", "--servers", "nginx"];
    let short = ["--round", "20ms", "--rounds", "1"];
    let file = ["--json", json.to_str().unwrap()];
    let output = compare(&place, &[&only[..], &short, &file].concat()).output();
    let text = text_of(&output.unwrap());
    assert!(!text.contains("TLS was not the same"), "{text}");
    let told: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let cells = told["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "{text}");
    for cell in cells {
        assert_eq!(
            cell["rounds"][0]["tls"], "TLSv1_3 TLS13_AES_256_GCM_SHA384 X25519",
            "{cell:#}"
        );
    }
}

#[test]
fn result_that_is_there_stays_until_there_is_another() {
    let place = Place::new();
    let json = place.path("run/it.json");
    std::fs::write(&json, "the last one").unwrap();
    let arguments = ["--servers", "iis", "--json", json.to_str().unwrap()];
    let output = compare(&place, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
    assert_eq!(std::fs::read_to_string(&json).unwrap(), "the last one");
    assert_eq!(left(&place), [json]);
    let nowhere = place.path("run/nowhere/it.json");
    let arguments = ["--quick", "--json", nowhere.to_str().unwrap()];
    let output = compare(&place, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
    assert!(
        text_of(&output).contains("cannot write it"),
        "{}",
        text_of(&output)
    );
}

/// A pipe with a name, open at both ends, so that nobody waits for somebody to open it.
fn pipe(place: &Place, name: &str) -> std::fs::File {
    let path = place.path(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::from(0o666), 0).unwrap();
    let both = std::fs::File::options().read(true).write(true).open(&path);
    both.unwrap()
}

#[test]
fn interrupted_list_leaves_nothing() {
    let place = Place::for_user(User::Same);
    let (said, mut told) = (pipe(&place, "said"), pipe(&place, "told"));
    let mut said = BufReader::new(said);
    let compiler = format!(
        "echo compiling > '{}'\nread -r go < '{}'\nexit 1",
        place.path("said").display(),
        place.path("told").display()
    );
    let folder = fake(&place, "cc", &compiler);
    let mut command = compare(&place, &["--list"]);
    let path = format!("{}:/usr/bin:/bin", folder.display());
    command.env("PATH", path).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "compiling\n");
    assert_eq!(left(&place).len(), 1);
    send_signal(child.id(), Signal::INT);
    // As often as it is asked to compile.
    told.write_all("go\n".repeat(20).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("interrupted; nothing was left behind"),
        "{text}"
    );
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}
