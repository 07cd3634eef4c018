//! `hob explain`: golden texts, and that it tells what the server does.
//!
//! `UPDATE_GOLDEN=1` writes the texts in `tests/explain/` instead of comparing them. The place of
//! the site is shown as `DIR`.
#![allow(clippy::unwrap_used)]

mod harness;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use harness::client::Connection;
use harness::{Place, text_of};
use serde_json::{Value, json};

/// One case: the golden file's name, then the arguments.
const CASES: &[(&str, &[&str])] = &[
    ("file", &["GET", "http://example.org:8080/files/a.txt"]),
    ("index", &["GET", "http://www.example.org:8080/files/sub/"]),
    (
        "precompressed",
        &["GET", "/docs/style.css", "--header", "Accept-Encoding: br"],
    ),
    (
        "compressed",
        &[
            "HEAD",
            "/docs/long.txt",
            "--header",
            "Accept-Encoding: gzip;q=0.5, zstd",
        ],
    ),
    (
        "range",
        &["GET", "/docs/long.txt", "--header", "Range: bytes=10-19"],
    ),
    ("listing", &["GET", "/docs/empty/"]),
    ("no-listing", &["GET", "/files/empty/"]),
    ("add-slash", &["GET", "/files/sub?a=b"]),
    ("fallback", &["GET", "/app/some/view"]),
    ("missing", &["GET", "/files/none/x.txt"]),
    ("file-as-folder", &["GET", "/files/a.txt/b"]),
    ("link-out", &["GET", "/files/out"]),
    ("link-refused", &["GET", "/strict/in"]),
    ("link-dangling", &["GET", "/files/dangling"]),
    ("unreadable", &["GET", "/files/locked.txt"]),
    ("dot-file", &["GET", "/files/.secret"]),
    (
        "redirect",
        &["GET", "http://example.org:8080/user/j%C3%BCrgen?tab=1"],
    ),
    ("respond", &["POST", "/health"]),
    ("rewrite", &["GET", "/page/a"]),
    ("wrong-method", &["DELETE", "/files/a.txt"]),
    ("normalised", &["GET", "/docs/../files/./a%2Etxt"]),
    ("encoded-slash", &["GET", "/files/a%2Fb"]),
    ("encoded-dots", &["GET", "/files/..%2Fb"]),
    ("bad-host", &["GET", "http://exa mple.org:8080/"]),
    ("no-route", &["GET", "http://bare.test:8080/x"]),
    ("no-slash", &["GET", "http://bare.test:8080/notes?a"]),
    ("no-slash-in-files", &["POST", "/people"]),
    ("other-port", &["GET", "http://example.org/files/a.txt"]),
    (
        "too-large",
        &["PUT", "/page/a", "--header", "Content-Length: 2000000"],
    ),
];

const CONFIG: &str = r#"
default_log = "all"

[[log]]
name = "all"
file = "all.log"

[[log]]
name = "health"
stdout = true
format = "json"

[[listen]]
address = "127.0.0.1:PORT"

[[listen]]
address = "unix:run/web.sock"
log = "off"

[[site]]
root = "site/docs"
error_pages = { 404 = "site/404.html" }

[[site.route]]
path = "/health"
respond = { body = "well\n" }
log = "health"

[[site.route]]
path = "/user/{name}"
redirect = "/people/{name}?{query}"

[[site.route]]
path = "/page/{name}"
rewrite = "/{name}.txt"
files = "site/files"
body = "1MB"

[[site.route]]
path = "/files/*"
files = "site/files"
headers = { X-Frame-Options = "DENY" }

[[site.route]]
path = "/strict/*"
files = { root = "site/files", symlinks = "refuse" }

[[site.route]]
path = "/docs/*"
files = { root = "site/docs", listing = true, cache_control = "max-age=60" }

[[site.route]]
path = "/people/*"
respond = { body = "people" }

[[site.route]]
path = "/app/*"
files = { root = "site/docs", fallback = "index.html", cache = "off" }

[[site]]
names = ["*.example.org"]
log = "health"

[[site.route]]
path = "/files/*"
files = "site/files"

[[site]]
names = ["bare.test"]
log = "off"

[[site.route]]
path = "*.php"
respond = { status = 410 }

[[site.route]]
path = "/notes/*"
respond = { body = "notes" }
"#;

/// Sites that all have names.
const NAMED: &str = r#"
[[listen]]
address = "127.0.0.1:8080"

[[site]]
names = ["moved.test"]

[[site.route]]
path = "/*"
redirect = { to = "https://new.test{uri}", status = 308 }

[[site]]
names = ["two.test"]
root = "site/docs"
"#;

fn site() -> Place {
    let place = Place::new();
    for folder in ["site/files/sub", "site/files/empty", "site/docs/empty"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    let files = [
        ("site/404.html", "<p>not here</p>\n"),
        ("site/files/a.txt", "a\n"),
        ("site/files/sub/index.html", "<p>sub</p>\n"),
        ("site/files/locked.txt", "locked\n"),
        ("site/files/.secret", "secret\n"),
        ("site/docs/index.html", "<p>docs</p>\n"),
        ("site/docs/style.css", "p { color: red }\n"),
        ("site/docs/style.css.br", "not really brotli\n"),
    ];
    for (name, text) in files {
        place.write(name, text);
    }
    place.write("site/docs/long.txt", &"all the same\n".repeat(1000));
    symlink("/etc/passwd", place.path("site/files/out")).unwrap();
    symlink("a.txt", place.path("site/files/in")).unwrap();
    symlink("nothing", place.path("site/files/dangling")).unwrap();
    let locked = place.path("site/files/locked.txt");
    std::fs::set_permissions(locked, PermissionsExt::from_mode(0o000)).unwrap();
    place
}

fn write_config(place: &Place, port: u16) {
    let config = CONFIG
        .replace("PORT", &port.to_string())
        .replace("1MB", "1000000");
    place.write("hob.toml", &config);
}

#[test]
fn each_request_is_explained_as_its_golden_text_says() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let place = site();
    write_config(&place, 8080);
    let locked = std::fs::metadata(place.path("site/files/locked.txt")).unwrap();
    let owner = format!("owner {}, group {}", locked.uid(), locked.gid());
    let mut wrong = Vec::new();
    for (name, arguments) in CASES {
        let output = place.run(&[&["explain"], *arguments].concat());
        let text = text_of(&output)
            .replace(place.path("").to_str().unwrap(), "DIR")
            .replace(&owner, "OWNER");
        let golden = Path::new("tests/explain").join(format!("{name}.txt"));
        if update {
            std::fs::write(&golden, &text).unwrap();
        } else if std::fs::read_to_string(&golden).unwrap_or_default() != text {
            wrong.push(format!("{}:\n{text}", golden.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The server's own answer to what a case asks: status and the fields compared.
fn served(port: u16, arguments: &[&str]) -> (u16, Vec<Option<String>>) {
    let (method, url) = (arguments[0], arguments[1]);
    let after_scheme = url.strip_prefix("http://");
    let (host, target) = match after_scheme {
        Some(rest) => rest.split_at(rest.find('/').unwrap()),
        None => ("", url),
    };
    let fields: String = arguments[2..]
        .iter()
        .filter(|argument| **argument != "--header")
        .map(|field| format!("{field}\r\n"))
        .collect();
    let mut connection = Connection::open(port).unwrap();
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
    connection.send(head.as_bytes()).unwrap();
    let (status, headers) = connection.read_head().unwrap();
    let value = |name: &str| {
        let found = headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    (status, FIELDS.iter().map(|name| value(name)).collect())
}

const FIELDS: &[&str] = &[
    "content-type",
    "location",
    "allow",
    "last-modified",
    "content-encoding",
    "content-range",
    "cache-control",
    "x-frame-options",
    "vary",
];

#[test]
fn explanation_and_server_agree() {
    let place = site();
    write_config(&place, 0);
    let hob = place.serve(&["--config", "hob.toml"]);
    let port = hob.port();
    for (name, arguments) in CASES {
        let output = place.run(&[&["explain", "--json"], *arguments].concat());
        let told: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{name}: {error}: {}", text_of(&output)));
        let answer = &told["answer"];
        let field = |name: &&str| {
            let fields = answer["fields"].as_array().unwrap().iter();
            let mut same =
                fields.filter(|f| f["name"].as_str().unwrap().eq_ignore_ascii_case(name));
            same.next().map(|f| f["value"].as_str().unwrap().to_owned())
        };
        let explained = (
            answer["status"].as_u64().unwrap() as u16,
            FIELDS.iter().map(field).collect(),
        );
        assert_eq!(explained, served(port, arguments), "{name}");
    }
    hob.stop();
}

#[test]
fn hosts_that_no_site_names_are_explained_and_told_of_by_check() {
    let place = site();
    let explained = |keys: &str| {
        place.write("hob.toml", &format!("{keys}{NAMED}"));
        let check = text_of(&place.run(&["check"]));
        let explain = place.run(&["explain", "POST", "http://other.test:8080/x?y"]);
        (check, text_of(&explain))
    };
    let (check, explain) = explained("");
    assert!(
        check.contains("hosts that no site names get 421"),
        "{check}"
    );
    for told in [
        "answer    421 Misdirected Request",
        "note      no site is called \"other.test\"; `unknown_host = \"first\"` has",
    ] {
        assert!(explain.contains(told), "{explain}");
    }
    let (check, explain) = explained("unknown_host = \"first\"\n");
    assert!(check.contains("are answered by the first site"), "{check}");
    for told in [
        "site      moved.test (hob.toml:",
        "no site is called \"other.test\"; the first site answers, says `unknown_host`",
        "answer    307 Temporary Redirect",
        "Location: https://new.test/x?y",
    ] {
        assert!(explain.contains(told), "{explain}");
    }
}

#[test]
fn settings_are_the_configs_own_wherever_they_are_said() {
    let place = Place::new();
    place.folder("programs");
    place.write("hob.toml", PROGRAMS);
    let settings = |path: &str| {
        let output = place.run(&["explain", "--json", "GET", path]);
        let told: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text_of(&output)));
        told["handler"]["settings"].clone()
    };
    let cgi = settings("/cgi/report");
    let own = (&cgi["concurrent"], &cgi["first_byte"], &cgi["queue"]);
    // Of the route, of the route, and what holds when nobody says it.
    assert_eq!(own, (&json!(3), &json!("2s"), &json!(1024)));
    assert_eq!(cgi["interpreters"], json!([".py: python3 -I"]));
    // Of all programs; what is secret only by its name.
    assert_eq!((&cgi["nice"], &cgi["env"]), (&json!(5), &json!(["TOKEN"])));
    assert_eq!(cgi["rlimits.nofile"], json!(100));
    // What nobody has said of them is not told: there is much.
    assert_eq!(cgi["umask"], Value::Null);
    // Of the site, and of the route beside it.
    assert_eq!(cgi["headers"], json!(["X-Site: s", "X-Route: r"]));
    assert_eq!(cgi["intercept_errors"], json!(true));
    assert!(!cgi.to_string().contains("sesame"), "{cgi}");

    let app = settings("/app/");
    let of_app = (&app["run"], &app["workers.max"], &app["queue.wait"]);
    assert_eq!(of_app, (&json!(["true"]), &json!(4), &json!("3s")));
    assert_eq!(app["workers.concurrency"], json!(1));

    // The route that a root is short for.
    let files = settings("/a.txt");
    let root = place.path("programs").display().to_string();
    assert_eq!(
        (&files["root"], &files["listing"]),
        (&json!(root), &json!(true))
    );
    assert_eq!(
        (&files["compress"], &files["index"]),
        (&json!(["gzip"]), &json!(["index.html"]))
    );
}

/// Settings said in each of the places there are.
const PROGRAMS: &str = r#"
[[listen]]
address = "127.0.0.1:8080"

[program]
nice = 5
env = { TOKEN = "sesame" }
rlimits = { nofile = 100 }

[[site]]
root = "programs"
headers = { X-Site = "s" }
intercept_errors = true
compress = ["gzip"]

[site.files]
listing = true

[[site.route]]
path = "/cgi/*"
cgi = { dir = "programs", concurrent = 3, first_byte = "2s", interpreters = { ".py" = "python3 -I" } }
headers = { X-Route = "r" }

[[site.route]]
path = "/app/*"
resident = { run = ["true"], workers = { max = 4 }, queue = { wait = "3s" } }
"#;

#[test]
fn json_has_every_part_whatever_is_asked() {
    let place = site();
    write_config(&place, 8080);
    let parts = [
        "answer",
        "answered_as",
        "body_bytes_max",
        "file",
        "handler",
        "host",
        "listeners",
        "log",
        "method",
        "notes",
        "path",
        "program",
        "refused",
        "rewrite",
        "routes",
        "rules",
        "site",
        "url",
        "verdict",
        "version",
    ];
    for (name, arguments) in CASES {
        let output = place.run(&[&["explain", "--json"], *arguments].concat());
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
        assert_eq!(keys, parts, "{name}");
        assert_eq!(told["version"], 1, "{name}");
    }
    let output = place.run(&["explain", "--json", "GET", "/user/a%20b"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let route = told["routes"].as_array().unwrap().last().unwrap();
    assert_eq!(route["matches"], true);
    assert_eq!(route["captures"]["name"], "a b");
    assert_eq!(told["handler"]["name"], "redirect");
}

#[test]
fn without_a_config_the_folder_is_explained_as_serve_would_serve_it() {
    let place = Place::new();
    let output = place.run(&["explain", "/site/"]);
    assert_eq!(
        text_of(&output),
        text_of(&place.run(&["explain", "GET", "/site/"]))
    );
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("listing = true"), "{text}");
    assert!(text.contains("answer    200 OK"), "{text}");
}

#[test]
fn what_cannot_be_explained_exits_2() {
    let place = site();
    write_config(&place, 8080);
    let cases: [&[&str]; 4] = [
        &["GET", "example.org/a"],
        &["G(T", "/a"],
        &["GET", "/a", "--header", "no colon"],
        &["GET", "/a", "--config", "none.toml"],
    ];
    for arguments in cases {
        let output = place.run(&[&["explain"], arguments].concat());
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            text_of(&output)
        );
        assert!(!output.stderr.is_empty() && output.stdout.is_empty());
    }
}
