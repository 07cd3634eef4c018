//! Certificates from an authority behind the real program: a real Pebble, which refuses one nonce
//! in five, and curl with Pebble's root.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "acme/authority.rs"]
mod authority;
#[path = "acme/processes.rs"]
mod processes;
#[path = "acme/proofs.rs"]
mod proofs;
#[path = "acme/renewal.rs"]
mod renewal;
#[path = "acme/store.rs"]
mod store;
#[path = "acme/trouble.rs"]
mod trouble;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use authority::Authority;
use harness::{DEADLINE, Hob, Place, text_of};
use serde_json::Value;

const CLEAR_TEXT: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n\n";
const TLS: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n";

/// A site with these names and an automatic certificate.
fn site(names: &str) -> String {
    format!("[[site]]\nnames = {names}\nroot = \"site\"\ntls = \"auto\"\n")
}

/// Two listeners, `[acme]`, and a site for `one.example.test`.
fn config(authority: &Authority, keys: &str) -> String {
    let acme = authority.keys(keys);
    let site = site("[\"one.example.test\"]");
    format!("{CLEAR_TEXT}{TLS}{acme}\n{site}")
}

/// Serves, and opens the authority's gates to the listeners.
fn serve(place: &Place, authority: &Authority, text: &str) -> Hob {
    let hob = place.serve_text(text);
    if text.contains(CLEAR_TEXT) {
        authority.http.lead_to(hob.port());
    }
    authority.tls.lead_to(hob.tls_port());
    hob
}

/// Has the running program read its config again.
fn reload(place: &Place) {
    let output = place.run(&["reload"]);
    assert!(output.status.success(), "{}", text_of(&output));
}

/// Has the first certificate of a host renewed, and waits until the second is shown.
fn renew(place: &Place, hob: &Hob, authority: &Authority, host: &str, before: &str) {
    authority.want_renewal_of(before);
    reload(place);
    hob.wait_for_count("a certificate was got", 2);
    wait_until_shown_differs(hob, host, before);
}

/// An order that has failed.
struct Failed {
    /// What was printed of it.
    line: String,
    /// The certificate shown before it.
    before: String,
    /// How many certificates were got until then.
    got: usize,
}

/// Leads proofs nowhere and reloads until an order has failed; `want` has another certificate than
/// the one shown wanted. In one order of a hundred Pebble takes a proof that it knows, whatever it
/// is told, and such an order goes well.
fn fail_an_order(
    place: &Place,
    hob: &Hob,
    authority: &Authority,
    host: &str,
    want: impl Fn(&str),
) -> Failed {
    authority.http.close();
    let until = Instant::now() + DEADLINE;
    let mut before = shown(hob, host);
    for got in 1.. {
        want(&before);
        reload(place);
        let mut printed = hob.printed();
        while printed.matches("a certificate was got").count() == got {
            if let Some(line) = printed
                .lines()
                .find(|line| line.contains("no certificate: "))
            {
                let line = line.to_owned();
                return Failed { line, before, got };
            }
            assert!(Instant::now() < until, "{printed}");
            printed = hob.printed();
        }
        wait_until_shown_differs(hob, host, &before);
        before = shown(hob, host);
    }
    unreachable!("there is no last number");
}

/// Runs curl to the TLS listener under a host name, believing the authority's root.
fn curl(hob: &Hob, authority: &Authority, host: &str) -> Output {
    let port = hob.tls_port();
    Command::new("curl")
        .args(["-sS", "--max-time", "60", "--noproxy", "*"])
        .args(["--resolve", &format!("{host}:{port}:127.0.0.1")])
        .arg("--cacert")
        .arg(authority.root())
        .arg(format!("https://{host}:{port}/hello.txt"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Waits until a client that knows the authority is content with what a host shows.
fn wait_until_trusted(hob: &Hob, authority: &Authority, host: &str) {
    let until = Instant::now() + DEADLINE;
    loop {
        let output = curl(hob, authority, host);
        if output.status.success() {
            assert_eq!(output.stdout, b"hello\n");
            return;
        }
        let said = text_of(&output);
        assert!(Instant::now() < until, "{said}\n{}", hob.printed());
    }
}

/// The certificate that a host shows, as PEM.
fn shown(hob: &Hob, host: &str) -> String {
    let output = Command::new("openssl")
        .args(["s_client", "-servername", host, "-connect"])
        .arg(format!("127.0.0.1:{}", hob.tls_port()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = text.find("-----BEGIN CERTIFICATE-----").unwrap();
    let end = text.find("-----END CERTIFICATE-----").unwrap();
    format!("{}-----END CERTIFICATE-----\n", &text[begin..end])
}

/// Waits until a host shows another certificate than this.
fn wait_until_shown_differs(hob: &Hob, host: &str, before: &str) {
    let until = Instant::now() + DEADLINE;
    while shown(hob, host) == before {
        assert!(Instant::now() < until, "{}", hob.printed());
    }
}

/// Waits until `hob status` says this of the certificate it names first.
fn wait_for_state(place: &Place, is_it: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + DEADLINE;
    loop {
        let state = place.status()["certificates"][0].clone();
        if is_it(&state) {
            return state;
        }
        assert!(Instant::now() < until, "{state}");
    }
}

/// What went wrong, as `hob status` says.
fn error_of(place: &Place) -> String {
    let state = wait_for_state(place, |state| state["state"] == "failed");
    state["error"].as_str().unwrap().to_owned()
}

/// Where certificates are kept.
fn kept(place: &Place) -> PathBuf {
    let mut folders = std::fs::read_dir(place.path("run/hob/acme")).unwrap();
    let folder = folders.next().unwrap().unwrap().path();
    assert!(folders.next().is_none());
    folder
}
