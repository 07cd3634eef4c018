//! `hob bench --page`: what is asked for is what a browser asks for, over every protocol, the first
//! time and when a visitor comes again.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::channel;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::harness::{Hob, Place, text_of};
use super::server::{Reply, Server, answer};
use super::{bench, conforms, number, result};

const LISTENERS: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n\n\
                         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n";
const SITE: &str = "[[site]]\nroot = \"site\"\n";

/// What the page below takes, from the same server.
const TAKEN: [&str; 12] = [
    "/page/",
    "/page/a.css",
    "/page/b.js",
    "/page/c.png",
    "/page/css/d.css",
    "/page/e.png",
    "/page/f.woff2",
    "/page/frame.html",
    "/page/g.png",
    "/page/h.png",
    "/page/i.svg",
    "/page/j.png",
];

/// A page of several texts; the document is long enough to be compressed.
fn write_page(place: &Place) {
    place.folder("site/page");
    place.folder("site/page/css");
    let document = format!(
        "<!doctype html><title>x</title><link rel=icon href=i.svg><link rel=stylesheet href=a.css>\
         <script src=b.js></script><p>{}</p><img src=c.png><img src=c.png#again>\
         <img srcset=\"j.png 1x, no.png 2x\" src=no.png><iframe src=frame.html></iframe>\
         <noscript><img src=no.png></noscript><img src=https://elsewhere.example/x.png>",
        "All work and no play makes Jack a dull boy. ".repeat(100)
    );
    for (name, text) in [
        ("index.html", document.as_str()),
        ("a.css", "@import 'css/d.css'; p { background: url(e.png) }"),
        (
            "css/d.css",
            "@font-face { font-family: f; src: url(../f.woff2) } b { background: url(../g.png) }",
        ),
        ("frame.html", "<img src=h.png>"),
    ] {
        write_old(place, name, text);
    }
    for name in [
        "b.js", "c.png", "e.png", "f.woff2", "g.png", "h.png", "i.svg", "j.png",
    ] {
        write_old(place, name, name);
    }
}

/// A file that was written long ago: one that is new has another entity tag for a while.
fn write_old(place: &Place, name: &str, text: &str) {
    let name = format!("site/page/{name}");
    place.write(&name, text);
    let file = File::options()
        .append(true)
        .open(place.path(&name))
        .unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(784_111_777))
        .unwrap();
}

fn served(more: &str) -> (Place, Hob) {
    let place = Place::new();
    write_page(&place);
    let hob = place.serve_text(&format!("{LISTENERS}{SITE}{more}"));
    (place, hob)
}

/// The page's URL in clear text and over TLS.
fn urls(hob: &Hob) -> [String; 2] {
    [
        format!("http://127.0.0.1:{}/page/", hob.port()),
        format!("https://127.0.0.1:{}/page/", hob.tls_port()),
    ]
}

fn assets(result: &Value) -> BTreeSet<&str> {
    let all = result["page"]["assets"].as_array().unwrap().iter();
    all.map(|asset| asset["url"].as_str().unwrap()).collect()
}

fn each(result: &Value, field: &str) -> f64 {
    result["page"]["per_page"][field].as_f64().unwrap()
}

#[test]
fn page_takes_the_same_over_every_protocol() {
    let (place, hob) = served("");
    let [clear, secure] = urls(&hob);
    let schema = schema();
    for (url, arguments, conns_max) in [
        (&clear, &[][..], 6.0),
        (&secure, &["--tls", "full"], 6.0),
        (&clear, &["--http", "2"], 1.0),
        (&secure, &["--http", "2"], 1.0),
        (&secure, &["--http", "3", "-t", "2"], 1.0),
        (
            &clear,
            &["--rate", "1000", "--seed", "3", "--arrivals", "poisson"],
            6.0,
        ),
    ] {
        let before = place.counter("requests");
        let fixed = [url, "--page", "-n", "6", "-c", "2"];
        let result = result(&[&fixed[..], arguments].concat());
        conforms(&result, &schema, &schema, "");
        for (path, wanted) in [
            ("requests.due", 6),
            ("requests.good", 6),
            ("page.requests", 72),
            ("page.elsewhere", 6),
            ("page.first_byte.count", 6),
            ("latency.response.count", 6),
        ] {
            assert_eq!(number(&result, path), wanted, "{path} with {arguments:?}");
        }
        assert_eq!(assets(&result), BTreeSet::from(TAKEN), "{arguments:?}");
        let first = &result["page"]["first_byte"]["max_us"].as_f64().unwrap();
        assert!(*first <= result["latency"]["response"]["max_us"].as_f64().unwrap());
        // Each visitor comes anew each time.
        let connections = each(&result, "connections");
        assert!(
            (1.0..=conns_max).contains(&connections),
            "{connections} with {arguments:?}"
        );
        if arguments.contains(&"full") {
            assert_eq!(number(&result, "tls.resumed"), 0);
            assert_eq!(
                number(&result, "tls.full"),
                number(&result, "connections.opened")
            );
        }
        place.wait_for_counter("requests", before + 72);
    }
    hob.stop();
}

fn schema() -> Value {
    serde_json::from_slice(&bench(&["--schema"]).stdout).unwrap()
}

#[test]
fn who_comes_again_asks_only_for_what_may_have_changed() {
    let fresh = "\n[[site.route]]\npath = \"/page/css/*\"\nfiles = { cache_control = \"max-age=600\" }\n\
                 \n[[site.route]]\npath = \"/page/b.js\"\nfiles = { cache_control = \"no-store\" }\n\
                 \n[[site.route]]\npath = \"/*\"\nfiles = {}\n";
    let (place, hob) = served(fresh);
    let [clear, secure] = urls(&hob);
    for (url, arguments) in [
        (&clear, &["-c", "3"][..]),
        (&secure, &["-c", "3"]),
        (&secure, &["--http", "2", "-c", "3"]),
        (&secure, &["--http", "3", "-c", "3", "-t", "3"]),
        // As many as may come before the first has gone.
        (&clear, &["--rate", "60", "-c", "9"]),
    ] {
        let before = place.counter("requests");
        // Whoever comes while a text is compressed gets it as it is, with another entity tag.
        let fixed = [
            url,
            "--page",
            "--warm",
            "-n",
            "9",
            "-H",
            "Accept-Encoding:identity",
        ];
        let result = result(&[&fixed[..], arguments].concat());
        assert_eq!(number(&result, "requests.good"), 9, "{result:#}");
        // The stylesheet is fresh, the script may not be kept, the rest is what it was.
        for (field, wanted) in [
            ("requests", 11.0),
            ("not_modified", 10.0),
            ("from_cache", 1.0),
        ] {
            assert_eq!(each(&result, field), wanted, "{field} with {arguments:?}");
        }
        assert_eq!(number(&result, "bytes.bodies"), 9 * 4, "{result:#}");
        let is_paced = arguments.contains(&"--rate");
        if !is_paced {
            // What the first visit opened carries the later ones.
            assert_eq!(number(&result, "connections.opened"), 0);
            place.wait_for_counter("requests", before + 3 * 12 + 9 * 11);
        }
    }
    hob.stop();
}

/// A network between us and a server: what is sent over each connection but the first arrives
/// late. Returns its port.
fn slow_network(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own_port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().map_while(Result::ok).enumerate() {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            for (mut from, mut to, is_late) in [
                (
                    client.try_clone().unwrap(),
                    server.try_clone().unwrap(),
                    number > 0,
                ),
                (server, client, false),
            ] {
                std::thread::spawn(move || {
                    if is_late {
                        // Nobody sends on it: to receive is to wait.
                        let (_keep, clock) = channel::<()>();
                        let _ = clock.recv_timeout(Duration::from_millis(50));
                    }
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    own_port
}

#[test]
fn connection_that_nothing_was_asked_over_is_kept_when_a_session_comes_over_it() {
    let place = Place::new();
    place.write("site/index.html", "<img src=a.png><img src=b.png>");
    place.write("site/a.png", "a");
    place.write("site/b.png", "b");
    let hob = place.serve_text(&format!("{LISTENERS}{SITE}"));
    // The first connection takes over what waits for the second, which opens while visitors think.
    let url = format!("https://127.0.0.1:{}/", slow_network(hob.tls_port()));
    let result = result(&[
        &url, "--page", "--warm", "-c", "1", "-n", "4", "--think", "200ms",
    ]);
    assert_eq!(number(&result, "requests.good"), 4);
    assert_eq!(number(&result, "connections.opened"), 0);
    hob.stop();
}

/// A site whose page goes on only when something that its first half names was asked for.
fn halting() -> (Place, Hob) {
    let place = Place::new();
    place.folder("cgi");
    let fifo = place.path("cgi/fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let fifo = fifo.display();
    for (name, text) in [
        (
            "page",
            format!(
                "printf 'Content-Type: text/html\\n\\n<!doctype html><p>%01000d<img src=asset><im' 0\n\
                 read line < {fifo}\nprintf 'g src=/hello.txt>'\n"
            ),
        ),
        (
            "asset",
            format!("printf 'Content-Type: image/png\\n\\npng'\necho on > {fifo}\n"),
        ),
    ] {
        place.write(&format!("cgi/{name}"), &format!("#!/bin/sh\n{text}"));
    }
    for name in ["page", "asset", "fifo"] {
        let path = place.path(&format!("cgi/{name}"));
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let route = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n";
    let hob = place.serve_text(&format!("{LISTENERS}{SITE}{route}"));
    (place, hob)
}

#[test]
fn what_half_of_a_document_names_is_asked_for_before_the_rest_comes() {
    let (_place, hob) = halting();
    let clear = format!("http://127.0.0.1:{}/cgi/page", hob.port());
    let secure = format!("https://127.0.0.1:{}/cgi/page", hob.tls_port());
    for (url, version) in [
        (&clear, "1.1"),
        (&clear, "2"),
        (&secure, "2"),
        (&secure, "3"),
    ] {
        let plan = ["--page", "--http", version, "-c", "1", "-n", "3"];
        let result = result(&[&[url.as_str()], &plan[..], &["--timeout", "8s"]].concat());
        assert_eq!(number(&result, "requests.good"), 3, "{version}: {result:#}");
        let taken = BTreeSet::from(["/cgi/asset", "/cgi/page", "/hello.txt"]);
        assert_eq!(assets(&result), taken, "{version}");
        // What is named again when the document is whole is not asked for again.
        assert_eq!(each(&result, "requests"), 3.0, "{version}");
    }
    hob.stop();
}

#[test]
fn compressed_texts_are_read() {
    let (_place, hob) = served("");
    let [clear, _] = urls(&hob);
    for coding in ["gzip", "br", "zstd", "identity"] {
        let header = format!("Accept-Encoding:{coding}");
        let result = result(&[&clear, "--page", "-n", "1", "-c", "1", "-H", &header]);
        assert_eq!(assets(&result), BTreeSet::from(TAKEN), "{coding}");
        let all = result["page"]["assets"].as_array().unwrap();
        let document = all.iter().find(|asset| asset["url"] == "/page/").unwrap();
        let bytes = document["body_bytes"].as_u64().unwrap();
        assert_eq!(
            bytes > 4000,
            coding == "identity",
            "{bytes} bytes in {coding}"
        );
    }
    hob.stop();
}

#[test]
fn requests_are_written_as_browsers_write_them() {
    let server = Server::start(|number| {
        Reply::Bytes(match number {
            0 => answer("200 OK", "<link rel=stylesheet href=/a?b#c>"),
            _ => answer("200 OK", ""),
        })
    });
    let result = result(&[
        &server.url(),
        "--page",
        "-n",
        "1",
        "-c",
        "1",
        "-H",
        "Cookie: a=b",
    ]);
    assert_eq!(number(&result, "page.requests"), 2);
    server.seen(|seen| {
        let host = format!("Host: 127.0.0.1:{}\r\n", server.port);
        let document = format!(
            "GET / HTTP/1.1\r\n{host}Accept: text/html,application/xhtml+xml,application/xml;q=0.9,\
             image/avif,image/webp,*/*;q=0.8\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
             Upgrade-Insecure-Requests: 1\r\nCookie: a=b\r\n\r\n"
        );
        let style = format!(
            "GET /a?b HTTP/1.1\r\n{host}Accept: text/css,*/*;q=0.1\r\n\
             Accept-Encoding: gzip, deflate, br, zstd\r\nCookie: a=b\r\n\r\n"
        );
        let heads: Vec<&str> = seen
            .requests
            .iter()
            .map(|(head, _)| head.as_str())
            .collect();
        assert_eq!(heads, [document, style]);
    });
}

#[test]
fn page_that_lacks_something_has_failed_and_says_what() {
    let place = Place::new();
    place.write(
        "site/index.html",
        "<img src=hello.txt><img src=missing.png>",
    );
    let hob = place.serve_text(&format!("{LISTENERS}{SITE}"));
    let url = format!("http://127.0.0.1:{}/", hob.port());
    let arguments = [
        &url,
        "--page",
        "-n",
        "4",
        "-c",
        "1",
        "--json",
        "--fail-if",
        "errors>0",
    ];
    let output = bench(&arguments);
    assert_eq!(output.status.code(), Some(4), "{}", text_of(&output));
    let first: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (
            number(&first, "requests.answered"),
            number(&first, "requests.good")
        ),
        (4, 0)
    );
    let failure = &first["failures"][0];
    assert_eq!(
        (&failure["kind"], &failure["first"]),
        (&"status".into(), &"/missing.png: 404".into())
    );
    let assets = first["page"]["assets"].as_array().unwrap();
    let missing = assets
        .iter()
        .find(|asset| asset["url"] == "/missing.png")
        .unwrap();
    assert_eq!(
        (number(missing, "count"), number(missing, "failed")),
        (4, 4)
    );
    // Who comes again finds it missing again, and nothing else.
    let again = result(&[
        &url, "--page", "--warm", "-n", "4", "-c", "2", "--rate", "50",
    ]);
    assert_eq!(
        (
            number(&again, "requests.answered"),
            number(&again, "requests.good")
        ),
        (4, 0)
    );
    assert_eq!(number(&again, "page.requests"), 12);
    assert!(number(&again, "page.not_modified") > 0, "{again:#}");
    // In words, and with what is expected said otherwise.
    let arguments = [
        &url,
        "--page",
        "-n",
        "4",
        "-c",
        "1",
        "--expect",
        "status=200,404",
    ];
    let output = bench(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("pages      4, 4 answered, 0 failed"),
        "{text}"
    );
    assert!(text.contains("a page     3.0 requests over "), "{text}");
    hob.stop();
}

#[test]
fn page_without_an_answer_is_told_once() {
    let server = Server::start(|_| Reply::Last(Vec::new()));
    for more in [&[][..], &["--warm"], &["--warm", "--rate", "50"]] {
        let fixed = [
            server.url(),
            "--page".to_owned(),
            "-n".to_owned(),
            "2".to_owned(),
        ];
        let fixed: Vec<&str> = fixed.iter().map(String::as_str).collect();
        let output = bench(&[&fixed[..], more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
        let text = text_of(&output);
        assert!(text.contains("the first failure was closed: /: "), "{text}");
    }
}

#[test]
fn assets_beyond_the_limit_are_told_and_not_loaded() {
    let count = hob_load::limits::ASSET_COUNT_MAX + 3;
    let names = (0..count).map(|number| format!("<img src=hello.txt?{number}>"));
    let place = Place::new();
    place.write("site/index.html", &names.collect::<String>());
    let hob = place.serve_text(&format!("{LISTENERS}{SITE}"));
    let url = format!("http://127.0.0.1:{}/", hob.port());
    let result = result(&[&url, "--page", "-n", "1", "-c", "1", "--http", "2"]);
    assert_eq!(number(&result, "page.left_out"), 3);
    assert_eq!(number(&result, "page.requests") as usize, count - 3 + 1);
    assert_eq!(result["doubtful"], true);
    hob.stop();
}

#[test]
fn what_makes_no_sense_for_a_page_is_refused() {
    for (arguments, words) in [
        (&["--method", "POST"][..], "a page is asked for with GET"),
        (&["--close"], "as in browsers"),
        (&["--http", "2", "--streams", "4"], "as in browsers"),
        (&["--expect", "size=4"], "--expect status="),
        (&["-c", "10001"], "at most 10000 visitors"),
    ] {
        let output = bench(&[&["http://127.0.0.1:9/", "--page"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text_of(&output).contains(words), "{}", text_of(&output));
    }
    let place = Place::new();
    let list = place.path("pages.txt").display().to_string();
    for line in ["/ expect=status=404", "/ header=Accept:x"] {
        place.write(
            "pages.txt",
            &format!("http://127.0.0.1:9/a\nhttp://127.0.0.1:9{line}\n"),
        );
        let output = bench(&["--page", "--urls", &list]);
        assert_eq!(output.status.code(), Some(2), "{line}");
        let words = "http://127.0.0.1:9/: fields and expectations hold for all pages";
        assert!(text_of(&output).contains(words), "{}", text_of(&output));
    }
    let output = bench(&["http://127.0.0.1:9/", "--warm"]);
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
}

#[test]
fn pages_of_a_list_need_no_other_url() {
    let (place, hob) = served("");
    let [clear, _] = urls(&hob);
    place.write(
        "pages.txt",
        &format!("{clear}\n{clear}frame.html name=frame\n"),
    );
    let list = place.path("pages.txt").display().to_string();
    let result = result(&["--page", "--urls", &list, "-n", "4", "-c", "1"]);
    assert_eq!(number(&result, "requests.good"), 4);
    assert_eq!(number(&result, "page.requests"), 2 * 12 + 2 * 2);
    hob.stop();
}

#[test]
fn shards_are_put_together() {
    let (place, hob) = served("");
    let [clear, _] = urls(&hob);
    let files: Vec<String> = ["1/2", "2/2"]
        .iter()
        .map(|shard| {
            let result = result(&[&clear, "--page", "-n", "6", "-c", "2", "--shard", shard]);
            let name = format!("{}.json", &shard[..1]);
            place.write(&name, &result.to_string());
            place.path(&name).display().to_string()
        })
        .collect();
    let page = place.path("page.html").display().to_string();
    let merged = result(&["merge", &files[0], &files[1], "--html", &page]);
    assert_eq!(number(&merged, "requests.good"), 6);
    assert_eq!(number(&merged, "page.requests"), 72);
    assert_eq!(each(&merged, "requests"), 12.0);
    assert_eq!(number(&merged, "page.first_byte.count"), 6);
    assert_eq!(assets(&merged), BTreeSet::from(TAKEN));
    let schema = schema();
    conforms(&merged, &schema, &schema, "");
    let page = std::fs::read_to_string(page).unwrap();
    for words in [
        "pages a second were answered",
        "What a page takes",
        "/page/css/d.css",
    ] {
        assert!(page.contains(words), "{words}");
    }
    hob.stop();
}
