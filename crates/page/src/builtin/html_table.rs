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

pub(super) fn select(call: &mut BuiltInCall<'_>) -> Answer {
    let form = form_rows(call)?;
    let mut text = Text::new();
    cell(&mut text, "<select name=\"", &form.name, "\">\n");
    for (value, label, is_chosen) in &form.rows {
        cell(&mut text, "<option value=\"", value, "\"");
        write(&mut text, if *is_chosen { " selected>" } else { ">" });
        cell(&mut text, "", label, "</option>\n");
    }
    write(&mut text, "</select>\n");
    Ok(text)
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
