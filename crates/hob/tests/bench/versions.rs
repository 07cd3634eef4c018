//! What is the same over TLS in every version of HTTP, with hob as the server: counts, handshakes,
//! large bodies both ways; and a server that speaks none.

use std::os::unix::fs::PermissionsExt;

use super::harness::{self, Hob, Place, text_of};
use super::{bench, number, result};

const LISTENER: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n";
const SITE: &str = "[[site]]\nroot = \"site\"\n";

/// Serves the site with these routes over TLS; says where.
fn serve(place: &Place, routes: &str) -> (Hob, String) {
    let hob = place.serve_text(&format!("{LISTENER}{SITE}{routes}"));
    let origin = format!("https://127.0.0.1:{}", hob.tls_port());
    (hob, origin)
}

#[test]
fn counts_are_those_of_the_server_however_requests_share_connections() {
    let place = Place::new();
    let (hob, origin) = serve(&place, "");
    let url = format!("{origin}/hello.txt");
    for (protocol, arguments) in [
        ("h2", &["--http", "2", "-c", "2", "-m", "10"][..]),
        ("h2", &["--http2", "-c", "3"]),
        ("h2", &["--http", "2", "--close", "-c", "2"]),
        (
            "h2",
            &[
                "--http", "2", "-c", "4", "-m", "50", "-t", "2", "--rate", "100000",
            ],
        ),
        ("h3", &["--http", "3", "-c", "2", "-m", "10"]),
        ("h3", &["--http3", "-c", "3"]),
        (
            "h3",
            &[
                "--http3", "-c", "4", "-m", "5", "-t", "2", "--rate", "100000",
            ],
        ),
    ] {
        let before = place.counter("requests");
        let result = result(&[&[url.as_str(), "--count", "100"], arguments].concat());
        for (path, wanted) in [
            ("requests.due", 100),
            ("requests.good", 100),
            ("requests.failed", 0),
            ("requests.again", 0),
            ("bytes.bodies", 600),
            ("latency.response.count", 100),
        ] {
            assert_eq!(number(&result, path), wanted, "{path} with {arguments:?}");
        }
        assert_eq!(result["plan"]["protocol"], protocol);
        place.wait_for_counter("requests", before + 100);
    }
    hob.stop();
}

#[test]
fn sessions_are_resumed_unless_full_handshakes_are_asked_for() {
    let place = Place::new();
    let (hob, origin) = serve(&place, "");
    let url = format!("{origin}/hello.txt");
    let kept = (&["--http", "1", "-c", "5"][..], 5, 0);
    let threads = [
        "--http", "1", "-c", "2", "-t", "2", "--close", "--tls", "full",
    ];
    let one = ["-c", "1", "--close", "--http"];
    let resumed = ["1", "2", "3"].map(|http| ([&one[..], &[http]].concat(), 1, 9));
    let full = ["2", "3"].map(|http| ([&one[..], &[http, "--tls", "full"]].concat(), 10, 0));
    let each = resumed.iter().chain(&full);
    let each = each.map(|(arguments, full, resumed)| (&arguments[..], *full, *resumed));
    for (arguments, full, resumed) in [kept, (&threads, 10, 0)].into_iter().chain(each) {
        let asked = [url.as_str(), "-n", "10", "--expect", "size=6"];
        let result = result(&[&asked, arguments].concat());
        assert_eq!(number(&result, "requests.good"), 10, "{result:#}");
        let handshakes = ["full", "resumed"].map(|kind| number(&result, &format!("tls.{kind}")));
        assert_eq!(handshakes, [full, resumed], "{arguments:?}");
        assert_eq!(number(&result, "connections.opened"), full + resumed);
        let terms = result["tls"]["terms"].as_str().unwrap();
        // Over QUIC the suite is not seen.
        let is_told = terms.starts_with("TLSv1_3 TLS13_") || terms == "TLSv1_3 within QUIC";
        assert!(is_told, "{terms}");
    }
    hob.stop();
}

/// So many large bodies down and up, over these connections.
fn large_bodies_pass(arguments: &[&str], count: u64) {
    let place = Place::new();
    place.folder("cgi");
    place.write(
        "cgi/count",
        "#!/bin/sh\necho Content-Type: text/plain\necho\nwc -c\n",
    );
    let open = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("cgi/count"), open).unwrap();
    place.write("body", &"0123456789".repeat(100_000));
    let routes = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\nbody = \"64MiB\"\n";
    let (hob, origin) = serve(&place, routes);
    let size = format!("size={}", harness::BIG_BYTES);
    let count_text = count.to_string();
    let counted = ["-n", &count_text, "--expect"];
    let big = format!("{origin}/big.bin");
    let down = [&[big.as_str()], &counted[..], &[&size]].concat();
    let down = result(&[&down[..], arguments].concat());
    assert_eq!(number(&down, "requests.good"), count, "{down:#}");
    let body = place.path("body");
    let up = [
        &format!("{origin}/cgi/count"),
        "--body",
        body.to_str().unwrap(),
    ];
    // What wc says: 1000000 and an end of line.
    let up = result(&[&up[..], &counted, &["size=8"], arguments].concat());
    assert_eq!(number(&up, "requests.good"), count, "{up:#}");
    hob.stop();
}

#[test]
fn large_bodies_pass_both_ways() {
    large_bodies_pass(&["-c", "2"], 3);
}

#[test]
fn large_bodies_pass_both_ways_on_many_streams() {
    large_bodies_pass(&["--http", "2", "-c", "1", "-m", "3"], 6);
}

#[test]
fn large_bodies_pass_both_ways_on_many_streams_over_quic() {
    large_bodies_pass(&["--http3", "-c", "1", "-m", "2"], 4);
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
