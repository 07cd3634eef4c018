//! `hob native build` with real interpreters and the real compiler, into a folder of the test's own
//! beside a copy of the program, and a server that then loads what was built.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod harness;

#[path = "native/parts.rs"]
mod parts;
#[path = "resident/pool.rs"]
mod pool;
#[path = "cgi/site.rs"]
mod site;

use parts::{Uses, serve};
use serde_json::Value;

/// The sources that come with hob, beside a program: what `lib/hob` has, less what was built.
fn installed() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let site = fs::canonicalize(place.path()).unwrap();
    fs::set_permissions(&site, PermissionsExt::from_mode(0o755)).unwrap();
    parts::lay(&site, Uses::Sources);
    let program = site.join("hob");
    harness::copy_program(&harness::program(), &program);
    (place, program)
}

fn build(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(["native", "build"]).args(arguments);
    command
}

fn said(output: &Output) -> String {
    harness::text_of(output)
}

#[test]
fn what_is_built_is_loaded_by_every_host() {
    let site = serve(Uses::Built, "");
    for host in parts::HOSTS {
        site.text(&format!("{}/pid", parts::at(host)));
    }
    let status = site.place.status();
    let pools = status["programs"]["pools"].as_array().unwrap();
    assert_eq!(pools.len(), parts::HOSTS.len());
    for pool in pools {
        assert_eq!(pool["workers"][0]["carrier"], "shm", "{pool}");
    }
    site.stop();
}

#[test]
fn workers_that_start_after_the_build_use_it() {
    let site = serve(Uses::Sources, "");
    let pid = |host: &str| site.text(&format!("{}/pid", parts::at(host)));
    let carrier = |host: &str| {
        let pid: u32 = pid(host).parse().unwrap();
        let status = site.place.status();
        let pools = status["programs"]["pools"].as_array().unwrap();
        // On a busy machine there may be more than one.
        let workers = pools.iter().flat_map(|pool| pool["workers"].as_array());
        let worker = workers.flatten().find(|one| one["pid"] == pid);
        worker.map_or(Value::Null, |worker| worker["carrier"].clone())
    };
    let before = ["wsgi", "psgi"].map(pid);
    assert_eq!(["wsgi", "psgi"].map(carrier), ["stream", "stream"]);
    let output = build(&site.place.path("hob"), &[]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    for (host, before) in ["wsgi", "psgi"].into_iter().zip(before) {
        let output = site
            .place
            .run(&["recycle", &format!("{}/*", parts::at(host))]);
        assert!(output.status.success(), "{}", said(&output));
        pool::until("another worker answers, over shared memory", || {
            pid(host) != before && carrier(host) == "shm"
        });
    }
    site.stop();
}

#[test]
fn missing_part_is_told_with_the_command_that_builds_it() {
    let site = serve(Uses::Sources, "");
    site.text("/psgi/pid");
    site.hob().wait_for("`hob native build --perl ");
    site.stop();
}

#[test]
fn without_a_compiler_it_says_which_package_has_one() {
    let (_place, program) = installed();
    let path = tempfile::tempdir().unwrap();
    for (flag, interpreter) in [
        ("--python", "/usr/bin/python3"),
        ("--perl", "/usr/bin/perl"),
    ] {
        let mut command = build(&program, &[flag, interpreter]);
        let output = command.env("PATH", path.path()).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("no C compiler") && said.contains("gcc"),
            "{said}"
        );
    }
}

#[test]
fn interpreter_that_is_not_there_is_named() {
    let (_place, program) = installed();
    let output = build(&program, &["--perl", "/no/perl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cannot start /no/perl"));
}

#[test]
fn without_headers_it_says_which_package_has_them() {
    let (_place, program) = installed();
    // A file system of this process alone, where there are none.
    let script = "mount -t tmpfs none /usr/include && exec \"$0\" native build --python \
                  /usr/bin/python3";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    let output = command.arg(&program).output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no Python.h (Debian: python3-dev)"), "{said}");
}

#[test]
fn folder_that_others_may_change_gets_nothing() {
    let (_place, program) = installed();
    let parts = program.with_file_name("lib/hob");
    fs::set_permissions(parts.join("source"), PermissionsExt::from_mode(0o777)).unwrap();
    let output = build(&program, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("may be changed by others"));
    assert!(!parts.join("perl").exists() && !parts.join("python").exists());
}
