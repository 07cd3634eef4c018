//! The vectors in `lang/probe/vectors`, which every language reads: messages, hellos, request
//! blocks, and what must be refused. `UPDATE_GOLDEN=1 cargo test -p hob-ipc --test vectors` writes
//! them anew.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use hob_ipc::file::FileRange;
use hob_ipc::hello::Hello;
use hob_ipc::message::{
    Carrier, FAILED, FILES, LAST, MessageHead, MessageKind, MessageSender, QUIET, TUNNEL,
};
use hob_ipc::request::{BlockBuilder, RequestBlock};
use hob_ipc::stream::{self, MessageDecoder};
use serde_json::{Value, json};

#[test]
fn messages_have_the_bytes_of_the_vectors() {
    let mut vectors = Vec::new();
    for (name, head, payload) in messages() {
        let mut bytes = Vec::new();
        stream::append(&mut bytes, head, &[&payload]);
        let head = head.sized(payload.len());
        let mut decoder = MessageDecoder::new(head.kind.side());
        let space = decoder.space();
        space[..bytes.len()].copy_from_slice(&bytes);
        decoder.filled(bytes.len());
        let message = decoder.next_message().unwrap().expect("a whole message");
        assert_eq!(
            (message.head, message.payload),
            (head, &payload[..]),
            "{name}"
        );
        vectors.push(json!({
            "name": name,
            "from": side_word(head.kind.side()),
            "kind": head.kind as u8,
            "word": head.kind.word(),
            "flags": head.flags,
            "small": head.small,
            "request": head.request,
            "large": head.large,
            "payload": hex(&payload),
            "bytes": hex(&bytes),
        }));
    }
    compare(
        "messages.json",
        "One message each. payload and bytes are hexadecimal.",
        vectors,
    );
}

#[test]
fn blocks_have_the_bytes_of_the_vectors() {
    let mut vectors = Vec::new();
    for (name, length, variables) in blocks() {
        let mut builder = BlockBuilder::new(length);
        for (name, value) in &variables {
            builder.push(name, value).unwrap();
        }
        let bytes = builder.finish().unwrap();
        let block = RequestBlock::check(&bytes).unwrap();
        assert_eq!(block.content_length(), length, "{name}");
        assert!(
            block
                .variables()
                .eq(variables.iter().map(|(n, v)| (&n[..], &v[..])))
        );
        let index: Vec<_> = (0..16).map(|place| block.indexed(place).map(hex)).collect();
        let variables: Vec<_> = variables
            .iter()
            .map(|(n, v)| json!([hex(n), hex(v)]))
            .collect();
        vectors.push(json!({
            "name": name,
            "content_length": length,
            "variables": variables,
            "index": index,
            "bytes": hex(&bytes),
        }));
    }
    compare(
        "blocks.json",
        "One request block each. Names and values are hexadecimal.",
        vectors,
    );
}

#[test]
fn what_must_be_refused_is_refused() {
    let mut vectors = Vec::new();
    for (name, side, bytes) in malformed() {
        let mut decoder = MessageDecoder::new(side);
        decoder.space()[..bytes.len()].copy_from_slice(&bytes);
        decoder.filled(bytes.len());
        let why = decoder.next_message().expect_err(name);
        vectors.push(json!({
            "name": name,
            "from": side_word(side),
            "bytes": hex(&bytes),
            "why": why.to_string(),
        }));
    }
    compare(
        "malformed.json",
        "Heads that must be refused as soon as they are there. The words of the reason are free.",
        vectors,
    );
}

fn messages() -> Vec<(&'static str, MessageHead, Vec<u8>)> {
    let hello = Hello {
        concurrency: 4,
        data_window_bytes: 262_144,
        body_window_bytes: 65_536,
        carrier: Carrier::Shm,
        takes_files: false,
        takes_half_close: false,
    };
    let offers_files = Hello {
        carrier: Carrier::Stream,
        takes_files: true,
        ..hello
    };
    let takes_half_close = Hello {
        takes_half_close: true,
        ..offers_files
    };
    let (_, length, variables) = blocks().remove(1);
    let mut block = BlockBuilder::new(length);
    for (name, value) in &variables {
        block.push(name, value).unwrap();
    }
    let new = MessageHead::new;
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        (
            "hello of the server",
            new(MessageKind::Hello, 0).small(1),
            hello.encode().to_vec(),
        ),
        (
            "hello of a server that takes files",
            new(MessageKind::Hello, 0).small(1),
            offers_files.encode().to_vec(),
        ),
        (
            "hello of a server that takes half-closes, too",
            new(MessageKind::Hello, 0).small(1),
            takes_half_close.encode().to_vec(),
        ),
        (
            "request without a body, in slot 63 of shared memory",
            new(MessageKind::Request, 1)
                .flags(LAST)
                .small(63)
                .large(0x3fff_ffff),
            block.finish().unwrap(),
        ),
        (
            "body that goes on",
            new(MessageKind::Body, 2),
            text("name=value"),
        ),
        (
            "body that ends empty",
            new(MessageKind::Body, 2).flags(LAST),
            vec![],
        ),
        ("cancel", new(MessageKind::Cancel, 0xffff_ffff), vec![]),
        (
            "window for data",
            new(MessageKind::Window, 3).large(65_536),
            vec![],
        ),
        (
            "reply",
            new(MessageKind::Reply, 3).small(7),
            text("200 /srv/file"),
        ),
        ("drain", new(MessageKind::Drain, 0), vec![]),
        (
            "hello of a worker",
            new(MessageKind::WorkerHello, 0).small(1).large(1),
            text("example/1.0"),
        ),
        (
            "hello of a worker that passes files",
            new(MessageKind::WorkerHello, 0)
                .flags(FILES)
                .small(1)
                .large(1),
            text("example/1.0"),
        ),
        (
            "head",
            new(MessageKind::Head, 1).small(200),
            text("Content-Type: text/plain\nX-Umlaut: \u{fc}\r\n"),
        ),
        (
            "head without a body",
            new(MessageKind::Head, 1).flags(LAST).small(304),
            vec![],
        ),
        (
            "head as CGI",
            new(MessageKind::Head, 1),
            text("Status: 404 Not Found\n"),
        ),
        (
            "head of a tunnel",
            new(MessageKind::Head, 1).flags(TUNNEL).small(101),
            text("Upgrade: websocket\n"),
        ),
        (
            "data of all bytes",
            new(MessageKind::Data, 1),
            (0..=255).collect(),
        ),
        (
            "data that ends",
            new(MessageKind::Data, 1).flags(LAST),
            text("bye\n"),
        ),
        (
            "data that ends one direction of a tunnel",
            new(MessageKind::Data, 1).flags(LAST | TUNNEL),
            text("bye\n"),
        ),
        ("end", new(MessageKind::End, 1), vec![]),
        (
            "end with trailers",
            new(MessageKind::End, 1),
            text("Checksum: 1\n"),
        ),
        (
            "end of a program that failed",
            new(MessageKind::End, 1).flags(FAILED),
            text("no database"),
        ),
        (
            "info",
            new(MessageKind::Info, 1).small(103),
            text("Link: </a.css>; rel=preload\n"),
        ),
        (
            "window for a body",
            new(MessageKind::WorkerWindow, 1).large(1),
            vec![],
        ),
        (
            "callout",
            new(MessageKind::Callout, 1).small(65_535),
            text("MAP-PATH: /a/b"),
        ),
        (
            "callout about the worker that wants no reply",
            new(MessageKind::Callout, 0).flags(QUIET),
            text("LIFETIME: 60"),
        ),
        (
            "file that ends",
            new(MessageKind::File, 1).flags(LAST),
            FileRange {
                offset: 4096,
                len: 5_000_000_000,
            }
            .encode()
            .to_vec(),
        ),
    ]
}

type Variables = Vec<(Vec<u8>, Vec<u8>)>;

fn blocks() -> Vec<(&'static str, Option<u64>, Variables)> {
    let pairs = |pairs: &[(&str, &str)]| -> Variables {
        let bytes = |text: &str| text.as_bytes().to_vec();
        pairs
            .iter()
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect()
    };
    let mut raw = pairs(&[("REQUEST_METHOD", "GET")]);
    raw.push((b"PATH_INFO".to_vec(), b"/caf\xe9/\xff=\n".to_vec()));
    let many = (0..300)
        .map(|number| (format!("X_{number}").into_bytes(), vec![b'v'; number % 7]))
        .collect();
    vec![
        ("no variable", Some(0), vec![]),
        (
            "a request of every day",
            Some(0),
            pairs(&[
                ("GATEWAY_INTERFACE", "CGI/1.1"),
                ("REQUEST_METHOD", "GET"),
                ("REQUEST_URI", "/api/list?page=2"),
                ("SCRIPT_NAME", "/api"),
                ("PATH_INFO", "/list"),
                ("QUERY_STRING", "page=2"),
                ("SERVER_PROTOCOL", "HTTP/1.1"),
                ("HTTP_HOST", "example.org"),
                ("HTTP_ACCEPT", "*/*"),
                ("REMOTE_ADDR", "192.0.2.1"),
                ("SERVER_NAME", "example.org"),
                ("SERVER_PORT", "443"),
                ("REQUEST_SCHEME", "https"),
            ]),
        ),
        (
            "body of unknown length, empty values",
            None,
            pairs(&[("QUERY_STRING", ""), ("E", "")]),
        ),
        (
            "body of 5 GB",
            Some(5_000_000_000),
            pairs(&[("CONTENT_LENGTH", "5000000000")]),
        ),
        ("bytes that are no text", Some(0), raw),
        (
            "one name twice: the index knows the later",
            Some(0),
            pairs(&[("HTTP_COOKIE", "a=1"), ("HTTP_COOKIE", "b=2")]),
        ),
        ("300 variables", Some(0), many),
    ]
}

fn malformed() -> Vec<(&'static str, MessageSender, Vec<u8>)> {
    let raw = |len: u32, kind: u8, flags: u8, small: u16, request: u32| {
        let mut bytes = len.to_le_bytes().to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(small.to_le_bytes());
        bytes.extend(request.to_le_bytes());
        bytes.extend([0; 4]);
        bytes
    };
    use MessageSender::{Server, Worker};
    vec![
        ("kind 0", Worker, raw(0, 0, 0, 0, 1)),
        ("kind 255", Worker, raw(0, 255, 0, 0, 1)),
        (
            "a kind of the server from a worker",
            Worker,
            raw(0, 3, 0, 0, 1),
        ),
        (
            "a kind of the worker from the server",
            Server,
            raw(0, 35, 0, 0, 1),
        ),
        ("data longer than 64 KiB", Worker, raw(65_537, 35, 0, 0, 1)),
        (
            "a request longer than 128 KiB",
            Server,
            raw(131_073, 2, 0, 0, 1),
        ),
        ("a cancel with a payload", Server, raw(1, 4, 0, 0, 1)),
        ("a flag nobody has", Worker, raw(0, 35, 128, 0, 1)),
        ("a flag of another kind", Worker, raw(0, 35, FAILED, 0, 1)),
        ("a chunk on a stream", Worker, raw(8, 35, 8, 0, 1)),
        ("data for no request", Worker, raw(0, 35, 0, 0, 0)),
        ("a drain for a request", Server, raw(0, 7, 0, 0, 1)),
        ("a head with status 99", Worker, raw(0, 34, 0, 99, 1)),
        (
            "an interim answer with status 101",
            Worker,
            raw(0, 37, 0, 101, 1),
        ),
    ]
}

fn compare(file: &str, about: &str, vectors: Vec<Value>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../lang/probe/vectors")
        .join(file);
    let made = serde_json::to_string_pretty(&json!({
        "about": format!("Made by crates/ipc/tests/vectors.rs. {about}"),
        "vectors": vectors,
    }))
    .unwrap()
        + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "{file} differs; run again with UPDATE_GOLDEN=1 and look at the change"
    );
}

fn side_word(side: MessageSender) -> &'static str {
    match side {
        MessageSender::Server => "server",
        MessageSender::Worker => "worker",
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
