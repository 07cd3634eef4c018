//! Flat files (`DTWF_`): tables of lines, or of values between delimiters.

use crate::fault::{FunctionFault, code};
use crate::host::Files;
use crate::value::{Table, Text, ValueOrigin};

use super::call::{Answer, BuiltInCall, bad_value};
use super::rows::RowFormat;

fn done() -> Answer {
    Ok(Text::new())
}

/// The files of the run, of which this is one more use.
fn files<'c>(call: &'c mut BuiltInCall<'_>) -> Result<&'c dyn Files, FunctionFault> {
    call.services.use_file()?;
    Ok(call.services.host().files)
}

/// How the file is written, by arguments 2 and 3.
fn format(call: &BuiltInCall<'_>) -> Result<RowFormat, FunctionFault> {
    let name = call.string(1);
    if name.eq_ignore_ascii_case("ASCIITEXT") {
        return Ok(RowFormat::text());
    }
    if !name.eq_ignore_ascii_case("DELIMITED") {
        return bad_value("the transform is neither ASCIITEXT nor DELIMITED");
    }
    let delimiter = call.string(2).replace("\\0", "\0");
    match RowFormat::delimited(delimiter.as_bytes()) {
        Some(format) => Ok(format),
        None => bad_value("the delimiter has 1 to 256 characters, and no line's end among them"),
    }
}

fn content(call: &mut BuiltInCall<'_>) -> Result<Vec<u8>, FunctionFault> {
    let name = call.string(0);
    files(call)?.read(&name)
}

/// Lines of a file, if they are not too many.
fn lines(content: &[u8], rows_max: usize) -> Result<Vec<&[u8]>, FunctionFault> {
    match RowFormat::lines(content).nth(rows_max) {
        None => Ok(RowFormat::lines(content).collect()),
        Some(_) => {
            let message = format!("the file has more than {rows_max} rows");
            Err(FunctionFault::new(code::LIMIT, message))
        }
    }
}

/// A count, where 0 and nothing are any number.
fn any_count(call: &BuiltInCall<'_>, index: usize) -> Result<usize, FunctionFault> {
    Ok(match call.count_or(index, 0)? {
        0 => usize::MAX,
        count => count,
    })
}

/// A row counted from one, as an index; the first one where nothing is said.
fn first_row(call: &BuiltInCall<'_>, index: usize) -> Result<usize, FunctionFault> {
    Ok(call.count_or(index, 1)?.saturating_sub(1))
}

/// Rows that are read for a table.
struct ReadRows {
    rows: Vec<Vec<Text>>,
    columns: usize,
    columns_max: usize,
    cells_max: usize,
}

impl ReadRows {
    fn add(&mut self, mut cells: Vec<Vec<u8>>) -> Result<(), FunctionFault> {
        cells.truncate(self.columns_max);
        self.columns = self.columns.max(cells.len());
        if (self.rows.len() + 1).saturating_mul(self.columns) > self.cells_max {
            let message = format!("the table would have more than {} cells", self.cells_max);
            return Err(FunctionFault::new(code::LIMIT, message));
        }
        let cells = cells.into_iter();
        let cells = cells.map(|cell| Text::of_data(cell, ValueOrigin::File));
        self.rows.push(cells.collect());
        Ok(())
    }

    /// Puts them into a table.
    fn fill(mut self, table: &mut Table) {
        table.clear();
        let names = (1..=self.columns).map(|column| Text::of_macro(format!("Column{column}")));
        table.columns = names.collect();
        for row in &mut self.rows {
            row.resize(self.columns, Text::new());
        }
        table.rows = self.rows;
    }
}

pub(super) fn exists(call: &mut BuiltInCall<'_>) -> Answer {
    let name = call.string(0);
    let is_there = files(call)?.exists(&name)?;
    Ok(Text::of_macro(if is_there { "Y" } else { "N" }))
}

/// Files are open while they are read or written, so opening only looks whether that may be.
pub(super) fn open(call: &mut BuiltInCall<'_>) -> Answer {
    let mode = call.option(1, b'R');
    let name = call.string(0);
    let files = files(call)?;
    match mode {
        b'R' => match files.exists(&name)? {
            true => done(),
            false => {
                let message = format!("there is no file {name:?}");
                Err(FunctionFault::new(code::NO_FILE, message))
            }
        },
        b'W' => files.write(&name, b"").map(|()| Text::new()),
        b'A' => files.append(&name, b"").map(|()| Text::new()),
        _ => bad_value("the mode is none of r, w, a, r+, w+ and a+"),
    }
}

pub(super) fn close(_: &mut BuiltInCall<'_>) -> Answer {
    done()
}

/// Reads rows of a window into the table, as many as it takes.
fn read_rows(
    call: &mut BuiltInCall<'_>,
    (start, count): (usize, usize),
    is_wanted: impl Fn(&[Vec<u8>]) -> bool,
) -> Answer {
    let format = format(call)?;
    let content = content(call)?;
    let lines = lines(&content, call.services.file_rows_max())?;
    let table = call.table(3)?;
    let mut table = table.borrow_mut();
    let mut read = ReadRows {
        rows: Vec::new(),
        columns: 0,
        columns_max: table.shape.columns_max.unwrap_or(usize::MAX),
        cells_max: call.services.cells_max(),
    };
    let rows_max = table.shape.rows_max.unwrap_or(usize::MAX);
    for line in lines.into_iter().skip(start).take(count) {
        if read.rows.len() >= rows_max {
            break;
        }
        let cells = format.cells(line);
        if is_wanted(&cells) {
            read.add(cells)?;
        }
    }
    read.fill(&mut table);
    done()
}

pub(super) fn read(call: &mut BuiltInCall<'_>) -> Answer {
    let window = (first_row(call, 6)?, any_count(call, 5)?);
    read_rows(call, window, |_| true)
}

/// Rows in which some value contains the text.
pub(super) fn search(call: &mut BuiltInCall<'_>) -> Answer {
    let sought = call.text(4);
    let window = (first_row(call, 7)?, any_count(call, 6)?);
    read_rows(call, window, |cells| {
        let mut cells = cells.iter();
        cells.any(|cell| memchr::memmem::find(cell, sought.bytes()).is_some())
    })
}

/// The rows of the table that is given, each as a file has it.
fn written_rows(
    call: &BuiltInCall<'_>,
    (start, count): (usize, usize),
) -> Result<Vec<Vec<u8>>, FunctionFault> {
    let format = format(call)?;
    let table = call.table(3)?;
    let table = table.borrow();
    let rows = table.rows.iter().skip(start).take(count).map(|row| {
        let mut written = Vec::new();
        format.push_row(row.iter().map(Text::bytes), &mut written);
        written
    });
    Ok(rows.collect())
}

pub(super) fn write(call: &mut BuiltInCall<'_>) -> Answer {
    let window = (first_row(call, 6)?, any_count(call, 5)?);
    let content = written_rows(call, window)?.concat();
    let name = call.string(0);
    files(call)?.write(&name, &content)?;
    done()
}

pub(super) fn append(call: &mut BuiltInCall<'_>) -> Answer {
    let content = written_rows(call, (0, usize::MAX))?.concat();
    let name = call.string(0);
    files(call)?.append(&name, &content)?;
    done()
}

/// Lines of a file that others take the place of.
struct LineChange {
    start: usize,
    removed: usize,
    rows: Vec<Vec<u8>>,
}

impl LineChange {
    /// The file as it shall be. Lines that are not changed stay as they are, byte by byte.
    fn apply(&self, content: &[u8], rows_max: usize) -> Result<Vec<u8>, FunctionFault> {
        let lines = lines(content, rows_max)?;
        let start = self.start.min(lines.len());
        let end = start.saturating_add(self.removed).min(lines.len());
        // An update adds no lines.
        let rows = match self.removed {
            0 => &self.rows[..],
            _ => &self.rows[..self.rows.len().min(end - start)],
        };
        let mut changed = lines[..start].concat();
        if !rows.is_empty() && !changed.is_empty() && !changed.ends_with(b"\n") {
            changed.push(b'\n');
        }
        changed.extend(rows.iter().flatten());
        changed.extend(lines[end..].iter().copied().flatten());
        Ok(changed)
    }

    fn make(&self, call: &mut BuiltInCall<'_>) -> Answer {
        let name = call.string(0);
        let rows_max = call.services.file_rows_max();
        files(call)?.change(&name, &mut |content| self.apply(content, rows_max))?;
        done()
    }
}

/// Replaces rows from `start` on by those of the table.
pub(super) fn update(call: &mut BuiltInCall<'_>) -> Answer {
    let rows = written_rows(call, (0, any_count(call, 5)?))?;
    let start = first_row(call, 6)?;
    if rows.is_empty() {
        return done();
    }
    let removed = rows.len();
    let change = LineChange {
        start,
        removed,
        rows,
    };
    change.make(call)
}

/// Puts the table's rows behind row `start`.
pub(super) fn insert(call: &mut BuiltInCall<'_>) -> Answer {
    let change = LineChange {
        start: call.count_or(5, usize::MAX)?,
        removed: 0,
        rows: written_rows(call, (0, any_count(call, 6)?))?,
    };
    change.make(call)
}

pub(super) fn delete(call: &mut BuiltInCall<'_>) -> Answer {
    // Which row is not changed by how it is written; that it is written wrongly is told.
    format(call)?;
    let change = LineChange {
        start: first_row(call, 4)?,
        removed: any_count(call, 5)?,
        rows: Vec::new(),
    };
    change.make(call)
}

pub(super) fn remove(call: &mut BuiltInCall<'_>) -> Answer {
    let name = call.string(0);
    files(call)?.remove(&name)?;
    done()
}

pub(super) fn copy(call: &mut BuiltInCall<'_>) -> Answer {
    let content = content(call)?;
    let name = call.string(1);
    files(call)?.write(&name, &content)?;
    done()
}
