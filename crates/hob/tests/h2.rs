//! HTTP/2 in clear text by prior knowledge, as curl and nghttp speak it: files and programs answer
//! over it as they do over HTTP/1.
#![allow(clippy::unwrap_used)]

mod harness;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::time::Instant;

use harness::{BIG_BYTES, Hob, Place, text_of};

/// Runs curl with HTTP/2 and nothing of the user's own settings.
fn curl(arguments: &[&str]) -> Output {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--http2-prior-knowledge", "--noproxy", "*"]);
    command.args(["--max-time", "60"]);
    command.args(arguments).output().unwrap()
}

fn body(arguments: &[&str]) -> String {
    let output = curl(arguments);
    assert!(output.status.success(), "{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn url(hob: &Hob, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", hob.port())
}

fn script(place: &Place, name: &str, text: &str) {
    if !place.path("cgi").exists() {
        place.folder("cgi");
    }
    place.write(name, text);
    std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(0o755)).unwrap();
}

const CGI: &str = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\nbody = \"64MiB\"\n";

#[test]
fn files_are_served_whole_with_their_fields() {
    let place = Place::new();
    let hob = place.serve_config("");
    let answer = body(&["-i", &url(&hob, "/hello.txt")]);
    assert!(answer.starts_with("HTTP/2 200 \r\n"), "{answer}");
    assert!(answer.contains("content-length: 6\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello\n"), "{answer}");
    assert_eq!(body(&[&url(&hob, "/big.bin")]).len(), BIG_BYTES);
    let range = body(&["-r", "16-31", &url(&hob, "/big.bin")]);
    assert_eq!(range, "0123456789abcde\n");
    let head = body(&["-I", &url(&hob, "/big.bin")]);
    assert!(
        head.contains(&format!("content-length: {BIG_BYTES}\r\n")),
        "{head}"
    );
    let missing = curl(&[
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        &url(&hob, "/missing"),
    ]);
    assert_eq!(text_of(&missing), "404");
    assert_eq!(place.counter("h2_connections"), 5);
    hob.stop();
}

#[test]
fn programs_answer_and_read_bodies() {
    let place = Place::new();
    script(
        &place,
        "cgi/say",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\nX-Way: %s\\n\\n' \"$SERVER_PROTOCOL\"\n\
         printf '%s %s %s ' \"$REQUEST_METHOD\" \"$HTTP_HOST\" \"$HTTP_COOKIE\"\nwc -c\n",
    );
    script(
        &place,
        "cgi/much",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nhead -c 3000000 /dev/zero\n",
    );
    let hob = place.serve_config_with("", CGI);
    let answer = body(&["-i", "-b", "a=b; c=d", &url(&hob, "/cgi/say")]);
    assert!(answer.contains("x-way: HTTP/2.0\r\n"), "{answer}");
    let host = format!("127.0.0.1:{}", hob.port());
    assert!(
        answer.ends_with(&format!("GET {host} a=b; c=d 0\n")),
        "{answer}"
    );
    // A body with its size, and one without.
    let big = format!("@{}", place.path("site/big.bin").display());
    let answer = body(&["--data-binary", &big, &url(&hob, "/cgi/say")]);
    assert!(answer.ends_with(&format!("{BIG_BYTES}\n")), "{answer}");
    let answer = body(&[
        "-T",
        &big[1..],
        "-H",
        "Content-Length:",
        "-X",
        "POST",
        &url(&hob, "/cgi/say"),
    ]);
    assert!(answer.ends_with(&format!("{BIG_BYTES}\n")), "{answer}");
    assert_eq!(body(&[&url(&hob, "/cgi/much")]).len(), 3_000_000);
    hob.stop();
}

/// What the `h2` crate, with its own settings, gets for a path: how many bytes each frame had.
async fn frames_of(hob: &Hob, path: &str) -> Vec<usize> {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", hob.port()));
    let (mut client, connection) = h2::client::handshake(stream.await.unwrap()).await.unwrap();
    let driver = tokio::task::spawn_local(async { connection.await.unwrap() });
    let request = http::Request::get(url(hob, path)).body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    let mut body = response.await.unwrap().into_body();
    let mut frames = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        frames.push(data.len());
    }
    drop((client, body));
    driver.await.unwrap();
    frames
}

#[test]
fn programs_that_write_ten_bytes_at_a_time_make_no_flood_of_tiny_frames() {
    const COUNT: usize = 5000;
    let place = Place::new();
    script(
        &place,
        "cgi/drip",
        "#!/usr/bin/python3\nimport os\n\
         os.write(1, b'Content-Type: text/plain\\n\\n')\n\
         for n in range(5000):\n    os.write(1, b'%09d\\n' % n)\n",
    );
    place.write(
        "cgi/drops.py",
        "def application(environ, start_response):\n\
         \x20   start_response('200 OK', [('Content-Type', 'text/plain')])\n\
         \x20   return (b'%09d\\n' % n for n in range(5000))\n",
    );
    let resident = "[[site.route]]\npath = \"/drops\"\n\
                    resident = { wsgi = \"drops:application\", dir = \"cgi\" }\n";
    let hob = place.serve_config_with("", &[CGI, resident].concat());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    for path in ["/cgi/drip", "/drops"] {
        let begin = Instant::now();
        let local = tokio::task::LocalSet::new();
        let frames = local.block_on(&runtime, frames_of(&hob, path));
        let took_ms = begin.elapsed().as_millis() as usize;
        assert_eq!(frames.iter().sum::<usize>(), 10 * COUNT, "{path}");
        let tiny = frames.iter().filter(|bytes| **bytes < 256).count();
        // So many may leave at once; a busy machine has time for some more.
        assert!(tiny <= 100 + took_ms / 2, "{path}: {frames:?}");
    }
    hob.stop();
}

#[test]
fn nghttp_gets_many_streams_side_by_side() {
    let place = Place::new();
    let hob = place.serve_config("");
    let address = url(&hob, "/hello.txt");
    let big = url(&hob, "/big.bin");
    let mut command = Command::new("nghttp");
    command.args(["-n", "-s", "-m", "40", &address, &big]);
    let output = command.output().unwrap();
    let text = text_of(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches(" 200 ").count(), 80, "{text}");
    hob.stop();
}

#[test]
fn log_says_http_2_and_stop_lets_a_download_end() {
    let place = Place::new();
    let log = format!(
        "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"{}\"\nformat = \"json\"\n",
        place.path("run/access.log").display()
    );
    let hob = place.serve_config(&log);
    let address = url(&hob, "/big.bin");
    let download = std::thread::spawn(move || body(&["--limit-rate", "40M", &address]).len());
    place.wait_for_counter("h2_connections", 1);
    hob.stop();
    assert_eq!(download.join().unwrap(), BIG_BYTES);
    let log = std::fs::read_to_string(place.path("run/access.log")).unwrap();
    assert!(
        log.contains("HTTP/2.0") && log.contains("/big.bin"),
        "{log}"
    );
}
