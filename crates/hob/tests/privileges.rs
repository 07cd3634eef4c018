//! Started as root: the keeper stays root and the server is nobody special. Needs root.
#![allow(clippy::unwrap_used)]

mod harness;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness::client::get;
use harness::{Hob, Place, User, is_root, status_line, text_of};
use rustix::process::Signal;

/// A place of root's own; none when the tests do not run as root.
fn place_of_root() -> Option<Place> {
    if !is_root() {
        println!("skipped: needs root");
        return None;
    }
    Some(Place::for_user(User::Same))
}

fn control(place: &Place) -> String {
    place.path("run/hob/control.sock").display().to_string()
}

#[test]
fn server_has_no_privilege_left_and_the_keeper_keeps_its_own() {
    let Some(place) = place_of_root() else {
        return;
    };
    let hob = place.serve_config(&format!(
        "user = \"nobody\"\ncontrol = {:?}\n",
        control(&place)
    ));
    let server = hob.server();
    assert_eq!(status_line(hob.pid(), "Uid"), "0 0 0 0");
    assert_eq!(status_line(server, "Uid"), "65534 65534 65534 65534");
    assert_eq!(status_line(server, "Gid"), "65534 65534 65534 65534");
    assert_eq!(status_line(server, "Groups"), "65534");
    assert_eq!(status_line(server, "NoNewPrivs"), "1");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(status_line(server, set), "0000000000000000", "{set}");
    }
    // Not dumpable: what the kernel shows of the process belongs to root, whoever it runs as.
    assert_eq!(
        std::fs::metadata(format!("/proc/{server}/environ"))
            .unwrap()
            .uid(),
        0
    );
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
    hob.stop();
}

#[test]
fn usual_user_is_not_root() {
    let Some(place) = place_of_root() else {
        return;
    };
    let hob = place.serve(&["site", "--listen", "0", "--control", &control(&place)]);
    let uid = status_line(hob.server(), "Uid");
    assert!(!uid.split(' ').any(|uid| uid == "0"), "{uid}");
    hob.stop();
}

#[test]
fn nice_and_cpus_are_set_before_the_privileges_go() {
    let Some(place) = place_of_root() else {
        return;
    };
    let keys = format!("nice = -3\ncpus = [0]\ncontrol = {:?}\n", control(&place));
    let hob = place.serve_config(&keys);
    let server = hob.server();
    assert_eq!(status_line(server, "Cpus_allowed_list"), "0");
    let stat = std::fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    let nice = stat.rsplit(')').next().unwrap().split_whitespace().nth(16);
    assert_eq!(nice, Some("-3"));
    hob.stop();
}

#[test]
fn user_that_does_not_exist_or_is_root_exits_2() {
    let Some(place) = place_of_root() else {
        return;
    };
    for (user, reason) in [
        ("no-such-user", "no user `no-such-user`"),
        ("root", "never runs as root"),
    ] {
        place.write_config(
            &format!("user = {user:?}\ncontrol = {:?}\n", control(&place)),
            "site",
        );
        let output = place.run(&["serve"]);
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn upgrade_keeps_the_roles() {
    let Some(place) = place_of_root() else {
        return;
    };
    let hob = place.serve(&["site", "--listen", "0", "--control", &control(&place)]);
    hob.signal(Signal::USR2);
    hob.wait_for("upgraded, the new server is process");
    hob.wait_for("old server ended");
    assert_eq!(status_line(hob.pid(), "Uid"), "0 0 0 0");
    let uid = status_line(hob.server(), "Uid");
    assert!(!uid.split(' ').any(|uid| uid == "0"), "{uid}");
    hob.stop();
}

#[test]
fn authorities_that_the_server_may_not_read_refuse_the_reload() {
    let Some(place) = place_of_root() else {
        return;
    };
    place.write(
        "ca.pem",
        include_str!("../../server/tests/config/keys/authority.pem"),
    );
    let keys = |more: &str| {
        let control = control(&place);
        format!(
            "user = \"nobody\"\ncontrol = {control:?}\n[otlp]\n\
             endpoint = \"https://127.0.0.1:1\"\nca = \"ca.pem\"\n{more}"
        )
    };
    let hob = place.serve_config(&keys(""));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(place.path("ca.pem"), mode).unwrap();
    place.write_config(&keys("one_in = 1\n"), "site");
    let output = place.run(&["reload", "--control", &control(&place)]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    let text = text_of(&output);
    assert!(
        text.contains("ca.pem cannot be read: Permission denied"),
        "{text}"
    );
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
    hob.stop();
}

/// The unit that is shipped.
const UNIT: &str = include_str!("../../../packaging/systemd/hob.service");

/// Serves with exactly the capabilities that a unit's text leaves, and no new privileges.
fn serve_within(place: &Place, unit: &str) -> Hob {
    let bounds = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let bounds = bounds.unwrap().to_ascii_lowercase().replace("cap_", "+");
    assert!(unit.contains("\nNoNewPrivileges=yes\n"));
    let mut command = place.command_of(Path::new("setpriv"));
    let set = bounds.replace(' ', ",");
    command.arg(format!("--bounding-set=-all,{set}"));
    command.arg("--inh-caps=-all").arg("--no-new-privs");
    command.arg(place.path("hob"));
    command.args(["serve", "--config", "hob.toml"]);
    let hob = Hob::start(command);
    hob.wait_for("listening on ");
    hob
}

/// A place with a program of each kind.
fn place_of_programs() -> Option<Place> {
    let place = place_of_root()?;
    place.folder("cgi");
    for (name, text) in [
        (
            "say",
            "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\ncgi %s' \"$(id -u)\"\n",
        ),
        (
            "say.py",
            "#!/usr/bin/python3\nimport os\nprint('Content-Type: text/plain\\n\\nwarm', os.getuid(), end='')\n",
        ),
        (
            "app.py",
            "import os\ndef application(environ, start_response):\n    \
                    start_response('200 OK', [('Content-Type', 'text/plain')])\n    \
                    return [f'resident {os.getuid()}'.encode()]\n",
        ),
        ("lost", "#!/no/such/interpreter -x\n"),
        ("dos", "#!/bin/sh\r\necho\r\n"),
    ] {
        place.script(&format!("cgi/{name}"), text);
    }
    place.write_config(&format!("control = {:?}\n", control(&place)), "site");
    let routes = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
        [[site.route]]\npath = \"/warm/*\"\nwarm = { dir = \"cgi\", interpreter = \"python3\" }\n\
        [[site.route]]\npath = \"/app/*\"\nresident = { wsgi = \"app:application\", dir = \"cgi\" }\n\
        [[site.route]]\npath = \"/apart/*\"\ncgi = { dir = \"cgi\", sandbox = { namespaces = [\"net\"] } }\n";
    let config = std::fs::read_to_string(place.path("hob.toml")).unwrap();
    place.write("hob.toml", &format!("user = \"nobody\"\n{config}{routes}"));
    Some(place)
}

#[test]
fn programs_of_every_kind_run_under_the_unit_that_is_shipped() {
    let Some(place) = place_of_programs() else {
        return;
    };
    let hob = serve_within(&place, UNIT);
    for (path, word) in [
        ("/cgi/say", "cgi"),
        ("/warm/say.py", "warm"),
        ("/app/", "resident"),
    ] {
        let answer = get(hob.port(), path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let text = answer.text();
        let uid = text.strip_prefix(&format!("{word} ")).unwrap_or_default();
        // An account of its own, neither root's nor the server's.
        assert!(
            uid.parse::<u32>().is_ok_and(|uid| uid != 0 && uid != 65534),
            "{text}"
        );
    }
    // What the unit does not allow is refused, and the log says by which right.
    assert_eq!(get(hob.port(), "/apart/say").unwrap().status, 500);
    hob.wait_for("without CAP_SYS_ADMIN: Operation not permitted");
    hob.stop();
}

#[test]
fn start_that_is_not_permitted_names_the_right_that_lacks() {
    let Some(place) = place_of_programs() else {
        return;
    };
    let hob = serve_within(&place, &UNIT.replace("CAP_CHOWN ", ""));
    assert_eq!(get(hob.port(), "/cgi/say").unwrap().status, 500);
    hob.wait_for(" WARN ");
    hob.wait_for("cannot take its standard input, output and error without CAP_CHOWN");
    hob.stop();
}

#[test]
fn script_whose_interpreter_is_not_there_is_told_with_its_first_line() {
    let Some(place) = place_of_programs() else {
        return;
    };
    let hob = place.serve(&["--config", "hob.toml"]);
    assert_eq!(get(hob.port(), "/cgi/lost").unwrap().status, 502);
    hob.wait_for("there is no interpreter \"/no/such/interpreter\", which its first line names");
    assert_eq!(get(hob.port(), "/cgi/dos").unwrap().status, 502);
    hob.wait_for("its first line ends with CR LF");
    hob.stop();
}

/// At want of memory the kernel ends programs before the server.
#[test]
fn programs_are_given_up_for_memory_before_the_server() {
    let Some(place) = place_of_programs() else {
        return;
    };
    place.script(
        "cgi/score",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\ncat /proc/self/oom_score_adj\n",
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    let answer = get(hob.port(), "/cgi/score").unwrap();
    let program = answer.text().trim().parse::<i32>().unwrap();
    let server = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", hob.server())).unwrap();
    assert!(
        program > server.trim().parse::<i32>().unwrap(),
        "{program}, {server}"
    );
    hob.stop();
}

/// Sets the soft limit of open files of a process.
fn limit_open_files(pid: u32, count: usize) {
    let mut command = Command::new("prlimit");
    command.arg(format!("--pid={pid}"));
    command.arg(format!("--nofile={count}:"));
    assert!(command.status().unwrap().success());
}

#[test]
fn h1_only_start_without_room_for_its_descriptors_is_503_and_what_runs_goes_on() {
    let Some(place) = place_of_programs() else {
        return;
    };
    let hob = place.serve(&["--config", "hob.toml"]);
    assert_eq!(get(hob.port(), "/app/").unwrap().status, 200);
    assert_eq!(get(hob.port(), "/cgi/say").unwrap().status, 200);
    let pid = hob.spawner();
    let is_free = |number: &usize| !Path::new(&format!("/proc/{pid}/fd/{number}")).exists();
    let first_free = (0..).find(is_free).unwrap();
    limit_open_files(pid, first_free);
    for _ in 0..10 {
        let answer = get(hob.port(), "/cgi/say").unwrap();
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (503, Some("1"))
        );
    }
    limit_open_files(pid, 1024);
    for _ in 0..10 {
        assert_eq!(get(hob.port(), "/cgi/say").unwrap().status, 200);
    }
    let control = place.run(&["status", "--json", "--control", &control(&place)]);
    let status: serde_json::Value = serde_json::from_slice(&control.stdout).unwrap();
    assert_eq!(
        status["counters"]["programs_lost"], 0,
        "no link was given up"
    );
    hob.stop();
}

#[test]
fn what_stays_and_cannot_start_for_want_of_processes_is_503_and_started_later() {
    let Some(place) = place_of_programs() else {
        return;
    };
    // Nine processes of the account are there already, and eight are all it may have. They end with
    // their standard input, so that none outlives a test that fails.
    let mut others = [(); 9].map(|()| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=games", "--clear-groups", "cat"]);
        command.stdin(Stdio::piped()).spawn().unwrap()
    });
    for other in &others {
        while status_line(other.id(), "Uid").starts_with("0 ") {
            std::thread::yield_now();
        }
    }
    let within = "user = \"games\", rlimits = { nproc = 8 }";
    let config = std::fs::read_to_string(place.path("hob.toml")).unwrap();
    let routes = format!(
        "[[site.route]]\npath = \"/few/warm/*\"\nwarm = {{ dir = \"cgi\", interpreter = \"python3\", \
         queue_time = \"1s\", {within} }}\n\
         [[site.route]]\npath = \"/few/app/*\"\nresident = {{ wsgi = \"app:application\", \
         dir = \"cgi\", queue = {{ wait = \"1s\" }}, {within} }}\n"
    );
    place.write("hob.toml", &format!("{config}{routes}"));
    let hob = place.serve(&["--config", "hob.toml"]);
    let paths = ["/few/warm/say.py", "/few/app/"];
    for path in paths {
        let answer = get(hob.port(), path).unwrap();
        assert_eq!(answer.status, 503, "{path}: {}", answer.text());
        assert!(answer.header("retry-after").is_some(), "{path}");
    }
    for other in &mut others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    for path in paths {
        let deadline = Instant::now() + Duration::from_secs(60);
        while get(hob.port(), path).unwrap().status != 200 {
            assert!(Instant::now() < deadline, "{path}");
        }
    }
    hob.stop();
}

#[test]
fn folder_for_what_is_kept_is_not_used_when_others_may_write_to_it() {
    let Some(place) = place_of_root() else {
        return;
    };
    place.folder("state");
    let state = place.path("state");
    let keys = format!(
        "state = \"state\"\ncontrol = {:?}\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         tls = \"self-signed\"\n",
        control(&place)
    );
    let kept = state.join("tls/self-signed.pem");
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o1777)).unwrap();
    let hob = place.serve_config(&keys);
    hob.wait_for("others may write to ");
    hob.stop();
    assert!(!kept.exists());
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o755)).unwrap();
    let hob = place.serve_config(&keys);
    hob.stop();
    let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
