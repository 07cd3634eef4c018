//! HTTP/3 behind the real program, asked by aioquic, which shares no line with it
//! (`h3/client.py`).
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "h3/changes.rs"]
mod changes;
#[path = "h3/limits.rs"]
mod limits;
#[path = "h3/sockets.rs"]
mod sockets;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use harness::{Hob, Place, datagram_port, text_of};

/// A config of a TLS listener on any port with these keys in its `tls`, and a site.
fn config(keys: &str, tls: &str, rest: &str) -> String {
    format!(
        "{keys}\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {tls}\n\n\
         [[site]]\nroot = \"site\"\n{rest}"
    )
}

fn client_path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/h3/client.py"))
}

/// False, with a line that says why, where the client cannot be had.
fn has_client() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let install = Command::new("python3")
            .arg(client_path())
            .arg("install")
            .output();
        match install {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(text_of(&output)),
            Err(error) => Some(error.to_string()),
        }
    });
    if let Some(reason) = reason {
        println!("skipped: aioquic cannot be installed: {reason}");
    }
    reason.is_none()
}

fn client(hob: &Hob, arguments: &[&str]) -> Command {
    let python = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/aioquic/bin/python"
    );
    let mut command = Command::new(python);
    command.arg(client_path()).arg(hob.tls_port().to_string());
    command.args(arguments);
    command
}

/// Runs a case of the client to its end; it must be content. Returns what it printed.
fn run(hob: &Hob, arguments: &[&str]) -> String {
    let output: Output = client(hob, arguments).output().unwrap();
    let printed = hob.printed();
    assert!(output.status.success(), "{}\n{printed}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Begins a case of the client that waits for a line of input.
fn begin(hob: &Hob, arguments: &[&str]) -> Begun {
    begin_from(hob, "127.0.0.1", arguments)
}

/// The same from another address of ours.
fn begin_from(hob: &Hob, address: &str, arguments: &[&str]) -> Begun {
    use std::io::{BufRead, BufReader};
    let mut child = client(hob, arguments)
        .env("ADDRESS", address)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    Begun { child, output }
}

/// A client that has begun to fetch something and waits.
struct Begun {
    child: Child,
    output: std::io::BufReader<std::process::ChildStdout>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        // One that has ended is no more there to be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Begun {
    /// Lets it take the rest, which must be whole. Returns what it printed.
    fn finish(mut self) -> String {
        use std::io::{Read, Write};
        let mut input = self.child.stdin.take().unwrap();
        input.write_all(b"\n").unwrap();
        drop(input);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        rest
    }
}

fn site(place: &Place) -> String {
    place.path("site").display().to_string()
}

const CGI: &str = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\nbody = \"64MiB\"\n";

#[test]
fn files_are_served_whole_one_by_one_and_side_by_side() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.write("site/page.txt", &"a page of text\n".repeat(7000));
    let hob = place.serve_text(&config("", "true", ""));
    let site = site(&place);
    run(&hob, &["files", &site, "hello.txt", "page.txt"]);
    run(&hob, &["sixty", &site, "hello.txt", "page.txt"]);
    hob.stop();
}

#[test]
fn record_and_variables_say_what_was_spoken() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.script(
        "cgi/env",
        "#!/bin/sh\necho Content-Type: text/plain\necho\n\
         echo $SERVER_PROTOCOL $REQUEST_SCHEME $HTTPS $SSL_PROTOCOL $HTTP_HOST $REMOTE_ADDR\n",
    );
    let keys = "default_log = \"a\"\n[[log]]\nname = \"a\"\nfile = \"access.log\"\nformat = \"{protocol} {tls_version} {status} {target}\"\n";
    let hob = place.serve_text(&config(keys, "true", CGI));
    let told = run(&hob, &["fetch", "/hello.txt", "/missing", "/cgi/env"]);
    assert!(
        told.contains("HTTP/3.0 https on TLSv1.3 localhost 127.0.0.1"),
        "{told}"
    );
    assert!(told.contains("\"content-length\": \"6\""), "{told}");
    assert!(told.contains("\":status\": \"404\""), "{told}");
    assert_eq!(place.counter("h3_connections"), 1);
    hob.stop();
    let log = std::fs::read_to_string(place.path("access.log")).unwrap();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(
        lines,
        [
            "HTTP/3.0 TLSv1.3 200 /hello.txt",
            "HTTP/3.0 TLSv1.3 404 /missing",
            "HTTP/3.0 TLSv1.3 200 /cgi/env"
        ]
    );
}

#[test]
fn bodies_go_both_ways_at_the_speed_of_the_slower_side() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.write("site/page.txt", &"a page of text\n".repeat(7000));
    place.script(
        "cgi/count",
        "#!/bin/sh\necho Content-Type: text/plain\necho\nwc -c\n",
    );
    place.script(
        "cgi/lines",
        "#!/bin/sh\necho Content-Type: text/plain\necho\nwc -l\n",
    );
    let hob = place.serve_text(&config("", "true", CGI));
    let told = run(&hob, &["upload", "/cgi/count", "20000000"]);
    assert_eq!(told, "200 20000000\n");
    assert_eq!(run(&hob, &["echo", "/cgi/lines"]), "200 20\n");
    run(&hob, &["tiny", &site(&place), "page.txt"]);
    hob.stop();
}

#[test]
fn program_that_does_not_read_stops_its_client_and_no_other_request() {
    if !has_client() {
        return;
    }
    const WINDOW_BYTES: usize = 256 * 1024;
    // Held for the program: in the server, and in its pipe.
    const HELD_BYTES: usize = 3 * 64 * 1024;
    let place = Place::new();
    place.script(
        "cgi/later",
        "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.05; done\n\
         echo Content-Type: text/plain\necho\nwc -c\n",
    );
    let hob = place.serve_text(&config("", "true", CGI));
    let go = place.path("cgi/go");
    let told = run(
        &hob,
        &[
            "unread",
            "/cgi/later",
            "4000000",
            "/hello.txt",
            go.to_str().unwrap(),
        ],
    );
    let (sent, answer) = told.split_once('\n').unwrap();
    let sent: usize = sent.parse().unwrap();
    assert!(
        (WINDOW_BYTES..=WINDOW_BYTES + HELD_BYTES).contains(&sent),
        "{sent}"
    );
    assert_eq!(answer, "200 4000000\n");
    hob.stop();
}

/// CPU time of the server so far, in milliseconds.
fn server_cpu_ms(hob: &Hob) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", hob.servers()[0])).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split(' ').collect();
    let ticks: u64 = fields[12..14]
        .iter()
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    ticks * 1000 / rustix::param::clock_ticks_per_second()
}

#[test]
fn client_that_does_not_take_an_early_answer_costs_nothing() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.script(
        "cgi/early",
        "#!/bin/sh\nexec <&-\necho Content-Type: text/plain\necho\necho early\n",
    );
    let text = config("[limits]\nbody_progress = \"1s\"\n", "true", CGI);
    let hob = place.serve_text(&text);
    let before = server_cpu_ms(&hob);
    let told = run(&hob, &["unfinished", "/cgi/early", "3"]);
    assert_eq!(told, "['200', '200', '200']\n");
    let used = server_cpu_ms(&hob) - before;
    assert!(used < 500, "{used} ms");
    assert_eq!(place.counter("limit_body_progress"), 0);
    hob.stop();
}

#[test]
fn program_is_asked_when_the_head_comes_in_pieces() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.script(
        "cgi/short",
        "#!/bin/sh\necho Content-Type: text/plain\necho\n",
    );
    let hob = place.serve_text(&config("", "true", CGI));
    let cuts = run(&hob, &["pieces", "/cgi/short"]);
    assert!(cuts.trim().parse::<u32>().unwrap() > 60, "{cuts}");
    hob.stop();
}

#[test]
fn many_programs_that_do_not_read_hold_up_no_other_request() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.script(
        "cgi/later",
        "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.5; done\n\
         echo Content-Type: text/plain\necho\nwc -c\n",
    );
    let hob = place.serve_text(&config("", "true", CGI));
    let go = place.path("cgi/go");
    // Together 15 MiB are left unread, which is more than the usual window of a connection.
    let (count, size) = (60, "400000");
    let told = run(
        &hob,
        &[
            "many_unread",
            "/cgi/later",
            &count.to_string(),
            size,
            "/hello.txt",
            go.to_str().unwrap(),
        ],
    );
    assert_eq!(told, format!("200 {size}\n").repeat(count));
    hob.stop();
}

#[test]
fn requests_taken_back_and_changed_keys_harm_no_other_request() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.write("site/page.txt", &"a page of text\n".repeat(70_000));
    let hob = place.serve_text(&config("", "true", ""));
    run(&hob, &["resets", "/big.bin", "/hello.txt"]);
    run(&hob, &["keys", "/page.txt"]);
    run(&hob, &["resume", "/hello.txt"]);
    // There is no 0-RTT: a ticket promises none, and what is sent all the same is not taken.
    let told = run(&hob, &["early", "/hello.txt"]);
    assert_eq!(told, "None\nTrue True False\n");
    place.wait_for_counter("tls_resumed", 2);
    hob.stop();
}

#[test]
fn malformed_requests_lose_their_stream_and_broken_protocol_its_connection() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    let hob = place.serve_text(&config("", "true", ""));
    run(&hob, &["malformed"]);
    assert_eq!(place.counter("bad_request"), 18);
    run(&hob, &["unknown"]);
    assert_eq!(place.counter("h3_errors"), 0);
    run(&hob, &["broken"]);
    assert_eq!(place.counter("h3_errors"), 19);
    hob.stop();
}

#[test]
fn certificate_is_the_one_for_the_name() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    for name in ["one", "usual"] {
        place.certificate(name, &format!("{name}.test"));
    }
    let sites = "[[site]]\nnames = [\"one.test\"]\nroot = \"site\"\n\
         tls = { certificate = \"one.pem\", key = \"one.key\" }\n";
    let usual = "{ certificate = \"usual.pem\", key = \"usual.key\" }";
    let hob = place.serve_text(&config("", usual, sites));
    let told = run(&hob, &["named", "one.test", "other.test"]);
    assert_eq!(told, "CN=one.test\nCN=usual.test\n");
    hob.stop();
}

#[test]
fn client_shows_its_certificate_where_a_site_requires_one() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.certificate("ca", "ca.test");
    place.script("cgi/who",
        "#!/bin/sh\necho Content-Type: text/plain\necho\necho $SSL_CLIENT_VERIFY $SSL_CLIENT_S_DN\n",
    );
    let closed = format!(
        "[[site]]\nnames = [\"closed.test\"]\nroot = \"site\"\n\
         tls = {{ client = \"require\", client_ca = \"ca.pem\" }}\n{CGI}"
    );
    let hob = place.serve_text(&config("", "\"self-signed\"", &closed));
    let path = |name: &str| place.path(name).display().to_string();
    sign_client(&place);
    let (own, key) = (path("client.pem"), path("client.key"));
    let shown = ["certified", "/cgi/who", "closed.test", &own, &key];
    assert_eq!(run(&hob, &shown), "SUCCESS CN=client\n");
    assert_eq!(
        run(&hob, &["certified", "/cgi/who", "closed.test"]),
        "refused\n"
    );
    assert_eq!(
        run(&hob, &["certified", "/hello.txt", "open.test"]),
        "hello\n"
    );
    hob.stop();
}

/// Makes `client.pem` and `client.key`, signed by `ca`.
fn sign_client(place: &Place) {
    let path = |name: &str| place.path(name).display().to_string();
    place.write(
        "client.ext",
        "basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n",
    );
    let run = |arguments: &[&str]| {
        let made = Command::new("openssl").args(arguments).output().unwrap();
        assert!(made.status.success(), "{}", text_of(&made));
    };
    let (key, request, signed) = (path("client.key"), path("client.csr"), path("client.pem"));
    let (ca, ca_key, extensions) = (path("ca.pem"), path("ca.key"), path("client.ext"));
    let curve = "ec_paramgen_curve:prime256v1";
    let key_args = ["req", "-newkey", "ec", "-pkeyopt", curve, "-nodes"];
    run(&[
        &key_args[..],
        &["-subj", "/CN=client", "-keyout", &key, "-out", &request],
    ]
    .concat());
    let sign = [
        "x509", "-req", "-in", &request, "-CA", &ca, "-CAkey", &ca_key,
    ];
    let with = [
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        &extensions,
        "-out",
        &signed,
    ];
    run(&[&sign[..], &with].concat());
}

#[test]
fn answers_over_tcp_tell_of_it_unless_it_is_off() {
    let place = Place::new();
    let fields = |hob: &Hob, protocol: &str| {
        let output = Command::new("curl")
            .args([
                "-q",
                "-sSik",
                "--noproxy",
                "*",
                "--max-time",
                "60",
                protocol,
            ])
            .arg(format!("https://127.0.0.1:{}/hello.txt", hob.tls_port()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text_of(&output));
        String::from_utf8(output.stdout).unwrap().to_lowercase()
    };
    let hob = place.serve_text(&config("", "true", ""));
    let told = format!("\r\nalt-svc: h3=\":{}\"; ma=86400\r\n", hob.tls_port());
    for protocol in ["--http1.1", "--http2"] {
        let answer = fields(&hob, protocol);
        assert!(answer.contains(&told), "{answer}");
    }
    // Clients may reach it under another port; what is told changes without a restart.
    let other = config("", "{ http3_port = 4433 }", "");
    place.write("hob.toml", &other);
    hob.signal(rustix::process::Signal::HUP);
    hob.wait_for("reloaded, generation 2");
    let answer = fields(&hob, "--http1.1");
    let told = "\r\nalt-svc: h3=\":4433\"; ma=86400\r\n";
    assert!(answer.contains(told), "{answer}");
    hob.stop();
    let off = place.serve_text(&config("", "{ http3 = false }", ""));
    let answer = fields(&off, "--http1.1");
    assert!(!answer.contains("alt-svc"), "{answer}");
    let udp = std::net::UdpSocket::bind(("127.0.0.1", off.tls_port()));
    assert!(udp.is_ok(), "the port is free");
    off.stop();
}

#[test]
fn udp_port_that_is_taken_stops_the_start_by_name() {
    let place = Place::new();
    // A port that is free for TCP and taken for UDP.
    let (taken, address) = datagram_port();
    let text = config("", "true", "").replace("127.0.0.1:0", &address);
    place.write("hob.toml", &text);
    let output = place.run(&["serve", "--config", "hob.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text_of(&output);
    let named = format!("cannot bind to {address} for HTTP/3 (UDP)");
    assert!(said.contains(&named), "{said}");
    assert!(said.contains("set `http3 = false` in `tls`"), "{said}");
    drop(taken);
}
