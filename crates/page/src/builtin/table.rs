//! Functions of tables. Rows and columns count from one.

use crate::fault::FunctionFault;
use crate::value::{Marks, Table, Text};

use super::call::{Answer, BuiltInCall, bad_value};

fn done() -> Answer {
    Ok(Text::new())
}

fn no_cell<T>() -> Result<T, FunctionFault> {
    bad_value("the table has no such row or column")
}

pub(super) fn rows(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(Text::of_count(call.table(0)?.borrow().rows.len()))
}

pub(super) fn cols(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(Text::of_count(call.table(0)?.borrow().columns.len()))
}

pub(super) fn maxrows(call: &mut BuiltInCall<'_>) -> Answer {
    let max = call.table(0)?.borrow().shape.rows_max;
    Ok(max.map_or_else(|| Text::of_macro("ALL"), Text::of_count))
}

pub(super) fn getv(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let (row, column) = (call.count(1)?, call.count(2)?);
    match table.borrow().cell(row, column) {
        Some(cell) => Ok(cell.clone()),
        None => no_cell(),
    }
}

pub(super) fn setv(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let (value, row, column) = (call.text(1), call.count(2)?, call.count(3)?);
    match table.borrow_mut().cell_mut(row, column) {
        Some(cell) => *cell = value,
        None => return no_cell(),
    }
    done()
}

pub(super) fn getn(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let column = call.index(1)?;
    match table.borrow().columns.get(column) {
        Some(name) => Ok(name.clone()),
        None => no_cell(),
    }
}

pub(super) fn setn(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let (name, column) = (call.text(1), call.index(2)?);
    match table.borrow_mut().columns.get_mut(column) {
        Some(known) => *known = name,
        None => return no_cell(),
    }
    done()
}

pub(super) fn querycolnonj(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let column = table.borrow().column(call.text(1).bytes());
    Ok(Text::of_count(column.unwrap_or(0)))
}

/// Whether so many more cells fit into the table, and into what a run may hold.
fn allow(
    call: &BuiltInCall<'_>,
    table: &Table,
    rows: usize,
    columns: usize,
) -> Result<(), FunctionFault> {
    let is_over = |max: Option<usize>, count: usize| max.is_some_and(|max| count > max);
    let is_large = rows.saturating_mul(columns.max(1)) > call.services.cells_max();
    let shape = table.shape;
    if is_large || is_over(shape.rows_max, rows) || is_over(shape.columns_max, columns) {
        return bad_value("the table would be larger than it may become");
    }
    Ok(())
}

fn insert_rows(call: &BuiltInCall<'_>, after: Option<usize>, count: usize) -> Answer {
    let table = call.table(0)?;
    let mut table = table.borrow_mut();
    let columns = table.columns.len();
    let rows = table.rows.len();
    allow(call, &table, rows.saturating_add(count), columns)?;
    let at = after.unwrap_or(rows);
    if at > rows {
        return no_cell();
    }
    let new = vec![vec![Text::new(); columns]; count];
    table.rows.splice(at..at, new);
    done()
}

pub(super) fn appendrow(call: &mut BuiltInCall<'_>) -> Answer {
    insert_rows(call, None, call.count(1)?)
}

pub(super) fn insertrow(call: &mut BuiltInCall<'_>) -> Answer {
    insert_rows(call, Some(call.count(1)?), call.count(2)?)
}

pub(super) fn deleterow(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let (start, count) = (call.index(1)?, call.count_or(2, 1)?);
    let mut table = table.borrow_mut();
    let end = start.saturating_add(count).min(table.rows.len());
    if start >= end {
        return no_cell();
    }
    table.rows.drain(start..end);
    done()
}

pub(super) fn insertcol(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let (after, count) = (call.count(1)?, call.count(2)?);
    let mut table = table.borrow_mut();
    let columns = table.columns.len();
    if after > columns {
        return no_cell();
    }
    let rows = table.rows.len();
    allow(call, &table, rows.max(1), columns.saturating_add(count))?;
    let new = || std::iter::repeat_n(Text::new(), count);
    table.columns.splice(after..after, new());
    for row in &mut table.rows {
        row.splice(after..after, new());
    }
    done()
}

pub(super) fn deletecol(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let (start, count) = (call.index(1)?, call.count_or(2, 1)?);
    let mut table = table.borrow_mut();
    let end = start.saturating_add(count).min(table.columns.len());
    if start >= end {
        return no_cell();
    }
    table.columns.drain(start..end);
    for row in &mut table.rows {
        row.drain(start..end);
    }
    done()
}

pub(super) fn setcols(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let count = call.count(1)?;
    let mut table = table.borrow_mut();
    let rows = table.rows.len();
    allow(call, &table, rows.max(1), count)?;
    table.columns.resize(count, Text::new());
    for row in &mut table.rows {
        row.resize(count, Text::new());
    }
    done()
}

/// Encodes the cells of all columns, or of those whose numbers are listed.
pub(super) fn htmlencode(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let listed = call.string(1);
    let listed: Vec<&str> = listed.split([' ', ',']).filter(|c| !c.is_empty()).collect();
    for row in &mut table.borrow_mut().rows {
        for (column, cell) in row.iter_mut().enumerate() {
            let number = (column + 1).to_string();
            if listed.is_empty() || listed.contains(&&*number) {
                *cell = cell.encode(Marks::HTML, crate::escape::html_encode);
            }
        }
    }
    done()
}
