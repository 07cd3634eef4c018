//! What a server sends over HTTP/2: in one piece and byte by byte it is the same, no stream gives
//! more of a body than was announced, and nothing is passed on that speaks of a connection.
#![no_main]

use hob_http::Fields;
use hob_http::h2::client::{Http2Client, Http2ClientEvent};
use libfuzzer_sys::fuzz_target;

const HEAD_BYTES_MAX: usize = 4096;
const STREAMS: usize = 3;

#[derive(Debug, Default, PartialEq)]
struct Told {
    events: Vec<String>,
    bodies: [Vec<u8>; STREAMS],
    announced: [Option<u64>; STREAMS],
    sent: Vec<u8>,
    is_over: bool,
}

fn check(fields: &Fields) -> String {
    for (name, value) in fields.iter() {
        for framing in [
            "content-length",
            "transfer-encoding",
            "connection",
            "upgrade",
        ] {
            assert!(!name.eq_ignore_ascii_case(framing.as_bytes()));
        }
        assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
    }
    format!("{fields:?}")
}

fn told(bytes: &[u8], step: usize) -> Told {
    let mut told = Told::default();
    let mut client = Http2Client::new(HEAD_BYTES_MAX, 0, &mut told.sent);
    for method in [&b"GET"[..], b"HEAD", b"POST"] {
        client.open(
            (method == b"HEAD", method != b"POST"),
            &mut told.sent,
            |block| {
                block.target((method, None), false, (b"h", b"/"));
            },
        );
    }
    let mut carry = Vec::new();
    for input in bytes.chunks(step) {
        carry.extend_from_slice(input);
        loop {
            let (used, event) = client.read(&carry, &mut told.sent, 0);
            assert!(used <= carry.len());
            let place = |id: u32| (id as usize - 1) / 2;
            match &event {
                Http2ClientEvent::NeedMore => {
                    carry.drain(..used);
                    break;
                }
                Http2ClientEvent::Data(id, len) => {
                    told.bodies[place(*id)].extend_from_slice(&carry[used - len..used]);
                }
                Http2ClientEvent::Head(id, head) => {
                    assert!((200..600).contains(&head.status));
                    told.announced[place(*id)] = head.body_bytes;
                    told.events
                        .push(format!("{id} {} {}", head.status, check(&head.fields)));
                }
                Http2ClientEvent::Interim(id, status, fields) => {
                    assert!((100..200).contains(status));
                    told.events.push(format!("{id} {status} {}", check(fields)));
                }
                Http2ClientEvent::End(id, fields) => {
                    told.events.push(format!("{id} end {}", check(fields)));
                }
                Http2ClientEvent::Over(_) => told.is_over = true,
                other => told.events.push(format!("{other:?}")),
            }
            carry.drain(..used);
        }
        if told.is_over {
            return told;
        }
    }
    told
}

fuzz_target!(|bytes: &[u8]| {
    let whole = told(bytes, bytes.len().max(1));
    let pieces = told(bytes, 1);
    assert_eq!(whole, pieces);
    for (body, announced) in whole.bodies.iter().zip(whole.announced) {
        assert!(body.len() <= bytes.len());
        assert!(announced.is_none_or(|announced| body.len() as u64 <= announced));
    }
});
