//! `try` of files: endings that a path may lack, and the next route where no file is. That no way
//! leads around a route's rules is asked here, too.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{Answer, ask, call};
use harness::site::TOP;
use harness::{Hob, Place, text_of};

/// A program that tells method, path and body.
const APP: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
                   printf 'app %s %s ' \"$REQUEST_METHOD\" \"$PATH_INFO\"\ncat\n";

/// A place whose `site` has pages, and a program beside it.
fn place() -> Place {
    let place = Place::new();
    for folder in ["site/blog", "site/docs", "site/bare", "more"] {
        place.folder(folder);
    }
    place.write("site/about.html", "about");
    place.write("site/blog.html", "blog");
    place.write("site/blog/post.html", "post");
    place.write("site/docs/index.html", "docs");
    place.write("site/bare/a.txt", "a");
    place.write("site/.secret.html", "secret");
    place.script("app.sh", APP);
    place
}

fn route(path: &str, keys: &str) -> String {
    format!("[[site.route]]\npath = \"{path}\"\n{keys}\n")
}

/// Files first, then the program, with more keys of either.
fn files_then_app(files: &str, app: &str) -> String {
    let files = route(
        "/*",
        &format!("files = {{ try = [\"{{path}}\", \"next\"] }}\n{files}"),
    );
    files + &route("/*", &format!("cgi = {{ script = \"app.sh\" }}\n{app}"))
}

fn serve(place: &Place, routes: &str) -> Hob {
    place.serve_text(&format!("{TOP}{routes}"))
}

fn get(hob: &Hob, target: &str) -> Answer {
    ask(hob.port(), "GET", target, "")
}

#[test]
fn ending_that_a_path_lacks_is_found() {
    let place = place();
    let hob = serve(
        &place,
        "files = { try = [\"{path}\", \"{path}.html\", \"{path}.txt\"] }\n",
    );
    for (path, body) in [
        ("/about", "about"),
        ("/about.html", "about"),
        ("/blog/post", "post"),
        ("/bare/a", "a"),
        ("/hello", "hello\n"),
        // A page beside a folder of its name is meant, as links without a slash do.
        ("/blog", "blog"),
        ("/docs/", "docs"),
    ] {
        let answer = get(&hob, path);
        assert_eq!(
            (answer.status, answer.text().trim_end()),
            (200, body.trim_end()),
            "{path}"
        );
    }
    let page = get(&hob, "/about");
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let tag = page.header("etag").unwrap();
    let again = ask(
        hob.port(),
        "GET",
        "/about",
        &format!("If-None-Match: {tag}\r\n"),
    );
    assert_eq!(again.status, 304);
    // A folder alone is still sent to its slash.
    let folder = get(&hob, "/docs");
    assert_eq!(
        (folder.status, folder.header("location")),
        (301, Some("/docs/"))
    );
    for path in [
        "/about/",
        "/.secret",
        "/none",
        "/about.htm",
        "/blog.html/post",
    ] {
        assert_eq!(get(&hob, path).status, 404, "{path}");
    }
    assert_eq!(ask(hob.port(), "DELETE", "/about", "").status, 405);
    hob.stop();
}

#[test]
fn what_is_no_file_goes_to_the_next_route_with_all_that_came() {
    let place = place();
    let hob = serve(&place, &files_then_app("", "body = \"1KiB\""));
    assert_eq!(get(&hob, "/about.html").text(), "about");
    assert_eq!(get(&hob, "/docs/").text(), "docs");
    assert_eq!(get(&hob, "/docs").status, 301);
    assert_eq!(get(&hob, "/cart?x=1").text(), "app GET /cart ");
    // A folder without an index is nothing that is sent.
    assert_eq!(get(&hob, "/bare/").text(), "app GET /bare/ ");
    assert_eq!(get(&hob, "/.hidden").text(), "app GET /.hidden ");
    let posted = call(hob.port(), "POST", "/cart", "", b"tea=2").answer;
    assert_eq!(
        (posted.status, posted.text().as_str()),
        (200, "app POST /cart tea=2")
    );
    // A file takes no POST, and what it is asked for does not change who answers.
    assert_eq!(
        call(hob.port(), "POST", "/about.html", "", b"x")
            .answer
            .status,
        405
    );
    assert_eq!(ask(hob.port(), "OPTIONS", "/about.html", "").status, 204);
    assert_eq!(
        ask(hob.port(), "OPTIONS", "/cart", "").text(),
        "app OPTIONS /cart "
    );
    // The limit is that of the route that answers.
    assert_eq!(
        call(hob.port(), "POST", "/cart", "", &[b'x'; 2000])
            .answer
            .status,
        413
    );
    // A file that comes is sent, and one that goes is not.
    place.write("site/cart", "file");
    assert_eq!(get(&hob, "/cart").text(), "file");
    hob.stop();
}

#[test]
fn routes_behind_each_other_are_asked_in_their_order() {
    let place = place();
    place.write("more/only.txt", "only here");
    place.write("more/about.html", "never");
    let next =
        |root: &str| format!("files = {{ root = \"{root}\", try = [\"{{path}}\", \"next\"] }}");
    let routes = [
        route("/*", &next("site")),
        route(
            "/*",
            &format!("{}\nwhen = {{ query = {{ more = \"*\" }} }}", next("more")),
        ),
        route(
            "/internal",
            "internal = true\nrespond = { body = \"inner\" }",
        ),
        route("/last/*", "respond = { body = \"last\" }"),
    ];
    let hob = serve(&place, &routes.concat());
    assert_eq!(get(&hob, "/about.html?more=1").text(), "about");
    assert_eq!(get(&hob, "/only.txt?more=1").text(), "only here");
    assert_eq!(get(&hob, "/only.txt").status, 404);
    assert_eq!(get(&hob, "/last/x?more=1").text(), "last");
    assert_eq!(get(&hob, "/last/x").text(), "last");
    assert_eq!(get(&hob, "/internal").status, 404);
    assert_eq!(get(&hob, "/none?more=1").status, 404);
    // What only lacks a slash is sent to it.
    let slash = get(&hob, "/last");
    assert_eq!(
        (slash.status, slash.header("location")),
        (301, Some("/last/"))
    );
    hob.stop();
}

#[test]
fn rules_of_both_routes_hold() {
    let place = place();
    let routes = files_then_app("", "access = { deny = [\"127.0.0.1\"] }");
    let hob = serve(&place, &routes);
    assert_eq!(get(&hob, "/about.html").status, 200);
    for path in ["/cart", "/about.html/../cart", "/%63art", "/bare/", "/.x"] {
        assert_eq!(get(&hob, path).status, 403, "{path}");
    }
    hob.stop();
    // Who may not have the files does not come to what is behind them.
    let hob = serve(
        &place,
        &files_then_app("access = { deny = [\"127.0.0.1\"] }", ""),
    );
    assert_eq!(get(&hob, "/cart").status, 403);
    hob.stop();
    // A file that is found without its ending is its own route's all the same.
    let own = route(
        "/about.html",
        "files = {}\naccess = { deny = [\"127.0.0.1\"] }",
    ) + &route("/*", "files = { try = [\"{path}\", \"{path}.html\"] }");
    let hob = serve(&place, &own);
    for path in [
        "/about",
        "/about.html",
        "//about",
        "/%61bout",
        "/x/../about",
    ] {
        assert_eq!(get(&hob, path).status, 403, "{path}");
    }
    assert_eq!(get(&hob, "/blog").status, 200);
    hob.stop();
    // A rate of the site is asked once.
    let rate = format!(
        "rate = {{ requests = \"1/h\", burst = 3 }}\n{}",
        files_then_app("", "")
    );
    let hob = serve(&place, &rate);
    let statuses = [0; 4].map(|_| get(&hob, "/cart").status);
    assert_eq!(statuses, [200, 200, 200, 429]);
    hob.stop();
}

#[test]
fn ending_of_a_program_runs_it_and_sends_no_source() {
    let place = place();
    place.script("site/shop.cgi", APP);
    let routes = route("*.cgi", "cgi = { dir = \"site\" }")
        + &route("/*", "files = { try = [\"{path}\", \"{path}.cgi\"] }");
    let hob = serve(&place, &routes);
    assert!(get(&hob, "/shop").text().starts_with("app GET"));
    let posted = call(hob.port(), "POST", "/shop", "", b"x").answer;
    assert!(posted.text().starts_with("app POST"), "{}", posted.text());
    hob.stop();
}

#[test]
fn explain_tells_who_answers_where_no_file_is() {
    let place = place();
    place.write("hob.toml", &format!("{TOP}{}", files_then_app("", "")));
    let told = place.run(&["explain", "GET", "/cart"]);
    let text = text_of(&told);
    assert!(text.contains("leaves the request on"), "{text}");
    assert!(text.contains("handler   cgi"), "{text}");
    let told = place.run(&["explain", "GET", "/about.html"]);
    let text = text_of(&told);
    assert!(text.contains("handler   files"), "{text}");
}
