//! Certificates from an authority behind the real program: a real Pebble, which refuses one nonce in
//! five, and curl with Pebble's root.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "acme/authority.rs"]
mod authority;

use std::process::{Command, Output, Stdio};
use std::time::Instant;

use authority::Authority;
use harness::{DEADLINE, Hob, Place, text_of};

/// Listeners on any ports, `[acme]`, and a site.
fn config(acme: &str, site: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n\
         {acme}\n[[site]]\nroot = \"site\"\ntls = \"auto\"\n{site}"
    )
}

/// Serves, and opens the authority's gates to the listeners.
fn serve(place: &Place, authority: &Authority, text: &str) -> Hob {
    let hob = place.serve_text(text);
    if text.contains("\n[[listen]]\naddress = \"127.0.0.1:0\"\n\n")
        || text.starts_with("[[listen]]\naddress = \"127.0.0.1:0\"\n\n")
    {
        authority.http.lead_to(hob.port());
    }
    authority.tls.lead_to(hob.tls_port());
    hob
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
        assert!(
            Instant::now() < until,
            "{}\n{}",
            text_of(&output),
            hob.printed()
        );
    }
}

#[test]
fn certificate_is_got_over_http_and_served() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let site = "names = [\"one.example.test\", \"two.example.test\"]\nhttps_only = true\n";
    let hob = serve(&place, &authority, &config(&authority.keys(""), site));
    hob.wait_for("a certificate was got");
    for host in ["one.example.test", "two.example.test"] {
        wait_until_trusted(&hob, &authority, host);
    }
    hob.stop();
}
