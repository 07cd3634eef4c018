//! How programs end: by themselves, with what they leave running, and when nobody waits any more.

use std::io::Write;

use crate::harness::client::Connection;
use crate::harness::wait_for_end;
use crate::site::Programs;

/// The number a program wrote to a file, once it is there.
fn number_in(programs: &Programs, name: &str) -> u32 {
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    loop {
        let text = std::fs::read_to_string(programs.path(name)).unwrap_or_default();
        if let Some(number) = text.strip_suffix('\n') {
            return number.parse().unwrap();
        }
        assert!(std::time::Instant::now() < until, "{name} was not written");
        std::thread::yield_now();
    }
}

#[test]
fn client_that_leaves_ends_the_program() {
    let programs = Programs::new()
        .with_sh(
            "asked.cgi",
            "trap 'echo asked >&2; exit' TERM\necho $$ > pid-asked\nsleep 1000 & wait\n",
        )
        .with_sh(
            "deaf.cgi",
            "trap '' TERM\nprintf 'Content-Type: text/plain\\n\\nbegun\\n'\necho $$ > pid-deaf\n\
             while :; do read line < /dev/zero; done\n",
        )
        .serve("grace = \"2s\"");
    let mut connection = Connection::open(programs.port()).unwrap();
    connection.send_get("/cgi/asked.cgi").unwrap();
    let asked = number_in(&programs, "pid-asked");
    connection.leave();
    wait_for_end(asked);
    programs.hob().wait_for("stderr: asked");
    assert_eq!(programs.record("/cgi/asked.cgi")["outcome"], "client-left");
    let mut connection = Connection::open(programs.port()).unwrap();
    connection.send_get("/cgi/deaf.cgi").unwrap();
    connection.read_until("begun");
    let deaf = number_in(&programs, "pid-deaf");
    connection.leave();
    wait_for_end(deaf);
    programs.place.wait_for_counter("limit_program_grace", 1);
    programs.stop();
}

#[test]
fn h1_only_client_that_ends_its_side_behind_its_last_request_is_answered() {
    let programs = Programs::new()
        .with_sh(
            "says.cgi",
            "read line < \"$QUERY_STRING\"\nbody=$(cat)\n\
             printf 'Content-Type: text/plain\\n\\n%s%s\\n' \"$body\" \"$line\"\n",
        )
        .serve("");
    let fifo = programs.place.path("run/fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
    rustix::fs::chmod(&fifo, mode).unwrap();
    // Both ways, so that opening waits for nobody.
    let line = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&fifo)
        .unwrap();
    let target = format!("/cgi/says.cgi?{}", fifo.display());
    for (rest, body) in [
        ("HTTP/1.0\r\n\r\n", ""),
        ("HTTP/1.0\r\nContent-Length: 5\r\n\r\n", "body "),
        ("HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", ""),
        (
            "HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
            "5\r\nbody \r\n0\r\n\r\n",
        ),
    ] {
        let mut client = Connection::open(programs.port()).unwrap();
        let method = if body.is_empty() { "GET" } else { "POST" };
        let request = format!("{method} {target} {rest}{body}");
        client.send(request.as_bytes()).unwrap();
        client.end_sending();
        // The program goes on only now.
        (&line).write_all(b"line\n").unwrap();
        let text = String::from_utf8(client.read_to_end()).unwrap();
        let wanted = if body.is_empty() {
            "line\n"
        } else {
            "body line\n"
        };
        assert!(text.starts_with("HTTP/1.1 200 "), "{request:?}: {text}");
        assert!(
            text.replace("\r\n", "").contains(wanted),
            "{request:?}: {text}"
        );
    }
    programs.stop();
}

#[test]
fn client_that_would_have_kept_its_connection_and_ends_its_side_has_left() {
    let programs = Programs::new()
        .with_sh("waits.cgi", "echo $$ > pid-waits\nsleep 1000\n")
        .serve("");
    let mut client = Connection::open(programs.port()).unwrap();
    let head = b"GET /cgi/waits.cgi HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(head).unwrap();
    let pid = number_in(&programs, "pid-waits");
    client.end_sending();
    wait_for_end(pid);
    let record = programs.record("/cgi/waits.cgi");
    assert_eq!(record["outcome"], "client-left");
    programs.stop();
}

#[test]
fn daemon_survives_the_program_that_started_it() {
    let programs = Programs::new()
        .with_sh(
            "starts.cgi",
            "printf 'Content-Type: text/plain\\n\\nstarted\\n'\n\
             (setsid sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! > pid-daemon)\n",
        )
        .with_sh(
            "holds.cgi",
            "printf 'Content-Type: text/plain\\n\\nholding\\n'\n\
             sleep 1000 2>/dev/null & echo $! > pid-holder\n",
        )
        .serve("linger = \"200ms\"");
    assert_eq!(programs.text("/cgi/starts.cgi"), "started\n");
    let daemon = number_in(&programs, "pid-daemon");
    // The one that holds the output is waited for a moment, and the answer is whole then.
    assert_eq!(programs.text("/cgi/holds.cgi"), "holding\n");
    programs.place.wait_for_counter("limit_program_linger", 1);
    let holder = number_in(&programs, "pid-holder");
    for pid in [daemon, holder] {
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
        crate::harness::send_signal(pid, rustix::process::Signal::KILL);
    }
    programs.stop();
}

#[test]
fn program_may_work_on_after_it_has_closed_its_output() {
    let programs = Programs::new()
        .with_sh(
            "works.cgi",
            "printf 'Content-Type: text/plain\\nContent-Length: 5\\n\\ndone\\n'\n\
             exec >&- 2>&-\nread line < \"$1\"\necho \"$line\" > worked\n",
        )
        .serve("");
    let fifo = programs.place.path("run/fifo");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
    )
    .unwrap();
    let query = fifo.display().to_string().replace('/', "%2f");
    assert_eq!(programs.text(&format!("/cgi/works.cgi?{query}")), "done\n");
    std::fs::write(&fifo, "7\n").unwrap();
    assert_eq!(number_in(&programs, "worked"), 7);
    programs.stop();
}

#[test]
fn program_killed_in_the_middle_of_its_output_is_no_whole_answer() {
    let programs = Programs::new()
        .with_sh(
            "dies.cgi",
            "printf 'Content-Type: text/plain\\n\\n'\nhead -c 300000 /dev/zero\nkill -9 $$\n",
        )
        .serve("");
    let reply = programs.get("/cgi/dies.cgi");
    assert_eq!((reply.answer.status, reply.is_whole), (200, false));
    let record = programs.record("/cgi/dies.cgi");
    assert_eq!(record["reason"], "a signal ended the program");
    assert_eq!(
        (&record["outcome"], &record["fault"]),
        (&"broken".into(), &"script".into())
    );
    programs.stop();
}

/// A head, and far more than is held back, so that the answer has begun.
const BEGUN: &str = "printf 'Content-Type: text/plain\\n\\n'\nhead -c 300000 /dev/zero\n";

#[test]
fn program_that_fails_with_a_word_after_its_head_breaks_off_and_the_record_says_all() {
    let python = "#!/usr/bin/python3\nimport sys\nprint('Content-Type: text/plain\\n')\n\
                  print('x' * 300000, flush=True)\nraise ValueError('too ' + 'l' + 'ate')\n";
    let programs = Programs::new()
        .with("raises.py", python)
        .with_sh(
            "stops.cgi",
            &format!("set -e\n{BEGUN}ls /no/such/folder\necho on\n"),
        )
        .with_sh(
            "short.cgi",
            "printf 'Content-Type: text/plain\\n\\npart'\necho 'no disk' >&2\nexit 4\n",
        )
        .serve("");
    for (name, end, says) in [
        ("raises.py", "failed 1", "ValueError: too late"),
        ("stops.cgi", "failed 2", "/no/such/folder"),
        ("short.cgi", "failed 4", "exit code 4; stderr: no disk"),
    ] {
        let target = format!("/cgi/{name}");
        let reply = programs.get(&target);
        assert!(reply.is_broken(), "{name}: {reply:?}");
        let record = programs.record(&target);
        assert_eq!(
            (&record["fault"], &record["program_end"]),
            (&"script".into(), &end.into()),
            "{record}"
        );
        assert_eq!(record["reason"], "the program failed after its head");
        assert!(
            record["detail"].as_str().unwrap().contains(says),
            "{record}"
        );
    }
    programs.stop();
}

#[test]
fn last_lines_of_standard_error_are_told_and_not_the_first() {
    let script = "printf 'Content-Type: text/plain\\n\\n'\n\
                  i=0; while [ $i -lt 2000 ]; do echo \"line $i\" >&2; i=$((i+1)); done\nexit 1\n";
    let programs = Programs::new().with_sh("talks.cgi", script).serve("");
    assert!(programs.get("/cgi/talks.cgi").is_broken());
    let record = programs.record("/cgi/talks.cgi");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.ends_with("line 1998\nline 1999"), "{detail}");
    assert!(detail.contains("; stderr: line 19"), "{detail}");
    programs.stop();
}

#[test]
fn exit_code_without_a_word_or_after_an_error_page_is_only_recorded() {
    let programs = Programs::new()
        .with_sh(
            "careless.cgi",
            "printf 'Content-Type: text/plain\\n\\nall of it\\n'\nfalse\n",
        )
        .with_sh(
            "told.cgi",
            "printf 'Status: 500\\nContent-Type: text/plain\\n\\nSoftware error\\n'\n\
             echo died >&2\nexit 255\n",
        )
        .with_sh(
            "warns.cgi",
            "printf 'Content-Type: text/plain\\n\\nwell\\n'\necho 'is old' >&2\n",
        )
        .serve("");
    for (name, status, body, end, note, says) in [
        (
            "careless",
            200,
            "all of it\n",
            "code 1",
            true,
            "exit code 1",
        ),
        (
            "told",
            500,
            "Software error\n",
            "code 255",
            true,
            "stderr: died",
        ),
        ("warns", 200, "well\n", "clean", false, "stderr: is old"),
    ] {
        let target = format!("/cgi/{name}.cgi");
        let reply = programs.get(&target);
        assert_eq!(
            (reply.answer.status, reply.is_whole),
            (status, true),
            "{name}"
        );
        assert_eq!(reply.answer.text(), body);
        let record = programs.record(&target);
        assert_eq!(
            (&record["fault"], &record["program_end"]),
            (&"none".into(), &end.into()),
            "{record}"
        );
        let noted = "the program ended with an exit code other than 0";
        assert_eq!(record["note"] == noted, note, "{record}");
        assert!(
            record["detail"].as_str().unwrap().contains(says),
            "{record}"
        );
    }
    programs.stop();
}

#[test]
fn program_that_fails_after_a_whole_answer_of_known_length_is_at_fault_all_the_same() {
    let programs = Programs::new()
        .with_sh(
            "late.cgi",
            "printf 'Content-Type: text/plain\\nContent-Length: 5\\n\\ndone\\n'\nexec >&-\n\
             echo 'cannot save' >&2\nexit 3\n",
        )
        .serve("");
    assert_eq!(programs.text("/cgi/late.cgi"), "done\n");
    let record = programs.record("/cgi/late.cgi");
    assert_eq!(
        (&record["fault"], &record["program_end"], &record["outcome"]),
        (&"script".into(), &"failed 3".into(), &"complete".into())
    );
    assert_eq!(
        record["reason"],
        "the program failed after its answer was complete"
    );
    let detail = record["detail"].as_str().unwrap();
    assert!(
        detail.ends_with("late.cgi: exit code 3; stderr: cannot save"),
        "{detail}"
    );
    programs.stop();
}

#[test]
fn whatever_the_end_the_answer_is_whole_where_exit_is_trusted() {
    let programs = Programs::new()
        .with_sh("fails.cgi", &format!("{BEGUN}echo no >&2\nexit 3\n"))
        .with_sh("dies.cgi", &format!("{BEGUN}kill -9 $$\n"))
        .serve("exit = \"trust\"");
    for (name, end, fault) in [("fails", "code 3", "none"), ("dies", "killed 9", "none")] {
        let target = format!("/cgi/{name}.cgi");
        assert_eq!(programs.text(&target).len(), 300_000);
        let record = programs.record(&target);
        assert_eq!(
            (&record["program_end"], &record["fault"]),
            (&end.into(), &fault.into()),
            "{record}"
        );
    }
    programs.stop();
}

#[test]
fn history_has_process_start_and_exit_of_a_program() {
    let programs = Programs::new()
        .with_sh(
            "own.cgi",
            "printf 'Content-Type: text/plain\\n\\n%s\\n' $$\nexit 7\n",
        )
        .serve("");
    let own: u64 = programs.text("/cgi/own.cgi").trim().parse().unwrap();
    programs.place.wait_for_counter("requests", 1);
    let output = programs.place.run(&["history", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let request = &told["requests"][0];
    assert_eq!(
        (
            &request["pid"],
            &request["exit_code"],
            &request["program_end"]
        ),
        (&own.into(), &7.into(), &"code".into()),
        "{told}"
    );
    let (start, program) = (&request["start_us"], &request["program_us"]);
    assert!(start.as_u64().unwrap() > 0, "{request}");
    assert!(start.as_u64() < program.as_u64(), "{request}");
    programs.stop();
}

#[test]
fn script_that_is_forked_ends_as_one_that_is_started() {
    let programs = Programs::new()
        .with(
            "raises.py",
            "print('Content-Type: text/plain\\n')\nprint('x' * 300000, flush=True)\n\
             raise ValueError('too ' + 'late')\n",
        )
        .with(
            "careless.py",
            "import os, sys\nprint('Content-Type: text/plain\\n')\nprint(os.getpid())\nsys.exit(1)\n",
        )
        .serve_route(
            "path = \"/cgi/*\"\nwarm = { dir = \"cgi\", interpreter = \"python3\" }\n",
        );
    assert!(programs.get("/cgi/raises.py").is_broken());
    let record = programs.record("/cgi/raises.py");
    assert_eq!(
        (&record["fault"], &record["program_end"]),
        (&"script".into(), &"failed 1".into())
    );
    assert!(
        record["detail"].as_str().unwrap().ends_with("too late"),
        "{record}"
    );
    let own: u64 = programs.text("/cgi/careless.py").trim().parse().unwrap();
    assert_eq!(programs.record("/cgi/careless.py")["program_end"], "code 1");
    programs.place.wait_for_counter("requests", 2);
    let output = programs.place.run(&["history", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["requests"][0]["pid"], own, "{told}");
    programs.stop();
}
