//! `rate`: how many requests a route answers in a time. Rates are so low that no test depends on
//! how long it takes.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::site::{TOP, ask_from, ask_from_with as ask_with, record};
use harness::{Hob, Place, text_of};

fn serve(place: &Place, site: &str) -> Hob {
    place.serve_text(&format!("{TOP}{site}"))
}

fn status(hob: &Hob, client: &str, path: &str) -> u16 {
    ask_from(hob, client, path).status
}

/// The number behind `t=` or alone.
fn seconds(text: Option<&str>) -> u64 {
    let text = text.unwrap();
    text.rsplit('=').next().unwrap().parse().unwrap()
}

#[test]
fn burst_is_answered_and_more_is_told_when_to_come_again() {
    let place = Place::new();
    let hob = serve(&place, "rate = { requests = \"3/h\", burst = 3 }\n");
    for _ in 0..3 {
        assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 200);
    }
    let refused = ask_with(&hob, "192.0.2.1", "/hello.txt?more", "");
    assert_eq!(refused.status, 429);
    let after = seconds(refused.header("retry-after"));
    // A third of an hour, less what this test has taken.
    assert!((1..=1200).contains(&after), "{after}");
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"rate\";q=3;w=3600")
    );
    let limit = refused.header("ratelimit");
    assert!(
        limit.is_some_and(|limit| limit.starts_with("\"rate\";r=0;t=")),
        "{limit:?}"
    );
    assert_eq!(seconds(limit), after);
    let record = record(&place, "/hello.txt?more");
    let reason = "rate: more requests than are answered in the time";
    assert_eq!(record["reason"], reason);
    // Another client has not asked yet; of IPv6, a whole network is one.
    assert_eq!(status(&hob, "192.0.2.2", "/hello.txt"), 200);
    for (client, expected) in [
        ("2001:db8::1", 200),
        ("2001:db8::2", 200),
        ("2001:db8::3", 200),
        ("2001:db8::4", 429),
        ("2001:db8:0:1::4", 200),
    ] {
        assert_eq!(status(&hob, client, "/hello.txt"), expected, "{client}");
    }
    assert_eq!(place.counter("limit_rate"), 2);
    hob.stop();
}

#[test]
fn routes_share_the_rate_of_their_site_and_have_their_own_alone() {
    let place = Place::new();
    let hob = serve(
        &place,
        "rate = { requests = \"1/h\", burst = 2 }\n\
         [[site.route]]\npath = \"/one\"\nrespond = { body = \"1\" }\n\
         [[site.route]]\npath = \"/two\"\nrespond = { body = \"2\" }\n\
         [[site.route]]\npath = \"/own\"\nrespond = { body = \"3\" }\n\
         rate = { requests = \"1/h\", burst = 1 }\n",
    );
    let status = |path| status(&hob, "192.0.2.1", path);
    assert_eq!((status("/one"), status("/two")), (200, 200));
    assert_eq!(
        (status("/one"), status("/two"), status("/hello.txt")),
        (429, 429, 429)
    );
    assert_eq!((status("/own"), status("/own")), (200, 429));
    hob.stop();
}

#[test]
fn request_that_is_sent_on_within_the_server_counts_once_for_each_rate() {
    let place = Place::new();
    place.folder("cgi");
    place.script(
        "cgi/go",
        "#!/bin/sh\nprintf 'Location: %s\\n\\n' \"$QUERY_STRING\"\n",
    );
    let hob = serve(
        &place,
        "rate = { requests = \"1/h\", burst = 3 }\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
         [[site.route]]\npath = \"/own\"\nrespond = { body = \"own\" }\n\
         rate = { requests = \"1/h\", burst = 1 }\n",
    );
    let status = |path| status(&hob, "192.0.2.1", path);
    assert_eq!(status("/cgi/go?/hello.txt"), 200);
    // Nobody comes to a route with a rate more often by going around.
    assert_eq!((status("/cgi/go?/own"), status("/cgi/go?/own")), (200, 429));
    assert_eq!(status("/cgi/go?/hello.txt"), 429);
    hob.stop();
}

#[test]
fn rate_of_a_route_holds_for_its_file_as_an_index_and_a_fallback() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("site/docs")).unwrap();
    place.write("site/docs/index.html", "docs");
    let hob = serve(
        &place,
        "files = { fallback = \"docs/index.html\" }\n\
         [[site.route]]\npath = \"/docs/index.html\"\nfiles = {}\n\
         rate = { requests = \"1/h\", burst = 3 }\n",
    );
    for path in ["/docs/index.html", "/docs/", "/nothing"] {
        let answer = ask_with(&hob, "192.0.2.1", path, "");
        assert_eq!(
            (answer.status, answer.text()),
            (200, "docs".to_owned()),
            "{path}"
        );
    }
    for path in ["/docs/index.html", "/docs/", "/nothing"] {
        assert_eq!(status(&hob, "192.0.2.1", path), 429, "{path}");
        assert_eq!(status(&hob, "192.0.2.2", path), 200, "{path}");
    }
    assert_eq!(status(&hob, "192.0.2.1", "/hello.txt"), 200);
    hob.stop();
}

#[test]
fn what_is_counted_together_is_what_the_config_says() {
    let place = Place::new();
    let route = |path: &str, by: &str| {
        format!(
            "[[site.route]]\npath = \"{path}\"\nrespond = {{ body = \"x\" }}\n\
             rate = {{ requests = \"1/h\", burst = 1, by = \"{by}\" }}\n"
        )
    };
    let routes = [
        route("/field", "field:X-Api-Key"),
        route("/cookie", "cookie:sid"),
        route("/all", "all"),
    ];
    let hob = serve(&place, &routes.concat());
    let ask = |client, path, fields: &str| ask_with(&hob, client, path, fields).status;
    let (one, other) = ("192.0.2.1", "192.0.2.2");
    assert_eq!(ask(one, "/field", "X-Api-Key: a\r\n"), 200);
    assert_eq!(ask(other, "/field", "X-Api-Key: a\r\n"), 429);
    assert_eq!(ask(one, "/field", "X-Api-Key: b\r\n"), 200);
    // Who leaves it out is known by its address.
    assert_eq!((ask(one, "/field", ""), ask(one, "/field", "")), (200, 429));
    assert_eq!(ask(other, "/field", ""), 200);
    assert_eq!(ask(one, "/cookie", "Cookie: a=b; sid=1\r\n"), 200);
    assert_eq!(ask(other, "/cookie", "Cookie: sid=1\r\n"), 429);
    assert_eq!(ask(other, "/cookie", "Cookie: sid=2\r\n"), 200);
    assert_eq!((ask(one, "/all", ""), ask(other, "/all", "")), (200, 429));
    hob.stop();
}

#[test]
fn dry_run_refuses_nothing_and_tells() {
    let place = Place::new();
    let hob = serve(
        &place,
        "rate = { requests = \"1/h\", burst = 1, dry_run = true }\n",
    );
    for path in ["/hello.txt?1", "/hello.txt?2", "/hello.txt?3"] {
        assert_eq!(status(&hob, "192.0.2.1", path), 200, "{path}");
    }
    assert_eq!(place.counter("rate_dry_run"), 2);
    assert_eq!(place.counter("limit_rate"), 0);
    let note = "rate: without `dry_run` this would be refused";
    assert_eq!(record(&place, "/hello.txt?3")["note"], note);
    assert_eq!(record(&place, "/hello.txt?1")["note"], "");
    hob.stop();
}

#[test]
fn reload_forgets_nobody() {
    let place = Place::new();
    let rate = |burst: u32| format!("rate = {{ requests = \"1/h\", burst = {burst} }}\n");
    let hob = serve(&place, &rate(1));
    let status = || status(&hob, "192.0.2.1", "/hello.txt");
    assert_eq!((status(), status()), (200, 429));
    for (generation, burst, expected) in [(2, 1, (429, 429)), (3, 2, (200, 429))] {
        place.write("hob.toml", &format!("{TOP}{}", rate(burst)));
        let reload = place.run(&["reload"]);
        assert!(reload.status.success(), "{}", text_of(&reload));
        hob.wait_for(&format!("reloaded, generation {generation}"));
        assert_eq!((status(), status()), expected, "{burst}");
    }
    hob.stop();
}

#[test]
fn clients_beyond_those_that_are_counted_alone_share_with_their_network() {
    let place = Place::new();
    let hob = serve(
        &place,
        "rate = { requests = \"1/h\", burst = 1, keys = 100 }\n",
    );
    let ask = |number: u32| {
        status(
            &hob,
            &format!("10.0.{}.{}", number / 200, number % 200),
            "/hello.txt",
        )
    };
    assert!((0..100).all(|number| ask(number) == 200));
    assert_eq!(place.counter("limit_rate_keys"), 0);
    // Of those who find no place the first takes what all of their network may.
    let refused = (100..300).filter(|number| ask(*number) == 429).count() as u64;
    let shared = place.counter("limit_rate_keys");
    assert!(
        shared >= 2 && refused == shared - 1,
        "{refused} of {shared}"
    );
    hob.stop();
}
