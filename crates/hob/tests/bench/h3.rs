//! The same over HTTP/3: against aioquic, which also refuses and breaks.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::harness::{Place, is_root, text_of};
use super::others::certificate;
use super::{bench, number, result};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// aioquic's server; it ends with this value.
struct Aioquic {
    program: Child,
    port: u16,
    /// Its certificate is in there.
    _place: Place,
}

impl Drop for Aioquic {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Aioquic {
    /// None, with a line that says why, where it cannot be had.
    fn start() -> Option<Aioquic> {
        let install = Command::new("python3")
            .args([&format!("{FOLDER}/h3/client.py"), "install"])
            .output();
        if !install.as_ref().is_ok_and(|output| output.status.success()) {
            println!("skipped: aioquic cannot be installed: {install:?}");
            return None;
        }
        let place = Place::new();
        certificate(&place);
        let python = format!("{FOLDER}/../../../target/aioquic/bin/python");
        let mut program = Command::new(python)
            .arg(format!("{FOLDER}/bench/server.py"))
            .args([place.path("cert.pem"), place.path("key.pem")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut printed = BufReader::new(program.stdout.take().unwrap());
        printed.read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        Some(Aioquic {
            program,
            port,
            _place: place,
        })
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}/{path}", self.port)
    }
}

#[test]
fn aioquic_answers_refuses_and_breaks() {
    let Some(server) = Aioquic::start() else {
        return;
    };
    let fixed = ["--http3", "-c", "1", "-m", "3"];
    let body = server._place.path("cert.pem");
    let length = std::fs::metadata(&body).unwrap().len();
    let field = format!("header=x-received:{length}");
    let posted = [
        &server.url(""),
        "-n",
        "30",
        "--body",
        body.to_str().unwrap(),
    ];
    let expect = ["--expect", "size=1000", "--expect", &field];
    let good = result(&[&posted[..], &fixed[..], &expect].concat());
    assert_eq!(number(&good, "requests.good"), 30, "{good:#}");
    let refused = result(&[&[server.url("refuse").as_str(), "-n", "9"], &fixed[..]].concat());
    assert_eq!(number(&refused, "requests.good"), 9, "{refused:#}");
    assert_eq!(number(&refused, "requests.again"), 3);
    // Each good answer between shows that the run goes on.
    let fine = server.url("");
    for (path, kind, says) in [
        ("reset", "reset", "H3_INTERNAL_ERROR"),
        ("huge", "malformed", "longer than 64 KiB"),
        ("lie", "malformed", "not as long as"),
        ("broken", "malformed", "one of HTTP/2"),
        ("close", "closed", ""),
        ("never", "timeout", "3000 ms"),
    ] {
        let urls = [server.url(path), fine.clone()];
        let arguments = ["--http3", "-c", "1", "-n", "4", "--timeout"];
        let timeout = if path == "never" { "3s" } else { "30s" };
        let result = result(
            &[
                &urls.each_ref().map(String::as_str)[..],
                &arguments,
                &[timeout],
            ]
            .concat(),
        );
        let failures = result["failures"].as_array().unwrap();
        assert_eq!(failures[0]["kind"], kind, "{failures:?}");
        let first = failures[0]["first"].as_str().unwrap();
        assert!(first.contains(says), "{first}");
        assert_eq!(number(&result, "requests.good"), 2, "{path}: {result:#}");
    }
}

#[test]
fn nobody_there_and_what_cannot_be_asked_is_told() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let url = format!("https://127.0.0.1:{port}/");
    let output = bench(&[&url, "--http3", "-n", "1", "-c", "1", "--timeout", "2s"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    assert!(text_of(&output).contains("the first failure was connect: Connection refused"));
    let output = bench(&["http://127.0.0.1:1/", "--http3"]);
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
    assert!(
        text_of(&output).contains("over QUIC alone"),
        "{}",
        text_of(&output)
    );
}

/// `hob bench` where these names have these addresses; none, with a line that says why, where that
/// cannot be arranged.
fn bench_with_hosts(place: &Place, hosts: &str, arguments: &[&str]) -> Option<Output> {
    place.write("hosts", hosts);
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]);
        command.arg(place.path("hosts")).arg(program);
        command.args(arguments).stdin(Stdio::null()).output()
    };
    if !is_root() || !run("true", &[]).is_ok_and(|output| output.status.success()) {
        println!("skipped: only root can give this test a name with two addresses");
        return None;
    }
    let arguments = [&["bench"][..], arguments].concat();
    Some(run(env!("CARGO_BIN_EXE_hob"), &arguments).unwrap())
}

#[test]
fn every_address_of_a_name_is_tried() {
    let place = Place::new();
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.2:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n",
    );
    let url = format!("https://twins.test:{}/hello.txt", hob.tls_port());
    // Resolvers put the address first that is nearest to our own, whatever the order here.
    let both = "127.0.0.1 twins.test\n127.0.0.2 twins.test\n";
    for version in ["3", "2"] {
        let arguments = [&url, "--http", version, "-n", "4", "-c", "2", "--json"];
        let Some(output) = bench_with_hosts(&place, both, &arguments) else {
            return;
        };
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(number(&result, "requests.good"), 4, "{result:#}");
        assert_eq!(number(&result, "requests.failed"), 0);
        let address = format!("127.0.0.2:{}", hob.tls_port());
        assert_eq!(result["plan"]["address"], address.as_str());
        let neither = "127.0.0.1 twins.test\n127.0.0.3 twins.test\n";
        let output = bench_with_hosts(&place, neither, &arguments).unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
        let text = text_of(&output);
        assert!(text.contains("no server answers at 127.0.0."), "{text}");
    }
    hob.stop();
}
