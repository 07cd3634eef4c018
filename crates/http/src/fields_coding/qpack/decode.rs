//! Sections to names and values (RFC 9204 section 4.5).

use hob_trace::Protocol;

use crate::fields_coding::field::{append, is_lawful, span};
use crate::fields_coding::head::{Sound, TrailerReading, Trailers, Wrong, read_head_by};
use crate::fields_coding::number::{take_number, take_string, take_string_of};
use crate::fields_coding::qpack::fixed::ENTRIES;
use crate::fields_coding::{Field, MalformedFieldBlock, RequestFieldName};
use crate::head::RequestHead;
use crate::limits::HttpLimits;

/// Reads a whole section. Each field's texts are appended to `buffer` and shown to `take`, which
/// may cut off again what it does not want to keep.
///
/// # Errors
/// The section is malformed, or refers to a table that was never offered.
pub fn decode(
    section: &[u8],
    buffer: &mut Vec<u8>,
    mut take: impl FnMut(&mut Vec<u8>, Field),
) -> Result<(), MalformedFieldBlock> {
    let mut input = section;
    //= rfc9204#4.5.1
    if take_number(&mut input, 8)? != 0 {
        return Err(NO_TABLE);
    }
    take_number(&mut input, 7)?;
    while let Some(&first) = input.first() {
        let field = match first {
            //= rfc9204#4.5.2
            0xc0.. => {
                let index = take_number(&mut input, 6)?;
                let &(name, value, meaning) = ENTRIES.get(index).ok_or(NO_ENTRY)?;
                Field {
                    name_at: append(buffer, name.as_bytes()),
                    value_at: append(buffer, value.as_bytes()),
                    name: meaning,
                    has_lawful_value: true,
                }
            }
            //= rfc9204#4.5.4
            0x50..0x60 | 0x70..0x80 => {
                let index = take_number(&mut input, 4)?;
                let &(name, _, meaning) = ENTRIES.get(index).ok_or(NO_ENTRY)?;
                let start = buffer.len();
                append(buffer, name.as_bytes());
                with_value(&mut input, start, meaning, buffer)?
            }
            //= rfc9204#4.5.6
            0x20..0x40 => {
                let start = buffer.len();
                take_string_of(&mut input, 3, buffer)?;
                let meaning = RequestFieldName::of(&buffer[start..]);
                with_value(&mut input, start, meaning, buffer)?
            }
            _ => return Err(NO_TABLE),
        };
        take(buffer, field);
    }
    Ok(())
}

/// Reads a request's section into `head`, which is empty.
///
/// # Errors
/// The section is malformed: the connection must end.
pub(crate) fn read_head(
    section: &[u8],
    head: &mut RequestHead,
    limits: &HttpLimits,
) -> Result<Result<Sound, Wrong>, MalformedFieldBlock> {
    read_head_by(Protocol::Http3, head, limits, |bytes, reading| {
        decode(section, bytes, |bytes, field| reading.take(bytes, field))
    })
}

/// Reads a request's section into `head`, which is empty; false when it holds no sound request.
pub fn read_request(section: &[u8], head: &mut RequestHead, limits: &HttpLimits) -> bool {
    matches!(read_head(section, head, limits), Ok(Ok(_)))
}

/// Reads the section of trailers.
///
/// # Errors
/// The section is malformed: the connection must end.
pub(crate) fn read_trailers(
    section: &[u8],
    limits: &HttpLimits,
) -> Result<Trailers, MalformedFieldBlock> {
    let mut reading = TrailerReading::new(limits);
    decode(section, &mut Vec::new(), |bytes, field| {
        reading.take(bytes, field);
    })?;
    Ok(reading.trailers)
}

fn with_value(
    input: &mut &[u8],
    start: usize,
    name: RequestFieldName,
    buffer: &mut Vec<u8>,
) -> Result<Field, MalformedFieldBlock> {
    let middle = buffer.len();
    take_string(input, buffer)?;
    Ok(Field {
        name_at: span(start, middle),
        value_at: span(middle, buffer.len()),
        name,
        has_lawful_value: is_lawful(&buffer[middle..]),
    })
}

const NO_TABLE: MalformedFieldBlock =
    MalformedFieldBlock("a field section refers to a table that was not offered");
const NO_ENTRY: MalformedFieldBlock =
    MalformedFieldBlock("a field section names an entry that is not there");
