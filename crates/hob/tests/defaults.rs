//! `[defaults]` and `[[snippet]]`: what sites and routes have in common, said once.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::client::{Answer, ask};
use harness::{Hob, Place, text_of};

const LISTEN: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n";

/// Two sites: `plain.test` says nothing, `own.test` what is given.
fn config(shared: &str, own: &str) -> String {
    format!(
        "{LISTEN}{shared}\n[[site]]\nnames = [\"plain.test\"]\nroot = \"site\"\n\
         [[site]]\nnames = [\"own.test\"]\nroot = \"site\"\n{own}\n"
    )
}

fn get(hob: &Hob, host: &str, path: &str) -> Answer {
    ask(hob.port(), "GET", path, &format!("Host: {host}\r\n"))
}

fn reload(place: &Place, text: &str) {
    place.write("hob.toml", text);
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
}

#[test]
fn sites_have_what_is_said_for_all_and_their_own_first() {
    let place = Place::new();
    place.write("shared404.html", "nothing here");
    place.write("own404.html", "nothing of ours");
    let shared = "[defaults]\nheaders = { X-From = \"all\", X-Frame-Options = \"DENY\" }\n\
                  error_pages = { 404 = \"shared404.html\" }\n\
                  [defaults.files]\ncache_control = \"max-age=60\"\nlisting = true\n";
    let own = "headers = { x-from = \"own\" }\nerror_pages = { 404 = \"own404.html\" }\n\
               files = { cache_control = \"no-store\" }\n";
    let hob = place.serve_text(&config(shared, own));
    for (host, from, control, missing) in [
        ("plain.test", "all", "max-age=60", "nothing here"),
        ("own.test", "own", "no-store", "nothing of ours"),
    ] {
        let answer = get(&hob, host, "/hello.txt");
        assert_eq!(answer.status, 200, "{host}");
        assert_eq!(answer.header("x-from"), Some(from), "{host}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{host}");
        assert_eq!(answer.header("cache-control"), Some(control), "{host}");
        assert_eq!(get(&hob, host, "/none").text(), missing);
    }
    // Another default holds for both.
    let shared = shared.replace("DENY", "SAMEORIGIN");
    reload(&place, &config(&shared, own));
    for host in ["plain.test", "own.test"] {
        let answer = get(&hob, host, "/hello.txt");
        assert_eq!(answer.header("x-frame-options"), Some("SAMEORIGIN"));
    }
    hob.stop();
}

#[test]
fn rate_for_all_counts_for_each_site_alone() {
    let place = Place::new();
    let shared = "[defaults]\nrate = { requests = \"1/h\", burst = 2 }\n";
    let hob = place.serve_text(&config(shared, ""));
    for host in ["plain.test", "own.test"] {
        let statuses = [0; 3].map(|_| get(&hob, host, "/hello.txt").status);
        assert_eq!(statuses, [200, 200, 429], "{host}");
    }
    // Whose rate is the same goes on counting over a reload.
    reload(&place, &config(shared, "headers = { X-From = \"own\" }\n"));
    assert_eq!(get(&hob, "own.test", "/hello.txt").status, 429);
    hob.stop();
}

#[test]
fn access_for_all_holds_for_every_site_but_those_that_say_their_own() {
    let place = Place::new();
    let shared = "[defaults]\naccess = { deny = [\"127.0.0.1\"] }\n";
    let own = "access = { methods = [\"GET\"] }\n[[site.route]]\npath = \"/inner/*\"\nfiles = {}\n";
    let hob = place.serve_text(&config(shared, own));
    assert_eq!(get(&hob, "plain.test", "/hello.txt").status, 403);
    assert_eq!(get(&hob, "own.test", "/hello.txt").status, 200);
    assert_eq!(place.counter("access_refused"), 1);
    hob.stop();
}

#[test]
fn snippets_hold_where_they_are_named() {
    let place = Place::new();
    let shared = "[[snippet]]\nname = \"one\"\nheaders = { X-From = \"one\", X-One = \"1\" }\n\
                  [[snippet]]\nname = \"two\"\nheaders = { X-From = \"two\", X-Two = \"2\" }\n\
                  [defaults]\nheaders = { X-From = \"all\", X-All = \"0\" }\n";
    let routes = "snippets = \"two\"\n[[site.route]]\npath = \"/one\"\nrespond = { body = \"1\" }\n\
                  snippets = [\"one\", \"two\"]\n\
                  [[site.route]]\npath = \"/none\"\nrespond = { body = \"0\" }\n";
    let hob = place.serve_text(&config(shared, routes));
    let told = |host: &str, path: &str| {
        let answer = get(&hob, host, path);
        ["x-from", "x-one", "x-two", "x-all"].map(|name| answer.header(name).map(str::to_owned))
    };
    let some = |value: &str| Some(value.to_owned());
    // The route's first snippet before its second, before its site's, before those of all.
    let one = told("own.test", "/one");
    assert_eq!(one, [some("one"), some("1"), some("2"), some("0")]);
    let none = told("own.test", "/none");
    assert_eq!(none, [some("two"), None, some("2"), some("0")]);
    let plain = told("plain.test", "/hello.txt");
    assert_eq!(plain, [some("all"), None, None, some("0")]);
    hob.stop();
}

#[test]
fn explain_tells_what_holds_in_the_end() {
    let place = Place::new();
    let shared = "[defaults]\ncompress = [\"br\"]\n";
    place.write("hob.toml", &config(shared, "compress = [\"zstd\"]\n"));
    for (host, compress) in [("plain.test", "br"), ("own.test", "zstd")] {
        let told = place.run(&["explain", "GET", &format!("http://{host}/hello.txt")]);
        let text = text_of(&told);
        assert!(told.status.success(), "{text}");
        assert!(
            text.contains(&format!(" compress = [\"{compress}\"]")),
            "{text}"
        );
    }
}
