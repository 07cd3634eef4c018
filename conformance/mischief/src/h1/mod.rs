//! Acts over HTTP/1.1: connections that are cut, requests that are odd, bytes that are no requests,
//! and WebSockets that go wrong.

mod cut;
mod malformed;
mod odd;
mod websocket;

use super::act::{Draw, Step};

pub(super) use cut::KINDS as CUT;
pub(super) use malformed::KINDS as MALFORMED;
pub(super) use odd::KINDS as ODD;
pub(super) use websocket::KINDS as WEBSOCKET;

/// A path that nobody asks for, where a server may see a request that is none.
const SMUGGLED: &str = "/hob-exercise-smuggled";

/// A request with these fields besides Host, each with its line end.
fn request(draw: &Draw<'_>, method: &str, fields: &str) -> String {
    let url = draw.url;
    format!(
        "{method} {} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n",
        url.target, url.authority
    )
}

fn send(bytes: impl Into<Vec<u8>>) -> Step {
    Step::Send(bytes.into())
}

/// A request that is as it should be.
pub(super) fn get(draw: &Draw<'_>) -> String {
    request(draw, "GET", "")
}
