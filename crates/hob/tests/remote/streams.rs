//! What goes both ways while it lasts.

use std::time::Instant;

use crate::authority::Authority;
use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place};
use crate::pair::{Owner, certify, front_place, serve_front};

/// An owner of the application, and a front that asks it.
pub(crate) fn live() -> (Owner, Site) {
    let authority = Authority::new("hobs");
    let place = Place::new();
    place.folder("app");
    place.write("app/live.py", include_str!("live.py"));
    certify(&place, &authority, "owner");
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
         tls = { certificate = \"own.pem\", key = \"own.key\" }\noffers = \"ca.pem\"\n\
         [[offer]]\nprogram = \"app\"\nto = \"front\"\n[[site]]\n[[site.route]]\n\
         path = \"/app/*\"\nname = \"app\"\ninternal = true\n\
         resident = { asgi = \"live:application\", dir = \"app\" }\n",
    );
    let owner = Owner { place, hob };
    let front = serve_front(front_place(&authority), &owner.to(), "", "");
    (owner, front)
}

#[test]
fn pieces_of_request_and_answer_pass_each_other() {
    let (owner, front) = live();
    let mut client = Connection::open(front.port()).unwrap();
    let head = "POST /app/converse HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send(head.as_bytes()).unwrap();
    for word in ["one", "two", "six"] {
        client.send(format!("3\r\n{word}\r\n").as_bytes()).unwrap();
        client.read_until(&format!("heard {word}\n"));
    }
    client.send(b"0\r\n\r\n").unwrap();
    client.read_until("bye\n\r\n0\r\n\r\n");
    front.stop();
    owner.stop();
}

#[test]
fn client_that_does_not_read_stops_the_program() {
    let (owner, front) = live();
    let mut client = Connection::open(front.port()).unwrap();
    client.send_get("/app/endless").unwrap();
    client.read_head().unwrap();
    let count = || {
        let text = std::fs::read_to_string(owner.place.path("app/count"));
        text.ok()
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(0)
    };
    // What lies on the way is full when nothing more comes for as long as other requests take.
    let until = Instant::now() + DEADLINE;
    loop {
        let before = count();
        for _ in 0..20 {
            assert_eq!(front.get("/other").answer.status, 404);
        }
        if before > 0 && count() == before {
            break;
        }
        assert!(Instant::now() < until, "{before} pieces and more");
    }
    // 64 KiB each.
    assert!(count() < 1024, "{}", count());
    client.leave();
    front.stop();
    owner.stop();
}

#[test]
fn websocket_goes_through() {
    let (owner, front) = live();
    let mut client = Connection::open(front.port()).unwrap();
    let head = "GET /app/chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.send(head.as_bytes()).unwrap();
    let (status, headers) = client.read_head().unwrap();
    assert_eq!(status, 101);
    let accept = headers
        .iter()
        .find(|(name, _)| name == "sec-websocket-accept");
    let expected = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    assert_eq!(accept.map(|(_, value)| value.as_str()), Some(expected));
    // A text of five letters, under a mask of zeros, and the same back without one.
    client.send(b"\x81\x85\0\0\0\0hello").unwrap();
    client.read_until("\u{5}hello");
    client.leave();
    front.stop();
    owner.stop();
}

#[test]
fn explain_says_which_machine_has_the_program() {
    let (owner, front) = live();
    let told = front.place.run(&[
        "explain",
        "GET",
        "http://localhost/app/x",
        "--config",
        "hob.toml",
    ]);
    let text = crate::harness::text_of(&told);
    let port = owner.hob.tls_port();
    assert!(told.status.success(), "{text}");
    for part in ["remote", &format!("localhost:{port}"), "app"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    println!("{text}");
    front.stop();
    owner.stop();
}
