//! Roots that a request's path or host decides.

use std::os::unix::fs::symlink;

use super::harness::client::{Answer, Connection, ask, get, raw};
use super::harness::{Hob, Place, text_of};

const TOP: &str = "[cache]\nrecheck = \"50ms\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n";
const BY_USER: &str =
    "[[site.route]]\npath = \"/{user}/*\"\nfiles = { root = \"home/{user}/www\" }\n";

/// A place whose accounts have a page each, with their name in it.
fn place(names: &[&str]) -> Place {
    let place = Place::new();
    for name in names {
        page(&place, &format!("home/{name}/www"), name);
    }
    place
}

fn page(place: &Place, folder: &str, text: &str) {
    std::fs::create_dir_all(place.path(folder)).unwrap();
    place.write(&format!("{folder}/index.html"), text);
}

/// What a path is answered with, or its status where that is not 200.
fn shown(hob: &Hob, path: &str) -> String {
    told(&get(hob.port(), path).unwrap())
}

fn told(answer: &Answer) -> String {
    match answer.status {
        200 => answer.text(),
        status => status.to_string(),
    }
}

/// Asks until the answer is this one: what is on the disk is seen after a while.
fn wait_for(hob: &Hob, path: &str, text: &str) {
    let until = std::time::Instant::now() + super::harness::DEADLINE;
    loop {
        let now = shown(hob, path);
        if now == text {
            return;
        }
        assert!(std::time::Instant::now() < until, "{path}: {now}");
    }
}

#[test]
fn each_account_has_its_own_files() {
    let names: Vec<String> = (0..200).map(|number| format!("user{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let place = place(&names);
    place.write("home/user7/www/a b.txt", "seven");
    let hob = place.serve_text(&format!("{TOP}{BY_USER}"));
    // Twice: opened, and open.
    for _ in 0..2 {
        for name in &names {
            assert_eq!(shown(&hob, &format!("/{name}/")), *name);
        }
    }
    assert_eq!(shown(&hob, "/user7/a%20b.txt"), "seven");
    assert_eq!(shown(&hob, "/user8/a%20b.txt"), "404");
    let folder = get(hob.port(), "/user7").unwrap();
    assert_eq!(folder.header("location"), Some("/user7/"));
    hob.stop();
}

#[test]
fn names_that_are_none_lead_nowhere() {
    let place = place(&["ann"]);
    page(&place, "home/.hid/www", "hidden");
    page(&place, "www", "above");
    page(&place, "home/www", "between");
    page(&place, "home/ann/x/www", "below");
    let hob = place.serve_text(&format!("{TOP}{BY_USER}"));
    assert_eq!(shown(&hob, "/ann/"), "ann");
    for path in [
        "/.hid/",
        "/%2ehid/",
        "/%2e%2e/",
        "/..%2f/",
        "/ann%2Fx/",
        "/ann%2f..%2fann/",
        "/%2Fann/",
        "/bob/",
        "/ann%00/",
        "/ann%0a/",
        "/.../",
        "/%20/",
    ] {
        let status = get(hob.port(), path).unwrap().status;
        assert!(matches!(status, 404 | 400), "{path}: {status}");
    }
    let long = "a".repeat(300);
    assert_eq!(shown(&hob, &format!("/{long}/")), "404");
    // Nothing but paths below the account's own root.
    for path in ["/ann/../bob/", "/ann/%2e%2e/%2e%2e/index.html"] {
        let answer = raw(
            hob.port(),
            format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        assert!(!answer.contains(" 200 "), "{path}: {answer}");
    }
    hob.stop();
}

#[test]
fn links_to_a_root_are_not_followed_but_where_it_is_said() {
    let place = place(&["ann", "bob"]);
    page(&place, "outside", "outside");
    std::fs::create_dir_all(place.path("home/cid")).unwrap();
    symlink("../bob/www", place.path("home/cid/www")).unwrap();
    symlink("ann", place.path("home/dan")).unwrap();
    std::fs::create_dir_all(place.path("home/eve")).unwrap();
    symlink(place.path("outside"), place.path("home/eve/www")).unwrap();
    let hob = place.serve_text(&format!("{TOP}{BY_USER}"));
    for name in ["cid", "dan", "eve"] {
        assert_eq!(shown(&hob, &format!("/{name}/")), "404", "{name}");
    }
    hob.stop();
    let follow = BY_USER.replace("www\"", "www\", symlinks = \"follow\"");
    let hob = place.serve_text(&format!("{TOP}{follow}"));
    assert_eq!(shown(&hob, "/cid/"), "bob");
    assert_eq!(shown(&hob, "/dan/"), "ann");
    assert_eq!(shown(&hob, "/eve/"), "404", "out of the fixed part");
    hob.stop();
}

#[test]
fn roots_come_and_go_and_are_replaced() {
    let place = place(&["ann"]);
    let hob = place.serve_text(&format!("{TOP}{BY_USER}"));
    assert_eq!(shown(&hob, "/ann/"), "ann");
    assert_eq!(shown(&hob, "/bob/"), "404");
    page(&place, "home/bob/www", "bob");
    wait_for(&hob, "/bob/", "bob");
    std::fs::remove_dir_all(place.path("home/ann")).unwrap();
    wait_for(&hob, "/ann/", "404");
    page(&place, "home/ann/www", "another ann");
    wait_for(&hob, "/ann/", "another ann");
    std::fs::rename(place.path("home/ann/www"), place.path("home/ann/old")).unwrap();
    symlink("old", place.path("home/ann/www")).unwrap();
    wait_for(&hob, "/ann/", "404");
    std::fs::remove_file(place.path("home/ann/www")).unwrap();
    page(&place, "home/ann/www", "a third");
    wait_for(&hob, "/ann/", "a third");
    // The fixed part, too.
    std::fs::rename(place.path("home"), place.path("away")).unwrap();
    page(&place, "home/ann/www", "a fourth");
    wait_for(&hob, "/ann/", "a fourth");
    wait_for(&hob, "/bob/", "404");
    hob.stop();
}

#[test]
fn so_many_roots_are_open_and_others_are_closed_for_one_more() {
    let names: Vec<String> = (0..70).map(|number| format!("user{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let place = place(&names);
    let hob = place.serve_text(&format!("{TOP}{BY_USER}[limits]\nroots = 64\n"));
    for name in &names[..64] {
        assert_eq!(shown(&hob, &format!("/{name}/")), *name);
    }
    // Names that nobody has close nothing.
    for number in 0..100 {
        assert_eq!(shown(&hob, &format!("/none{number}/")), "404");
    }
    assert_eq!(place.counter("limit_roots"), 0);
    assert_eq!(shown(&hob, "/user64/"), "user64");
    assert_eq!(place.counter("limit_roots"), 1);
    // The one that was not asked for the longest went, and comes back.
    assert_eq!(shown(&hob, "/user1/"), "user1");
    assert_eq!(place.counter("limit_roots"), 1);
    assert_eq!(shown(&hob, "/user0/"), "user0");
    assert_eq!(place.counter("limit_roots"), 2);
    for name in &names {
        assert_eq!(shown(&hob, &format!("/{name}/")), *name);
    }
    hob.stop();
}

#[test]
fn host_decides_a_root() {
    let place = Place::new();
    let hob = serve_hosts(&place);
    let of = |host: &str| told(&ask_host(&hob, host));
    assert_eq!(of("a.example"), "a.example");
    assert_eq!(of("B.Example:8080"), "b.example");
    assert_eq!(of("b.example."), "b.example");
    assert_eq!(of("c.example"), "404");
    hob.stop();
}

/// HTTP/2 and HTTP/3 have no way to send some of them.
#[test]
fn what_is_no_host_name_has_no_root_h1_only() {
    let place = Place::new();
    let hob = serve_hosts(&place);
    for host in [".hid", "..", "a.example/..", "[::1]", "a_b", ""] {
        let status = told(&ask_host(&hob, host));
        assert!(matches!(&*status, "404" | "400"), "{host}: {status}");
    }
    hob.stop();
}

/// A site with a folder for each host.
fn serve_hosts(place: &Place) -> Hob {
    for host in ["a.example", "b.example"] {
        page(place, &format!("srv/{host}"), host);
    }
    page(place, "srv/a.example/.well-known", "known");
    page(place, "srv/.hid", "hidden");
    place.serve_text(&format!("{TOP}root = \"srv/{{host}}\"\n"))
}

fn ask_host(hob: &Hob, host: &str) -> Answer {
    let mut connection = Connection::open(hob.port()).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    connection.send(request.as_bytes()).unwrap();
    connection.read().unwrap()
}

#[test]
fn what_a_root_has_behind_it_is_as_with_any_other() {
    let place = place(&["ann", "bob"]);
    place.write("home/ann/www/style.css", "a { color: red }");
    place.write("home/ann/www/style.css.gz", "packed");
    place.write("home/ann/www/page.html", "page");
    place.write("home/bob/www/lost.html", "lost");
    place.write("home/ann/www/.secret", "secret");
    let route = "[[site.route]]\npath = \"/{user}/*\"\nfiles = { root = \"home/{user}/www\", \
                 try = [\"{path}\", \"{path}.html\"], fallback = \"lost.html\", listing = true }\n";
    let hob = place.serve_text(&format!("{TOP}{route}"));
    let packed = ask(
        hob.port(),
        "GET",
        "/ann/style.css",
        "Accept-Encoding: gzip\r\n",
    );
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let part = ask(hob.port(), "GET", "/ann/style.css", "Range: bytes=0-0\r\n");
    assert_eq!((part.status, part.text()), (206, "a".to_owned()));
    assert_eq!(shown(&hob, "/ann/page"), "page");
    assert_eq!(shown(&hob, "/bob/nothing"), "lost");
    assert_eq!(shown(&hob, "/ann/nothing"), "404");
    assert_eq!(shown(&hob, "/ann/.secret"), "404");
    let post = ask(hob.port(), "POST", "/ann/page", "Content-Length: 0\r\n");
    assert_eq!(post.status, 405);
    hob.stop();
}

#[test]
fn roots_stay_open_over_a_reload_and_rewritten_paths_keep_their_captures() {
    let place = place(&["ann"]);
    place.write("home/ann/www/new.html", "new");
    let rewritten = "[[site.route]]\npath = \"/{user}/old\"\nrewrite = \"/new.html\"\n\
                     files = { root = \"home/{user}/www\", keep_prefix = true }\n";
    let text = format!("{TOP}{rewritten}{BY_USER}");
    let hob = place.serve_text(&text);
    assert_eq!(shown(&hob, "/ann/old"), "new");
    assert_eq!(shown(&hob, "/ann/"), "ann");
    place.write("hob.toml", &format!("{text}[limits]\nroots = 5\n"));
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    assert_eq!(shown(&hob, "/ann/"), "ann");
    assert_eq!(shown(&hob, "/ann/old"), "new");
    hob.stop();
}

#[test]
fn a_route_behind_answers_where_no_root_is() {
    let place = place(&["ann"]);
    let next = BY_USER.replace("www\"", "www\", try = [\"{path}\", \"next\"]");
    let all = "[[site.route]]\npath = \"/*\"\nrespond = { status = 200, body = \"next\" }\n";
    let hob = place.serve_text(&format!("{TOP}{next}{all}"));
    assert_eq!(shown(&hob, "/ann/"), "ann");
    for path in ["/bob/", "/ann/nothing", "/.x/", "/bob/again", "/bob/"] {
        assert_eq!(shown(&hob, path), "next", "{path}");
    }
    hob.stop();
}

#[test]
fn explain_tells_the_root() {
    let place = place(&["ann"]);
    place.write("hob.toml", &format!("{TOP}{BY_USER}"));
    let explain = |url: &str| {
        let output = place.run(&["explain", "--config", "hob.toml", "GET", url]);
        text_of(&output)
    };
    let told = explain("http://localhost/ann/");
    let root = place.path("home/ann/www");
    assert!(
        told.contains(&format!("the `root` is {} here", root.display())),
        "{told}"
    );
    assert!(told.contains("index.html"), "{told}");
    let told = explain("http://localhost/bob/");
    assert!(told.contains("there is no such folder"), "{told}");
    let told = explain("http://localhost/.x/");
    assert!(told.contains("is no name of a folder"), "{told}");
}
