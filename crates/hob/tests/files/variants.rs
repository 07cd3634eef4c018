//! Compressed copies: those beside the file, and those made while the client waits.

use std::io::Read;

use crate::harness::Place;
use crate::harness::client::{Answer, ask};
use crate::{place_with, serve};

fn accept(port: u16, path: &str, accepted: &str) -> Answer {
    ask(
        port,
        "GET",
        path,
        &format!("Accept-Encoding: {accepted}\r\n"),
    )
}

fn place_with_copies() -> Place {
    place_with(&[
        ("style.css", "as it is"),
        ("style.css.br", "the br copy"),
        ("style.css.zst", "the zst copy"),
        ("style.css.gz", "the gz copy"),
    ])
}

#[test]
fn copy_beside_the_file_is_sent_to_those_who_like_it_best() {
    let place = place_with_copies();
    let hob = place.serve_config("");
    for (accepted, coding) in [
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("br", "br"),
        ("zstd", "zstd"),
        ("gzip, deflate, br, zstd", "br"),
        ("GZIP;Q=1.0, br;q=0.5", "gzip"),
        ("br;q=0, *", "zstd"),
        ("identity;q=0.5, gzip;q=0.6", "gzip"),
        ("identity, gzip;q=0.5", "identity"),
        ("deflate", "identity"),
        ("", "identity"),
        ("gzip;q=0, br;q=0, zstd;q=0", "identity"),
    ] {
        let answer = accept(hob.port(), "/style.css", accepted);
        assert_eq!(answer.status, 200, "{accepted}");
        let (field, text) = match coding {
            "identity" => (None, "as it is".to_owned()),
            "gzip" => (Some(coding), "the gz copy".to_owned()),
            "zstd" => (Some(coding), "the zst copy".to_owned()),
            _ => (Some(coding), "the br copy".to_owned()),
        };
        assert_eq!(answer.header("content-encoding"), field, "{accepted}");
        assert_eq!(answer.text(), text, "{accepted}");
        assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
        let media_type = answer.header("content-type");
        assert_eq!(media_type, Some("text/css; charset=utf-8"));
    }
    hob.stop();
}

#[test]
fn client_that_refuses_all_there_is_gets_406() {
    let place = place_with_copies();
    let hob = place.serve_config("");
    for accepted in ["identity;q=0", "*;q=0", "deflate, identity;q=0"] {
        let answer = accept(hob.port(), "/style.css", accepted);
        assert_eq!(answer.status, 406, "{accepted}");
        assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
    }
    let answer = accept(hob.port(), "/style.css", "gzip, identity;q=0");
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    hob.stop();
}

#[test]
fn every_copy_has_its_own_tag_conditions_and_ranges() {
    let place = place_with_copies();
    let hob = place.serve_config("");
    let port = hob.port();
    let tags = ["identity", "gzip", "br", "zstd"].map(|coding| {
        let answer = accept(port, "/style.css", coding);
        answer.header("etag").unwrap().to_owned()
    });
    for (index, tag) in tags.iter().enumerate() {
        assert!(!tags[..index].contains(tag), "{tags:?}");
    }
    let fields = format!("Accept-Encoding: gzip\r\nIf-None-Match: {}\r\n", tags[1]);
    let answer = ask(port, "GET", "/style.css", &fields);
    assert_eq!(answer.status, 304);
    assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
    let fields = format!("Accept-Encoding: br\r\nIf-None-Match: {}\r\n", tags[1]);
    assert_eq!(ask(port, "GET", "/style.css", &fields).status, 200);
    let fields = "Accept-Encoding: gzip\r\nRange: bytes=4-5\r\n";
    let answer = ask(port, "GET", "/style.css", fields);
    assert_eq!((answer.status, answer.text().as_str()), (206, "gz"));
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    hob.stop();
}

#[test]
fn copies_can_be_asked_for_by_name_and_turned_off() {
    let place = place_with_copies();
    let hob = serve(&place, "precompressed = [\"gz\"]\ncompress = []");
    let answer = accept(hob.port(), "/style.css.gz", "gzip");
    assert_eq!(answer.header("content-encoding"), None);
    assert_eq!(answer.header("content-type"), Some("application/gzip"));
    let answer = accept(hob.port(), "/style.css", "br, zstd, gzip;q=0.1");
    assert_eq!(answer.text(), "the gz copy");
    let answer = accept(hob.port(), "/hello.txt", "gzip");
    assert_eq!(answer.header("vary"), None, "there is nothing to choose");
    hob.stop();
}

fn decoded(coding: &str, bytes: &[u8]) -> String {
    let mut text = String::new();
    match coding {
        "gzip" => flate2::read::GzDecoder::new(bytes).read_to_string(&mut text),
        "br" => brotli::Decompressor::new(bytes, 4096).read_to_string(&mut text),
        _ => {
            text = String::from_utf8(zstd::stream::decode_all(bytes).unwrap()).unwrap();
            Ok(0)
        }
    }
    .unwrap();
    text
}

#[test]
fn text_is_compressed_when_asked_for_and_unpacks_to_the_file() {
    let page = "the kettle is warm, ".repeat(200);
    let large = "the hob is warm too, ".repeat(20_000);
    let place = place_with(&[("page.html", &page), ("large.txt", &large)]);
    let hob = place.serve_config("");
    for coding in ["gzip", "br", "zstd"] {
        for (path, text) in [("/page.html", &page), ("/large.txt", &large)] {
            // Made the first time, kept the second.
            for _ in 0..2 {
                let answer = accept(hob.port(), path, coding);
                assert_eq!(answer.header("content-encoding"), Some(coding));
                assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
                assert!(answer.body.len() < text.len() / 4);
                assert!(decoded(coding, &answer.body) == *text, "{coding} {path}");
            }
            let head = format!("Accept-Encoding: {coding}\r\n");
            let head = ask(hob.port(), "HEAD", path, &head);
            assert_eq!(head.header("content-encoding"), Some(coding));
        }
    }
    let answer = accept(hob.port(), "/page.html", "gzip, br, zstd");
    assert_eq!(answer.header("content-encoding"), Some("zstd"));
    let answer = ask(hob.port(), "GET", "/page.html", "");
    assert_eq!(answer.header("content-encoding"), None);
    assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
    hob.stop();
}

#[test]
fn what_is_small_or_no_text_is_left_as_it_is() {
    let text = "x".repeat(3000);
    let place = place_with(&[("a.txt", &text), ("a.png", &text), ("b.txt", &text[..100])]);
    let hob = serve(&place, "compress_min = \"1KiB\"");
    for (path, coding) in [("/a.txt", Some("gzip")), ("/a.png", None), ("/b.txt", None)] {
        let answer = accept(hob.port(), path, "gzip");
        assert_eq!(answer.header("content-encoding"), coding, "{path}");
    }
    hob.stop();
}
