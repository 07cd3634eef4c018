//! What holds for every act that can be drawn.

use std::collections::HashSet;
use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use hob_load::parts::ServerAddress;
use hob_load::{Protocol, Url};

use super::act::{Act, Allowed, Doing, Leave, Opening, Quic, Script, Step, draw, kinds};
use super::line::Target;
use super::perform::perform;
use super::seen::End;
use crate::limits::{FLOOD_CONNECTION_COUNT_MAX, SIP_COUNT_MAX};

const SEEDS: u64 = 1;
/// Bytes that one act sends.
const ACT_BYTES_MAX: usize = 1 << 20;

fn acts(protocol: Protocol, is_secure: bool, seed: u64, numbers: std::ops::Range<u64>) -> Vec<Act> {
    let scheme = if is_secure { "https" } else { "http" };
    let url: Url = format!("{scheme}://127.0.0.1:1/a?b").parse().unwrap();
    let kinds = kinds(protocol, is_secure);
    numbers
        .map(|number| draw(&kinds, seed, number, &url))
        .collect()
}

const ALL: &[(Protocol, bool)] = &[
    (Protocol::H1, false),
    (Protocol::H1, true),
    (Protocol::H2, false),
    (Protocol::H2, true),
    (Protocol::H3, true),
];

#[test]
fn same_seed_has_the_same_acts_and_another_seed_has_others() {
    for (protocol, is_secure) in ALL {
        let first = acts(*protocol, *is_secure, 7, 0..100);
        assert_eq!(first, acts(*protocol, *is_secure, 7, 0..100));
        // One of them alone is the same.
        assert_eq!(first[50], acts(*protocol, *is_secure, 7, 50..51)[0]);
        let other = acts(*protocol, *is_secure, 8, 0..100);
        let alike = first.iter().zip(&other).filter(|(one, other)| one == other);
        assert!(alike.count() < 25);
    }
}

#[test]
fn every_kind_comes_once_before_one_comes_again() {
    for (protocol, is_secure) in ALL {
        let count = kinds(*protocol, *is_secure).len();
        let round = acts(*protocol, *is_secure, 3, 0..count as u64);
        let names: HashSet<&str> = round.iter().map(|act| act.name).collect();
        assert_eq!(names.len(), count);
    }
}

#[test]
fn acts_keep_within_their_limits() {
    for (protocol, is_secure) in ALL {
        for seed in 0..SEEDS {
            for act in acts(*protocol, *is_secure, seed, 0..150) {
                let bytes = match &act.script.doing {
                    Doing::Script { steps, .. } => steps.iter().map(sent_bytes).sum(),
                    Doing::Flood(openings) => {
                        assert!(openings.len() <= FLOOD_CONNECTION_COUNT_MAX);
                        let len = |opening: &Opening| match opening {
                            Opening::Bytes(bytes) => bytes.len(),
                            Opening::Hello => 2000,
                        };
                        openings.iter().map(|(opening, _)| len(opening)).sum()
                    }
                    Doing::Quic(Quic::Datagrams(all)) => all.iter().map(Vec::len).sum(),
                    Doing::Quic(Quic::Vanish(_)) => 0,
                    Doing::Quic(Quic::Streams(streams)) => {
                        streams.others.iter().map(|(bytes, _)| bytes.len()).sum()
                    }
                    Doing::Quic(Quic::Requests { requests, .. }) => requests.len() * 1000,
                };
                assert!(bytes <= ACT_BYTES_MAX, "{act:?}");
                assert!(!act.script.detail.contains(['\n', '\0']), "{act:?}");
            }
        }
    }
}

fn sent_bytes(step: &Step) -> usize {
    match step {
        Step::Send(bytes) => bytes.len(),
        Step::Drip { bytes, .. } => {
            assert!(bytes.len() <= SIP_COUNT_MAX);
            bytes.len()
        }
        Step::Sip { byte_count, .. } => {
            assert!(*byte_count <= SIP_COUNT_MAX);
            0
        }
        Step::Await | Step::Strip | Step::HalfClose | Step::Leave(Leave::Close | Leave::Reset) => 0,
    }
}

#[test]
fn act_ends_though_the_server_goes_on_sending() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target {
        address: ServerAddress::Inet(listener.local_addr().unwrap()),
        tls: None,
        h3_head: Vec::new(),
        timeout: Duration::from_millis(100),
    };
    // Each act has one connection, and leaves it when the time is up.
    let scripts = [
        vec![Step::Send(b"GET / HTTP/1.1\r\n\r\n".to_vec())],
        vec![Step::Drip {
            bytes: vec![b'a'; 3],
            pause: Duration::from_millis(1),
        }],
        vec![Step::HalfClose],
    ];
    let count = scripts.len();
    let server = std::thread::spawn(move || {
        for _ in 0..count {
            let (mut stream, _) = listener.accept().unwrap();
            // Reading these takes longer than sending them: there is always one more.
            let answers = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".repeat(10_000);
            while stream.write_all(&answers).is_ok() {}
        }
    });
    for steps in scripts {
        let act = Act {
            number: 0,
            name: "test",
            script: Script::h1("", steps, Allowed::anything()),
        };
        assert_eq!(perform(&act, &target).end, End::Hung);
    }
    server.join().unwrap();
}
