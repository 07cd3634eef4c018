//! Programs that fail: what their clients, the record, the log and their authors are told.

use std::time::Instant;

use crate::harness::DEADLINE;
use crate::site::Programs;

#[test]
fn broken_output_is_a_502_with_reason_and_stderr_in_the_record() {
    let programs = Programs::new()
        .with_sh("silent.cgi", "echo 'went wrong <b>here</b>' >&2\nexit 7\n")
        .with_sh("headless.cgi", "printf 'Hello, world\\n\\n'\n")
        .with_sh(
            "endless.cgi",
            "printf 'Content-Type: text/plain\\nX-A: 1'\n",
        )
        .with_sh("blank.cgi", "printf '\\nbody'\n")
        .with_sh("nul.cgi", "printf 'X-A: a\\000b\\n\\n'\n")
        .with_sh("control.cgi", "printf 'X-A: a\\033b\\n\\n'\n")
        .with_sh(
            "types.cgi",
            "printf 'Content-Type: a/b\\nContent-Type: a/c\\n\\n'\n",
        )
        .with_sh("status.cgi", "printf 'Status: great\\n\\n'\n")
        .with_sh("interim.cgi", "printf 'Status: 101\\n\\n'\n")
        .with_sh("bodiless.cgi", "printf 'Status: 204\\n\\nbody'\n")
        .with_sh("reset.cgi", "printf 'Status: 205\\n\\nbody'\n")
        .with_sh("length.cgi", "printf 'Content-Length: -1\\n\\n'\n")
        .with_sh("killed.cgi", "kill -9 $$\n")
        .with("interpreter.cgi", "#!/no/such/interpreter\n")
        .with(
            "python.cgi",
            "#!/usr/bin/python3\nprint('Content-Type: text/plain')\nraise ValueError('oops')\n",
        )
        .serve("");
    for (name, reason, detail) in [
        (
            "silent",
            "ended without output",
            "exit code 7; stderr: went wrong <b>here</b>",
        ),
        ("headless", "is no field", "\"Hello, world\""),
        (
            "endless",
            "before the empty line",
            "\"Content-Type: text/plain\"",
        ),
        ("blank", "begins with an empty line", ""),
        ("nul", "NUL byte", "X-A"),
        ("control", "control character", "X-A"),
        ("types", "two content types", "a/c"),
        ("status", "no number from 200 to 599", "great"),
        ("interim", "cannot end with status 1xx", "101"),
        (
            "bodiless",
            "a body with a status that has none",
            "status 204",
        ),
        ("reset", "a body with a status that has none", "status 205"),
        ("length", "no number of bytes", "-1"),
        ("killed", "a signal ended the program", "signal 9"),
        (
            "interpreter",
            "could not be started",
            "cannot execute it: No such file",
        ),
        ("python", "before the empty line", "stderr: Traceback"),
    ] {
        let target = format!("/cgi/{name}.cgi");
        let reply = programs.get(&target);
        assert_eq!(reply.answer.status, 502, "{name}: {reply:?}");
        assert!(!reply.answer.text().contains("went wrong"), "{name}");
        let record = programs.record(&target);
        assert_eq!(
            (&record["fault"], &record["status"]),
            (&"script".into(), &502.into())
        );
        let says = |field: &str, text: &str| record[field].as_str().unwrap().contains(text);
        assert!(says("reason", reason), "{name}: {record}");
        assert!(says("detail", detail), "{name}: {record}");
        assert!(says("detail", &format!("{name}.cgi")), "{name}: {record}");
    }
    // Blank lines are no body.
    programs.stop();
}

#[test]
fn stderr_goes_to_the_log_line_by_line_with_the_request() {
    let programs = Programs::new()
        .with_sh(
            "noisy.cgi",
            "echo 'first line' >&2\nprintf 'second ' >&2\nprintf 'Content-Type: text/plain\\n\\n'\n\
             printf 'line\\nthird\\033[31m' >&2\necho \"$UNIQUE_ID\"\n",
        )
        .with_sh(
            "flood.cgi",
            "yes 'a line of noise' | head -n 5000 >&2\n\
             printf 'Content-Type: text/plain\\n\\ndone\\n'\n",
        )
        .serve("");
    let id = programs.text("/cgi/noisy.cgi");
    for line in ["first line", "second line", "third\\u{1b}[31m"] {
        let logged = programs.hob().wait_for(&format!("stderr: {line}"));
        assert!(
            logged.contains(id.trim_end()) && logged.contains("noisy.cgi"),
            "{logged}"
        );
        assert!(logged.contains("WARN"), "{logged}");
    }
    assert_eq!(programs.text("/cgi/flood.cgi"), "done\n");
    let until = Instant::now() + DEADLINE;
    let mut told = (0, 0);
    // The answer is there before the last of what was said beside it.
    while told.0 + told.1 < 5000 {
        assert!(Instant::now() < until, "(logged, dropped): {told:?}");
        let logged = programs.hob().printed().matches("a line of noise").count() as u64;
        told = (logged, programs.place.counter("program_stderr_dropped"));
    }
    assert!(told.0 < 1000 && told.0 + told.1 == 5000, "{told:?}");
    programs.stop();
}

#[test]
fn author_sees_the_failure_where_that_is_wanted() {
    let programs = Programs::new()
        .with_sh(
            "bad.cgi",
            "echo 'line <1>' >&2\necho 'line & 2' >&2\nprintf 'Hello <you>\\n\\n'\n",
        )
        .with_mode("plain.cgi", "", 0o644);
    programs.place.write("502.html", "<p>sorry");
    let programs = programs.serve_route(
        "path = \"/cgi/*\"\ncgi = { dir = \"cgi\", dev = true }\n\
         [site.error_pages]\n502 = \"502.html\"\n",
    );
    let page = programs.get("/cgi/bad.cgi").answer;
    assert_eq!(page.status, 502);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let text = page.text();
    for part in [
        "is no field (`Name: value`)",
        "Hello &lt;you&gt;",
        "line &lt;1&gt;\nline &amp; 2\n",
        "bad.cgi",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("<you>") && !text.contains("<1>"));
    let forbidden = programs.get("/cgi/plain.cgi").answer;
    assert!(forbidden.status == 403 && forbidden.text().contains("chmod +x"));
    programs.stop();
}

#[test]
fn page_of_the_sites_own_takes_the_place_of_the_servers() {
    let programs = Programs::new().with_sh("bad.cgi", "exit 1\n").with_sh(
        "own.cgi",
        "printf 'Status: 502\\nContent-Type: text/plain\\n\\nown words'\n",
    );
    programs.place.write("502.html", "<p>sorry");
    let programs = programs
        .serve_route("path = \"/cgi/*\"\ncgi = \"cgi\"\n[site.error_pages]\n502 = \"502.html\"\n");
    assert_eq!(programs.get("/cgi/bad.cgi").answer.text(), "<p>sorry");
    assert_eq!(programs.get("/cgi/own.cgi").answer.text(), "own words");
    programs.stop();
}
