//! Acts over HTTP/2: connections that are odd, floods of frames, and frames that are wrong.

mod broken;
mod floods;
mod legal;
mod reader;
use hob_load::parts::h2::frame::{PREFACE, flag, kind, setting, write};
use hob_load::parts::h2::pack_alone;

use super::act::{Allowed, Doing, Draw, Layer, Reading, Script, Step};

pub(super) use broken::KINDS as BROKEN;
pub(super) use floods::KINDS as FLOODS;
pub(super) use legal::KINDS as LEGAL;
pub(super) use reader::H2;

/// The window of each stream, large enough for every answer.
const WINDOW: u32 = 1 << 30;
/// Requests on one connection; their streams are 1, 3, 5, ...
const REQUEST_COUNT_MAX: usize = 501;

/// A script: preface and settings, what the server says to that, then `bytes`.
fn script(
    detail: impl Into<String>,
    bytes: Vec<u8>,
    awaited: Vec<u32>,
    allowed: Allowed,
) -> Script {
    begun(detail, WINDOW, vec![Step::Send(bytes)], awaited, allowed)
}

/// The same with a window, and steps.
fn begun(
    detail: impl Into<String>,
    window: u32,
    steps: Vec<Step>,
    awaited: Vec<u32>,
    allowed: Allowed,
) -> Script {
    let mut first = PREFACE.to_vec();
    let settings = [
        setting::WINDOW.to_be_bytes().to_vec(),
        window.to_be_bytes().to_vec(),
    ];
    write(kind::SETTINGS, 0, 0, &settings.concat(), &mut first);
    write(kind::WINDOW_UPDATE, 0, 0, &WINDOW.to_be_bytes(), &mut first);
    let mut acknowledged = Vec::new();
    write(kind::SETTINGS, flag::ACK, 0, &[], &mut acknowledged);
    let mut all = vec![Step::Send(first), Step::Await, Step::Send(acknowledged)];
    all.extend(steps);
    Script {
        detail: detail.into(),
        doing: Doing::Script {
            layer: Layer::Usual,
            reading: Reading::H2(awaited),
            steps: all,
        },
        allowed,
    }
}

/// The fields of a request that is as it should be.
fn fields(draw: &Draw<'_>) -> Vec<(String, String)> {
    let scheme = if draw.url.is_secure { "https" } else { "http" };
    let fields = [
        (":method", "GET"),
        (":scheme", scheme),
        (":authority", &draw.url.authority),
        (":path", &draw.url.target),
    ];
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

/// Fields as HPACK has them, without a table.
fn packed(fields: &[(String, String)]) -> Vec<u8> {
    pack_alone(&fields.to_vec())
}

/// A frame of its own.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write(kind, flags, stream, payload, &mut out);
    out
}

/// A whole request that is as it should be.
fn get(draw: &Draw<'_>, stream: u32) -> Vec<u8> {
    let flags = flag::END_HEADERS | flag::END_STREAM;
    frame(kind::HEADERS, flags, stream, &packed(&fields(draw)))
}
