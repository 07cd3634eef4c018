//! Programs that hob starts itself: php-fpm, php-cgi, and one in C over libfcgi.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::library::readable;
use crate::harness::site::Site;
use crate::harness::{
    DEADLINE, Place, User, children_of, is_root, send_signal, status_line, text_of, wait_for_end,
};
use crate::site;

/// The process that answers, and its parent.
const WHO: &str = "<?php echo getmypid(), ' ', posix_getppid();";

fn place() -> Place {
    let place = Place::new();
    place.folder("php");
    place.write("php/who.php", WHO);
    place
}

/// A site of PHP, with these keys beside its root.
fn serve(keys: &str) -> Site {
    site::serve(place(), &format!("root = \"php\", {keys}"), "")
}

/// Two numbers: the process that answers, and its parent.
fn who(site: &Site) -> (u32, u32) {
    let answer = site.get("/app/who.php").answer;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let (own, parent) = text.split_once(' ').unwrap();
    (own.parse().unwrap(), parent.parse().unwrap())
}

/// The children of a process, once there are so many.
fn children(parent: u32, count: usize) -> Vec<u32> {
    let until = Instant::now() + DEADLINE;
    loop {
        let children = children_of(parent);
        if children.len() == count {
            return children;
        }
        assert!(Instant::now() < until, "{children:?}");
    }
}

/// What `hob status` tells of the program.
fn told(site: &Site) -> Value {
    let status = site.place.status();
    status["programs"]["upstreams"][0]["members"][0]["run"].clone()
}

/// Waits until what is told of the program is so.
fn wait_until(site: &Site, is_so: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + DEADLINE;
    loop {
        let told = told(site);
        if is_so(&told) {
            return told;
        }
        assert!(Instant::now() < until, "{told}");
    }
}

/// Writes the config of the site anew, with other keys, and loads it.
fn reload(site: &Site, from: &str, to: &str) {
    let config = site.place.path("hob.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(config, text.replace(from, to)).unwrap();
    let output = site.place.run(&["reload"]);
    assert!(output.status.success(), "{}", text_of(&output));
}

#[test]
fn php_fpm_has_one_master_whose_children_answer_and_ends_with_the_server() {
    let site = serve("run = \"php-fpm\", children = 2");
    let (child, master) = who(&site);
    assert_eq!(who(&site).1, master);
    let children = children(master, 2);
    assert!(children.contains(&child), "{child} in {children:?}");
    let told = told(&site);
    assert_eq!(told["pids"], serde_json::json!([master]));
    for (name, value) in [("state", "ready"), ("starts", "1"), ("deaths", "0")] {
        let text = told[name].to_string();
        assert_eq!(text.trim_matches('"'), value, "{name}");
    }
    let text = text_of(&site.place.run(&["status", "--programs"]));
    assert!(text.contains(&format!("processes {master}\n")), "{text}");
    site.stop();
    for process in children.into_iter().chain([master]) {
        wait_for_end(process);
    }
}

#[test]
fn one_child_answers_one_request_after_the_other() {
    let site = serve("run = \"php-fpm\", children = 1");
    let answers = std::thread::scope(|scope| {
        let asked = [(); 8].map(|()| scope.spawn(|| who(&site)));
        asked.map(|asked| asked.join().unwrap())
    });
    assert!(answers.iter().all(|one| *one == answers[0]), "{answers:?}");
    site.stop();
}

#[test]
fn killed_master_comes_back_without_its_old_children_and_so_does_a_killed_child() {
    let site = serve("run = \"php-fpm\", children = 2");
    let (child, master) = who(&site);
    send_signal(child, Signal::KILL);
    wait_for_end(child);
    // The connection that rested went with it; the other one is as good.
    let (other, same) = who(&site);
    assert_ne!(other, child);
    assert_eq!(same, master);
    let children = children_of(master);
    send_signal(master, Signal::KILL);
    wait_until(&site, |told| told["deaths"] == 1);
    children.into_iter().for_each(wait_for_end);
    assert_ne!(who(&site).1, master);
    assert_eq!(told(&site)["starts"], 2);
    site.stop();
}

#[test]
fn program_that_ends_at_once_is_a_502_that_says_what_it_printed() {
    let place = place();
    let broken = "#!/bin/sh\necho 'no database' >&2\nexit 3\n";
    place.script("bin/app", broken);
    let keys = "split = \"\", run = [\"bin/app\"], children = 1";
    let site = site::serve(place, keys, "");
    wait_until(&site, |told| told["state"] == "failed");
    // It may be about to start again, which is waited for.
    let answer = site.get("/app/x").answer;
    assert_eq!(answer.status, 502, "{}", answer.text());
    let record = site.record("/app/x");
    assert_eq!(record["reason"], "the program does not start");
    let detail = record["detail"].as_str().unwrap();
    assert!(
        detail.contains("app ended with exit code 3") && detail.contains("no database"),
        "{record}"
    );
    site.place.script("bin/app", "#!/bin/sh\nexec sleep 60\n");
    let printed = site.stop_and_print();
    assert!(printed.contains("stderr: no database"), "{printed}");
}

#[test]
fn program_that_takes_no_connection_is_waited_for_as_long_as_for_a_connection() {
    let place = place();
    place.script("bin/app", "#!/bin/sh\nexec sleep 60\n");
    let keys = "split = \"\", run = \"bin/app\", timeout = { connect = \"50ms\" }, grace = \"1s\"";
    let site = site::serve(place, keys, "");
    let answer = site.get("/app/x").answer;
    assert_eq!(answer.status, 503, "{}", answer.text());
    let reason = &site.record("/app/x")["reason"];
    let late = "limits: timeout.connect: the program did not start in time";
    assert_eq!(reason, late);
    assert_eq!(site.place.counter("limit_upstream_connect"), 1);
    site.stop();
}

#[test]
fn reload_keeps_it_and_one_that_changes_it_exchanges_it() {
    let site = serve("run = \"php-fpm\", children = 2");
    let (_, first) = who(&site);
    reload(&site, "body = \"10MiB\"", "body = \"9MiB\"");
    assert_eq!(who(&site).1, first);
    reload(&site, "children = 2", "children = 3");
    let (_, second) = who(&site);
    assert_ne!(second, first);
    wait_for_end(first);
    children(second, 3);
    site.stop();
}

#[test]
fn upgrade_starts_it_anew_and_fails_no_request() {
    let site = serve("run = \"php-fpm\", children = 2");
    let (_, first) = who(&site);
    let port = site.port();
    let asks = std::thread::spawn(move || {
        for number in 0.. {
            let target = format!("/app/who.php?{number}");
            let answer = crate::harness::client::get(port, &target).unwrap();
            if answer.status != 200 {
                return Err(target);
            }
            if !answer.text().ends_with(&first.to_string()) {
                return Ok(number);
            }
        }
        unreachable!()
    });
    let output = site.place.run(&["upgrade"]);
    assert!(output.status.success(), "{}", text_of(&output));
    match asks.join().unwrap() {
        Ok(count) => assert!(count > 0),
        Err(target) => panic!("{}\n{}", site.record(&target), site.stop_and_print()),
    }
    wait_for_end(first);
    site.stop();
}

#[test]
fn php_cgi_has_one_parent_and_replaces_its_children() {
    let site = serve("run = \"php-cgi\", children = 1, recycle = 2");
    let (child, parent) = who(&site);
    assert_eq!(who(&site), (child, parent));
    let (next, same) = who(&site);
    assert_ne!(next, child);
    assert_eq!(same, parent);
    // A child that goes takes its connection along, which is no client's error.
    let answers: Vec<_> = std::iter::repeat_with(|| who(&site)).take(40).collect();
    assert!(answers.iter().all(|one| one.1 == parent), "{answers:?}");
    assert_eq!(told(&site)["pids"], serde_json::json!([parent]));
    site.stop();
    wait_for_end(parent);
}

const PROGRAM: &str = "#include <fcgi_stdio.h>\n#include <unistd.h>\n\
    int main(int argc, char **argv) {\n\
    while (FCGI_Accept() >= 0)\n\
    printf(\"Content-Type: text/plain\\n\\n%d %s\", (int)getpid(), argc > 1 ? argv[1] : \"\");\n\
    return 0;\n}\n";

fn compile(folder: &Path) {
    std::fs::write(folder.join("app.c"), PROGRAM).unwrap();
    let program = folder.join("app.fcgi");
    let mut compiler = Command::new("cc");
    let compiler = compiler.arg(folder.join("app.c")).arg("-o").arg(&program);
    let done = compiler.arg("-lfcgi").output().unwrap();
    assert!(done.status.success(), "{}", text_of(&done));
    readable(&program);
}

#[test]
fn any_program_has_a_process_for_each_child_at_one_socket() {
    let place = place();
    compile(&place.path(""));
    let keys = "split = \"\", run = [\"./app.fcgi\", \"--flag\"], children = 2";
    let site = site::serve(place, keys, "");
    let told = wait_until(&site, |told| {
        told["state"] == "ready" && told["pids"].as_array().unwrap().len() == 2
    });
    let text = site.get("/app/x").answer.text();
    let (pid, flag) = text.split_once(' ').unwrap();
    let pid: u32 = pid.parse().unwrap();
    assert!(
        told["pids"].as_array().unwrap().contains(&pid.into()),
        "{told} {text}"
    );
    assert_eq!(flag, "--flag");
    send_signal(pid, Signal::KILL);
    wait_until(&site, |told| told["starts"] == 3);
    assert_eq!(site.get("/app/x").answer.status, 200);
    site.stop();
}

#[test]
fn it_runs_as_an_account_of_programs_and_confined_as_the_config_says() {
    let user = if is_root() {
        User::Same
    } else {
        User::Unprivileged
    };
    let place = Place::for_user(user);
    place.folder("php");
    place.write("php/who.php", WHO);
    place.write("secret", "secret");
    let secret = place.path("secret").display().to_string();
    let script = format!("<?php echo @file_get_contents('{secret}') ?: 'none';");
    place.write("php/secret.php", &script);
    place.folder("locks");
    let open = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path("locks"), open).unwrap();
    let locks = place.path("locks").display().to_string();
    let sandbox = "sandbox = { read = [\"php\"], execute = [\"/usr\", \"/etc\"], \
                   write = [\"/dev/null\", \"locks\"] }";
    let run = format!("run = [\"php-fpm\", \"-d\", \"opcache.lockfile_path={locks}\"]");
    let keys = format!("{run}, root = \"php\", children = 1, {sandbox}");
    let site = site::serve(place, &keys, "");
    let (child, _) = who(&site);
    let ids = status_line(child, "Uid");
    let own = rustix::process::geteuid().as_raw().to_string();
    let server = status_line(site.hob.server(), "Uid");
    if is_root() {
        assert!(
            !ids.contains(&format!("{own} ")) && ids != server,
            "{ids}, {server}"
        );
    }
    assert_eq!(site.get("/app/secret.php").answer.text(), "none");
    site.stop();
}

#[test]
fn others_take_its_place_when_it_is_recycled_and_no_request_fails() {
    let site = serve("run = \"php-fpm\", children = 2");
    let (_, first) = who(&site);
    let port = site.port();
    let asks = std::thread::spawn(move || {
        let ask = || crate::harness::client::call(port, "POST", "/app/who.php", "", b"once");
        let mut all = std::iter::repeat_with(ask).take_while(|reply| {
            assert_eq!(reply.answer.status, 200, "{}", reply.answer.text());
            reply.answer.text().ends_with(&first.to_string())
        });
        all.by_ref().count()
    });
    let output = site.place.run(&["recycle", "/app"]);
    assert!(output.status.success(), "{}", text_of(&output));
    let text = text_of(&output);
    assert!(text.contains(&first.to_string()), "{text}");
    asks.join().unwrap();
    wait_for_end(first);
    let told = wait_until(&site, |told| told["pids"].as_array().unwrap().len() == 1);
    for (name, value) in [("state", "ready"), ("starts", "2"), ("deaths", "0")] {
        let text = told[name].to_string();
        assert_eq!(text.trim_matches('"'), value, "{name}");
    }
    site.stop();
}

#[test]
fn script_goes_on_while_others_take_its_place() {
    let place = place();
    let waits_for = |name: &str| {
        format!("while (!file_exists(__DIR__ . '/{name}')) {{ usleep(1000); clearstatcache(); }}")
    };
    place.write(
        "php/slow.php",
        &format!(
            "<?php echo '[', getmypid(), ']'; flush(); {} echo 'last';",
            waits_for("go")
        ),
    );
    // Its answer is over, and it is not.
    place.write(
        "php/after.php",
        &format!(
            "<?php ignore_user_abort(true); echo 'first'; fastcgi_finish_request(); {} \
             file_put_contents(__DIR__ . '/done', 'x');",
            waits_for("finish")
        ),
    );
    let open = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path("php"), open).unwrap();
    let run = "run = [\"php-fpm\", \"-d\", \"output_buffering=0\"]";
    let keys = format!("root = \"php\", {run}, children = 3, keep = 0, grace = \"1m\"");
    let site = site::serve(place, &keys, "");
    let (_, first) = who(&site);
    let mut slow = crate::harness::client::Connection::open(site.port()).unwrap();
    slow.send_get("/app/slow.php").unwrap();
    slow.read_until("[");
    let child = slow.read_through("]").parse().expect("its number");
    assert_eq!(site.get("/app/after.php").answer.text(), "first");
    let name = told(&site)["program"].as_str().unwrap().to_owned();
    let output = site.place.run(&["recycle", &name]);
    assert!(output.status.success(), "{}", text_of(&output));
    let until = Instant::now() + DEADLINE;
    while who(&site).1 == first {
        assert!(Instant::now() < until, "nobody takes its place");
    }
    std::fs::write(site.place.path("php/go"), "").unwrap();
    slow.read_until("last");
    // They have been told to end by now.
    wait_for_end(child);
    assert!(!site.place.path("php/done").exists());
    std::fs::write(site.place.path("php/finish"), "").unwrap();
    wait_for_end(first);
    assert!(site.place.path("php/done").exists());
    site.stop();
}

#[test]
fn program_stays_where_none_can_take_its_place() {
    let place = place();
    compile(&place.path(""));
    let keys = "split = \"\", run = \"./app.fcgi\", children = 2";
    let site = site::serve(place, keys, "");
    let pids = wait_until(&site, |told| {
        told["state"] == "ready" && told["pids"].as_array().unwrap().len() == 2
    })["pids"]
        .clone();
    std::fs::remove_file(site.place.path("app.fcgi")).unwrap();
    let output = site.place.run(&["recycle", "/app"]);
    assert!(output.status.success(), "{}", text_of(&output));
    wait_until(&site, |told| {
        told["state"] == "ready" && told["last_failure"].is_string() && told["pids"] == pids
    });
    assert_eq!(site.get("/app/x").answer.status, 200);

    let output = site.place.run(&["recycle", "/other"]);
    assert_eq!(output.status.code(), Some(1));
    let text = text_of(&output);
    assert!(text.contains("/app/* app.fcgi"), "{text}");
    site.stop();
}
