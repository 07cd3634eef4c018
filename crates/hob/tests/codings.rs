//! Files compressed on the fly, judged by other people's decoders.
//!
//! What hob sends in a coding is unpacked by the coding's own program; one that is not installed is
//! left out with one line. Tags, conditions, ranges and HEAD are looked at for each coding.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "peers/exchange.rs"]
mod exchange;
#[path = "peers/servers.rs"]
mod servers;
#[path = "peers/site.rs"]
mod site;

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use exchange::Answer;
use servers::Server;
use site::Site;

/// Text that becomes smaller in every coding, and has no copy beside it.
const TEXT: &str = "/many.txt";
/// What is compressed at most (8 MiB), in bytes.
const COMPRESSED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A coding, and who unpacks it from standard input to standard output.
struct Coding {
    name: &'static str,
    decoder: &'static [&'static str],
}

const CODINGS: [Coding; 3] = [
    Coding {
        name: "gzip",
        decoder: &["gzip", "-dc"],
    },
    Coding {
        name: "br",
        decoder: &["brotli", "-dc"],
    },
    Coding {
        name: "zstd",
        decoder: &["zstd", "-dcq"],
    },
];

fn text() -> Vec<u8> {
    let lines = (0..3000).map(|number| format!("{number} kettles on {number} hobs\n"));
    lines.collect::<String>().into_bytes()
}

fn start() -> (Site, Server) {
    let site = Site::make();
    site.write("many.txt", &text());
    site.write("largest.txt", &vec![b'a'; COMPRESSED_BYTES_MAX]);
    site.write("larger.txt", &vec![b'a'; COMPRESSED_BYTES_MAX + 1]);
    let hob = servers::hob(&site, "listing = true\n");
    (site, hob)
}

fn ask(hob: &Server, method: &str, path: &str, fields: &str) -> Answer {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: peers.test\r\n{fields}\r\n");
    let mut conversation = exchange::converse(hob.port, request.as_bytes()).unwrap();
    conversation.answers.remove(0)
}

fn get_coded(hob: &Server, path: &str, coding: &str, more: &str) -> Answer {
    ask(
        hob,
        "GET",
        path,
        &format!("Accept-Encoding: {coding}\r\n{more}"),
    )
}

/// What a program makes of bytes; `None` when it is not installed.
fn decoded(decoder: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(decoder[0]);
    command
        .args(&decoder[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success(), "{decoder:?}: {}", output.status);
    Some(output.stdout)
}

#[test]
fn other_decoders_give_back_the_file() {
    let (_site, hob) = start();
    for coding in CODINGS {
        for (path, original) in [
            (TEXT, text()),
            ("/largest.txt", vec![b'a'; COMPRESSED_BYTES_MAX]),
        ] {
            let answer = get_coded(&hob, path, coding.name, "");
            assert_eq!(
                answer.field("content-encoding").as_deref(),
                Some(coding.name)
            );
            assert_eq!(answer.field("vary").as_deref(), Some("Accept-Encoding"));
            assert!(answer.body.len() < original.len());
            match decoded(coding.decoder, &answer.body) {
                Some(bytes) => assert!(bytes == original, "{} of {path}", coding.name),
                None => println!("skipped: {} is not installed", coding.decoder[0]),
            }
        }
    }
}

#[test]
fn curl_unpacks_what_it_asked_for() {
    let (_site, hob) = start();
    let url = format!("http://127.0.0.1:{}{TEXT}", hob.port);
    match Command::new("curl")
        .args(["-s", "--compressed", &url])
        .output()
    {
        Ok(output) => assert_eq!(output.stdout, text()),
        Err(_) => println!("skipped: curl is not installed"),
    }
}

#[test]
fn every_coding_has_its_own_strong_tag() {
    let (_site, hob) = start();
    let tag = |coding| get_coded(&hob, TEXT, coding, "").field("etag").unwrap();
    let mut tags = ["identity", "gzip", "br", "zstd"].map(tag);
    tags.sort_unstable();
    assert!(tags.windows(2).all(|pair| pair[0] != pair[1]), "{tags:?}");
    assert!(tags.iter().all(|tag| tag.starts_with('"')), "{tags:?}");
}

#[test]
fn tag_of_a_coding_is_current_for_that_coding_only() {
    let (_site, hob) = start();
    let tag = get_coded(&hob, TEXT, "br", "").field("etag").unwrap();
    let if_none_match = format!("If-None-Match: {tag}\r\n");
    let same = get_coded(&hob, TEXT, "br", &if_none_match);
    assert_eq!(same.status, 304);
    assert_eq!(same.field("etag"), Some(tag));
    assert_eq!(same.field("vary").as_deref(), Some("Accept-Encoding"));
    assert_eq!(same.field("content-encoding"), None);
    for other in ["gzip", "identity"] {
        assert_eq!(
            get_coded(&hob, TEXT, other, &if_none_match).status,
            200,
            "{other}"
        );
    }
}

#[test]
fn ranges_are_of_the_coded_bytes() {
    let (_site, hob) = start();
    for coding in CODINGS {
        let whole = get_coded(&hob, TEXT, coding.name, "");
        let tag = whole.field("etag").unwrap();
        let more = format!("Range: bytes=100-199\r\nIf-Range: {tag}\r\n");
        let part = get_coded(&hob, TEXT, coding.name, &more);
        assert_eq!(part.status, 206);
        assert_eq!(part.body, whole.body[100..200]);
        let range = format!("bytes 100-199/{}", whole.body.len());
        assert_eq!(part.field("content-range"), Some(range));
        assert_eq!(part.field("content-encoding").as_deref(), Some(coding.name));
        assert_eq!(part.field("etag"), Some(tag));
        let beyond = get_coded(&hob, TEXT, coding.name, "Range: bytes=90000-\r\n");
        assert_eq!(beyond.status, 416);
        let range = format!("bytes */{}", whole.body.len());
        assert_eq!(beyond.field("content-range"), Some(range));
    }
}

#[test]
fn head_has_the_fields_of_get() {
    let (_site, hob) = start();
    let fields = |method: &str, path: &str, coding: &str| {
        let mut answer = ask(
            &hob,
            method,
            path,
            &format!("Accept-Encoding: {coding}\r\n"),
        );
        answer.fields.retain(|(name, _)| name != "date");
        answer.fields
    };
    for path in [
        TEXT,
        "/style.css",
        "/picture.png",
        "/larger.txt",
        "/missing.txt",
        "/folder",
    ] {
        for coding in ["identity", "gzip", "br", "zstd", "identity;q=0"] {
            let (head, get) = (fields("HEAD", path, coding), fields("GET", path, coding));
            assert_eq!(head, get, "{path} in {coding}");
        }
    }
}

#[test]
fn what_would_not_gain_is_sent_as_it_is() {
    let (_site, hob) = start();
    for path in [
        "/larger.txt",
        "/big.bin",
        "/picture.png",
        "/archive.tar.gz",
        "/plain.txt",
    ] {
        // Nothing else can be had, so that who refuses even that gets it all the same.
        for accepted in ["gzip, br, zstd", "*", "identity;q=0"] {
            let answer = get_coded(&hob, path, accepted, "");
            assert_eq!(answer.status, 200, "{path} for {accepted}");
            assert_eq!(
                answer.field("content-encoding"),
                None,
                "{path} for {accepted}"
            );
            assert_eq!(answer.field("vary"), None, "{path} for {accepted}");
        }
    }
}

#[test]
fn a_client_that_leaves_does_not_keep_others_from_the_copy() {
    let (site, hob) = start();
    let slow: Vec<u8> = text()
        .into_iter()
        .cycle()
        .take(COMPRESSED_BYTES_MAX)
        .collect();
    site.write("slow.txt", &slow);
    let is_coded = || {
        get_coded(&hob, "/slow.txt", "br", "")
            .field("content-encoding")
            .is_some()
    };
    // The file is found, not yet coded.
    assert_eq!(get_coded(&hob, "/slow.txt", "identity", "").status, 200);
    let request = "GET /slow.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\n\r\n";
    let mut leaving = TcpStream::connect(("127.0.0.1", hob.port)).unwrap();
    leaving.write_all(request.as_bytes()).unwrap();
    // While its copy is made, which takes a moment, others get the file as it is.
    let mut was_coded = is_coded();
    rustix::net::sockopt::set_socket_linger(&leaving, Some(Duration::ZERO)).unwrap();
    drop(leaving);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !was_coded {
        assert!(Instant::now() < deadline, "the copy is never made");
        was_coded = is_coded();
    }
}

#[test]
fn who_refuses_every_coding_there_is_gets_406() {
    let (_site, hob) = start();
    for refused in ["identity;q=0", "*;q=0", "gzip;q=0, identity;q=0, deflate"] {
        let answer = get_coded(&hob, TEXT, refused, "");
        assert_eq!(answer.status, 406, "{refused}");
        assert_eq!(answer.field("vary").as_deref(), Some("Accept-Encoding"));
    }
    let answer = get_coded(&hob, TEXT, "identity;q=0, gzip;q=0.1", "");
    assert_eq!(answer.field("content-encoding").as_deref(), Some("gzip"));
}

#[test]
fn listing_shows_no_link_that_leads_out_of_the_root() {
    let (site, hob) = start();
    std::os::unix::fs::symlink("/etc/hostname", site.root().join("bare/out.txt")).unwrap();
    std::os::unix::fs::symlink("one.txt", site.root().join("bare/in.txt")).unwrap();
    let answer = ask(&hob, "GET", "/bare/", "Accept: application/json\r\n");
    let text = String::from_utf8(answer.body).unwrap();
    assert!(
        text.contains("\"in.txt\"") && !text.contains("out.txt"),
        "{text}"
    );
}
