//! Python's native part (`lang/python/src/hob/_native.c`) over both carriers.
#![allow(clippy::unwrap_used)]

mod worker;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hob_ipc::message::Carrier;

use worker::{Asked, Server, get, library};

const WSGI: &str = "wsgi probe_wsgi:application";
const ASGI: &str = "asgi probe_asgi:application";
const HOSTS: [(Carrier, &str); 4] = [
    (Carrier::Shm, WSGI),
    (Carrier::Stream, WSGI),
    (Carrier::Shm, ASGI),
    (Carrier::Stream, ASGI),
];

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lang/python")
}

/// The module, built once; none where it cannot be.
fn native_part() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = library().join(format!("_native-{}.so", std::process::id()));
        let builder = package().join("build_native.py");
        let status = Command::new("python3").arg(builder).arg(&made).status();
        match status.unwrap().code() {
            Some(0) => Some(made),
            Some(2) => None,
            code => panic!("_native.c does not compile: {code:?}"),
        }
    })
    .as_deref()
}

/// Starts Python's answers to the shared cases over that carrier.
fn started(carrier: Carrier, words: &str) -> Option<Server> {
    let Some(part) = native_part() else {
        eprintln!("skipped: no Python.h here, which Python's native part is built with");
        return None;
    };
    let name = words.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let name = name.rsplit('-').take(3).collect::<String>();
    let program = library().join(format!("python-{name}-{}", std::process::id()));
    let text = format!("#!/bin/sh\nexec python3 -W error -m hob {words}\n");
    std::fs::write(&program, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let path = format!(
        "{}:{}",
        package().join("src").display(),
        package().join("probe").display()
    );
    let server = Server::start(
        &program,
        carrier,
        &[
            ("PYTHONPATH", &path),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("HOB_NATIVE", part.to_str().unwrap()),
            (
                "HOB_LIBRARY",
                library().join("libhob.so.1").to_str().unwrap(),
            ),
        ],
    );
    assert_eq!(server.carrier(), carrier);
    assert!(server.library.starts_with("libhob/"), "{}", server.library);
    Some(server)
}

fn pattern(bytes: usize) -> Vec<u8> {
    b"0123456789abcdef"
        .iter()
        .copied()
        .cycle()
        .take(bytes)
        .collect()
}

#[test]
fn answers_of_every_size_come_over_both_carriers() {
    for (carrier, words) in HOSTS {
        let Some(mut server) = started(carrier, words) else {
            return;
        };
        for _ in 0..3 {
            let answer = server.ask(&get("/hello"));
            assert_eq!(answer.body, b"Hello world\n");
            let fields = "content-type: text/plain\ncontent-length: 12\n";
            let answered = (answer.status, answer.fields.to_lowercase());
            assert_eq!(answered, (200, fields.to_owned()));
        }
        for bytes in [1, 65_536, 65_537, 3_000_000] {
            let body = pattern(bytes);
            let echo = Asked {
                method: "POST",
                content_type: "text/plain",
                body: &body,
                ..get("/echo")
            };
            assert!(server.ask(&echo).body == body, "{bytes} bytes back");
            let piece = bytes.div_ceil(20);
            let answers = [format!("/size/{bytes}"), format!("/stream/{bytes}/{piece}")];
            for path in answers {
                assert!(server.ask(&get(&path)).body == body, "{path}");
            }
        }
        assert_eq!(server.ask(&get("/status/404")).status, 404);
        assert!(server.ask(&get("/fail/before")).is_failed);
        assert!(server.ask(&get("/fail/after")).is_failed);
        assert_eq!(server.ask(&get("/hello")).body, b"Hello world\n");
        server.finish();
    }
}

#[test]
fn many_requests_at_a_time_are_told_apart() {
    for (carrier, words) in HOSTS {
        let Some(mut server) = started(carrier, words) else {
            return;
        };
        for round in 0..5 {
            let sizes: Vec<usize> = (1..=60).map(|n| n * 997 + round).collect();
            let open: Vec<(u32, usize)> = sizes
                .into_iter()
                .map(|bytes| (server.send(&get(&format!("/size/{bytes}"))), bytes))
                .collect();
            for (id, bytes) in open {
                assert!(server.answer(id).body == pattern(bytes), "{bytes} bytes");
            }
        }
        server.finish();
    }
}

#[test]
fn a_loop_keeps_its_trailers_and_infos() {
    for carrier in [Carrier::Shm, Carrier::Stream] {
        let probe = package().join("probe/probe_loop.py");
        let Some(mut server) = started(carrier, &format!("loop {}", probe.display())) else {
            return;
        };
        let answer = server.ask(&get("/trailers"));
        assert_eq!(
            (&*answer.body, &*answer.end),
            (&b"body\n"[..], "over X-Sum: 5")
        );
        let early = server.ask(&get("/early"));
        let link = "Link: </style.css>; rel=preload\n".to_owned();
        assert_eq!(early.infos, [(103, link)]);
        server.finish();
    }
}
