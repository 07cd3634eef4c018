//! HTTP/2 in clear text by prior knowledge, as curl and nghttp speak it: files and programs answer
//! over it as they do over HTTP/1.
#![allow(clippy::unwrap_used)]

mod harness;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use harness::{BIG_BYTES, BIG_LINE, DEADLINE, Hob, Place, text_of};
use rustix::process::Signal;

/// curl with HTTP/2 and nothing of the user's own settings.
fn curl_command(arguments: &[&str]) -> Command {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--http2-prior-knowledge", "--noproxy", "*"]);
    command.args(["--max-time", "60"]).args(arguments);
    command
}

fn curl(arguments: &[&str]) -> Output {
    curl_command(arguments).output().unwrap()
}

fn body(arguments: &[&str]) -> String {
    let output = curl(arguments);
    assert!(output.status.success(), "{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn url(hob: &Hob, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", hob.port())
}

const CGI: &str = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\nbody = \"64MiB\"\n";

#[test]
fn files_are_served_whole_with_their_fields() {
    let place = Place::new();
    place.fill_big();
    let hob = place.serve_config("");
    let answer = body(&["-i", &url(&hob, "/hello.txt")]);
    assert!(answer.starts_with("HTTP/2 200 \r\n"), "{answer}");
    assert!(answer.contains("content-length: 6\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello\n"), "{answer}");
    assert_eq!(body(&[&url(&hob, "/big.bin")]).len(), BIG_BYTES);
    let range = body(&["-r", "16-31", &url(&hob, "/big.bin")]);
    assert_eq!(range, BIG_LINE);
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
    place.script(
        "cgi/say",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\nX-Way: %s\\n\\n' \"$SERVER_PROTOCOL\"\n\
         printf '%s %s %s ' \"$REQUEST_METHOD\" \"$HTTP_HOST\" \"$HTTP_COOKIE\"\nwc -c\n",
    );
    place.script(
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
    place.script(
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

/// A download whose last bytes were said to be in memory before they could be sent.
#[test]
fn file_written_to_while_its_client_has_no_window_is_not_whole() {
    const WINDOW_BYTES: u32 = 30_000;
    let place = Place::new();
    let off = "[[site.route]]\npath = \"/*\"\nfiles = { root = \"site\", cache = \"off\" }\n";
    place.write("site/file.bin", &"a".repeat(60_000));
    let hob = place.serve_config_with("", off);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let came = async {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", hob.port()));
        let mut client = h2::client::Builder::new();
        let client = client.initial_window_size(WINDOW_BYTES);
        let (mut client, connection) = client
            .handshake::<_, bytes::Bytes>(stream.await.unwrap())
            .await
            .unwrap();
        tokio::task::spawn_local(connection);
        let request = http::Request::get(url(&hob, "/file.bin")).body(()).unwrap();
        let (response, _) = client.send_request(request, true).unwrap();
        let mut body = response.await.unwrap().into_body();
        let mut came = Vec::new();
        while came.len() < WINDOW_BYTES as usize {
            came.extend(body.data().await.unwrap().unwrap());
        }
        place.write("site/file.bin", &"b".repeat(60_000));
        body.flow_control().release_capacity(came.len()).unwrap();
        while let Some(data) = body.data().await {
            match data {
                Ok(data) => came.extend(data),
                Err(error) => return Err(error.reason()),
            }
        }
        Ok(came.len())
    };
    let came = tokio::task::LocalSet::new().block_on(&runtime, came);
    assert_eq!(came, Err(Some(h2::Reason::INTERNAL_ERROR)));
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
    let mut hob = place.serve_config(&log);
    let mut curl = curl_command(&["-N", &url(&hob, "/big.bin")]);
    let mut curl = curl.stdout(Stdio::piped()).spawn().unwrap();
    let mut body = curl.stdout.take().unwrap();
    // The answer has begun, and cannot end before the rest is read.
    body.read_exact(&mut [0]).unwrap();
    hob.signal(Signal::TERM);
    hob.wait_for("stopping");
    let mut rest = vec![];
    body.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), BIG_BYTES - 1);
    assert!(curl.wait().unwrap().success());
    assert_eq!(hob.exit_code(), Some(0), "{}", hob.printed());
    let log = std::fs::read_to_string(place.path("run/access.log")).unwrap();
    assert!(
        log.contains("HTTP/2.0") && log.contains("/big.bin"),
        "{log}"
    );
}

/// A frame, as a client sends it.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

#[test]
fn client_that_ends_its_side_gets_what_its_windows_let_through_and_is_closed() {
    const WINDOW_BYTES: usize = 65_535;
    let place = Place::new();
    let limits = "[limits]\nwrite_progress = \"1h\"\nidle = \"1h\"\n";
    let hob = place.serve_config(limits);
    let mut connection = TcpStream::connect(("127.0.0.1", hob.port())).unwrap();
    connection.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut input = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    input.extend(frame(4, 0, 0, &[]));
    for stream in [1, 3] {
        // GET, http, then authority and path without a table.
        let mut block = vec![0x82, 0x86, 0x01, 1, b'h', 0x04, 8];
        block.extend(b"/big.bin");
        input.extend(frame(1, 5, stream, &block));
    }
    connection.write_all(&input).unwrap();
    connection.shutdown(std::net::Shutdown::Write).unwrap();
    // It ends: nothing waits for windows that nobody will open any more.
    let mut output = Vec::new();
    connection.read_to_end(&mut output).unwrap();
    let (mut rest, mut bytes, mut cancelled) = (&output[..], 0, Vec::new());
    while let Some((header, after)) = rest.split_first_chunk::<9>() {
        let len = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        match header[3] {
            0 => bytes += len,
            3 => cancelled.push((header[8], after[..4].to_vec())),
            _ => {}
        }
        rest = &after[len..];
    }
    assert_eq!(bytes, WINDOW_BYTES);
    cancelled.sort();
    assert_eq!(cancelled, [(1, vec![0, 0, 0, 8]), (3, vec![0, 0, 0, 8])]);
    hob.stop();
}
