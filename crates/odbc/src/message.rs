//! What server and process say to each other.
//!
//! ```text
//!  0       4      5
//!  +-------+------+---------------------
//!  | bytes | kind | its fields ...          numbers are little-endian; `bytes` counts from `kind`
//!  +-------+------+---------------------
//!
//!  text     u32 bytes, UTF-8              value, cell   u8 kind: 0 NULL, 1 i64, 2 f64, 3 text
//!
//!  server to process                      process to server, one for each but Cancel
//!  1 Open     text, u8 reads only         1 Done      nothing
//!  2 Run      text, u8 all results,       2 Portion   columns: u8 0, or 1 u32 count, texts
//!             u32 count, values,                      end: u8 0 more, 2 fault, or
//!             each behind u8 way:                       1 u64 changed, u32 count, values
//!             0 in, 1 out, 2 both                     u32 rows, then their cells up to the end
//!  3 More     nothing
//!  4 Close    nothing                     3 Failed    fault: text state, i32 native,
//!  5 Commit   nothing                                 u8 gone, text
//!  6 Rollback nothing
//!  7 Cancel   nothing
//! ```
//!
//! Results stand on each other: More and Close are for the one that was begun last. Rows come when
//! they are asked for, so nobody keeps many. What does not fit is refused by whoever reads it.

use hob_page::sql::Cell;

/// Bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// What the server asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum DriverRequest {
    /// Connect, with a connection string.
    Open {
        /// As a driver manager takes it.
        connection: String,
        /// Nothing is written.
        is_read_only: bool,
    },
    /// Run a statement.
    Run {
        /// With a `?` for each value.
        text: String,
        /// Results after the first are wanted too.
        has_all_results: bool,
        /// In order.
        values: Vec<(ValueWay, Value)>,
    },
    /// More rows of the last result.
    More,
    /// No more of them.
    Close,
    /// Keep what was written.
    Commit,
    /// Undo it.
    Rollback,
    /// End what runs. There is no answer.
    Cancel,
}

/// Which way a value of a statement goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueWay {
    /// To the database.
    In,
    /// Back from a procedure.
    Out,
    /// There and back.
    Both,
}

/// A value of a statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Anything else.
    Text(String),
}

/// What the process answers.
#[derive(Clone, PartialEq, Debug)]
pub enum DriverReply {
    /// It is done.
    Done,
    /// A statement has run, or there are more rows of it.
    Portion(Portion),
    /// It did not work.
    Failed(DriverFault),
}

/// A part of a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Portion {
    /// Where a result begins.
    pub columns: Option<Vec<String>>,
    /// Rows of cells.
    pub rows: Rows,
    /// What comes after it.
    pub end: PortionEnd,
}

/// What comes after a part of a result.
#[derive(Clone, PartialEq, Debug)]
pub enum PortionEnd {
    /// Perhaps more rows, or another result.
    Paused,
    /// Nothing; so many rows were changed, and these values a procedure has given back.
    Done(u64, Vec<Value>),
    /// There would have been more.
    Failed(DriverFault),
}

/// What a driver says is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriverFault {
    /// `SQLSTATE`.
    pub state: String,
    /// The database's own number.
    pub native: i32,
    /// The connection ends with it.
    pub is_gone: bool,
    /// For people.
    pub text: String,
}

/// Rows as they travel.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Rows {
    count: u32,
    cells: Vec<u8>,
    /// Bytes of rows that are whole: only these travel.
    whole: usize,
}

impl Rows {
    /// Bytes that they have so far.
    pub fn bytes(&self) -> usize {
        self.cells.len()
    }

    /// Adds a cell to the row that is being written.
    pub fn push(&mut self, cell: &Cell<'_>) {
        put_cell(cell, &mut self.cells);
    }

    /// The row is whole.
    pub fn end_row(&mut self) {
        self.count += 1;
        self.whole = self.cells.len();
    }

    /// Reads them, row by row. None is there after one that is broken.
    pub fn read(&self, width: usize) -> RowReader<'_> {
        RowReader {
            // Rows without a cell would never end.
            left: if width == 0 { 0 } else { self.count },
            width,
            reader: Reader(&self.cells[..self.whole]),
        }
    }
}

/// Reads rows.
pub struct RowReader<'a> {
    left: u32,
    width: usize,
    reader: Reader<'a>,
}

impl<'a> RowReader<'a> {
    /// Puts the next row in the place of what is in `cells`. False at the end.
    pub fn next(&mut self, cells: &mut Vec<Cell<'a>>) -> Result<bool, Malformed> {
        cells.clear();
        if self.left == 0 {
            return match self.reader.0 {
                [] => Ok(false),
                _ => Err(Malformed),
            };
        }
        self.left -= 1;
        for _ in 0..self.width {
            cells.push(self.reader.cell()?);
        }
        Ok(true)
    }
}

/// A message that is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl DriverRequest {
    /// Writes it, with its length.
    pub fn encode(&self) -> Vec<u8> {
        framed(|out| match self {
            DriverRequest::Open {
                connection,
                is_read_only,
            } => {
                out.push(1);
                put_text(connection, out);
                out.push(u8::from(*is_read_only));
            }
            DriverRequest::Run {
                text,
                has_all_results,
                values,
            } => {
                out.push(2);
                put_text(text, out);
                out.push(u8::from(*has_all_results));
                put_len(values.len(), out);
                for (way, value) in values {
                    out.push(*way as u8);
                    put_cell(&value.cell(), out);
                }
            }
            DriverRequest::More => out.push(3),
            DriverRequest::Close => out.push(4),
            DriverRequest::Commit => out.push(5),
            DriverRequest::Rollback => out.push(6),
            DriverRequest::Cancel => out.push(7),
        })
    }

    /// Reads what stands behind a length.
    pub fn decode(bytes: &[u8]) -> Result<DriverRequest, Malformed> {
        let mut reader = Reader(bytes);
        let request = match reader.byte()? {
            1 => DriverRequest::Open {
                connection: reader.text()?,
                is_read_only: reader.flag()?,
            },
            2 => DriverRequest::Run {
                text: reader.text()?,
                has_all_results: reader.flag()?,
                values: reader.list(|reader| Ok((reader.way()?, reader.value()?)))?,
            },
            3 => DriverRequest::More,
            4 => DriverRequest::Close,
            5 => DriverRequest::Commit,
            6 => DriverRequest::Rollback,
            7 => DriverRequest::Cancel,
            _ => return Err(Malformed),
        };
        reader.end(request)
    }
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            Value::Null => Cell::Null,
            Value::Integer(number) => Cell::Integer(*number),
            Value::Real(number) => Cell::Real(*number),
            Value::Text(text) => Cell::Text(text.as_bytes()),
        }
    }
}

impl DriverReply {
    /// Writes it, with its length.
    pub fn encode(&self) -> Vec<u8> {
        framed(|out| match self {
            DriverReply::Done => out.push(1),
            DriverReply::Portion(portion) => {
                out.push(2);
                out.push(u8::from(portion.columns.is_some()));
                if let Some(columns) = &portion.columns {
                    put_len(columns.len(), out);
                    columns.iter().for_each(|name| put_text(name, out));
                }
                match &portion.end {
                    PortionEnd::Paused => out.push(0),
                    PortionEnd::Done(changed, values) => {
                        out.push(1);
                        out.extend_from_slice(&changed.to_le_bytes());
                        put_len(values.len(), out);
                        values.iter().for_each(|value| put_cell(&value.cell(), out));
                    }
                    PortionEnd::Failed(fault) => {
                        out.push(2);
                        put_fault(fault, out);
                    }
                }
                out.extend_from_slice(&portion.rows.count.to_le_bytes());
                out.extend_from_slice(&portion.rows.cells[..portion.rows.whole]);
            }
            DriverReply::Failed(fault) => {
                out.push(3);
                put_fault(fault, out);
            }
        })
    }

    /// Reads what stands behind a length. Cells are read later, where they are used.
    pub fn decode(bytes: &[u8]) -> Result<DriverReply, Malformed> {
        let mut reader = Reader(bytes);
        let reply = match reader.byte()? {
            1 => DriverReply::Done,
            2 => {
                let columns = match reader.flag()? {
                    true => Some(reader.list(Reader::text)?),
                    false => None,
                };
                let end = match reader.byte()? {
                    0 => PortionEnd::Paused,
                    1 => {
                        let changed = u64::from_le_bytes(reader.array()?);
                        PortionEnd::Done(changed, reader.list(Reader::value)?)
                    }
                    2 => PortionEnd::Failed(reader.fault()?),
                    _ => return Err(Malformed),
                };
                let count = reader.number()?;
                let cells = std::mem::take(&mut reader.0).to_vec();
                let rows = Rows {
                    count,
                    whole: cells.len(),
                    cells,
                };
                DriverReply::Portion(Portion { columns, rows, end })
            }
            3 => DriverReply::Failed(reader.fault()?),
            _ => return Err(Malformed),
        };
        reader.end(reply)
    }
}

fn framed(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![0; 4];
    write(&mut out);
    let bytes = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&bytes.to_le_bytes());
    out
}

fn put_len(len: usize, out: &mut Vec<u8>) {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_len(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put_bytes(text.as_bytes(), out);
}

fn put_cell(cell: &Cell<'_>, out: &mut Vec<u8>) {
    match cell {
        Cell::Null => out.push(0),
        Cell::Integer(number) => {
            out.push(1);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Cell::Real(number) => {
            out.push(2);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Cell::Text(bytes) => {
            out.push(3);
            put_bytes(bytes, out);
        }
    }
}

fn put_fault(fault: &DriverFault, out: &mut Vec<u8>) {
    put_text(&fault.state, out);
    out.extend_from_slice(&fault.native.to_le_bytes());
    out.push(u8::from(fault.is_gone));
    put_text(&fault.text, out);
}

/// What is left of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn way(&mut self) -> Result<ValueWay, Malformed> {
        match self.byte()? {
            0 => Ok(ValueWay::In),
            1 => Ok(ValueWay::Out),
            2 => Ok(ValueWay::Both),
            _ => Err(Malformed),
        }
    }

    fn number(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.number()? as usize;
        self.take(count)
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let text = std::str::from_utf8(self.bytes()?);
        text.map(str::to_owned).map_err(|_| Malformed)
    }

    fn cell(&mut self) -> Result<Cell<'a>, Malformed> {
        Ok(match self.byte()? {
            0 => Cell::Null,
            1 => Cell::Integer(i64::from_le_bytes(self.array()?)),
            2 => Cell::Real(f64::from_le_bytes(self.array()?)),
            3 => Cell::Text(self.bytes()?),
            _ => return Err(Malformed),
        })
    }

    fn value(&mut self) -> Result<Value, Malformed> {
        Ok(match self.cell()? {
            Cell::Null => Value::Null,
            Cell::Integer(number) => Value::Integer(number),
            Cell::Real(number) => Value::Real(number),
            Cell::Text(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|_| Malformed)?;
                Value::Text(text.to_owned())
            }
        })
    }

    /// Each entry has a byte at least, so a count that lies asks for nothing.
    fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.number()? as usize;
        if count > self.0.len() {
            return Err(Malformed);
        }
        (0..count).map(|_| read(self)).collect()
    }

    fn fault(&mut self) -> Result<DriverFault, Malformed> {
        Ok(DriverFault {
            state: self.text()?,
            native: i32::from_le_bytes(self.array()?),
            is_gone: self.flag()?,
            text: self.text()?,
        })
    }

    fn end<T>(self, whole: T) -> Result<T, Malformed> {
        match self.0 {
            [] => Ok(whole),
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_cut_short_is() {
        let fault = DriverFault {
            state: "42S02".to_owned(),
            native: -204,
            is_gone: false,
            text: "no such table".to_owned(),
        };
        let mut rows = Rows::default();
        let cells = [
            Cell::Null,
            Cell::Integer(-7),
            Cell::Real(0.5),
            Cell::Text(b"\xc3\xa4"),
        ];
        cells.iter().for_each(|cell| rows.push(cell));
        rows.end_row();
        let mut reader = rows.read(4);
        let mut found = Vec::new();
        assert_eq!(reader.next(&mut found), Ok(true));
        assert_eq!(found, cells);
        assert_eq!(reader.next(&mut found), Ok(false));
        assert_eq!(rows.read(5).next(&mut found), Err(Malformed));
        let portion = |end| {
            DriverReply::Portion(Portion {
                columns: Some(vec!["a".to_owned(); 4]),
                rows: rows.clone(),
                end,
            })
        };
        for reply in [
            DriverReply::Done,
            portion(PortionEnd::Paused),
            portion(PortionEnd::Done(
                3,
                vec![Value::Null, Value::Text("x".into())],
            )),
            portion(PortionEnd::Failed(fault.clone())),
            DriverReply::Failed(fault),
        ] {
            let bytes = reply.encode();
            assert_eq!(DriverReply::decode(&bytes[4..]), Ok(reply));
        }
        for request in [
            DriverRequest::Open {
                connection: "DSN=a".to_owned(),
                is_read_only: true,
            },
            DriverRequest::Run {
                text: "SELECT ?".to_owned(),
                has_all_results: false,
                values: vec![
                    (ValueWay::Out, Value::Null),
                    (ValueWay::In, Value::Integer(1)),
                    (ValueWay::Both, Value::Real(0.1)),
                    (ValueWay::In, Value::Text("ä".into())),
                ],
            },
            DriverRequest::More,
        ] {
            let bytes = &request.encode()[4..];
            for end in 0..bytes.len() {
                assert_eq!(DriverRequest::decode(&bytes[..end]), Err(Malformed));
            }
            assert_eq!(
                DriverRequest::decode(&[bytes, &[0]].concat()),
                Err(Malformed)
            );
            assert_eq!(DriverRequest::decode(bytes), Ok(request));
        }
    }
}
