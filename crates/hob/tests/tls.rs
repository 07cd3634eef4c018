//! TLS behind the real program, asked by curl, openssl and Python's ssl.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "tls/certificates.rs"]
mod certificates;
#[path = "tls/clients.rs"]
mod clients;
#[path = "tls/failures.rs"]
mod failures;
#[path = "tls/rules.rs"]
mod rules;
#[path = "watch/watcher.rs"]
mod watcher;

use std::process::{Command, Output, Stdio};

use harness::{Hob, text_of};

/// A config of a TLS listener on any port with these keys in its `tls`, and a site.
fn config(tls: &str, rest: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {tls}\n\n[[site]]\nroot = \"site\"\n{rest}"
    )
}

/// Runs curl to the server under a host name, whose certificate it must know.
fn curl(hob: &Hob, host: &str, target: &str, arguments: &[&str]) -> Output {
    let port = hob.tls_port();
    Command::new("curl")
        .args(["-sS", "--max-time", "60", "--noproxy", "*"])
        .args(["--resolve", &format!("{host}:{port}:127.0.0.1")])
        .args(arguments)
        .arg(format!("https://{host}:{port}{target}"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// What curl printed; it must have worked.
fn fetched(output: &Output) -> String {
    assert!(output.status.success(), "{}", text_of(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs `openssl s_client` with this input.
fn s_client(hob: &Hob, arguments: &[&str], input: &str) -> String {
    use std::io::Write;
    let mut child = Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            &format!("127.0.0.1:{}", hob.tls_port()),
        ])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    text_of(&child.wait_with_output().unwrap())
}
