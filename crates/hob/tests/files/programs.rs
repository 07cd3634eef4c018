//! Files that are programs' to answer for: found as a folder's index or a fallback they run, and
//! are never sent as they are.

use super::harness::client::{Answer, ask, call, get};
use super::harness::{Hob, Place};

/// Says how it was asked; as a file it would be recognised by its `source`.
const SCRIPT: &str = "#!/bin/sh\n# source\nprintf 'Content-Type: text/plain\\n\\n'\n\
    printf '%s %s %s %s ' \"$REQUEST_METHOD\" \"$SCRIPT_NAME\" \"$PATH_INFO\" \"$REQUEST_URI\"\ncat\n";

/// A site whose names that end in `.sh` are programs, wherever they stand.
fn serve(place: &Place, files: &str, more: &str) -> Hob {
    for name in ["site/index.sh", "site/a/index.sh", "site/a/b/index.html"] {
        place.script(name, SCRIPT);
    }
    place.serve_config_with(
        "",
        &format!(
            "[[site.route]]\npath = \"*.sh\"\ncgi = {{ dir = \"site\" }}\n{more}\
             [[site.route]]\npath = \"/*\"\nfiles = {{ root = \"site\", {files} }}\n"
        ),
    )
}

fn assert_ran(answer: &Answer, said: &str) {
    assert_eq!((answer.status, answer.text()), (200, said.to_owned()));
}

#[test]
fn index_that_is_a_program_runs() {
    let place = Place::new();
    let hob = serve(&place, "index = [\"index.html\", \"index.sh\"]", "");
    assert_ran(&get(hob.port(), "/").unwrap(), "GET /index.sh  / ");
    assert_ran(
        &get(hob.port(), "/a/?x=y").unwrap(),
        "GET /a/index.sh  /a/?x=y ",
    );
    // A folder without its slash is sent there first, as ever.
    assert_eq!(get(hob.port(), "/a").unwrap().status, 301);
    // The first name that is there counts.
    assert!(
        get(hob.port(), "/a/b/")
            .unwrap()
            .text()
            .contains("# source")
    );
    // Again, out of the cache.
    assert_ran(&get(hob.port(), "/").unwrap(), "GET /index.sh  / ");
    hob.stop();
}

#[test]
fn index_below_a_name_with_an_encoded_slash_is_the_programs() {
    let place = Place::new();
    place.script("site/index.sh", SCRIPT);
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"*.sh\"\ncgi = { script = \"site/index.sh\" }\n\
         [[site.route]]\npath = \"/{user}/*\"\n\
         files = { root = \"site\", index = [\"index.sh\"] }\n",
    );
    assert_ran(
        &get(hob.port(), "/a%2fb/").unwrap(),
        "GET  /a/b/index.sh /a%2fb/ ",
    );
    assert_ran(
        &get(hob.port(), "/a%252fb/").unwrap(),
        "GET  /a%2fb/index.sh /a%252fb/ ",
    );
    hob.stop();
}

#[test]
fn fallback_that_is_a_program_runs_with_all_that_came() {
    let place = Place::new();
    let hob = serve(&place, "fallback = \"index.sh\"", "");
    for path in [
        "/some/page/",
        "/index.sh.d/x",
        "/no%20thing",
        "/@a%2Fb",
        "//x//y",
    ] {
        let answer = get(hob.port(), path).unwrap();
        assert_ran(&answer, &format!("GET /index.sh  {path} "));
    }
    // A program takes methods that a file does not.
    let reply = call(hob.port(), "POST", "/some/page", "", b"hello");
    assert_ran(&reply.answer, "POST /index.sh  /some/page hello");
    assert_eq!(ask(hob.port(), "POST", "/a/b/index.html", "").status, 405);
    hob.stop();
}

#[test]
fn body_of_a_fallback_has_the_limit_of_its_program() {
    let place = Place::new();
    let hob = serve(&place, "fallback = \"index.sh\"", "body = \"2MiB\"\n");
    let body = vec![b'x'; 3 << 19];
    let reply = call(hob.port(), "POST", "/some/page", "", &body);
    let said = format!("POST /index.sh  /some/page {}", "x".repeat(body.len()));
    assert!(reply.answer.status == 200 && reply.answer.text() == said);
    for (target, length, status) in [
        ("/some/page", 3 << 20, 413),
        ("/a/b/index.html", 3 << 19, 405),
    ] {
        let fields = format!("Content-Length: {length}\r\n");
        assert_eq!(ask(hob.port(), "POST", target, &fields).status, status);
    }
    hob.stop();
}

#[test]
fn rewritten_path_that_is_a_program_runs() {
    let place = Place::new();
    let more = "[[site.route]]\npath = \"/old/*\"\nrewrite = \"/a/index.sh\"\n\
        files = { root = \"site\" }\n";
    let hob = serve(&place, "", more);
    assert_ran(
        &get(hob.port(), "/old/x").unwrap(),
        "GET /a/index.sh  /old/x ",
    );
    hob.stop();
}

#[test]
fn explanation_follows_to_the_program() {
    let place = Place::new();
    let hob = serve(&place, "index = [\"index.sh\"]", "");
    let output = place.run(&["explain", "--config", "hob.toml", "GET", "/a/"]);
    let text = super::harness::text_of(&output);
    assert!(text.contains("passed to"), "{text}");
    assert!(text.contains("/a/index.sh"), "{text}");
    hob.stop();
}
