//! Heads prepared for many answers.

use crate::digits::decimal;
use crate::fields_coding::hpack::{Encoder, Stored, encode_field, place_of};
use crate::head::Fields;
use crate::status::is_bodiless;

/// What a prepared head adds for HTTP/2, made when it is first asked for.
#[derive(Debug)]
pub(crate) struct PreparedBlock {
    /// Fields that other answers have too, in lower case.
    repeated: Fields,
    /// Where the encoder of a connection notes each of them.
    places: Box<[u8]>,
    /// The others, encoded without a table.
    own: Box<[u8]>,
}

impl PreparedBlock {
    /// Makes it of a head without date and framing, for a body of so many bytes.
    pub(crate) fn new(status: u16, fields: &Fields, body_bytes: u64) -> PreparedBlock {
        let mut repeated = Fields::new();
        let mut places = Vec::new();
        let mut own = Vec::new();
        for (name, value) in fields.iter() {
            match Stored::of(name, value) {
                Stored::InTable => {
                    let name = name.to_ascii_lowercase();
                    places.push(place_of(&name, value));
                    repeated.add(&name, value);
                }
                stored => encode_field(name, value, stored, &mut own),
            }
        }
        if !is_bodiless(status) {
            push_content_length(body_bytes, &mut own);
        }
        PreparedBlock {
            repeated,
            places: places.into(),
            own: own.into(),
        }
    }

    /// Appends it to the block of an answer.
    pub(crate) fn push(&self, encoder: &mut Encoder, out: &mut Vec<u8>) {
        for ((name, value), place) in self.repeated.iter().zip(&self.places) {
            encoder.repeated_at(*place, name, value, out);
        }
        out.extend_from_slice(&self.own);
    }
}

/// Appends the size of a body.
pub(crate) fn push_content_length(body_bytes: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let digits = decimal(body_bytes, &mut digits);
    encode_field(b"content-length", digits, Stored::AsText, out);
}
