//! HTTP/2 as a client: `session` is one connection, `receive` what the server sends on it,
//! `request` our fields, `hpack` the server's.

use std::fmt::Write;
use std::sync::Arc;

use crate::request::RequestProfile;

mod fixed;
pub mod frame;
mod hpack;
mod receive;
mod request;
mod session;

pub use hpack::{ClientHpackTable, HpackContext};
pub(crate) use request::H2Requests;
pub(crate) use session::{Common, H2ClientSession};

/// The fields of one request, packed without any table of the connection.
pub fn pack_alone(fields: &crate::request::Fields) -> Vec<u8> {
    request::pack_alone(fields)
}

/// What four requests on one connection come to when the server sends these pieces, a line each.
/// Tests and the fuzz target hold against each other what comes whole and what comes in pieces.
pub fn replay(pieces: &[&[u8]]) -> String {
    const STREAMS: u32 = 4;
    let fields = [(":method", "GET"), (":path", "/")];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let common = Common {
        requests: H2Requests::new(&[&fields]),
        asks: vec![RequestProfile {
            body: Arc::new([]),
            is_head: false,
            is_hashed: false,
        }],
        known: HpackContext::default(),
    };
    let mut session = H2ClientSession::new(STREAMS as usize);
    session.begin_all(&common);
    let (mut events, mut told) = (Vec::new(), String::new());
    for piece in pieces {
        let received = session.receive(piece, &common, &mut events);
        for event in events.drain(..) {
            // Writing to a text cannot fail.
            let _ = writeln!(told, "{event:?}");
        }
        if let Err(why) = received {
            told.push_str(why);
            break;
        }
    }
    told
}

#[cfg(test)]
mod tests;
