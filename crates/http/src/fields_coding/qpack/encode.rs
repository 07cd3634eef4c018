//! Names and values to sections (RFC 9204 section 4.5): entries of the static table where there are
//! some, text else.

use crate::fields_coding::is_hop_by_hop;
use crate::fields_coding::number::{push_number, push_string, push_string_of};
use crate::fields_coding::qpack::fixed::{ENTRIES, places_of};
use crate::head::Fields;
use crate::status::is_bodiless;

/// A head prepared for many answers: all of its section but the date.
#[derive(Debug)]
pub(crate) struct PreparedSection(Box<[u8]>);

impl PreparedSection {
    /// Makes it of a head without date and framing, for a body of so many bytes.
    pub(crate) fn new(status: u16, fields: &Fields, body_bytes: u64) -> PreparedSection {
        let mut out = Vec::new();
        push_prefix(&mut out);
        push_status(status, &mut out);
        for (name, value) in fields.iter() {
            push_field(name, value, &mut out);
        }
        if !is_bodiless(status) {
            push_content_length(body_bytes, &mut out);
        }
        PreparedSection(out.into())
    }

    /// The section so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Appends what every section begins with: it needs no entries of a dynamic table.
pub fn push_prefix(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Appends a status.
pub fn push_status(status: u16, out: &mut Vec<u8>) {
    let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
    push_text(b":status", &digits, out);
}

/// Appends the size of a body.
pub(crate) fn push_content_length(body_bytes: u64, out: &mut Vec<u8>) {
    let mut digits = Vec::with_capacity(20);
    crate::digits::push_decimal(body_bytes, &mut digits);
    push_text(b"content-length", &digits, out);
}

/// Appends a field, its name in lower case; nothing if it speaks of the connection.
//= rfc9114#4.2
pub fn push_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    if is_hop_by_hop(name) {
        return;
    }
    let mut lower = [0u8; NAME_INLINE];
    match lower.get_mut(..name.len()) {
        Some(lower) => {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            push_text(lower, value, out);
        }
        None => push_text(&name.to_ascii_lowercase(), value, out),
    }
}

/// Names up to this size are made lower case without an allocation.
const NAME_INLINE: usize = 64;

fn push_text(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let places = places_of(name);
    // No proxy may put it into a table.
    let is_secret = name == b"set-cookie";
    let is_it = |place: &&u8| ENTRIES[usize::from(**place)].1.as_bytes() == value;
    if let Some(place) = places.iter().find(is_it) {
        return push_number(usize::from(*place), 6, 0xc0, out);
    }
    match places.first() {
        Some(place) => {
            let pattern = if is_secret { 0x70 } else { 0x50 };
            push_number(usize::from(*place), 4, pattern, out);
        }
        None => push_string_of(name, 3, 0x20, out),
    }
    push_string(value, out);
}
