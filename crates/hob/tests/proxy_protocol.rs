//! The PROXY protocol, between hob and real servers before and behind it.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "proxy_protocol/incoming.rs"]
mod incoming;
#[path = "proxy_protocol/outgoing.rs"]
mod outgoing;
#[path = "proxy_protocol/partners.rs"]
mod partners;
#[path = "proxy_protocol/refusals.rs"]
mod refusals;

use harness::client::Connection;
use harness::{Hob, Place};

/// A site whose program says where its client comes from, behind a listener with these keys.
fn behind(listen: &str, own: &str, site: &str) -> (Place, Hob) {
    let place = Place::new();
    place.script(
        "cgi/who",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
         echo \"$REMOTE_ADDR $REMOTE_PORT $SERVER_ADDR $SERVER_PORT $REQUEST_SCHEME\" \
         \"${HTTP_X_FORWARDED_FOR-}\"\n",
    );
    let hob = place.serve_text(&format!(
        "default_log = \"access\"\n[[log]]\nname = \"access\"\nfile = \"run/access.log\"\n\
         format = \"combined\"\n[[listen]]\nproxy_protocol = true\n{listen}\n\
         [[site]]\n{site}\n[[site.route]]\npath = \"/*\"\ncgi = \"cgi\"\n{own}"
    ));
    (place, hob)
}

/// What the program is told behind this header, with these fields.
fn who(connection: &mut Connection, header: &[u8], fields: &str) -> String {
    connection.send(header).unwrap();
    connection.send_ask("GET", "/who", fields);
    let answer = connection.read_last("GET");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().trim_end().to_owned()
}

/// A header of version 2 for TCP over IPv4, from 192.0.2.7:4711 to 198.51.100.2:443.
fn version_2(tlvs: &[u8]) -> Vec<u8> {
    let rest = [
        &[192, 0, 2, 7, 198, 51, 100, 2, 0x12, 0x67, 0x01, 0xbb],
        tlvs,
    ]
    .concat();
    header_2(0x21, 0x11, &rest)
}

/// One of any kind.
fn header_2(command: u8, kind: u8, rest: &[u8]) -> Vec<u8> {
    let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n", &[command, kind][..], &len, rest].concat()
}

const VERSION_1: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.2 4711 443\r\n";
/// What it makes of a client, and a scheme.
const CLIENT: &str = "192.0.2.7 4711 198.51.100.2 443 http";
