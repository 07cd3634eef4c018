//! Rewrites: the handler sees another path than the client asked for, and never one above its root.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::Place;
use harness::client::ask;

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
