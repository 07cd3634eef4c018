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
        ("/cgi/a.cgi%2fx", 404),
        ("/cgi/sub%2Fb.cgi", 404),
        ("/cgi%2Fa.cgi", 404),
        ("/cgi/%2Fa.cgi", 404),
        ("/cgi/a.cgi/x%2F..", 400),
        ("/cgi/a.cgi/%2F..%2F..%2Fetc/passwd", 400),
        ("/cgi/plain.cgi/a%2Fb", 403),
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

/// What is told of the path, and that no file that is named by it lies outside of the root.
const TOLD: &str = "printf 'Content-Type: text/plain\\n\\n'\n\
                    echo \"$SCRIPT_NAME|$PATH_INFO|$PATH_TRANSLATED|$REQUEST_URI\"\n";

#[test]
fn encoded_slash_comes_to_a_program_and_separates_nothing() {
    let programs = Programs::new()
        .with_sh("a.cgi", TOLD)
        .with_sh("user.cgi", TOLD)
        .serve_route(
            "path = \"/cgi/secret/*\"\nrespond = { status = 403 }\n\
             [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
             [[site.route]]\npath = \"/user/{name}/*\"\n\
             cgi = { script = \"cgi/user.cgi\" }\n\
             [[site.route]]\npath = \"/go/{name}\"\nredirect = \"/went/{name}?of={path}\"\n",
        );
    let site = programs.place.path("site").display().to_string();
    for (path, expected) in [
        ("/cgi/a.cgi/x%2Fy", "/cgi/a.cgi|/x/y|/x/y"),
        ("/cgi/a.cgi/%2fy%2F", "/cgi/a.cgi|//y/|/y/"),
        ("/cgi/a.cgi/x%252Fy", "/cgi/a.cgi|/x%2Fy|/x%2Fy"),
        ("/cgi/a.cgi/x%2Fy/../z", "/cgi/a.cgi|/z|/z"),
        (
            "/cgi/a.cgi/secret%2F.hidden",
            "/cgi/a.cgi|/secret/.hidden|/secret/.hidden",
        ),
        ("/user/group%2fname/x%2Fy", "/user/group/name|/x/y|/x/y"),
    ] {
        let (told, translated) = expected.rsplit_once('|').unwrap();
        let expected = format!("{told}|{site}{translated}|{path}\n");
        assert_eq!(programs.text(path), expected, "{path}");
    }
    for (path, status) in [
        ("/cgi/secret/x", 403),
        ("/cgi/secret%2Fx", 404),
        ("/user%2Fa/x", 404),
        ("/user/a%2F../x", 400),
        ("/user/a%2f%2e%2e%2fb/x", 400),
    ] {
        assert_eq!(programs.get(path).answer.status, status, "{path}");
    }
    let moved = programs.get("/go/a%2fb%252Fc").answer;
    assert_eq!(
        moved.header("location"),
        Some("/went/a%2Fb%252Fc?of=%2Fgo%2Fa%2Fb%252Fc")
    );
    let refused = programs.record("/user/a%2F../x");
    assert_eq!(refused["reason"], "dot segment beside an encoded slash");
    programs.stop();
}

#[test]
fn route_with_an_encoded_slash_is_for_one_name() {
    let programs = Programs::new().serve_route(
        "path = \"/@scope%2fname\"\nrespond = { status = 204 }\n\
         [[site.route]]\npath = \"/old\"\nrewrite = \"/@scope%2Fname\"\nfiles = \"site\"\n",
    );
    for (path, status) in [
        ("/@scope%2Fname", 204),
        ("/@scope%2fname", 204),
        ("/@scope/name", 404),
        ("/@scope%252Fname", 404),
        ("/@scope%2Fname/", 404),
        ("/old", 404),
    ] {
        assert_eq!(programs.get(path).answer.status, status, "{path}");
    }
    programs.stop();
}

#[test]
fn slashes_behind_a_program_stay_as_they_were_sent() {
    let programs = Programs::new()
        .with_sh("a.cgi", TOLD)
        .with_sh("sub/index.cgi", TOLD)
        .serve_route(
            "path = \"/cgi/*\"\ncgi = { dir = \"cgi\", index = [\"index.cgi\"] }\n\
             [[site.route]]\npath = \"/app/*\"\n\
             cgi = { script = \"cgi/a.cgi\" }\n\
             [[site.route]]\npath = \"/old/{rest*}\"\nrewrite = \"/cgi/{rest}\"\n\
             cgi = { script = \"cgi/a.cgi\" }\n",
        );
    let site = programs.place.path("site").display().to_string();
    for (path, expected) in [
        ("/cgi/a.cgi//a///b//", "/cgi/a.cgi|//a///b//|/a/b/"),
        ("//cgi//a.cgi//a//b", "/cgi/a.cgi|//a//b|/a/b"),
        ("//%63gi/./x/..//a.cgi/%2e//a", "/cgi/a.cgi|//a|/a"),
        (
            "/cgi/a.cgi/https://a.test//x",
            "/cgi/a.cgi|/https://a.test//x|/https:/a.test/x",
        ),
        ("/cgi/a.cgi/x//../y", "/cgi/a.cgi|/y|/y"),
        // The same dot segments lead to the same program, whatever slashes are between them.
        ("/cgi/x.cgi//../a.cgi//y", "/cgi/a.cgi|//y|/y"),
        ("//app//a", "/app|//a|/a"),
        ("/app//", "/app|//|/"),
        // It is the config that has put such a path together.
        ("/old//a//b", "|/cgi/a/b|/cgi/a/b"),
    ] {
        let (told, translated) = expected.rsplit_once('|').unwrap();
        let expected = format!("{told}|{site}{translated}|{path}\n");
        assert_eq!(programs.text(path), expected, "{path}");
    }
    let index = programs.text("/cgi//sub//");
    assert_eq!(index, "/cgi/sub/index.cgi|||/cgi//sub//\n");
    programs.stop();
}

#[test]
fn explain_tells_encoded_slashes_and_those_behind_a_program() {
    let programs = Programs::new().with_sh("a.cgi", "touch ran\n").serve("");
    let explain = |path: &str| {
        let output = programs.place.run(&["explain", "--json", "GET", path]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let told = explain("//cgi//a.cgi//x%2fy%252F");
    assert_eq!(told["path"]["normal"], "/cgi/a.cgi/x%2Fy%252F");
    assert_eq!(told["program"]["script_name"], "/cgi/a.cgi");
    assert_eq!(told["program"]["path_info"], "//x/y%2F");
    let told = explain("/cgi%2Fa.cgi");
    assert_eq!(told["path"]["normal"], "/cgi%2Fa.cgi");
    assert_eq!(told["answer"]["status"], 404);
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

#[test]
fn link_leads_into_places_that_are_allowed_and_the_record_says_where_another_one_leads() {
    let programs = Programs::new()
        .with_sh(
            "../lib/tool.cgi",
            "printf 'Content-Type: text/plain\\n\\n%s %s %s\\n' \"$SCRIPT_NAME\" \"$SCRIPT_FILENAME\" \"$(pwd)\"\n",
        )
        .with_sh("../other/secret.cgi", "printf '\\nno\\n'\n")
        .with_sh("own.cgi", "printf 'Content-Type: text/plain\\n\\nown\\n'\n");
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, programs.path(name)).unwrap();
    };
    link("../lib/tool.cgi", "tool.cgi");
    link(&programs.place.path("lib").display().to_string(), "lib");
    link(&programs.path("own.cgi").display().to_string(), "whole.cgi");
    link("../other/secret.cgi", "secret.cgi");
    let programs = programs.serve("symlinks_to = [\"lib\"]");
    let lib = programs.place.path("lib");
    for name in ["tool.cgi", "lib/tool.cgi"] {
        let told = programs.text(&format!("/cgi/{name}"));
        let expected = format!("/cgi/{name} {0}/tool.cgi {0}\n", lib.display());
        assert_eq!(told, expected);
    }
    assert_eq!(programs.text("/cgi/whole.cgi"), "own\n");
    assert_eq!(programs.get("/cgi/secret.cgi").answer.status, 404);
    let record = programs.record("/cgi/secret.cgi");
    let says = |field: &str, text: &str| record[field].as_str().unwrap().contains(text);
    assert!(
        says("reason", "`symlinks_to`") && says("detail", "/other/secret.cgi"),
        "{record}"
    );
    let explained = programs.place.run(&["explain", "GET", "/cgi/secret.cgi"]);
    let text = String::from_utf8_lossy(&explained.stdout);
    assert!(text.contains("`symlinks_to`"), "{text}");
    // A link that is changed to lead elsewhere is not followed there.
    std::fs::remove_file(programs.path("tool.cgi")).unwrap();
    std::os::unix::fs::symlink("../other/secret.cgi", programs.path("tool.cgi")).unwrap();
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    loop {
        let answer = programs.get("/cgi/tool.cgi").answer;
        match answer.status {
            404 => break,
            _ => assert!(answer.text().contains("/lib/tool.cgi"), "{answer:?}"),
        }
        assert!(
            std::time::Instant::now() < until,
            "it is believed for too long"
        );
    }
    programs.stop();
}
