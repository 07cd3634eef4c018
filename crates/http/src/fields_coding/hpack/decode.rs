//! Blocks to names and values (RFC 7541 sections 3 and 6).

use crate::fields_coding::field::{append, is_lawful, span};
use crate::fields_coding::hpack::table::HpackDynamicTable;
use crate::fields_coding::hpack::{TABLE_BYTES, TOO_LARGE, fixed};
use crate::fields_coding::number::{take_number, take_string};
use crate::fields_coding::{ENTRY_BYTES, Field, MalformedFieldBlock, RequestFieldName};

/// What was found out about an entry when it was read.
#[derive(Clone, Copy, Debug)]
struct FieldCheck {
    name: RequestFieldName,
    has_lawful_value: bool,
}

/// Reads the blocks of one connection, in their order.
#[derive(Debug)]
pub struct HpackDecoder {
    table: HpackDynamicTable<FieldCheck>,
    /// Most bytes of fields that one block may come to.
    block_bytes_max: usize,
}

impl Default for HpackDecoder {
    fn default() -> HpackDecoder {
        HpackDecoder {
            table: HpackDynamicTable::new(),
            block_bytes_max: usize::MAX,
        }
    }
}

impl HpackDecoder {
    /// One that gives up on a block of more than so many bytes of fields, each with
    /// [`ENTRY_BYTES`]: a byte of a block may stand for thousands.
    pub fn with_limit(block_bytes_max: usize) -> HpackDecoder {
        HpackDecoder {
            block_bytes_max,
            ..HpackDecoder::default()
        }
    }

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
    ) -> Result<(), MalformedFieldBlock> {
        let mut input = block;
        let mut bytes_left = self.block_bytes_max;
        // A change of size stands before the first field.
        while let Some(&first) = input.first()
            && first & 0xe0 == 0x20
        {
            //= rfc7541#6.3
            let size = take_number(&mut input, 5)?;
            if size > TABLE_BYTES {
                return Err(MalformedFieldBlock(
                    "a table is to become larger than was allowed",
                ));
            }
            self.table.set_size_max(size);
        }
        while let Some(&first) = input.first() {
            let start = buffer.len();
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
                    let seen = FieldCheck {
                        name: field.name,
                        has_lawful_value: field.has_lawful_value,
                    };
                    self.table.add(name, value, seen);
                    field
                }
                0x20.. => {
                    return Err(MalformedFieldBlock(
                        "a table's size changes amid a field block",
                    ));
                }
                //= rfc7541#6.2.2
                _ => self.literal(&mut input, 4, buffer)?,
            };
            bytes_left = bytes_left
                .checked_sub(buffer.len() - start + ENTRY_BYTES)
                .ok_or(TOO_LARGE)?;
            take(buffer, field);
        }
        Ok(())
    }

    fn indexed(&self, index: usize, buffer: &mut Vec<u8>) -> Result<Field, MalformedFieldBlock> {
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
    fn entry(&self, index: usize) -> Result<(&[u8], &[u8], FieldCheck), MalformedFieldBlock> {
        index
            .checked_sub(fixed::ENTRIES.len() + 1)
            .and_then(|index| self.table.entry(index))
            .ok_or(MalformedFieldBlock(
                "a field block names an entry that is not there",
            ))
    }

    fn literal(
        &self,
        input: &mut &[u8],
        prefix_bits: u32,
        buffer: &mut Vec<u8>,
    ) -> Result<Field, MalformedFieldBlock> {
        let index = take_number(input, prefix_bits)?;
        let start = buffer.len();
        let name = if index == 0 {
            take_string(input, buffer)?;
            RequestFieldName::of(&buffer[start..])
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
