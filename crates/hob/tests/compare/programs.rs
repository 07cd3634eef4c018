//! Rows of programs, with the servers that people run them in, and the sweep.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use super::harness::{Place, User, library, send_signal, text_of};
use super::{compare, endless_with, groups, left};

/// Is one of these programs installed? Else a line says what is not tested.
fn has(name: &str, programs: &[&str]) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
    let found = { folders }.any(|folder| programs.iter().any(|one| folder.join(one).is_file()));
    if !found {
        println!("skipped: {name} is not installed");
    }
    found
}

/// Measures rows with these servers, and returns them.
fn rows(place: &Place, servers: &str, only: &[&str]) -> Vec<Value> {
    rows_with(place, servers, only, &[])
}

/// The same with more arguments.
fn rows_with(place: &Place, servers: &str, only: &[&str], more: &[&str]) -> Vec<Value> {
    let json = place.path("run/it.json");
    let only = only.iter().flat_map(|only| ["--only", only]);
    let mut arguments: Vec<&str> = only.collect();
    arguments.extend(["--servers", servers, "--round", "20ms", "--rounds", "1"]);
    arguments.extend(["--json", json.to_str().unwrap()]);
    arguments.extend(more);
    let output = compare(place, &arguments).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let told: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    std::fs::remove_file(&json).unwrap();
    assert_eq!(left(place), Vec::<PathBuf>::new());
    told["rows"].as_array().unwrap().clone()
}

/// The labels of a row's cells, each of which was measured without a failure.
fn labels(row: &Value) -> Vec<&str> {
    let cells = row["cells"].as_array().unwrap();
    for cell in cells {
        // Rounds are short and the machine may be busy: what is doubtful is no matter here.
        assert_eq!(cell["not_measured"], Value::Null, "{cell:#}");
        assert_eq!(cell["failed"], 0, "{cell:#}");
        assert!(cell["rounds"][0]["good"].as_u64().unwrap() > 0, "{cell:#}");
    }
    cells
        .iter()
        .map(|cell| cell["label"].as_str().unwrap())
        .collect()
}

#[test]
fn scripts_are_run_by_apache_and_lighttpd_too() {
    if !has("Apache", &["apache2", "httpd"]) | !has("lighttpd", &["lighttpd"]) {
        return;
    }
    let place = Place::new();
    let only = [
        "file.h1.clear.keep.1k.c1",
        "script.sh.clear",
        "script.perl.tls.keep.1k.c1",
    ];
    let rows = rows(&place, "apache,lighttpd", &only);
    assert_eq!(labels(&rows[0]), ["hob", "apache", "lighttpd"]);
    let perl = ["hob cgi", "hob warm", "hob resident, kept compiled"];
    assert_eq!(labels(&rows[1])[..3], perl);
    assert_eq!(labels(&rows[1])[3..5], ["apache cgi", "lighttpd cgi"]);
    assert_eq!(labels(&rows[2]), ["hob cgi", "apache cgi", "lighttpd cgi"]);
}

#[test]
fn program_on_another_machine_is_asked_over_the_loopback_and_over_a_link() {
    if !super::has_nginx() {
        return;
    }
    // Only root makes links.
    let place = Place::for_user(User::Same);
    copy_library(&place);
    let is_root = rustix::process::geteuid().is_root();
    let only = match is_root {
        true => &["remote.c.loopback.0k.c10", "remote.c.20ms.16k.c1"][..],
        false => &["remote.c.loopback.0k.c10"],
    };
    for row in rows(&place, "nginx", only) {
        let first = row["cells"][0]["not_measured"].as_str();
        if let Some(why) = first.filter(|why| why.contains("a TUN device")) {
            println!("skipped: {why}");
            continue;
        }
        let remote = [
            "hob resident, kept",
            "hob resident, a connection each",
            "hob resident, at home",
            "hob cgi, kept",
            "hob cgi, a connection each",
            "hob cgi, at home",
            "nginx fastcgi, kept",
            "nginx fastcgi, a connection each",
        ];
        assert_eq!(labels(&row), remote);
        // No answer comes sooner than the way there and back takes, and a connection of one's own
        // takes it more than once.
        let is_linked = row["id"].as_str().unwrap().contains("20ms");
        let trips = [1.0, 3.0, 0.0, 1.0, 3.0, 0.0, 1.0, 2.0];
        for (cell, trips) in row["cells"].as_array().unwrap().iter().zip(trips) {
            let p50_us = cell["rounds"][0]["p50_us"].as_f64().unwrap();
            assert!(!is_linked || p50_us >= trips * 20_000.0, "{cell:#}");
        }
    }
    if !is_root {
        println!("skipped: a link to another machine needs root");
    }
}

/// Servers of applications from PyPI, in a folder of their own: what stands in PATH may be any
/// version, of any account. The reason where they cannot be had.
fn application_servers() -> Result<PathBuf, String> {
    const INSTALL: &str = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n\
        from client import install; sys.exit(install(Path(sys.argv[2]), sys.argv[3:]) or None)";
    let folder = library::root().join("target/application-servers");
    let output = Command::new("python3")
        .args(["-c", INSTALL])
        .args([&library::root().join("crates/hob/tests/h3"), &folder])
        .args(["granian==2.8.7", "gunicorn==27.0.1", "uvicorn==0.54.0"])
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(folder.canonicalize().unwrap().join("bin")),
        false => Err(text_of(&output)),
    }
}

#[test]
fn servers_of_applications_stand_beside_resident_programs() {
    if !super::has_nginx() | !has("uWSGI", &["uwsgi"]) {
        return;
    }
    let folder = match application_servers() {
        Ok(folder) => folder,
        Err(why) => return println!("skipped: Granian and others cannot be installed: {why}"),
    };
    let [granian, gunicorn, uvicorn] = ["granian", "gunicorn", "uvicorn"].map(|name| {
        let program = folder.join(name);
        program.to_str().unwrap().to_owned()
    });
    // The folder may be one that only whoever runs the tests may enter.
    let place = Place::for_user(User::Same);
    let rivals = [
        "--rival", &granian, "--rival", &gunicorn, "--rival", &uvicorn,
    ];
    let only = [
        "script.wsgi.clear.keep.16k.c1",
        "script.asgi.clear.keep.16k.c1",
    ];
    let rows = rows_with(&place, "nginx,uwsgi", &only, &rivals);
    let wsgi = [
        "hob resident WSGI",
        "granian WSGI",
        "uwsgi own router",
        "uwsgi behind nginx",
        "gunicorn WSGI",
    ];
    assert_eq!(labels(&rows[0]), wsgi);
    let asgi = ["hob resident ASGI", "granian ASGI", "uvicorn ASGI"];
    assert_eq!(labels(&rows[1]), asgi);
}

/// What php-fpm is called where it is installed.
fn php() -> Option<String> {
    let entries = std::fs::read_dir("/usr/sbin")
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let found = { names }.find(|name| name.starts_with("php-fpm"));
    if found.is_none() {
        println!("skipped: php-fpm is not installed");
    }
    found
}

#[test]
fn php_is_compared_behind_nginx_and_over_tls() {
    if php().is_none() | !super::has_nginx() | !has("php-cgi", &["php-cgi"]) {
        return;
    }
    let place = Place::new();
    let only = ["script.php.clear.keep.16k.c1", "script.php.tls.keep.16k.c1"];
    let rows = rows(&place, "php-fpm", &only);
    for row in &rows {
        assert_eq!(
            labels(row),
            ["hob fastcgi", "hob cgi", "php-fpm behind nginx"]
        );
    }
    assert_eq!(rows.len(), 2);
}

#[test]
fn interrupted_comparison_ends_what_stands_behind_another_server() {
    let Some(php) = php().filter(|_| super::has_nginx() && has("php-cgi", &["php-cgi"])) else {
        return;
    };
    let place = Place::for_user(User::Same);
    let only = [
        "--only",
        "script.php.clear.keep.1k.c1",
        "--servers",
        "php-fpm",
    ];
    let (child, below) = endless_with(&place, &only, &php);
    let pid = child.id();
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
fn rival_named_by_its_path_is_told_of_with_its_own_words_when_it_does_not_start() {
    let place = Place::new();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'granian 9.8.7' && exit 0\n\
                  echo 'no way to start' >&2\nexit 3\n";
    let granian = place.script("bin/granian", script);
    let path = granian.to_str().unwrap();
    let only = [
        "--only",
        "script.wsgi.clear.keep.1k.c1",
        "--servers",
        "hob",
        "--rival",
        path,
    ];
    let short = ["--round", "20ms", "--rounds", "1"];
    let output = compare(&place, &[&only[..], &short].concat()).output();
    let output = output.unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("granian      9.8.7"), "{text}");
    assert!(
        text.contains("not measured: ended at once: granian exit status: 3; it printed:"),
        "{text}"
    );
    assert!(text.contains("no way to start"), "{text}");
    let own = text
        .lines()
        .find(|line| line.starts_with("  hob resident WSGI "));
    assert!(own.is_some_and(|line| line.contains(" us ")), "{text}");
    // One that is not there is a mistake in the arguments.
    let nowhere = ["--quick", "--rival", "/nowhere/granian"];
    let output = compare(&place, &nowhere).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text_of(&output).contains("--rival /nowhere/granian cannot be run"));
}

#[test]
fn sweep_says_how_the_default_stands_to_the_best() {
    if !has("a C compiler", &["cc"]) {
        return;
    }
    let place = Place::new();
    let json = place.path("run/it.json");
    let mut arguments = vec!["--sweep", "--only", "sweep.piece.cgi", "--json"];
    arguments.extend([json.to_str().unwrap(), "--round", "200ms", "--rounds", "2"]);
    let output = compare(&place, &arguments).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let told: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let row = &told["rows"][0];
    let labels = labels(row);
    assert_eq!(labels[0], "64 KiB (default)");
    assert_eq!(labels.len(), 7, "{labels:?}");
    let sweep = &row["sweep"];
    assert_eq!(sweep["default"], "64 KiB (default)");
    assert!(
        labels.contains(&sweep["best"].as_str().unwrap()),
        "{sweep:#}"
    );
    let near = &sweep["within_5_percent"];
    assert!(near.is_boolean() || near.is_null(), "{sweep:#}");
    assert!(
        text.contains("than the best, ") || text.contains("takes least CPU time"),
        "{text}"
    );
    // hob alone is asked.
    assert_eq!(told["servers"].as_array().unwrap().len(), 1);
}

/// The library as it lies beside a hob that is installed: resident programs are linked with it.
fn copy_library(place: &Place) {
    let test = std::env::current_exe().unwrap();
    let library = test.with_file_name("libhob.a");
    std::fs::copy(library, place.path("libhob.a")).unwrap();
}

#[test]
fn each_way_of_the_old_table_answers_with_1k_from_a_file() {
    let place = Place::new();
    copy_library(&place);
    let rows = rows(&place, "caddy", &["ways.clear"]);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let title = row["title"].as_str().unwrap();
        assert!(title.contains("read from a file each time"), "{title}");
        let labels = labels(row);
        for way in ["CGI", "resident", "session (persistent CGI)"] {
            assert!(labels.contains(&way), "no {way} in {labels:?}");
        }
    }
}

#[test]
fn sweep_over_shared_memory_gives_programs_other_chunks() {
    let place = Place::new();
    copy_library(&place);
    let [json, html] = ["run/it.json", "run/it.html"].map(|name| place.path(name));
    let mut arguments = vec!["--sweep", "--only", "sweep.chunks", "--only", "sweep.chunk"];
    arguments.extend(["--json", json.to_str().unwrap()]);
    arguments.extend(["--html", html.to_str().unwrap()]);
    arguments.extend(["--round", "200ms", "--rounds", "2"]);
    let output = compare(&place, &arguments).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let told: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let rows = told["rows"].as_array().unwrap();
    let all: Vec<_> = rows.iter().map(labels).collect();
    let counts = ["32 chunks (default)", "4 chunks", "8 chunks", "16 chunks"];
    let sizes = ["64 KiB (default)", "4 KiB", "8 KiB", "16 KiB", "32 KiB"];
    assert_eq!(all, [&counts[..], &sizes], "{text}");
    for row in rows {
        assert!(row["sweep"]["best"].is_string(), "{text}");
    }
    let page = std::fs::read_to_string(&html).unwrap();
    for keys in ["chunks = 8 }", "chunk = &quot;16KiB&quot; }"] {
        assert!(page.contains(keys), "no {keys} in {page}");
    }
}
