//! Lives of hosts: when they start, what is told of them, how they come back.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::compare::{Case, serve, serve_with};
use crate::harness::client::{Connection, call};
use crate::harness::{DEADLINE, send_signal};
use crate::hosts::host_of;
use crate::parts::{Parts, programs};
use crate::site::Programs;

const PARENT: &str = "import os\nprint('Content-Type: text/plain\\n')\nprint(os.getppid())\n";

/// What `hob status` tells of the hosts, once it is so.
fn hosts(programs: &Programs, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let until = Instant::now() + DEADLINE;
    loop {
        let status = programs.place.status();
        let hosts = status["programs"]["hosts"].as_array().unwrap().clone();
        if is_so(&hosts) {
            return hosts;
        }
        assert!(Instant::now() < until, "{hosts:?}");
    }
}

/// Process and state of a host that is ready, once its process is one that is wanted.
pub(crate) fn ready(
    programs: &Programs,
    index: usize,
    is_wanted: impl Fn(u32) -> bool,
) -> (u32, Value) {
    let pid_of = |host: &Value| u32::try_from(host["pid"].as_u64()?).ok();
    let is_so = |hosts: &[Value]| {
        let host = hosts.get(index).filter(|host| host["state"] == "ready");
        host.and_then(pid_of).is_some_and(&is_wanted)
    };
    let host = hosts(programs, is_so).swap_remove(index);
    (pid_of(&host).unwrap(), host)
}

#[test]
fn host_is_ready_before_anybody_asks_and_is_told_of() {
    let keys = "interpreter = \"python3\", preload = [\"json\"]";
    let programs = serve(&[Case::new("parent.py", PARENT)], keys);
    let (pid, host) = ready(&programs, 0, |_| true);
    assert_eq!(host["language"], "python");
    assert_eq!(host["preload"], serde_json::json!(["json"]));
    assert!(host["version"].as_str().unwrap().starts_with("python 3"));
    assert!(host["memory_bytes"].as_u64().unwrap() > 1_000_000);
    for (name, value) in [
        ("starts", 1),
        ("failures", 0),
        ("crashes", 0),
        ("served", 0),
    ] {
        assert_eq!(host[name], value, "{name}");
    }
    assert_eq!(host["last_failure"], Value::Null);
    assert_eq!(host_of(&programs, "/warm/parent.py"), pid);
    let host = hosts(&programs, |hosts| hosts[0]["served"] == 1).swap_remove(0);
    assert_eq!(host["running"], 0);
    let text = programs.place.run(&["status", "--programs"]);
    let text = crate::harness::text_of(&text);
    assert!(text.starts_with("HOST "), "{text}");
    let row = text.lines().nth(1).unwrap();
    assert!(row.starts_with('/') && row.contains("  ready  "), "{text}");
    for (name, value) in [
        ("warm_starts", 1),
        ("warm_failures", 0),
        ("warm_crashes", 0),
        ("warm_forks", 1),
        ("warm_ends", 1),
    ] {
        assert_eq!(programs.place.counter(name), value, "{name}");
    }
    programs.stop();
}

#[test]
fn host_uses_its_native_part_unless_that_is_missing_or_switched_off() {
    let perl = "print \"Content-Type: text/plain\\n\\n\", getppid, \"\\n\";\n";
    let cases = [Case::new("parent.py", PARENT), Case::new("parent.pl", perl)];
    let off = "env = { HOB_NATIVE = \"off\" }";
    for (interpreter, name) in [("python3", "parent.py"), ("perl", "parent.pl")] {
        let keys = format!("interpreter = \"{interpreter}\"");
        for (parts, keys, is_used) in [
            (Parts::Native, keys.clone(), true),
            (Parts::Native, format!("{keys}, {off}"), false),
            (Parts::Bare, keys, false),
        ] {
            let programs = serve_with(parts, &cases, &keys);
            let host = host_of(&programs, &format!("/warm/{name}"));
            let maps = std::fs::read_to_string(format!("/proc/{host}/maps")).unwrap();
            assert_eq!(
                maps.contains("lib/hob/"),
                is_used,
                "{parts:?} {keys}: {maps}"
            );
            programs.stop();
        }
    }
}

#[test]
fn module_that_cannot_be_loaded_is_known_when_the_server_has_started() {
    for (keys, name, reason) in [
        (
            "interpreter = \"python3\", preload = [\"no_such\"]",
            "a.py",
            "No module named 'no_such'",
        ),
        (
            "interpreter = \"perl\", preload = [\"No::Such\"]",
            "a.pl",
            "Can't locate No/Such.pm",
        ),
    ] {
        let programs = serve(&[Case::new(name, "")], keys);
        let host = hosts(&programs, |hosts| hosts[0]["state"] == "failed").swap_remove(0);
        let told = host["last_failure"].as_str().unwrap();
        assert!(told.contains(reason), "{told}");
        assert_eq!(host["pid"], Value::Null);
        // Nobody asks, so it is let alone.
        assert_eq!((&host["starts"], &host["failures"]), (&1.into(), &1.into()));
        programs
            .hob()
            .wait_for("warm: the warm interpreter ended with exit code");
        assert_eq!(programs.get(&format!("/warm/{name}")).answer.status, 502);
        programs.stop();
    }
}

#[test]
fn module_that_has_been_mended_is_loaded_with_a_reload() {
    let cases = [
        Case::new("parent.py", PARENT),
        Case::new("tools.py", "1/0\n"),
    ];
    let keys = "interpreter = \"python3\", preload = [\"tools\"]";
    let programs = serve(&cases, keys);
    let host = hosts(&programs, |hosts| hosts[0]["state"] == "failed").swap_remove(0);
    let told = host["last_failure"].as_str().unwrap();
    assert!(told.contains("ZeroDivisionError"), "{told}");
    programs.place.write("cgi/tools.py", "");
    let config = programs.place.path("hob.toml");
    programs.reload(&std::fs::read_to_string(config).unwrap());
    let (pid, host) = ready(&programs, 0, |_| true);
    assert_eq!((&host["starts"], &host["failures"]), (&2.into(), &1.into()));
    assert_eq!(host_of(&programs, "/warm/parent.py"), pid);
    programs.stop();
}

#[test]
fn as_many_hosts_are_kept_as_are_wanted_and_requests_go_to_the_idlest() {
    let holds = "import os, time\nopen('host-%d' % os.getppid(), 'w').close()\n\
                 while not os.path.exists('go'): time.sleep(0.005)\n\
                 print('Content-Type: text/plain\\n')\nprint(os.getppid())\n";
    let keys = "interpreter = \"python3\", hosts = 3";
    let programs = serve(&[Case::new("holds.py", holds)], keys);
    let is_ready = |host: &Value| host["state"] == "ready";
    let all = hosts(&programs, |hosts| hosts.iter().all(is_ready));
    assert_eq!(all.len(), 3);
    let mut connections: Vec<_> = (0..3)
        .map(|_| Connection::open(programs.port()).unwrap())
        .collect();
    for (index, connection) in connections.iter_mut().enumerate() {
        connection.send_get("/warm/holds.py").unwrap();
        let running = |hosts: &[Value]| -> u64 {
            hosts
                .iter()
                .map(|host| host["running"].as_u64().unwrap())
                .sum()
        };
        hosts(&programs, |hosts| running(hosts) == index as u64 + 1);
    }
    programs.place.write("cgi/go", "");
    let of = |connection: &mut Connection| {
        let answer = connection.read().unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text()
    };
    let texts: BTreeSet<String> = connections.iter_mut().map(of).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    programs.stop();
}

#[test]
fn host_that_died_comes_back_by_itself() {
    let programs = serve(
        &[Case::new("parent.py", PARENT)],
        "interpreter = \"python3\"",
    );
    let (pid, _) = ready(&programs, 0, |_| true);
    send_signal(pid, rustix::process::Signal::KILL);
    let (other, host) = ready(&programs, 0, |other| other != pid);
    assert_eq!((&host["starts"], &host["crashes"]), (&2.into(), &1.into()));
    let told = host["last_failure"].as_str().unwrap();
    assert_eq!(told, "the warm interpreter was ended by signal 9");
    assert_eq!(host_of(&programs, "/warm/parent.py"), other);
    assert_eq!(programs.place.counter("warm_crashes"), 1);
    programs.stop();
}

/// What the server has open.
fn descriptors(programs: &Programs) -> Vec<String> {
    let pid = programs.place.status()["server"]["pid"].as_u64().unwrap();
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let targets = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.map(|target| target.display().to_string()).collect()
}

#[test]
fn hosts_killed_under_load_cost_nothing_but_their_own_requests() {
    let programs = serve(
        &[Case::new("parent.py", PARENT)],
        "interpreter = \"python3\"",
    );
    let port = programs.port();
    // Each thread has a link of its own.
    let several: Vec<_> = (0..8)
        .map(|_| std::thread::spawn(move || call(port, "GET", "/warm/parent.py", "", b"")))
        .collect();
    several
        .into_iter()
        .for_each(|one| assert_eq!(one.join().unwrap().answer.status, 200));
    let before = descriptors(&programs);
    let until = Instant::now() + Duration::from_secs(4);
    let clients: Vec<_> = (0..3)
        .map(|_| {
            std::thread::spawn(move || {
                let mut told = Vec::new();
                while Instant::now() < until {
                    let reply = call(port, "GET", "/warm/parent.py", "", b"");
                    told.push((reply.answer.status, reply.answer.text()));
                }
                told
            })
        })
        .collect();
    let (mut last, mut killed) = (0, 0);
    while Instant::now() < until {
        let status = programs.place.status();
        let host = &status["programs"]["hosts"][0];
        // One that is ended while it starts has failed, and waits to be asked for.
        if host["state"] == "ready"
            && let Some(pid) = host["pid"].as_u64().filter(|pid| *pid != last)
            && host["served"].as_u64().unwrap() > killed
        {
            send_signal(u32::try_from(pid).unwrap(), rustix::process::Signal::KILL);
            (last, killed) = (pid, killed + 1);
        }
    }
    let mut good = 0;
    for client in clients {
        for (status, text) in client.join().unwrap() {
            match status {
                200 => assert!(text.trim().parse::<u32>().is_ok(), "{text:?}"),
                status => assert_eq!(status, 502),
            }
            good += usize::from(status == 200);
        }
    }
    assert!(killed > 1 && good > 0, "{killed} kills, {good} answers");
    let (pid, host) = ready(&programs, 0, |pid| u64::from(pid) != last);
    assert_eq!(host_of(&programs, "/warm/parent.py"), pid);
    assert_eq!(host["crashes"], killed);
    hosts(&programs, |hosts| hosts[0]["running"] == 0);
    let end = Instant::now() + DEADLINE;
    loop {
        let after = descriptors(&programs);
        if after.len() <= before.len() {
            break;
        }
        assert!(Instant::now() < end, "{before:?} but {after:?}");
    }
    programs.stop();
}

#[test]
fn script_that_is_too_slow_is_answered_as_one_that_was_started() {
    let keys = "first_byte = \"2s\", total = \"3s\", grace = \"50ms\"";
    let silent = "import time\ntime.sleep(1000)\n";
    let stops = "import time\nprint('Content-Type: text/plain\\n')\n\
                 print('x' * 200_000, flush=True)\ntime.sleep(1000)\n";
    let programs = programs(Parts::Native)
        .with("silent.py", silent)
        .with("stops.py", stops);
    let endings = "interpreters = { \".py\" = \"python3\" }";
    let both = format!(
        "path = \"/cold/*\"\ncgi = {{ dir = \"cgi\", {endings}, {keys} }}\n[[site.route]]\n\
         path = \"/warm/*\"\nwarm = {{ dir = \"cgi\", interpreter = \"python3\", {keys} }}\n"
    );
    let programs = programs.serve_route(&both);
    ready(&programs, 0, |_| true);
    for name in ["silent.py", "stops.py"] {
        let seen = ["cold", "warm"].map(|handler| {
            let target = format!("/{handler}/{name}");
            let reply = programs.get(&target);
            let record = programs.record(&target);
            let texts = ["outcome", "fault", "reason"].map(|key| record[key].clone());
            (reply.answer.status, reply.is_whole, texts)
        });
        assert_eq!(seen[0], seen[1], "{name}");
    }
    programs.stop();
}

/// Tells that it has begun, and goes on when there is a file with the name in its query.
const WAITS: &str = "#!/usr/bin/env python3\nimport os, time\n\
    print('Content-Type: text/plain\\n\\nbegun', flush=True)\n\
    while not os.path.exists(os.environ['QUERY_STRING']): time.sleep(0.01)\n\
    print('end')\n";

#[test]
fn scripts_under_way_when_the_server_is_upgraded_end_whole_on_every_thread() {
    let mut programs = Programs::new().with("waits.py", WAITS);
    programs.serve_whole(
        "threads = 4\ndrain = \"600s\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[site]]\nroot = \"site\"\n[[site.route]]\npath = \"/warm/*\"\n\
         warm = { dir = \"cgi\", interpreter = \"python3\" }\n",
    );
    let begin = |number: usize| {
        let mut client = Connection::open(programs.port()).unwrap();
        client
            .send_get(&format!("/warm/waits.py?go-{number}"))
            .unwrap();
        assert_eq!(client.read_head().unwrap().0, 200);
        client.read_until("begun\n");
        client
    };
    let clients: Vec<Connection> = (0..12).map(begin).collect();
    let output = programs.place.run(&["upgrade"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // One after the other, so that a thread is done while others still have some.
    for (number, mut client) in clients.into_iter().enumerate() {
        std::fs::write(programs.path(&format!("go-{number}")), "").unwrap();
        let rest = String::from_utf8(client.read_to_end()).unwrap();
        let is_whole = rest.contains("end\n") && rest.ends_with("0\r\n\r\n");
        assert!(is_whole, "{number}: {rest:?}");
    }
    assert!(programs.text("/warm/waits.py?go-0").ends_with("end\n"));
    programs.stop();
}
