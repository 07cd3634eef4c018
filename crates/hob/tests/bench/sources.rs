//! Connections spread over several client addresses, and what each of them got.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

use serde_json::{Value, json};

use super::harness::{Place, text_of};
use super::schema::conforms;
use super::server::{Reply, Server, answer};
use super::{bench, hello, number, result};

/// What each address of a result got: connections and answers.
fn addresses(result: &Value) -> BTreeMap<String, [u64; 2]> {
    let all = result["addresses"].as_array().unwrap().iter();
    all.map(|one| {
        let field = |name: &str| one[name].as_u64().unwrap();
        let address = one["address"].as_str().unwrap().to_owned();
        (address, [field("connections"), field("answered")])
    })
    .collect()
}

#[test]
fn connections_take_client_addresses_in_turn() {
    for threads in ["1", "3"] {
        let server = hello();
        let arguments = ["-c", "10", "--sources", "4", "-t", threads, "-n", "400"];
        let result = result(&[&[server.url().as_str()], &arguments[..]].concat());
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        server.seen(|all| {
            // One of them is the look whether anybody is there.
            for peer in all.peers.iter().skip(1) {
                *seen.entry(peer.to_string()).or_default() += 1;
            }
        });
        let connections = |counts: [u64; 4]| -> BTreeMap<String, u64> {
            let names = (1..=4).map(|host| format!("127.0.1.{host}"));
            names.zip(counts).collect()
        };
        assert_eq!(seen, connections([3, 3, 2, 2]));
        let told = addresses(&result);
        let of_told = told.iter().map(|(name, [count, _])| (name.clone(), *count));
        assert_eq!(of_told.collect::<BTreeMap<_, _>>(), seen);
        let answered: u64 = told.values().map(|[_, answered]| answered).sum();
        assert_eq!(answered, number(&result, "requests.answered"));
        assert!(result["fairness_addresses"].is_number(), "{result:#}");
        assert_eq!(number(&result, "plan.sources"), 4);
    }
}

#[test]
fn server_that_limits_each_address_takes_many_from_several() {
    let text = "[limits]\nconnections_per_client = 1\n\n[[listen]]\naddress = \"127.0.0.1:0\"\n\n\
                [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n";
    for (scheme, version) in [
        ("http", "1.1"),
        ("https", "1.1"),
        ("http", "2"),
        ("https", "2"),
        ("https", "3"),
    ] {
        // A server of its own: that of another version may not know yet that its clients are gone.
        let place = Place::new();
        let hob = place.serve_text(text);
        let port = match scheme {
            "http" => hob.clear_port(),
            _ => hob.tls_port(),
        };
        let url = format!("{scheme}://127.0.0.1:{port}/hello.txt");
        let plan = [&url, "--http", version, "-c", "6", "-n", "300"];
        let spread = result(&[&plan[..], &["--sources", "6"]].concat());
        assert_eq!(number(&spread, "requests.good"), 300, "{version}");
        let told = addresses(&spread);
        assert_eq!(told.values().map(|one| one[0]).sum::<u64>(), 6);
        assert_eq!(
            place.counter("limit_connections_per_client"),
            0,
            "{version}"
        );
        hob.stop();
    }
    let place = Place::new();
    let hob = place.serve_text(text);
    let clear = format!("http://127.0.0.1:{}/hello.txt", hob.clear_port());
    // Two connections of one address are one too many.
    let output = bench(&[&clear, "-c", "6", "--sources", "3", "-n", "300", "--json"]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(number(&result, "requests.failed") > 0, "{result:#}");
    assert!(place.counter("limit_connections_per_client") > 0);
    hob.stop();
}

/// A server that never answers one of its clients.
fn starving() -> Server {
    let starved = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 2));
    Server::start_for(move |_, peer| match peer == starved {
        true => Reply::Never,
        false => Reply::Bytes(answer("200 OK", "hello\n")),
    })
}

#[test]
fn address_that_is_starved_is_seen() {
    let server = starving();
    let place = Place::new();
    let page = place.path("report.html");
    let url = server.url();
    let plan = [
        &url,
        "-c",
        "4",
        "--sources",
        "4",
        "-n",
        "100",
        "--think",
        "1ms",
        "--timeout",
        "500ms",
    ];
    let more = [
        "--fail-if",
        "fairness<0.9",
        "--html",
        page.to_str().unwrap(),
    ];
    let output = bench(&[&plan[..], &more[..]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", text_of(&output));
    let text = text_of(&output);
    assert!(
        text.contains(" over 4 client addresses: 127.0.1.2 got 0, 127.0.1."),
        "{text}"
    );
    assert!(text.contains("FAILED: fairness<0.9 is 0."), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    for wanted in [
        "By client address",
        "127.0.1.4",
        "fairness over client addresses",
    ] {
        assert!(page.contains(wanted), "no {wanted:?} in {page}");
    }
    let output = bench(&[&plan[..], &["--json"]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = addresses(&result);
    assert_eq!(counts["127.0.1.2"], [1, 0]);
    // How the others share what there is, is up to the machine: Jain's index of it is not.
    let answered: Vec<f64> = counts.values().map(|[_, got]| *got as f64).collect();
    let squares: f64 = answered.iter().map(|got| got * got).sum();
    let expected = answered.iter().sum::<f64>().powi(2) / (answered.len() as f64 * squares);
    let fairness = result["fairness_addresses"].as_f64().unwrap();
    assert!(fairness <= 0.75, "{fairness}");
    assert!((fairness - expected).abs() < 1e-9, "{fairness} {expected}");
    let schema = bench(&["--schema"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    conforms(&result, &schema, &schema, "");
}

#[test]
fn shards_add_up_what_each_address_got() {
    let server = starving();
    let place = Place::new();
    let files = ["1/2", "2/2"].map(|shard| {
        let run = result_of(&[
            &server.url(),
            "--shard",
            shard,
            "-c",
            "4",
            "--sources",
            "2",
            "-n",
            "40",
            "--timeout",
            "500ms",
        ]);
        let name = shard.replace('/', "-");
        place.write(&name, &run.to_string());
        place.path(&name).display().to_string()
    });
    let merged = result(&["merge", &files[0], &files[1]]);
    let told = addresses(&merged);
    assert_eq!(told["127.0.1.2"], [2, 0]);
    assert_eq!(told["127.0.1.1"][1], number(&merged, "requests.answered"));
    assert_eq!(merged["fairness_addresses"], json!(0.5));
    // A comparison says that fewer addresses were asked from.
    let other = result_of(&[&server.url(), "-c", "2", "-n", "40"]);
    place.write("other", &other.to_string());
    let other = place.path("other").display().to_string();
    let text = text_of(&bench(&["--compare", &files[0], &other]));
    assert!(text.contains("fairness "), "{text}");
    assert!(text.contains("sources"), "{text}");
}

/// The result of a run that may fail thresholds or requests.
fn result_of(arguments: &[&str]) -> Value {
    let output = bench(&[arguments, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn addresses_that_cannot_be_had_are_refused() {
    let server = hello();
    let place = Place::new();
    let url = server.url();
    let six = TcpListener::bind("[::1]:0").unwrap();
    let six = format!("http://[::1]:{}/", six.local_addr().unwrap().port());
    let socket = place.path("web.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let socket = socket.display().to_string();
    for (arguments, says) in [
        (&[&url, "--sources", "0"][..], "sources: from 1 to 10000"),
        (&[&url, "--sources", "10001"], "sources: from 1 to 10000"),
        (
            &[&url, "--sources", "11"],
            "at least one of the connections",
        ),
        (
            &[&six, "--sources", "2"],
            "only to a server of this machine at 127.0.0.0/8",
        ),
        (
            &[&url, "--sources", "2", "--unix", &socket],
            "only to a server of this machine at 127.0.0.0/8",
        ),
    ] {
        let output = bench(arguments);
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(says), "{arguments:?}: {text}");
    }
    assert_eq!(server.seen(|seen| seen.requests.len()), 0);
}
