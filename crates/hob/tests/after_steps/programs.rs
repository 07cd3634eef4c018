//! Answers of programs: shell scripts that say something of their answers, and clients that ask for
//! less than the whole.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::harness::client::{Answer, Connection, ask, call};
use super::harness::{DEADLINE, Hob, Place};

/// A site with shell scripts below `/cgi/`, a folder of files they may send, an internal route and
/// an access log in JSON.
struct Site {
    place: Place,
    hob: Hob,
}

const PAGE: &str = "the kettle is warm, the kettle is warm, the kettle is warm\n";

impl Site {
    fn new(scripts: &[(&str, &str)]) -> Site {
        Site::with(scripts, "", "")
    }

    /// With more keys of the site, and of the scripts' route.
    fn with(scripts: &[(&str, &str)], site_keys: &str, route_keys: &str) -> Site {
        let place = Place::new();
        for folder in ["cgi", "files", "inside", "logs"] {
            place.folder(folder);
        }
        place.write("files/report.txt", PAGE);
        place.write("inside/secret.html", "<p>secret</p>");
        place.write("page.html", "own page");
        place.write("outside.txt", "not to be sent");
        std::os::unix::fs::symlink("../outside.txt", place.path("files/link")).unwrap();
        for (name, text) in scripts {
            let text = text.replace("DIR", place.path("").to_str().unwrap());
            let path = format!("cgi/{name}");
            place.script(&path, &format!("#!/bin/sh\n{text}\n"));
        }
        let log = "[[log]]\nname = \"main\"\nfile = \"logs/access.log\"\nformat = \"json\"\n";
        let config = format!(
            "default_log = \"main\"\n{log}{}compress_min = 20\nsendfile = [\"files\"]\n\
             error_pages = {{ 404 = \"page.html\", 502 = \"page.html\" }}\n{site_keys}\n\
             [[site.route]]\npath = \"/cgi/*\"\ncgi = \"cgi\"\n{route_keys}\n\
             [[site.route]]\npath = \"/inside/*\"\ninternal = true\nfiles = \"inside\"\n",
            super::harness::config("", "site")
        );
        let hob = place.serve_text(&config);
        Site { place, hob }
    }

    fn get(&self, path: &str, fields: &str) -> Answer {
        self.call("GET", path, fields)
    }

    /// An answer, whole as its framing says and without any field meant for the server.
    fn call(&self, method: &str, path: &str, fields: &str) -> Answer {
        let body: &[u8] = match method {
            "POST" => b"some=body",
            _ => b"",
        };
        let port = self.hob.port();
        let reply = match method {
            "HEAD" => ask(port, method, path, fields),
            _ => {
                let reply = call(port, method, path, fields, body);
                assert!(reply.is_whole, "{path} {:?}", reply.answer);
                reply.answer
            }
        };
        for (name, _) in &reply.headers {
            let is_control = name == "script-control"
                || name == "x-sendfile"
                || name.starts_with("x-accel")
                || name.starts_with("x-litespeed");
            assert!(!is_control, "{path} sent {name}");
        }
        reply
    }

    /// An answer whose program goes on when the head has come.
    fn get_in_two(&self, path: &str, fields: &str, fifo: &Path) -> Answer {
        let mut connection = Connection::open(self.hob.port()).unwrap();
        // Over HTTP/1.0 a body of unknown size is not framed.
        let ask = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n{fields}\r\n");
        connection.send(ask.as_bytes()).unwrap();
        let (status, headers) = connection.read_head().unwrap();
        std::fs::write(fifo, "go\n").unwrap();
        let body = connection.read_to_end();
        Answer {
            status,
            headers,
            body,
        }
    }

    /// Stops the server and gives what its log says of the request for a path.
    fn record(self, path: &str) -> serde_json::Value {
        self.hob.stop();
        let log = std::fs::read_to_string(self.place.path("logs/access.log")).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut found = lines.filter(|line: &serde_json::Value| line["target"] == path);
        found.next().unwrap()
    }
}

fn made_fifo(place: &Place, name: &str) -> PathBuf {
    let path = place.path(name);
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    path
}

/// What a client can read of the bytes it has so far.
fn readable(data: &[u8], coding: &str) -> String {
    let mut out = Vec::new();
    let mut read = |reader: &mut dyn Read| {
        let mut byte = [0];
        while let Ok(1) = reader.read(&mut byte) {
            out.push(byte[0]);
        }
    };
    match coding {
        "br" => read(&mut brotli::Decompressor::new(data, 4096)),
        "zstd" => read(&mut zstd::stream::read::Decoder::new(data).unwrap()),
        "gzip" => read(&mut flate2::read::GzDecoder::new(data)),
        _ => out.extend_from_slice(data),
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn events_are_not_delayed_in_any_coding() {
    // Open for writing too, the pipe has no end for the program when the client closes it.
    let events = "exec 3<> DIR/taken\n\
                  printf 'Content-Type: text/event-stream\\r\\n\\r\\ndata: one\\n\\n'\n\
                  read line <&3\nprintf 'data: two\\n\\n'\n\
                  read line <&3\nprintf 'data: three\\n\\n'";
    let site = Site::new(&[("events", events)]);
    let fifo = made_fifo(&site.place, "taken");
    for coding in ["identity", "gzip", "br", "zstd"] {
        let mut stream = TcpStream::connect(("127.0.0.1", site.hob.port())).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        // Over HTTP/1.0 a body of unknown size is not framed.
        let ask = format!(
            "GET /cgi/events HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n"
        );
        stream.write_all(ask.as_bytes()).unwrap();
        let mut got = Vec::new();
        let mut wait_for = |text: &str| {
            let mut buffer = [0; 4096];
            loop {
                let begin = got.windows(4).position(|four| four == b"\r\n\r\n");
                let body = begin.map_or(&[][..], |begin| &got[begin + 4..]);
                if !body.is_empty() && readable(body, coding).ends_with(text) {
                    return String::from_utf8_lossy(&got[..begin.unwrap()]).into_owned();
                }
                let count = stream.read(&mut buffer).unwrap();
                assert!(count > 0, "{coding}: the end came before {text:?}");
                got.extend_from_slice(&buffer[..count]);
            }
        };
        // The program writes no further event before the one before it has arrived.
        let head = wait_for("data: one\n\n");
        let coded = format!("\r\ncontent-encoding: {coding}\r\n");
        let is_coded = head.to_ascii_lowercase().contains(&coded);
        assert_eq!(is_coded, coding != "identity", "{head}");
        std::fs::write(&fifo, "taken\n").unwrap();
        wait_for("data: two\n\n");
        std::fs::write(&fifo, "taken\n").unwrap();
        wait_for("data: three\n\n");
    }
    site.hob.stop();
}

#[test]
fn condition_on_a_programs_own_tag_or_date_is_answered_for_it() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let site = Site::new(&[
        (
            "tag",
            "printf 'ETag: \"v1\"\\nContent-Type: text/plain\\nSet-Cookie: a=b\\n\\npart'\n\
             read line < DIR/never\nprintf 'rest'",
        ),
        (
            "date",
            &format!("printf 'Last-Modified: {date}\\nContent-Type: text/plain\\n\\nall'"),
        ),
    ]);
    made_fifo(&site.place, "never");
    // The rest of it would never come.
    let unchanged = site.get("/cgi/tag", "If-None-Match: \"v0\", \"v1\"\r\n");
    assert_eq!((unchanged.status, unchanged.text().as_str()), (304, ""));
    assert_eq!(unchanged.header("etag"), Some("\"v1\""));
    assert_eq!(unchanged.header("set-cookie"), Some("a=b"));
    assert_eq!(unchanged.header("content-type"), None);
    let failed = site.get("/cgi/tag", "If-Match: \"v0\"\r\n");
    assert_eq!(failed.status, 412);
    let same = format!("If-Modified-Since: {date}\r\n");
    assert_eq!(site.get("/cgi/date", &same).status, 304);
    let since = "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n";
    assert_eq!(site.get("/cgi/date", since).text(), "all");
    assert_eq!(site.call("POST", "/cgi/date", &same).status, 200);
    std::fs::write(site.place.path("never"), "end\n").unwrap();
    site.hob.stop();
}

#[test]
fn range_is_cut_out_of_an_answer_of_known_length() {
    let long = "printf 'Content-Type: text/plain\\nContent-Length: 300000\\nETag: \"a\"\\n\\n'\n\
                i=0; while [ $i -lt 30000 ]; do printf '%09d\\n' $i; i=$((i+1)); done";
    let short = "printf 'Content-Type: text/plain\\nContent-Length: 10\\n\\n0123456789'";
    let unknown =
        "printf 'Content-Type: text/plain\\n\\n0123'; read line < DIR/go; printf '456789'";
    let site = Site::new(&[("long", long), ("short", short), ("unknown", unknown)]);
    let fifo = made_fifo(&site.place, "go");
    let part = site.get("/cgi/long", "Range: bytes=200000-200019\r\n");
    assert_eq!(
        (part.status, part.text().as_str()),
        (206, "000020000\n000020001\n")
    );
    assert_eq!(
        part.header("content-range"),
        Some("bytes 200000-200019/300000")
    );
    assert_eq!(part.header("content-length"), Some("20"));
    let changed = site.get("/cgi/long", "Range: bytes=0-9\r\nIf-Range: \"b\"\r\n");
    assert_eq!((changed.status, changed.body.len()), (200, 300_000));
    let end = site.get("/cgi/short", "Range: bytes=-3\r\nAccept-Encoding: gzip\r\n");
    assert_eq!((end.status, end.text().as_str()), (206, "789"));
    let beyond = site.get("/cgi/short", "Range: bytes=10-\r\n");
    assert_eq!(
        (beyond.status, beyond.header("content-range")),
        (416, Some("bytes */10"))
    );
    let whole = site.get_in_two("/cgi/unknown", "Range: bytes=2-3\r\n", &fifo);
    assert_eq!((whole.status, whole.text().as_str()), (200, "0123456789"));
    site.hob.stop();
}

#[test]
fn file_is_sent_in_the_place_of_output() {
    let send = |field: &str| {
        format!(
            "printf 'Content-Type: application/x-report\\n{field}\\nSet-Cookie: a=b\\n\\nnot this'"
        )
    };
    let site = Site::new(&[
        (
            "own",
            &send("Script-Control: sendfile=DIR/files/report.txt"),
        ),
        ("alias", &send("X-Sendfile: DIR/files/report.txt")),
        ("dots", &send("X-Sendfile: DIR/cgi/../files/./report.txt")),
        (
            "status",
            &send("Status: 410 Gone\\nX-Sendfile: DIR/files/report.txt"),
        ),
        ("missing", &send("X-Sendfile: DIR/files/none.txt")),
        ("outside", &send("X-Sendfile: DIR/outside.txt")),
        ("upwards", &send("X-Sendfile: DIR/files/../outside.txt")),
        ("link", &send("X-Sendfile: DIR/files/link")),
        ("device", &send("X-Sendfile: /dev/zero")),
    ]);
    for (path, method) in [
        ("/cgi/own", "GET"),
        ("/cgi/alias", "GET"),
        ("/cgi/dots", "GET"),
        ("/cgi/own", "POST"),
    ] {
        let sent = site.call(method, path, "");
        assert_eq!((sent.status, sent.text().as_str()), (200, PAGE), "{path}");
        assert_eq!(sent.header("content-type"), Some("application/x-report"));
        assert_eq!(sent.header("set-cookie"), Some("a=b"));
        assert_eq!(sent.header("accept-ranges"), Some("bytes"));
    }
    let tag = site.get("/cgi/own", "").header("etag").unwrap().to_owned();
    let same = site.get("/cgi/own", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((same.status, same.header("content-type")), (304, None));
    let part = site.get("/cgi/own", "Range: bytes=4-9\r\n");
    assert_eq!((part.status, part.text().as_str()), (206, "kettle"));
    assert_eq!(part.header("content-type"), Some("application/x-report"));
    let gone = site.get(
        "/cgi/status",
        &format!("If-None-Match: {tag}\r\nRange: bytes=0-1\r\n"),
    );
    assert_eq!((gone.status, gone.text().as_str()), (410, PAGE));
    for (path, status) in [
        ("/cgi/missing", 404),
        ("/cgi/link", 404),
        ("/cgi/outside", 502),
        ("/cgi/upwards", 502),
        ("/cgi/device", 502),
    ] {
        let refused = site.get(path, "");
        assert_eq!(
            (refused.status, refused.text().as_str()),
            (status, "own page"),
            "{path}"
        );
        assert_eq!(
            refused.header("content-type"),
            Some("text/html; charset=utf-8")
        );
    }
    let outside = site.place.path("outside.txt");
    let record = site.record("/cgi/outside");
    assert_eq!(record["fault"], "script");
    assert_eq!(
        record["reason"],
        "sendfile: the file is below no folder of `sendfile`"
    );
    assert_eq!(record["detail"], outside.to_str().unwrap());
}

#[test]
fn other_path_of_the_site_is_answered_in_the_place_of_output() {
    let redirect = |field: &str| format!("printf '{field}\\nSet-Cookie: a=b\\n\\n'");
    let site = Site::new(&[
        (
            "own",
            &redirect("Script-Control: redirect=/inside/secret.html"),
        ),
        ("alias", &redirect("X-Accel-Redirect: /inside/secret.html")),
        ("local", "printf 'Location: /cgi/show/more?x=1\\n\\n'"),
        (
            "script",
            &redirect("X-Accel-Redirect: /cgi/show?from=script"),
        ),
        ("nowhere", &redirect("X-Accel-Redirect: /nowhere")),
        ("broken", &redirect("X-Accel-Redirect: /../up")),
        ("loop", &redirect("X-Accel-Redirect: /cgi/loop")),
        (
            "show",
            "printf 'Content-Type: text/plain\\n\\n'\n\
             echo \"$REQUEST_METHOD $SCRIPT_NAME$PATH_INFO $QUERY_STRING ${CONTENT_LENGTH:-none}\"",
        ),
    ]);
    assert_eq!(site.get("/inside/secret.html", "").status, 404);
    for path in ["/cgi/own", "/cgi/alias"] {
        let inside = site.get(path, "");
        assert_eq!(
            (inside.status, inside.text().as_str()),
            (200, "<p>secret</p>")
        );
        assert_eq!(
            inside.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert_eq!(inside.header("set-cookie"), Some("a=b"));
        let part = site.get(path, "Range: bytes=3-8\r\n");
        assert_eq!((part.status, part.text().as_str()), (206, "secret"));
    }
    for method in ["GET", "POST"] {
        let shown = site.call(method, "/cgi/script", "");
        assert_eq!(shown.text(), "GET /cgi/show from=script none\n");
        assert_eq!(shown.header("set-cookie"), Some("a=b"));
        let shown = site.call(method, "/cgi/local", "");
        assert_eq!(shown.text(), "GET /cgi/show/more x=1 none\n");
    }
    let nowhere = site.get("/cgi/nowhere", "");
    assert_eq!((nowhere.status, nowhere.text().as_str()), (404, "own page"));
    assert_eq!(site.get("/cgi/broken", "").status, 502);
    assert_eq!(site.get("/cgi/loop", "").status, 500);
    assert_eq!(site.place.counter("limit_redirects"), 1);
    let record = site.record("/cgi/loop");
    assert_eq!(
        record["reason"],
        "redirect: more than 10 internal redirects"
    );
}

#[test]
fn encoded_slash_in_a_place_a_program_names_separates_nothing() {
    let redirect = |path: &str| format!("printf 'X-Accel-Redirect: %s\\n\\n' '{path}'");
    let local = |path: &str| format!("printf 'Location: %s\\n\\n' '{path}'");
    let sendfile = |path: &str| format!("printf 'X-Sendfile: %s\\n\\n' 'DIR/{path}'");
    let show = "printf 'Content-Type: text/plain\\n\\n'\necho \"$SCRIPT_NAME|$PATH_INFO\"";
    let cases = [
        (redirect("/inside%2Fsecret.html"), 404, ""),
        (redirect("/inside/%2Fsecret.html"), 404, ""),
        (redirect("/inside/secret.html"), 200, "<p>secret</p>"),
        (redirect("/inside/..%2fcgi/show"), 502, ""),
        (
            redirect("/cgi//show//a%2fb/%252F"),
            200,
            "/cgi/show|//a/b/%2F\n",
        ),
        (local("/cgi/show/a%2fb//c?x=//"), 200, "/cgi/show|/a/b//c\n"),
        (local("/cgi%2Fshow"), 404, ""),
        (local("/cgi/show/%2F..%2f"), 502, ""),
        // Files are named as they are, not as in a URL.
        (sendfile("files/report.txt"), 200, PAGE),
        (sendfile("files/a%2Fb"), 200, "named so\n"),
        (sendfile("files/x%2F..%2Freport.txt"), 404, ""),
        (sendfile("files%2Freport.txt"), 502, ""),
        (sendfile("files/..%2Foutside.txt"), 404, ""),
    ];
    let names: Vec<String> = (0..cases.len())
        .map(|number| format!("n{number}"))
        .collect();
    let named = names.iter().zip(&cases);
    let mut scripts: Vec<(&str, &str)> = named.map(|(name, case)| (&**name, &*case.0)).collect();
    scripts.push(("show", show));
    let site = Site::new(&scripts);
    site.place.write("files/a%2Fb", "named so\n");
    for (name, (script, status, text)) in names.iter().zip(&cases) {
        let answer = site.get(&format!("/cgi/{name}"), "");
        assert_eq!(answer.status, *status, "{script}");
        if *status == 200 {
            assert_eq!(answer.text(), *text, "{script}");
        }
    }
    site.hob.stop();
}

#[test]
fn output_is_collected_when_the_program_wants_that() {
    let slow = |head: &str| {
        format!("printf '{head}Content-Type: text/plain\\n\\none '\nread line < DIR/go\nprintf two")
    };
    let site = Site::with(
        &[
            ("whole", &slow("Script-Control: buffer=on\\n")),
            ("pieces", &slow("")),
            (
                "large",
                "printf 'Script-Control: buffer=on\\nContent-Type: text/plain\\n\\n'\n\
                 i=0; while [ $i -lt 1000 ]; do printf 0123456789; i=$((i+1)); done",
            ),
        ],
        "",
        "buffer_max = 5000",
    );
    let fifo = made_fifo(&site.place, "go");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| site.get("/cgi/whole", ""));
        std::fs::write(&fifo, "go\n").unwrap();
        let whole = asked.join().unwrap();
        assert_eq!(whole.text(), "one two");
        assert_eq!(whole.header("content-length"), Some("7"));
    });
    let pieces = site.get_in_two("/cgi/pieces", "", &fifo);
    assert_eq!(pieces.text(), "one two");
    assert_eq!(pieces.header("content-length"), None);
    assert_eq!(site.get("/cgi/large", "").body.len(), 10_000);
    site.hob.stop();
}

#[test]
fn word_that_means_nothing_is_noted_in_the_record() {
    let site = Site::new(&[(
        "odd",
        "printf 'Script-Control: no-abort; compress=off\\nContent-Type: text/plain\\n\\n%s' \
         'the kettle is warm, the kettle is warm'",
    )]);
    let answer = site.get("/cgi/odd", "Accept-Encoding: gzip\r\n");
    assert_eq!(
        (answer.status, answer.header("content-encoding")),
        (200, None)
    );
    let record = site.record("/cgi/odd");
    assert_eq!(record["note"], "Script-Control: a word of it is not known");
    assert_eq!(record["fault"], "none");
}

#[test]
fn page_of_the_site_is_sent_where_a_program_has_no_words() {
    let scripts = [
        ("empty", "printf 'Status: 404\\nX-Why: none\\n\\n'"),
        (
            "words",
            "printf 'Status: 404\\nContent-Type: text/plain\\n\\nmy own words'",
        ),
        (
            "other",
            "printf 'Status: 403\\nContent-Type: text/plain\\n\\n'",
        ),
    ];
    for (route_keys, words) in [
        ("", "my own words"),
        ("intercept_errors = true", "own page"),
    ] {
        let site = Site::with(&scripts, "headers = { X-Rule = \"yes\" }", route_keys);
        let empty = site.get("/cgi/empty", "");
        assert_eq!((empty.status, empty.text().as_str()), (404, "own page"));
        assert_eq!(
            empty.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert_eq!(empty.header("x-why"), Some("none"));
        assert_eq!(site.get("/cgi/words", "").text(), words);
        let other = site.get("/cgi/other", "");
        assert_eq!((other.status, other.text().as_str()), (403, ""));
        let missing = site.get("/cgi/missing", "");
        assert_eq!((missing.status, missing.text().as_str()), (404, "own page"));
        for answer in [empty, other, missing] {
            assert_eq!(answer.header("x-rule"), Some("yes"));
        }
        site.hob.stop();
    }
}

#[test]
fn head_has_the_fields_of_get() {
    let site = Site::new(&[(
        "page",
        &format!(
            "printf 'Content-Type: text/html\\nETag: \"a\"\\n\\n{}'",
            PAGE.trim_end()
        ),
    )]);
    let asked = "Accept-Encoding: gzip\r\n";
    let (get, head) = (
        site.get("/cgi/page", asked),
        site.call("HEAD", "/cgi/page", asked),
    );
    assert_eq!(get.header("content-encoding"), Some("gzip"));
    for name in ["content-encoding", "etag", "vary", "content-type"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
    assert!(head.body.is_empty());
    site.hob.stop();
}
