//! Functions that print tables: as tables and lists, and as elements of forms.

use crate::value::{Table, Text};

use super::call::{Answer, BuiltInCall};

/// Text of the author.
fn write(text: &mut Text, markup: &str) {
    text.push_macro(markup.as_bytes());
}

pub(super) fn table(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let options = call.text(1);
    Ok(as_html(&table.borrow(), &options))
}

/// A table as `<table>`. Its options are attributes.
pub(crate) fn as_html(table: &Table, options: &Text) -> Text {
    let mut text = Text::new();
    write(&mut text, "<table");
    if !options.is_empty() {
        write(&mut text, " ");
        text.push_text(options);
    }
    write(&mut text, ">\n<tr>");
    for name in &table.columns {
        cell(&mut text, "<th>", name, "</th>");
    }
    write(&mut text, "</tr>\n");
    for row in &table.rows {
        write(&mut text, "<tr>");
        for value in row {
            cell(&mut text, "<td>", value, "</td>");
        }
        write(&mut text, "</tr>\n");
    }
    write(&mut text, "</table>\n");
    text
}

fn cell(text: &mut Text, before: &str, value: &Text, behind: &str) {
    write(text, before);
    text.push_text(value);
    write(text, behind);
}

pub(super) fn list(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let is_ordered = call.option(1, b'U') == b'O';
    let element = if is_ordered { "ol" } else { "ul" };
    let mut text = Text::of_macro(format!("<{element}>\n"));
    for value in table.borrow().rows.iter().flatten() {
        cell(&mut text, "<li>", value, "</li>\n");
    }
    write(&mut text, &format!("</{element}>\n"));
    Ok(text)
}

pub(super) fn dlist(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let (term, meaning) = (call.count_or(1, 1)?, call.count_or(2, 2)?);
    let table = table.borrow();
    let mut text = Text::of_macro("<dl>\n");
    for row in 1..=table.rows.len() {
        let empty = Text::new();
        cell(
            &mut text,
            "<dt>",
            table.cell(row, term).unwrap_or(&empty),
            "</dt>\n",
        );
        cell(
            &mut text,
            "<dd>",
            table.cell(row, meaning).unwrap_or(&empty),
            "</dd>\n",
        );
    }
    write(&mut text, "</dl>\n");
    Ok(text)
}

pub(super) fn dumph(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let table = table.borrow();
    let mut text = Text::of_macro("<pre>\n");
    for row in std::iter::once(&table.columns).chain(&table.rows) {
        for value in row {
            cell(&mut text, "", value, " | ");
        }
        write(&mut text, "\n");
    }
    write(&mut text, "</pre>\n");
    Ok(text)
}

pub(super) fn dumpv(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let table = table.borrow();
    let mut text = Text::of_macro("<pre>\n");
    for row in &table.rows {
        for (name, value) in table.columns.iter().zip(row) {
            cell(&mut text, "", name, ": ");
            cell(&mut text, "", value, "\n");
        }
        write(&mut text, "\n");
    }
    write(&mut text, "</pre>\n");
    Ok(text)
}

/// `(table, name [, values [, labels [, chosen]]])`: the columns and the chosen row are numbers.
struct FormRows {
    name: Text,
    rows: Vec<(Text, Text, bool)>,
}

fn form_rows(call: &BuiltInCall<'_>) -> Result<FormRows, crate::fault::FunctionFault> {
    let table = call.table(0)?;
    let table = table.borrow();
    let values = call.count_or(2, 1)?;
    let labels = call.count_or(3, values)?;
    let chosen = call.string(4);
    let chosen: Vec<&str> = chosen.split([' ', ',']).collect();
    let rows = (1..=table.rows.len()).map(|row| {
        let at = |column| table.cell(row, column).cloned().unwrap_or_default();
        (at(values), at(labels), chosen.contains(&&*row.to_string()))
    });
    Ok(FormRows {
        name: call.text(1),
        rows: rows.collect(),
    })
}

/// `(table, name [, labels [, size [, multiple [, rows [, chosen [, values]]]]]])`: columns are
/// numbers; rows are numbers and ranges of them.
pub(super) fn select(call: &mut BuiltInCall<'_>) -> Answer {
    let table = call.table(0)?;
    let table = table.borrow();
    let labels = call.count_or(2, 1)?;
    let size = call.count_or(3, 0)?;
    let values = call.count_or(7, labels)?;
    let (shown, chosen) = (RowNumbers::of(&call.string(5)), call.string(6));
    let chosen = RowNumbers::of(&chosen);
    let mut text = Text::new();
    cell(&mut text, "<select name=\"", &call.text(1), "\"");
    if size > 0 {
        write(&mut text, &format!(" size=\"{size}\""));
    }
    let is_multiple = call.option(4, b'N') == b'Y';
    write(&mut text, if is_multiple { " multiple>\n" } else { ">\n" });
    let rows = 1..=table.rows.len();
    for row in rows.filter(|row| shown.is_empty() || shown.has(*row)) {
        let at = |column| table.cell(row, column).cloned().unwrap_or_default();
        cell(&mut text, "<option value=\"", &at(values), "\"");
        let mark = if chosen.has(row) { " selected>" } else { ">" };
        cell(&mut text, mark, &at(labels), "</option>\n");
    }
    write(&mut text, "</select>\n");
    Ok(text)
}

/// Rows as an author lists them: `1-3 5`.
struct RowNumbers(Vec<(usize, usize)>);

impl RowNumbers {
    fn of(text: &str) -> RowNumbers {
        let items = text.split([' ', ',']).filter(|item| !item.is_empty());
        let ranges = items.filter_map(|item| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        RowNumbers(ranges.collect())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has(&self, row: usize) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&row))
    }
}

fn inputs(call: &BuiltInCall<'_>, kind: &str) -> Answer {
    let form = form_rows(call)?;
    let mut text = Text::new();
    for (value, label, is_chosen) in &form.rows {
        write(&mut text, &format!("<label><input type=\"{kind}\" name=\""));
        cell(&mut text, "", &form.name, "\" value=\"");
        cell(&mut text, "", value, "\"");
        write(&mut text, if *is_chosen { " checked> " } else { "> " });
        cell(&mut text, "", label, "</label>\n");
    }
    Ok(text)
}

pub(super) fn checkbox(call: &mut BuiltInCall<'_>) -> Answer {
    inputs(call, "checkbox")
}

pub(super) fn radio(call: &mut BuiltInCall<'_>) -> Answer {
    inputs(call, "radio")
}

pub(super) fn input_text(call: &mut BuiltInCall<'_>) -> Answer {
    let form = form_rows(call)?;
    let mut text = Text::new();
    for (value, _, _) in &form.rows {
        cell(
            &mut text,
            "<input type=\"text\" name=\"",
            &form.name,
            "\" value=\"",
        );
        cell(&mut text, "", value, "\">\n");
    }
    Ok(text)
}

pub(super) fn textarea(call: &mut BuiltInCall<'_>) -> Answer {
    let form = form_rows(call)?;
    let mut text = Text::new();
    for (value, _, _) in &form.rows {
        cell(&mut text, "<textarea name=\"", &form.name, "\">");
        cell(&mut text, "", value, "</textarea>\n");
    }
    Ok(text)
}
