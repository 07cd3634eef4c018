//! Access logs as their readers see them: the formats, who is logged where, bytes as they were
//! sent, and that no line is lost over rotation and reopening.
#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

mod harness;

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use harness::client::{Answer, Connection, begin_download, get};
use harness::{BIG_BYTES, DEADLINE, Hob, Place, text_of};
use rustix::process::Signal;
use serde_json::Value;

/// One thread: its lines are in the order of its answers.
const ONE_THREAD: &str = "threads = 1\n";
const LISTEN: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n";

/// Sends these bytes and reads the answer.
fn exchange(port: u16, request: &str) -> Answer {
    let mut connection = Connection::open(port).unwrap();
    connection.send(request.as_bytes()).unwrap();
    connection.read().unwrap()
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap()
}

/// A line without its time, which stands in brackets.
fn without_time(line: &str) -> String {
    let (before, rest) = line.split_once('[').unwrap();
    let (_, after) = rest.split_once(']').unwrap();
    format!("{before}[]{after}")
}

#[test]
fn each_format_says_what_it_is_known_to_say() {
    let place = Place::new();
    place.folder("logs");
    place.write("site/a.txt", "twelve bytes");
    let mut config = format!("{LISTEN}[[site]]\n");
    let custom = "{status}|{method} {target}|{bytes}|{host}|{handler} {route}|{{}}";
    for (name, format) in [
        ("common", "common"),
        ("combined", "combined"),
        ("json", "json"),
        ("custom", custom),
    ] {
        config = format!(
            "[[log]]\nname = \"{name}\"\nfile = \"logs/{name}\"\nformat = \"{format}\"\n{config}\
             [[site.route]]\npath = \"/{name}/*\"\nfiles = \"site\"\nlog = \"{name}\"\n"
        );
    }
    place.write("hob.toml", &config);
    let hob = place.serve(&["--config", "hob.toml"]);
    for name in ["common", "combined", "json", "custom"] {
        let answer = exchange(
            hob.port(),
            &format!(
                "GET /{name}/a.txt?x=\"1\" HTTP/1.1\r\nHost: localhost\r\n\
                 User-Agent: probe \"7\"\r\nReferer: http://r/\r\n\r\n"
            ),
        );
        assert_eq!(answer.status, 200);
    }
    hob.stop();
    let common = without_time(&read(&place, "logs/common"));
    let combined = without_time(&read(&place, "logs/combined"));
    assert_eq!(
        common,
        "127.0.0.1 - - [] \"GET /common/a.txt?x=\\x221\\x22 HTTP/1.1\" 200 12\n"
    );
    assert_eq!(
        combined,
        "127.0.0.1 - - [] \"GET /combined/a.txt?x=\\x221\\x22 HTTP/1.1\" 200 12 \
         \"http://r/\" \"probe \\x227\\x22\"\n"
    );
    let json: Value = serde_json::from_str(&read(&place, "logs/json")).unwrap();
    for (field, value) in [
        ("client", "127.0.0.1".into()),
        ("method", "GET".into()),
        ("target", "/json/a.txt?x=\"1\"".into()),
        ("status", 200.into()),
        ("user_agent", "probe \"7\"".into()),
        ("handler", "files".into()),
        ("outcome", Value::from("complete")),
    ] {
        assert_eq!(json[field], value, "{field} in {json}");
    }
    assert_eq!(
        read(&place, "logs/custom"),
        "200|GET /custom/a.txt?x=\\x221\\x22|12|localhost|files /custom/*|{}\n"
    );
}

#[test]
fn narrowest_choice_of_a_log_counts() {
    let place = Place::new();
    place.folder("logs");
    let mut config = ONE_THREAD.to_owned();
    for name in ["first", "second", "site", "route"] {
        config.push_str(&format!(
            "[[log]]\nname = \"{name}\"\nfile = \"logs/{name}\"\nformat = \"{{target}} {{status}}\"\n"
        ));
    }
    config.push_str(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nlog = \"first\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\nlog = \"second\"\n\
         [[site]]\nroot = \"site\"\n\
         [[site.route]]\npath = \"/quiet\"\nrespond = { status = 204 }\nlog = \"off\"\n\
         [[site.route]]\npath = \"/own\"\nrespond = { status = 204 }\nlog = \"route\"\n\
         [[site]]\nnames = [\"b.test\"]\nlog = \"site\"\n\
         [[site.route]]\npath = \"/loud\"\nrespond = { status = 204 }\n\
         [[site.route]]\npath = \"/quiet\"\nrespond = { status = 204 }\nlog = \"off\"\n",
    );
    place.write("hob.toml", &config);
    let hob = place.serve(&["--config", "hob.toml"]);
    let line = hob.wait_for_count("listening on http://", 2);
    let ports = [
        hob.port(),
        line.rsplit(':').next().unwrap().parse().unwrap(),
    ];
    for (port, number) in ports.into_iter().zip(1..) {
        for target in ["hello.txt", "quiet", "own", "none"] {
            exchange(
                port,
                &format!("GET /{target}?{number} HTTP/1.1\r\nHost: a.test\r\n\r\n"),
            );
        }
        for target in ["loud", "quiet", "none", "a%5Cb"] {
            exchange(
                port,
                &format!("GET /{target}?{number} HTTP/1.1\r\nHost: b.test\r\n\r\n"),
            );
        }
    }
    hob.stop();
    assert_eq!(
        read(&place, "logs/first"),
        "/hello.txt?1 200\n/none?1 404\n"
    );
    assert_eq!(
        read(&place, "logs/second"),
        "/hello.txt?2 200\n/none?2 404\n"
    );
    assert_eq!(read(&place, "logs/route"), "/own?1 204\n/own?2 204\n");
    assert_eq!(
        read(&place, "logs/site"),
        "/loud?1 204\n/none?1 404\n/a%5Cb?1 400\n/loud?2 204\n/none?2 404\n/a%5Cb?2 400\n"
    );
}

/// A config with one log, everything in it.
fn config(format: &str, keys: &str) -> String {
    format!(
        "{ONE_THREAD}default_log = \"all\"\n[[log]]\nname = \"all\"\nfile = \"logs/all\"\n\
         format = \"{format}\"\n{keys}\n{LISTEN}[[site]]\nroot = \"site\"\n"
    )
}

#[test]
fn refused_requests_have_their_line() {
    let place = Place::new();
    place.folder("logs");
    place.write(
        "hob.toml",
        &config("{status} {method} {target} {fault}: {reason}", ""),
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    let requests = [
        ("GET /a%2F..%2Fb HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /../b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /no-host HTTP/1.1\r\n\r\n", 400),
        ("GET /hosts HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /version HTTP/3.7\r\nHost: a\r\n\r\n", 505),
        ("BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 204),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 405),
    ];
    for (request, status) in requests {
        assert_eq!(exchange(hob.port(), request).status, status, "{request}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000));
    assert_eq!(exchange(hob.port(), &long).status, 414);
    hob.stop();
    let log = read(&place, "logs/all");
    let begins = [
        "400 GET /a%2F..%2Fb client: dot segment beside an encoded slash",
        "400 GET /../b client: dot segments lead above the root",
        "400 GET /no-host client: there is no Host field",
        "400 GET /hosts client: there is more than one Host field",
        "505 GET /version client: ",
        "501 BREW /pot ",
        "204 OPTIONS * none: ",
        "405 CONNECT a:1 ",
        "414 GET /xxx",
    ];
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), begins.len(), "{log}");
    for (line, begin) in lines.into_iter().zip(begins) {
        assert!(
            line.starts_with(begin),
            "{line:?} does not begin with {begin:?}"
        );
    }
}

#[test]
fn bytes_are_those_that_were_sent() {
    let place = Place::new();
    place.folder("logs");
    place.write("site/a.txt", "twelve bytes");
    place.write(
        "hob.toml",
        &config("{target} {status} {bytes} {outcome}", ""),
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    let port = hob.port();
    let tag = get(port, "/a.txt?get").unwrap();
    let tag = tag.header("etag").unwrap();
    let head = |method: &str, query: &str, field: &str| {
        format!("{method} /a.txt?{query} HTTP/1.1\r\nHost: a\r\n{field}\r\n")
    };
    let mut connection = Connection::open(port).unwrap();
    connection
        .send(head("HEAD", "head", "").as_bytes())
        .unwrap();
    assert_eq!(connection.read_head().unwrap().0, 200);
    let unchanged = exchange(
        port,
        &head("GET", "same", &format!("If-None-Match: {tag}\r\n")),
    );
    assert_eq!(unchanged.status, 304);
    let range = exchange(port, &head("GET", "range", "Range: bytes=2-6\r\n"));
    assert_eq!((range.status, range.body.len()), (206, 5));
    let (left, _) = begin_download(port, "/big.bin?left");
    // Unread bytes turn its end into a reset.
    drop(left);
    let whole = get(port, "/big.bin?whole").unwrap();
    assert_eq!(whole.body.len(), BIG_BYTES);
    hob.stop();
    let log = read(&place, "logs/all");
    let mut lines: Vec<&str> = log.lines().collect();
    let left = lines
        .iter()
        .position(|line| line.contains("?left"))
        .unwrap();
    let left = lines.remove(left);
    let words: Vec<&str> = left.split(' ').collect();
    let sent: usize = words[2].parse().unwrap();
    assert_eq!((words[1], words[3]), ("200", "client-left"), "{left}");
    // As much as the sockets took, and they do not take it all.
    assert!(sent > 0 && sent < BIG_BYTES, "{left}");
    assert_eq!(
        lines,
        [
            "/a.txt?get 200 12 complete",
            "/a.txt?head 200 0 complete",
            "/a.txt?same 304 0 complete",
            "/a.txt?range 206 5 complete",
            &format!("/big.bin?whole 200 {BIG_BYTES} complete"),
        ]
    );
}

#[test]
fn values_that_a_format_asks_for_are_those_of_request_and_answer() {
    let place = Place::new();
    place.folder("logs");
    let format = "{status} \\\"{header:x-id}\\\" \\\"{header:Accept}\\\" {header:host} {cookie:sid} \
                  {response:content-type} {response:x-own} {user} {env:HOB_TEST_ROOM}";
    let keys = "[[log]]\nname = \"json\"\nfile = \"logs/json\"\n\
                format = \"json {cookie:sid} {response:X-Own} {env:HOB_TEST_ROOM}\"\n\
                [[log]]\nname = \"plain\"\nfile = \"logs/plain\"\nformat = \"{target}\"\n";
    let routes = "headers = { X-Own = \"a \\\"b\\\"\" }\n\
                  [[site.route]]\npath = \"/json\"\nrespond = { status = 204 }\nlog = \"json\"\n\
                  [[site.route]]\npath = \"/plain\"\nrespond = { status = 204 }\nlog = \"plain\"\n";
    place.write("hob.toml", &(config(format, keys) + routes));
    let mut command = place.command();
    command.env("HOB_TEST_ROOM", "the \"7\"");
    command.args(["serve", "--config", "hob.toml"]);
    let hob = Hob::start(command);
    hob.wait_for("listening on ");
    let fields = "Host: a.test\r\nX-Id: 7\"\u{2028}\u{e9}\r\nAccept: text/html\r\naccept: x/y\r\n\
                  Cookie: other=1; sid=\"two words\"\r\n\r\n";
    for (path, status) in [("hello.txt", 200), ("json", 204), ("plain", 204)] {
        let request = format!("GET /{path} HTTP/1.1\r\n{fields}");
        assert_eq!(exchange(hob.port(), &request).status, status, "{path}");
    }
    // Nothing is asked of an answer that no site has made.
    let refused = exchange(hob.port(), "GET /no-host HTTP/1.1\r\nCookie: sid=2\r\n\r\n");
    assert_eq!(refused.status, 400);
    hob.stop();
    let all = read(&place, "logs/all");
    assert_eq!(
        all,
        "200 \"7\\x22\\xE2\\x80\\xA8é\" \"text/html, x/y\" a.test \\x22two words\\x22 \
         text/plain; charset=utf-8 a \\x22b\\x22 - the \\x227\\x22\n\
         400 \"-\" \"-\" - 2 - - - the \\x227\\x22\n"
    );
    let json: Value = serde_json::from_str(&read(&place, "logs/json")).unwrap();
    for (member, value) in [
        ("cookie:sid", "\"two words\""),
        ("response:X-Own", "a \"b\""),
        ("env:HOB_TEST_ROOM", "the \"7\""),
        ("target", "/json"),
    ] {
        assert_eq!(json[member], value, "{member}");
    }
    assert_eq!(read(&place, "logs/plain"), "/plain\n");
}

#[test]
fn value_longer_than_its_limit_is_cut_and_counted() {
    let place = Place::new();
    place.folder("logs");
    place.write("hob.toml", &config("{header:x-long}|{header:x-short}", ""));
    let hob = place.serve(&["--config", "hob.toml"]);
    let long = "x".repeat(2000);
    let request =
        format!("GET /hello.txt HTTP/1.1\r\nHost: a\r\nX-Long: {long}\r\nX-Short: y\r\n\r\n");
    assert_eq!(exchange(hob.port(), &request).status, 200);
    place.wait_for_counter("limit_log_value", 1);
    hob.stop();
    let kept = &long[..1024];
    assert_eq!(read(&place, "logs/all"), format!("{kept}…|y\n"));
}

/// The names of the log's files.
fn files(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("logs")).unwrap().flatten();
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Asks again and again, until it is so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < DEADLINE,
            "{what}: not within {DEADLINE:?}"
        );
        std::thread::yield_now();
    }
}

/// Every line of every file of the log, whatever its form.
fn all_lines(place: &Place) -> Vec<String> {
    // A child may still be compressing when the server has ended.
    wait_until("every file is compressed or not", || {
        let names = files(place);
        let has = |name: String| names.contains(&name);
        !names
            .iter()
            .any(|name| name.ends_with(".tmp") || has(format!("{name}.gz")))
    });
    let mut lines = Vec::new();
    for name in files(place) {
        let bytes = std::fs::read(place.path("logs").join(&name)).unwrap();
        let mut text = String::new();
        if name.ends_with(".gz") {
            let mut decoder = flate2::read::MultiGzDecoder::new(&bytes[..]);
            decoder
                .read_to_string(&mut text)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        } else {
            text = String::from_utf8(bytes).unwrap();
        }
        assert!(
            text.is_empty() || text.ends_with('\n'),
            "{name} ends within a line"
        );
        lines.extend(text.lines().map(str::to_owned));
    }
    lines
}

const CLIENTS: usize = 4;
const REQUESTS_EACH: usize = 400;

/// Several clients ask for a file, each time under another query; `meanwhile` runs when half is
/// done.
fn ask_all(port: u16, meanwhile: impl FnOnce()) {
    let half = std::sync::Barrier::new(CLIENTS + 1);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let half = &half;
            scope.spawn(move || {
                let mut connection = Connection::open(port).unwrap();
                for number in 0..REQUESTS_EACH {
                    if number == REQUESTS_EACH / 2 {
                        half.wait();
                    }
                    let head = format!(
                        "GET /hello.txt?{client}-{number} HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    );
                    connection.send(head.as_bytes()).unwrap();
                    assert_eq!(connection.read().unwrap().status, 200);
                }
            });
        }
        half.wait();
        meanwhile();
    });
}

/// Each request of [`ask_all`] has one line.
fn each_once(place: &Place) {
    let lines = all_lines(place);
    let unique: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(unique.len(), CLIENTS * REQUESTS_EACH, "lines are lost");
    assert_eq!(lines.len(), unique.len(), "lines are doubled");
}

#[test]
fn no_line_is_lost_or_doubled_while_logs_rotate_under_load() {
    let place = Place::new();
    place.folder("logs");
    let keys = "rotate_size = \"4KiB\"\nkeep = 1000\ncompress = true";
    let config = config("{target} {status}", keys).replace(ONE_THREAD, "threads = 2\n");
    place.write("hob.toml", &config);
    let hob = place.serve(&["--config", "hob.toml"]);
    ask_all(hob.port(), || {
        wait_until("the log is rotated", || files(&place).len() > 1);
    });
    wait_until("the log is rotated again", || files(&place).len() > 2);
    hob.wait_for("an access log was compressed");
    hob.stop();
    each_once(&place);
}

#[test]
fn so_many_rotated_logs_are_kept_as_the_config_says() {
    let place = Place::new();
    place.folder("logs");
    let keys = "rotate_size = \"1KiB\"\nkeep = 2\ncompress = false";
    place.write("hob.toml", &config("{target} {status}", keys));
    let hob = place.serve(&["--config", "hob.toml"]);
    let inode = || {
        std::fs::metadata(place.path("logs/all"))
            .map(|file| file.ino())
            .ok()
    };
    for round in 0..5 {
        // While it is open, no other file gets its number.
        let held = std::fs::File::open(place.path("logs/all"));
        let before = inode();
        for number in 0..60 {
            get(hob.port(), &format!("/hello.txt?{round}-{number:020}")).unwrap();
        }
        wait_until("the log is rotated", || {
            // One that is long enough is rotated when more is to be written.
            get(hob.port(), "/hello.txt?more").unwrap();
            inode().is_some_and(|now| Some(now) != before)
        });
        drop(held);
    }
    hob.stop();
    let names = files(&place);
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.contains(&"all".to_owned()), "{names:?}");
}

#[test]
fn no_line_is_lost_or_doubled_when_the_log_is_moved_away_under_load() {
    let place = Place::new();
    place.folder("logs");
    let config = config("{target} {status}", "").replace(ONE_THREAD, "threads = 2\n");
    place.write("hob.toml", &config);
    let hob = place.serve(&["--config", "hob.toml"]);
    ask_all(hob.port(), || {
        std::fs::rename(place.path("logs/all"), place.path("logs/moved")).unwrap();
        hob.signal(Signal::HUP);
        hob.wait_for("reloaded, generation 2");
    });
    get(hob.port(), "/hello.txt?last").unwrap();
    hob.stop();
    const LAST: &str = "/hello.txt?last 200\n";
    let now = read(&place, "logs/all");
    assert!(now.contains(LAST), "the file was not opened again");
    place.write("logs/all", &now.replace(LAST, ""));
    each_once(&place);
}

#[test]
fn full_disk_loses_lines_and_counts_them_but_no_request() {
    let place = Place::new();
    place.write(
        "hob.toml",
        &config("combined", "").replace("logs/all", "/dev/full"),
    );
    let hob = place.serve(&["--config", "hob.toml"]);
    let counter = |name: &str| {
        let output = place.run(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text_of(&output)));
        status["counters"][name].as_u64().unwrap()
    };
    let begun = Instant::now();
    let mut asked = 0;
    while counter("log_dropped") == 0 || counter("log_write_errors") == 0 {
        assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
        asked += 1;
        assert!(
            begun.elapsed() < DEADLINE,
            "nothing is dropped after {asked} requests"
        );
    }
    for _ in 0..20 {
        assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    }
    assert!(counter("log_dropped") <= asked + 20);
    assert_eq!(counter("requests"), asked + 20);
    hob.stop();
}
