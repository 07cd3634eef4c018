//! Paths and names: what would fool a careless server, what is hard to write, what is not told.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::harness::Place;
use crate::harness::client::ask;
use crate::{place_with, serve};

#[test]
fn path_is_understood_in_one_way_or_refused() {
    let place = place_with(&[("docs/a.txt", "a")]);
    place.write("secret", "secret");
    let hob = place.serve_config("");
    for (target, status) in [
        ("/docs/../hello.txt", 200),
        ("/docs/%2e%2E/hello.txt", 200),
        ("/./hello.txt", 200),
        ("//hello.txt", 200),
        ("/docs//..//hello.txt", 200),
        ("/%68ello.txt?x=/../..", 200),
        ("http://localhost/hello.txt", 200),
        ("/../secret", 400),
        ("/docs/../../secret", 400),
        ("/%2e%2e/secret", 400),
        ("/..%2fsecret", 400),
        ("/%2e%2e%2fsecret", 400),
        ("/docs%2f..%2Fhello.txt", 400),
        ("/.%2Fhello.txt", 400),
        ("/..\\secret", 400),
        ("/..%5csecret", 400),
        ("/hello.txt%00", 400),
        ("/hello.txt%00.html", 400),
        ("/hello.txt%0a", 400),
        ("/hello.txt%", 400),
        ("/hello.txt%4", 400),
        ("/hello.txt%zz", 400),
        // No name has a slash in it.
        ("/docs%2fa.txt", 404),
        ("/docs%2Fa.txt", 404),
        ("/%2Fhello.txt", 404),
        ("/hello.txt%2f", 404),
        ("/docs%2F/../hello.txt", 200),
        // Decoded once: these are names, and there are none such.
        ("/%252e%252e/secret", 404),
        ("/%252e%252e%252fsecret", 404),
        ("/..;/secret", 404),
        ("/hello.txt%20", 404),
        ("/hello.txt/", 404),
        ("/hello.txt/.", 404),
        ("/hello.txt/x", 404),
        ("/.../secret", 404),
    ] {
        let answer = ask(hob.port(), "GET", target, "");
        assert_eq!(answer.status, status, "{target}");
        if status == 200 {
            assert_eq!(answer.text(), "hello\n", "{target}");
        }
    }
    hob.stop();
}

/// The clients that carry tests over HTTP/2 and 3 do not send such targets.
#[test]
fn h1_only_target_with_a_fragment_or_without_a_slash_gets_400() {
    let place = Place::new();
    let hob = place.serve_config("");
    for target in ["/hello.txt#top", "hello.txt"] {
        let answer = ask(hob.port(), "GET", target, "");
        assert_eq!(answer.status, 400, "{target}");
    }
    hob.stop();
}

#[test]
fn names_with_every_byte_that_can_be_asked_for_are_found() {
    let place = Place::new();
    let names: [&[u8]; 9] = [
        b"a b.txt",
        "gr\u{f6}\u{df}e \u{1f525}.txt".as_bytes(),
        b"100%.txt",
        b"a+b&c=d.txt",
        b"what?.txt",
        b"hash#.txt",
        b"quote\".txt",
        b"not\xffutf8.txt",
        b"%2e%2e",
    ];
    for name in names {
        let path = place.path("site").join(OsStr::from_bytes(name));
        std::fs::write(path, name).unwrap();
    }
    let hob = place.serve_config("");
    for name in names {
        let encoded: String = name.iter().map(|byte| format!("%{byte:02X}")).collect();
        let answer = ask(hob.port(), "GET", &format!("/{encoded}"), "");
        assert_eq!((answer.status, answer.body.as_slice()), (200, name));
    }
    assert_eq!(ask(hob.port(), "GET", "/a+b&c=d.txt", "").status, 200);
    hob.stop();
}

#[test]
fn dot_files_are_not_there_but_well_known_is() {
    let place = place_with(&[
        (".env", "secret"),
        (".git/config", "secret"),
        ("docs/.hidden/a.txt", "secret"),
        (".well-known/security.txt", "contact"),
        (".well-known/.secret", "secret"),
        ("docs/.well-known/a.txt", "secret"),
    ]);
    let hob = place.serve_config("");
    for path in [
        "/.env",
        "/%2eenv",
        "/.git/config",
        "/.git/",
        "/.git",
        "/docs/.hidden/a.txt",
        "/.well-known/.secret",
        "/docs/.well-known/a.txt",
    ] {
        assert_eq!(ask(hob.port(), "GET", path, "").status, 404, "{path}");
    }
    let answer = ask(hob.port(), "GET", "/.well-known/security.txt", "");
    assert_eq!(answer.text(), "contact");
    hob.stop();
    let hob = serve(&place, "dot_files = true");
    assert_eq!(ask(hob.port(), "GET", "/.env", "").text(), "secret");
    hob.stop();
}

#[test]
fn links_are_followed_as_far_as_the_site_says() {
    let place = place_with(&[("docs/a.txt", "inside")]);
    place.write("outside.txt", "outside");
    let site = place.path("site");
    symlink("docs/a.txt", site.join("in.txt")).unwrap();
    symlink("../hello.txt", site.join("docs/up.txt")).unwrap();
    symlink("docs", site.join("folder")).unwrap();
    symlink("../outside.txt", site.join("out.txt")).unwrap();
    symlink(place.path(""), site.join("parent")).unwrap();
    symlink("loop.txt", site.join("loop.txt")).unwrap();
    symlink("nowhere", site.join("broken.txt")).unwrap();
    let sites = ["inside", "follow", "refuse"].map(|word| {
        format!(
            "[[site]]\nnames = [\"{word}\"]\nroot = \"site\"\n[site.files]\nsymlinks = \"{word}\"\n"
        )
    });
    let listen = "[[listen]]\naddress = \"127.0.0.1:0\"\n";
    let hob = place.serve_text(&format!("{listen}{}", sites.concat()));
    for (path, statuses) in [
        ("/docs/a.txt", [200, 200, 200]),
        ("/in.txt", [200, 200, 404]),
        ("/docs/up.txt", [200, 200, 404]),
        ("/folder/a.txt", [200, 200, 404]),
        ("/out.txt", [404, 200, 404]),
        ("/parent/outside.txt", [404, 200, 404]),
        ("/loop.txt", [404, 404, 404]),
        ("/broken.txt", [404, 404, 404]),
    ] {
        let got = ["inside", "follow", "refuse"].map(|host| {
            let host = format!("Host: {host}\r\n");
            ask(hob.port(), "GET", path, &host).status
        });
        assert_eq!(got, statuses, "{path}");
    }
    hob.stop();
}

#[test]
fn what_is_no_file_or_may_not_be_read_is_refused() {
    let place = place_with(&[("locked.txt", "x"), ("closed/a.txt", "x")]);
    let mode = |name: &str, mode| {
        std::fs::set_permissions(place.path(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    mode("site/locked.txt", 0);
    mode("site/closed", 0);
    let pipe = place.path("site/pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(place.path("site/socket")).unwrap();
    let hob = place.serve_config("");
    for path in [
        "/pipe",
        "/socket",
        "/locked.txt",
        "/closed/a.txt",
        "/closed/",
    ] {
        assert_eq!(ask(hob.port(), "GET", path, "").status, 403, "{path}");
    }
    drop(socket);
    hob.stop();
    mode("site/closed", 0o755);
}
