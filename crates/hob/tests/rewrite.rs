//! Rewrites: the handler sees another path than the client asked for, and never one above its root.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{ask, call};
use harness::{Place, text_of};

#[test]
fn handler_sees_the_rewritten_path_and_the_client_no_redirect() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("site/pages/deep")).unwrap();
    place.write("site/pages/ann.html", "ann");
    place.write("site/pages/b b.html", "b b");
    place.write("site/pages/deep/c.html", "c");
    place.write("secret.html", "secret");
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/user/{name}\"\nrewrite = \"/pages/{name}.html\"\nfiles = {}\n\
         [[site.route]]\npath = \"/all/{rest*}\"\nrewrite = \"/pages/{rest}.html\"\nfiles = {}\n\
         [[site.route]]\npath = \"/raw/{rest*}\"\nrewrite = \"/{rest}\"\nfiles = {}\n\
         [[site.route]]\npath = \"/greet\"\nrewrite = \"/hello.txt\"\nfiles = {}\n",
    );
    for (path, status, text) in [
        ("/user/ann", 200, "ann"),
        ("/user/b%20b", 200, "b b"),
        ("/user/bob", 404, ""),
        ("/all/deep/c", 200, "c"),
        ("/greet?x=y", 200, "hello\n"),
        ("/raw/pages/ann.html", 200, "ann"),
        // Dot segments are taken out before the route captures, and looked for after.
        ("/user/..", 403, ""),
        ("/all/%2e%2e/%2e%2e/secret", 400, ""),
        ("/raw/.env", 404, ""),
    ] {
        let answer = ask(hob.port(), "GET", path, "");
        assert_eq!(answer.status, status, "{path}");
        if status == 200 {
            assert_eq!(answer.text(), text, "{path}");
        }
    }
    hob.stop();
}

#[test]
fn capture_that_leads_above_the_root_is_refused() {
    let place = Place::new();
    place.write("secret", "secret");
    // A dot before a capture that begins with one: together they would be two.
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/x/{name}\"\nrewrite = \"/.{name}/secret\"\n\
         files = { dot_files = true }\n",
    );
    let answer = ask(hob.port(), "GET", "/x/...", "");
    assert_eq!(answer.status, 404);
    for path in ["/x/.", "/x/%2e"] {
        let answer = ask(hob.port(), "GET", path, "");
        assert_ne!(answer.status, 200, "{path}");
        assert!(!answer.text().contains("secret"), "{path}");
    }
    hob.stop();
}

#[test]
fn program_sees_the_rewritten_query_and_the_rest_of_the_request() {
    let place = Place::new();
    place.folder("cgi");
    place.write(
        "cgi/index",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
         echo \"$SCRIPT_NAME $QUERY_STRING $REQUEST_URI $REQUEST_METHOD $1\"\ncat\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("cgi/index"), mode).unwrap();
    let cgi = "cgi = { dir = \"cgi\" }\n";
    let hob = place.serve_config_with(
        "",
        &format!(
            "[[site.route]]\npath = \"/page/{{name}}\"\n\
             rewrite = \"/index?page={{name}}&{{query}}\"\n{cgi}\
             [[site.route]]\npath = \"/none\"\nrewrite = \"/index?\"\n{cgi}\
             [[site.route]]\npath = \"/same\"\nrewrite = \"/index\"\n{cgi}"
        ),
    );
    for (target, seen) in [
        ("/page/a%26b?x=1", "page=a%26b&x=1 /page/a%26b?x=1 GET "),
        ("/page/a", "page=a /page/a GET "),
        ("/none?x", " /none?x GET "),
        ("/same?x", "x /same?x GET x"),
    ] {
        let answer = ask(hob.port(), "GET", target, "");
        assert_eq!(answer.text(), format!("/index {seen}\n"), "{target}");
    }
    let answer = call(hob.port(), "POST", "/page/a?x", "", b"body").answer;
    let seen = "/index page=a&x /page/a?x POST \nbody";
    assert_eq!(answer.text(), seen);
    let told = text_of(&place.run(&["explain", "GET", "/page/a?x=1"]));
    assert!(told.contains("/index?page=a&x=1"), "{told}");
    hob.stop();
}
