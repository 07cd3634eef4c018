//! Fossil: a repository behind a prefix, its pages, and a login.

use crate::harness::Place;
use crate::harness::client::call;
use crate::harness::site::Site;
use crate::site::{self, Kept, found};

/// Runs a command of it to its end.
fn fossil(place: &Place, arguments: &[&str]) {
    let mut command = place.command_of(&found(&["fossil"]));
    let output = command
        .env("FOSSIL_HOME", place.path("run"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// A repository with an account `tester`, served over SCGI, and a site in front.
fn serve() -> (Site, Kept) {
    let place = Place::new();
    let work = "run/work.fossil";
    fossil(&place, &["new", "--admin-user", "tester", work]);
    fossil(
        &place,
        &["user", "password", "tester", "secret", "-R", work],
    );
    let (port, kept) = Kept::start_at_port(|port| {
        let mut command = place.command_of(&found(&["fossil"]));
        command
            .env("FOSSIL_HOME", place.path("run"))
            .args(["server", "--scgi", "--localhost", "--port"])
            .args([&port.to_string(), work]);
        command
    });
    let site = site::serve(place, &format!("to = \"127.0.0.1:{port}\""), "");
    (site, kept)
}

#[test]
fn pages_link_to_each_other_below_the_prefix() {
    let (site, _fossil) = serve();
    let page = site.get("/app/login").answer;
    let text = page.text();
    assert_eq!(page.status, 200, "{text}");
    assert!(text.contains("action='/app/login'"), "{text}");
    let style = text.split("href=\"/app/style.css").nth(1).unwrap();
    let style = format!("/app/style.css{}", style.split('"').next().unwrap());
    let style = site.get(&style).answer;
    assert_eq!(
        style.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    let index = site.get("/app/").answer;
    let place = index.header("location").unwrap_or_default();
    assert!(
        index.status == 302 && place.ends_with("/app/index"),
        "{place}"
    );
    assert_eq!(site.get("/app/no-such-page").answer.status, 404);
    let record = site.record("/app/login");
    assert_eq!(
        (&record["handler"], &record["fault"]),
        (&"scgi".into(), &"none".into())
    );
    site.stop();
}

#[test]
fn account_logs_in_and_is_known_by_its_cookie() {
    let (site, _fossil) = serve();
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let wrong = call(
        site.port(),
        "POST",
        "/app/login",
        form,
        b"u=tester&p=x&in=Login",
    );
    assert_eq!(wrong.answer.header("set-cookie"), None);
    let right = b"u=tester&p=secret&in=Login";
    let told = call(site.port(), "POST", "/app/login", form, right).answer;
    let cookie = told.header("set-cookie").expect("it gives one").to_owned();
    let cookie = cookie.split(';').next().unwrap();
    let fields = format!("Cookie: {cookie}\r\n");
    let page = call(site.port(), "GET", "/app/timeline", &fields, b"").answer;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("tester"), "{}", page.text());
    let stranger = site.get("/app/setup").answer;
    assert_ne!(stranger.status, 200);
    let own = call(site.port(), "GET", "/app/setup", &fields, b"").answer;
    assert_eq!(own.status, 200);
    site.stop();
}
