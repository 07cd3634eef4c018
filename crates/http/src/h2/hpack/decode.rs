//! Blocks to names and values (RFC 7541 sections 3 and 6).

use crate::h2::hpack::number::{take_number, take_string};
use crate::h2::hpack::table::Table;
use crate::h2::hpack::{Malformed, TABLE_BYTES, fixed};
use crate::head::{self, Known, Span};

/// What the name of a request's field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `:authority`
    Authority,
    /// `:method`
    Method,
    /// `:path`
    Path,
    /// `:scheme`
    Scheme,
    /// `:protocol` (RFC 8441)
    Protocol,
    /// A field; known ones have an index of their own in a head.
    Field(Option<Known>),
    /// `te`: only `trailers` is lawful.
    Te,
    /// No request may have it: another pseudo-header field, one that speaks of the connection, or
    /// no name in lower case.
    Unlawful,
}

impl Name {
    /// What these bytes mean.
    //= rfc9113#8.2.1
    pub(crate) fn of(name: &[u8]) -> Name {
        if name.first() == Some(&b':') {
            return match name {
                b":authority" => Name::Authority,
                b":method" => Name::Method,
                b":path" => Name::Path,
                b":scheme" => Name::Scheme,
                b":protocol" => Name::Protocol,
                _ => Name::Unlawful,
            };
        }
        if !head::is_name(name) || name.iter().any(u8::is_ascii_uppercase) {
            return Name::Unlawful;
        }
        match Known::of(name) {
            Some(Known::Connection | Known::TransferEncoding | Known::Upgrade) => Name::Unlawful,
            Some(known) => Name::Field(Some(known)),
            None if is_hop_by_hop(name) => Name::Unlawful,
            None if name == b"te" => Name::Te,
            None => Name::Field(None),
        }
    }
}

/// Fields that speak of the connection, besides those with an index of their own.
//= rfc9113#8.2.2
pub(crate) fn is_hop_by_hop(name: &[u8]) -> bool {
    match name.len() {
        10 => name.eq_ignore_ascii_case(b"keep-alive") || name.eq_ignore_ascii_case(b"connection"),
        16 => name.eq_ignore_ascii_case(b"proxy-connection"),
        17 => name.eq_ignore_ascii_case(b"transfer-encoding"),
        7 => name.eq_ignore_ascii_case(b"upgrade"),
        _ => false,
    }
}

/// True for a value without control characters and without white space around it.
//= rfc9113#8.2.1
pub(crate) fn is_lawful(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !is_blank(value.first())
        && !is_blank(value.last())
        && value
            .iter()
            .all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

/// One field of a block; its texts stand in the buffer the block was decoded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub(crate) name_at: Span,
    pub(crate) value_at: Span,
    /// What its name means.
    pub name: Name,
    /// Its value may stand in a message.
    pub has_lawful_value: bool,
}

impl Field {
    /// Name and value in `buffer`.
    pub fn texts<'b>(&self, buffer: &'b [u8]) -> (&'b [u8], &'b [u8]) {
        (self.name_at.of(buffer), self.value_at.of(buffer))
    }
}

/// What was found out about an entry when it was read.
#[derive(Clone, Copy, Debug)]
struct Seen {
    name: Name,
    has_lawful_value: bool,
}

/// Reads the blocks of one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: Table<Seen>,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder {
            table: Table::new(),
        }
    }
}

impl Decoder {
    /// Reads a whole block. Each field's texts are appended to `buffer` and shown to `take`, which
    /// may cut off again what it does not want to keep.
    ///
    /// # Errors
    /// The block is malformed; the connection must end, as this table and the other side's differ.
    pub fn decode(
        &mut self,
        block: &[u8],
        buffer: &mut Vec<u8>,
        mut take: impl FnMut(&mut Vec<u8>, Field),
    ) -> Result<(), Malformed> {
        let mut input = block;
        // A change of size stands before the first field.
        while let Some(&first) = input.first()
            && first & 0xe0 == 0x20
        {
            //= rfc7541#6.3
            let size = take_number(&mut input, 5)?;
            if size > TABLE_BYTES {
                return Err(Malformed("a table is to become larger than was allowed"));
            }
            self.table.set_size_max(size);
        }
        while let Some(&first) = input.first() {
            let field = match first {
                //= rfc7541#6.1
                0x80.. => {
                    let index = take_number(&mut input, 7)?;
                    self.indexed(index, buffer)?
                }
                //= rfc7541#6.2.1
                0x40.. => {
                    let field = self.literal(&mut input, 6, buffer)?;
                    let (name, value) = field.texts(buffer);
                    let seen = Seen {
                        name: field.name,
                        has_lawful_value: field.has_lawful_value,
                    };
                    self.table.add(name, value, seen);
                    field
                }
                0x20.. => return Err(Malformed("a table's size changes amid a field block")),
                //= rfc7541#6.2.2
                _ => self.literal(&mut input, 4, buffer)?,
            };
            take(buffer, field);
        }
        Ok(())
    }

    fn indexed(&self, index: usize, buffer: &mut Vec<u8>) -> Result<Field, Malformed> {
        if let Some(&(name, value, meaning)) = fixed::ENTRIES.get(index.wrapping_sub(1)) {
            let name_at = append(buffer, name.as_bytes());
            let value_at = append(buffer, value.as_bytes());
            return Ok(Field {
                name_at,
                value_at,
                name: meaning,
                has_lawful_value: true,
            });
        }
        let (name, value, seen) = self.entry(index)?;
        let name_at = append(buffer, name);
        let value_at = append(buffer, value);
        Ok(Field {
            name_at,
            value_at,
            name: seen.name,
            has_lawful_value: seen.has_lawful_value,
        })
    }

    /// An entry of the dynamic table.
    //= rfc7541#2.3.3
    fn entry(&self, index: usize) -> Result<(&[u8], &[u8], Seen), Malformed> {
        index
            .checked_sub(fixed::ENTRIES.len() + 1)
            .and_then(|index| self.table.entry(index))
            .ok_or(Malformed("a field block names an entry that is not there"))
    }

    fn literal(
        &self,
        input: &mut &[u8],
        prefix_bits: u32,
        buffer: &mut Vec<u8>,
    ) -> Result<Field, Malformed> {
        let index = take_number(input, prefix_bits)?;
        let start = buffer.len();
        let name = if index == 0 {
            take_string(input, buffer)?;
            Name::of(&buffer[start..])
        } else if let Some(&(name, _, meaning)) = fixed::ENTRIES.get(index - 1) {
            append(buffer, name.as_bytes());
            meaning
        } else {
            let (name, _, seen) = self.entry(index)?;
            append(buffer, name);
            seen.name
        };
        let middle = buffer.len();
        take_string(input, buffer)?;
        Ok(Field {
            name_at: span(start, middle),
            value_at: span(middle, buffer.len()),
            name,
            has_lawful_value: is_lawful(&buffer[middle..]),
        })
    }
}

/// Appends a text; says where it stands.
pub(crate) fn append(buffer: &mut Vec<u8>, text: &[u8]) -> Span {
    let start = buffer.len();
    buffer.extend_from_slice(text);
    span(start, buffer.len())
}

/// From here to there.
pub(crate) fn span(start: usize, end: usize) -> Span {
    Span {
        start: start as u32,
        len: (end - start) as u32,
    }
}
