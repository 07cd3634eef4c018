//! The same over TLS: handshakes, large bodies both ways, and a server that speaks none.

use std::os::unix::fs::PermissionsExt;

use super::harness::{self, Place, text_of};
use super::{bench, number, result};

const LISTENER: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n";

#[test]
fn sessions_are_resumed_unless_full_handshakes_are_asked_for() {
    let place = Place::new();
    let hob = place.serve_text(&format!("{LISTENER}[[site]]\nroot = \"site\"\n"));
    let url = format!("https://127.0.0.1:{}/hello.txt", hob.tls_port());
    for (arguments, full, resumed) in [
        (&["-c", "5"][..], 5, 0),
        (&["-c", "1", "--close"], 1, 19),
        (&["-c", "2", "-t", "2", "--close", "--tls", "full"], 20, 0),
    ] {
        let result =
            result(&[&[url.as_str(), "-n", "20", "--expect", "size=6"], arguments].concat());
        assert_eq!(number(&result, "requests.good"), 20, "{result:#}");
        assert_eq!(number(&result, "tls.full"), full, "{arguments:?}");
        assert_eq!(number(&result, "tls.resumed"), resumed, "{arguments:?}");
        let terms = result["tls"]["terms"].as_str().unwrap();
        assert!(terms.starts_with("TLSv1_3 TLS13_"), "{terms}");
    }
    hob.stop();
}

#[test]
fn large_bodies_pass_both_ways() {
    let place = Place::new();
    place.folder("cgi");
    place.write(
        "cgi/count",
        "#!/bin/sh\necho Content-Type: text/plain\necho\nwc -c\n",
    );
    let open = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("cgi/count"), open).unwrap();
    place.write("body", &"0123456789".repeat(100_000));
    let routes = "[[site]]\nroot = \"site\"\n[[site.route]]\npath = \"/cgi/*\"\n\
                  cgi = { dir = \"cgi\" }\nbody = \"64MiB\"\n";
    let hob = place.serve_text(&format!("{LISTENER}{routes}"));
    let origin = format!("https://127.0.0.1:{}", hob.tls_port());
    let size = format!("size={}", harness::BIG_BYTES);
    let down = result(&[
        &format!("{origin}/big.bin"),
        "-n",
        "3",
        "-c",
        "2",
        "--expect",
        &size,
    ]);
    assert_eq!(number(&down, "requests.good"), 3, "{down:#}");
    let body = place.path("body");
    let up = [
        &format!("{origin}/cgi/count"),
        "--body",
        body.to_str().unwrap(),
        "-n",
        "3",
    ];
    let up = result(&[&up[..], &["-c", "1", "--expect", "size=8"]].concat());
    assert_eq!(number(&up, "requests.good"), 3, "{up:#}");
    hob.stop();
}

#[test]
fn server_without_tls_is_told_of() {
    let place = Place::new();
    let hob = place.serve_config("");
    let url = format!("https://127.0.0.1:{}/", hob.port());
    let output = bench(&[&url, "-n", "2", "-c", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let text = text_of(&output);
    assert!(
        text.contains("no request was answered; the first failure was tls: "),
        "{text}"
    );
    hob.stop();
}
