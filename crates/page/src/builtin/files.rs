//! Flat files (`DTWF_`): tables of lines, or of values between delimiters.

use crate::fault::FunctionFault;
use crate::value::{Table, Text, ValueOrigin};

use super::call::{Answer, BuiltInCall, bad_value};

const DELIMITER_BYTES_MAX: usize = 256;

fn done() -> Answer {
    Ok(Text::new())
}

/// How a file's lines are rows: whole, or cut at a delimiter.
struct Transform {
    delimiter: Option<Vec<u8>>,
}

fn transform(call: &BuiltInCall<'_>) -> Result<Transform, FunctionFault> {
    let name = call.string(1).to_ascii_uppercase();
    let delimiter = call.string(2).replace("\\0", "\0").into_bytes();
    match &*name {
        "ASCIITEXT" => Ok(Transform { delimiter: None }),
        "DELIMITED" if (1..=DELIMITER_BYTES_MAX).contains(&delimiter.len()) => Ok(Transform {
            delimiter: Some(delimiter),
        }),
        "DELIMITED" => bad_value("the delimiter has 1 to 256 characters"),
        _ => bad_value("the transform is neither ASCIITEXT nor DELIMITED"),
    }
}

impl Transform {
    fn rows(&self, content: &[u8]) -> Vec<Vec<Text>> {
        let content = content.strip_suffix(b"\n").unwrap_or(content);
        if content.is_empty() {
            return Vec::new();
        }
        let lines = content.split(|byte| *byte == b'\n');
        let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        lines.map(|line| self.cells(line)).collect()
    }

    fn cells(&self, line: &[u8]) -> Vec<Text> {
        let text = |bytes: &[u8]| Text::of_data(bytes, ValueOrigin::File);
        let Some(delimiter) = &self.delimiter else {
            return vec![text(line)];
        };
        let mut cells = Vec::new();
        let mut rest = line;
        while let Some(at) = memchr::memmem::find(rest, delimiter) {
            cells.push(text(&rest[..at]));
            rest = &rest[at + delimiter.len()..];
        }
        cells.push(text(rest));
        cells
    }

    fn content(&self, rows: &[Vec<Text>]) -> Vec<u8> {
        let mut content = Vec::new();
        for row in rows {
            for (column, cell) in row.iter().enumerate() {
                if column > 0 {
                    content.extend_from_slice(self.delimiter.as_deref().unwrap_or(b" "));
                }
                let is_line_end = |byte: &&u8| !matches!(byte, b'\r' | b'\n');
                content.extend(cell.bytes().iter().filter(is_line_end));
            }
            content.push(b'\n');
        }
        content
    }
}

fn content_of(call: &BuiltInCall<'_>) -> Result<Vec<u8>, FunctionFault> {
    call.services.host().files.read(&call.string(0))
}

/// Puts rows into a table, as many as it takes.
fn fill(call: &BuiltInCall<'_>, table: &mut Table, rows: Vec<Vec<Text>>) -> Answer {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    table.clear();
    let names = (1..=columns).map(|column| Text::of_macro(format!("Column{column}")));
    table.columns = names.collect();
    for mut row in rows {
        if !table.has_room() || table.cell_count() + columns > call.services.cells_max() {
            break;
        }
        row.resize(columns, Text::new());
        table.rows.push(row);
    }
    done()
}

pub(super) fn exists(call: &mut BuiltInCall<'_>) -> Answer {
    let is_there = call.services.host().files.exists(&call.string(0))?;
    Ok(Text::of_macro(if is_there { "Y" } else { "N" }))
}

/// Files are open while they are read or written, so opening only looks whether that may be.
pub(super) fn open(call: &mut BuiltInCall<'_>) -> Answer {
    let mode = call.option(1, b'R');
    let files = call.services.host().files;
    let name = call.string(0);
    match mode {
        b'R' if !files.exists(&name)? => {
            return Err(FunctionFault::new(
                2000,
                format!("there is no file {name:?}"),
            ));
        }
        b'W' => files.write(&name, b"")?,
        _ => {}
    }
    done()
}

pub(super) fn close(_: &mut BuiltInCall<'_>) -> Answer {
    done()
}

pub(super) fn read(call: &mut BuiltInCall<'_>) -> Answer {
    let transform = transform(call)?;
    let mut rows = transform.rows(&content_of(call)?);
    if call.has(6) {
        let start = call.index(6)?.min(rows.len());
        rows.drain(..start);
    }
    if call.has(5) {
        rows.truncate(call.count(5)?);
    }
    let table = call.table(3)?;
    let mut table = table.borrow_mut();
    fill(call, &mut table, rows)
}

/// Writes a file anew.
fn put(call: &BuiltInCall<'_>, name: usize, content: &[u8]) -> Answer {
    let files = call.services.host().files;
    files.write(&call.string(name), content)?;
    done()
}

/// Writes a file anew, with its rows changed.
fn change(
    call: &mut BuiltInCall<'_>,
    change: impl FnOnce(&mut BuiltInCall<'_>, &mut Vec<Vec<Text>>) -> Result<(), FunctionFault>,
) -> Answer {
    let transform = transform(call)?;
    let mut rows = transform.rows(&content_of(call)?);
    change(call, &mut rows)?;
    put(call, 0, &transform.content(&rows))
}

/// The rows of the table that is given, as a file has them.
fn content_of_table(call: &mut BuiltInCall<'_>) -> Result<Vec<u8>, FunctionFault> {
    let transform = transform(call)?;
    let table = call.table(3)?;
    let content = transform.content(&table.borrow().rows);
    Ok(content)
}

pub(super) fn write(call: &mut BuiltInCall<'_>) -> Answer {
    let content = content_of_table(call)?;
    put(call, 0, &content)
}

pub(super) fn append(call: &mut BuiltInCall<'_>) -> Answer {
    let content = content_of_table(call)?;
    let files = call.services.host().files;
    files.append(&call.string(0), &content)?;
    done()
}

/// Replaces rows from `start` on by those of the table.
pub(super) fn update(call: &mut BuiltInCall<'_>) -> Answer {
    change(call, |call, rows| {
        let table = call.table(3)?;
        let count = call.count_or(5, table.borrow().rows.len())?;
        let start = call.count_or(6, 1)?.saturating_sub(1).min(rows.len());
        let end = start.saturating_add(count).min(rows.len());
        rows.splice(start..end, table.borrow().rows.iter().take(count).cloned());
        Ok(())
    })
}

/// Puts the table's rows behind row `start`.
pub(super) fn insert(call: &mut BuiltInCall<'_>) -> Answer {
    change(call, |call, rows| {
        let table = call.table(3)?;
        let start = call.count_or(5, rows.len())?.min(rows.len());
        let count = call.count_or(6, usize::MAX)?;
        rows.splice(
            start..start,
            table.borrow().rows.iter().take(count).cloned(),
        );
        Ok(())
    })
}

pub(super) fn delete(call: &mut BuiltInCall<'_>) -> Answer {
    change(call, |call, rows| {
        let start = call.count_or(4, 1)?.saturating_sub(1).min(rows.len());
        let count = call.count_or(5, usize::MAX)?;
        let end = start.saturating_add(count).min(rows.len());
        rows.drain(start..end);
        Ok(())
    })
}

/// Rows in which some value contains the text.
pub(super) fn search(call: &mut BuiltInCall<'_>) -> Answer {
    let transform = transform(call)?;
    let mut rows = transform.rows(&content_of(call)?);
    let sought = call.text(4);
    let start = call.count_or(7, 1)?.saturating_sub(1).min(rows.len());
    rows.drain(..start);
    rows.truncate(call.count_or(6, usize::MAX)?);
    rows.retain(|row| {
        let mut cells = row.iter();
        cells.any(|cell| memchr::memmem::find(cell.bytes(), sought.bytes()).is_some())
    });
    let table = call.table(3)?;
    let mut table = table.borrow_mut();
    fill(call, &mut table, rows)
}

pub(super) fn remove(call: &mut BuiltInCall<'_>) -> Answer {
    call.services.host().files.remove(&call.string(0))?;
    done()
}

pub(super) fn copy(call: &mut BuiltInCall<'_>) -> Answer {
    let content = content_of(call)?;
    put(call, 1, &content)
}
