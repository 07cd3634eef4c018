//! Which program a path means.

use crate::harness::client::call;
use crate::harness::text_of;
use crate::site::Programs;

const PARTS: &str = "printf 'Content-Type: text/plain\\n\\n'\n\
                     echo \"$SCRIPT_NAME|$PATH_INFO|$0\"\n";

fn parts(programs: &Programs, path: &str) -> String {
    let text = programs.text(path);
    let folder = programs.place.path("").display().to_string();
    text.trim_end().replace(&folder, "")
}

#[test]
fn folder_of_programs() {
    let programs = Programs::new()
        .with_sh("a.cgi", PARTS)
        .with_sh("sub/b.cgi", PARTS)
        .with_sh("sub/index.cgi", PARTS)
        .with_sh(".hidden.cgi", PARTS)
        .with_mode("plain.cgi", "#!/bin/sh\necho secret\n", 0o644)
        .with_mode("empty/note.txt", "note", 0o644);
    std::os::unix::fs::symlink("a.cgi", programs.path("link.cgi")).unwrap();
    std::os::unix::fs::symlink("/bin/ls", programs.path("out.cgi")).unwrap();
    std::os::unix::fs::symlink("../site", programs.path("site")).unwrap();
    let programs = programs.serve("");
    for (path, expected) in [
        ("/cgi/a.cgi", "/cgi/a.cgi||/cgi/a.cgi"),
        ("/cgi/a.cgi/", "/cgi/a.cgi|/|/cgi/a.cgi"),
        ("/cgi/a.cgi/x/.y/%7E?q", "/cgi/a.cgi|/x/.y/~|/cgi/a.cgi"),
        ("/cgi/link.cgi/x", "/cgi/link.cgi|/x|/cgi/link.cgi"),
        ("/cgi/sub/b.cgi/x", "/cgi/sub/b.cgi|/x|/cgi/sub/b.cgi"),
        ("/cgi/sub/", "/cgi/sub/index.cgi||/cgi/sub/index.cgi"),
        ("/cgi//sub/../a.cgi", "/cgi/a.cgi||/cgi/a.cgi"),
    ] {
        assert_eq!(parts(&programs, path), expected, "{path}");
    }
    let folder = programs.get("/cgi/sub?q").answer;
    assert_eq!(
        (folder.status, folder.header("location")),
        (301, Some("/cgi/sub/?q"))
    );
    let posted = call(programs.port(), "POST", "/cgi/sub", "", b"x").answer;
    assert_eq!(posted.status, 308);
    for (path, status) in [
        ("/cgi/missing.cgi", 404),
        ("/cgi/.hidden.cgi", 404),
        ("/cgi/out.cgi", 404),
        ("/cgi/site/hello.txt", 404),
        ("/cgi/../../../../bin/ls", 400),
        ("/cgi/a.cgi%2fx", 400),
        ("/cgi/", 403),
        ("/cgi/empty/", 403),
        ("/cgi/empty/note.txt", 403),
        ("/cgi/plain.cgi", 403),
    ] {
        let answer = programs.get(path).answer;
        assert_eq!(answer.status, status, "{path}");
        assert!(!answer.text().contains("secret"), "{path}");
    }
    let reason = programs.record("/cgi/plain.cgi")["reason"].to_string();
    assert!(
        reason.contains("not executable") && reason.contains("chmod +x"),
        "{reason}"
    );
    programs.stop();
}

#[test]
fn interpreters_run_files_by_their_ending() {
    let programs = Programs::new()
        .with_mode(
            "a.py",
            "import os, sys\nprint('Content-Type: text/plain\\n')\n\
             print(os.environ['SCRIPT_NAME'], os.environ['PATH_INFO'], sys.argv[1:], \
             sys.flags.isolated)\n",
            0o644,
        )
        .with_mode(
            "a.pl",
            "print \"Content-Type: text/plain\\n\\n$0\\n\";\n",
            0o644,
        )
        .with_mode("a.txt", "text", 0o644)
        .serve("interpreters = { \".py\" = \"python3 -I\", \".pl\" = \"/usr/bin/perl\" }");
    assert_eq!(
        programs.text("/cgi/a.py/x?one+two"),
        "/cgi/a.py /x ['one', 'two'] 1\n"
    );
    let perl = programs.text("/cgi/a.pl");
    assert_eq!(perl.trim_end(), programs.path("a.pl").display().to_string());
    assert_eq!(programs.get("/cgi/a.txt").answer.status, 403);
    programs.stop();
}

#[test]
fn one_program_for_all_paths_of_a_route() {
    let programs = Programs::new().with_sh("app.cgi", PARTS).serve_route(
        "path = \"/app/*\"\ncgi = { script = \"cgi/app.cgi\" }\n\
         [[site.route]]\npath = \"/app\"\ncgi = { script = \"cgi/app.cgi\" }\n\
         [[site.route]]\npath = \"*.app\"\ncgi = { script = \"cgi/app.cgi\" }\n\
         [[site.route]]\npath = \"/old/{rest*}\"\nrewrite = \"/new/{rest}\"\n\
         cgi = { script = \"cgi/app.cgi\" }\n",
    );
    for (path, expected) in [
        ("/app/x/y", "/app|/x/y|/cgi/app.cgi"),
        ("/app/", "/app|/|/cgi/app.cgi"),
        ("/app", "/app||/cgi/app.cgi"),
        ("/x/y.app", "|/x/y.app|/cgi/app.cgi"),
        ("/old/thing", "|/new/thing|/cgi/app.cgi"),
    ] {
        assert_eq!(parts(&programs, path), expected, "{path}");
    }
    programs.stop();
}

#[test]
fn suffix_route_runs_programs_among_the_sites_files() {
    let programs = Programs::new()
        .with_sh("a.cgi", PARTS)
        .with_sh("sub/b.cgi", PARTS)
        .serve_route("path = \"*.cgi\"\ncgi = \"cgi\"\n");
    assert_eq!(parts(&programs, "/a.cgi"), "/a.cgi||/cgi/a.cgi");
    assert_eq!(parts(&programs, "/sub/b.cgi"), "/sub/b.cgi||/cgi/sub/b.cgi");
    assert_eq!(programs.text("/hello.txt"), "hello\n");
    programs.stop();
}

#[test]
fn explain_says_what_would_run_and_runs_nothing() {
    let programs = Programs::new()
        .with_sh("a.cgi", "touch ran\n")
        .with_mode("plain.cgi", "", 0o644)
        .serve("");
    let explain = |path: &str| {
        let output = programs
            .place
            .run(&["explain", "GET", path, "--config", "hob.toml"]);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        text_of(&output)
    };
    let text = explain("/cgi/a.cgi/x?one+two");
    let file = programs.path("a.cgi").display().to_string();
    for line in [
        format!("program   {file}\n"),
        format!("run as [{file:?}, \"one\", \"two\"]\n"),
        "SCRIPT_NAME = \"/cgi/a.cgi\", PATH_INFO = \"/x\"\n".to_owned(),
        "answer    what the program says\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} in\n{text}");
    }
    assert!(!programs.path("ran").exists());
    let refused = explain("/cgi/plain.cgi");
    assert!(
        refused.contains("403 Forbidden") && refused.contains("chmod +x"),
        "{refused}"
    );
    let output = programs
        .place
        .run(&["explain", "--json", "GET", "/cgi/a.cgi"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["program"]["script_name"], "/cgi/a.cgi");
    assert_eq!(json["answer"]["status"], serde_json::Value::Null);
    programs.stop();
}
