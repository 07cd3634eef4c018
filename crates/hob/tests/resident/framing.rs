//! What goes over the wire is framed by the server, whatever a program says or sends of it: over
//! shared memory and over a socket.

use crate::harness::client::{Connection, call};
use crate::linked::serve_c;
use crate::site::Programs;

const PROGRAM: &str = include_str!("framing.c");

fn on_both(run: impl Fn(&Programs)) {
    for carrier in ["shm", "stream"] {
        let keys = format!("carrier = \"{carrier}\", workers = {{ max = 1 }}");
        let site = serve_c(PROGRAM, &keys);
        assert_eq!(site.text("/app/carrier"), carrier);
        run(&site);
        site.stop();
    }
}

#[test]
fn chunks_that_a_program_writes_itself_are_taken_off() {
    on_both(|site| {
        let reply = site.get("/app/chunked");
        assert_eq!((reply.answer.status, reply.is_whole), (200, true));
        assert_eq!(reply.answer.text(), "abcde");
        // More than the window, in pieces that end anywhere, the first sent alone.
        let reply = site.get("/app/chunked_large");
        assert!(reply.is_whole && reply.is_chunked);
        assert_eq!(reply.answer.body.len(), 1_000_000);
        assert!(reply.answer.body.iter().all(|byte| *byte == b'x'));
        assert_eq!(reply.answer.header("x-checksum"), None);
    });
}

#[test]
fn answer_that_is_not_in_chunks_as_it_says_fails_or_breaks_off() {
    on_both(|site| {
        let worker = site.worker();
        assert_eq!(site.get("/app/no_chunks").answer.status, 502);
        let (reason, _) = site.reason("/app/no_chunks");
        assert_eq!(reason, "the answer is not in chunks, as its head says");
        for name in ["early", "later"] {
            let path = format!("/app/chunks_end_{name}");
            let mut client = Connection::open(site.port()).unwrap();
            client.send_ask("GET", &path, "");
            client.read_until("abc\r\n");
            site.go(name);
            let rest = client.read_to_end();
            assert!(!rest.ends_with(b"0\r\n\r\n"), "{name}: {rest:?}");
            let (reason, _) = site.reason(&path);
            assert_eq!(
                reason,
                "the program's output is not in chunks, as its head says"
            );
        }
        assert_eq!(site.worker(), worker);
    });
}

/// The next answer on the same connection shows that nothing was sent after the head.
#[test]
fn bodies_where_there_are_none_are_not_sent_and_the_worker_goes_on() {
    on_both(|site| {
        let worker = site.worker();
        let mut client = Connection::open(site.port()).unwrap();
        let asks = [
            ("GET", "/app/bodies/204", 204, None),
            ("GET", "/app/bodies/304", 304, None),
            ("HEAD", "/app/bodies/200", 200, Some("400000")),
            ("HEAD", "/app/chunked_large", 200, None),
        ];
        for (method, path, status, length) in asks {
            let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            client.send(head.as_bytes()).unwrap();
            let (came, headers) = client.read_head().unwrap();
            let value = |name: &str| {
                let found = headers.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.as_str())
            };
            assert_eq!((came, value("content-length")), (status, length), "{path}");
            if status == 204 || status == 304 {
                assert_eq!(value("transfer-encoding"), None, "{path}");
            }
        }
        client.send_ask("GET", "/app/pid", "");
        assert_eq!(client.read_reply().answer.text(), worker.to_string());
        assert_eq!(site.worker(), worker);
    });
}

#[test]
fn perl_application_that_writes_chunks_itself_is_answered() {
    let app = "sub { my $env = shift; sub {\n\
        my $writer = shift->([200, ['Content-Type' => 'text/plain',\n\
        'Transfer-Encoding' => 'chunked']]);\n\
        $writer->write(\"3\\r\\nabc\\r\\n\");\n\
        $writer->write(\"2\\r\\nde\\r\\n0\\r\\n\\r\\n\");\n\
        $writer->close;\n} };\n";
    let site = Programs::new()
        .with_mode("app.psgi", app, 0o644)
        .serve_route("path = \"/app/*\"\nresident = { psgi = \"cgi/app.psgi\" }\n");
    for _ in 0..2 {
        let reply = call(site.port(), "GET", "/app/", "", b"");
        assert_eq!(
            (reply.answer.text().as_str(), reply.is_whole),
            ("abcde", true)
        );
    }
    site.stop();
}
