//! `hob page new`: a page that lists, searches, adds, edits and deletes the rows of a table.

use std::fmt::Write as _;

use crate::CommandFailure;
use crate::args::{PageNewOptions, Surroundings};
use crate::output;

use super::schema::{ColumnKind, Table, TableColumn, is_name};
use super::{database, failure};

/// Rows on one page.
const ROWS: &str = "50";

/// Prints the page.
pub(super) fn run(
    options: &PageNewOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let name = &options.table;
    if !name.split('.').all(is_name) {
        let text = format!("{name:?} is no name of a table that a page can have");
        return Err(failure(2, text));
    }
    let url = &options.database;
    if url.starts_with("odbc:") {
        let text = "--database: ODBC does not tell all that a page needs to know of a table; \
                    `new` is for sqlite: and postgres:";
        return Err(failure(2, text));
    }
    let database = database::opened(url, true, &surroundings.environment)?;
    let table = Table::read(&*database, url.starts_with("sqlite:"), name)
        .map_err(|fault| failure(1, format!("cannot read the table: {}", fault.message)))?;
    if table.columns.is_empty() {
        return Err(failure(
            1,
            format!("there is no table {name} in the database"),
        ));
    }
    for column in &table.left_out {
        eprintln!("hob: the column {column:?} is left out: a page has no such names");
    }
    if table.key().is_none() {
        eprintln!("hob: {name} has no key of one column: the page only lists its rows");
    }
    output::write(&page(name, &table));
    Ok(())
}

fn page(title: &str, table: &Table) -> String {
    let mut page = format!(
        "%{{ Lists, searches, adds, edits and deletes rows of {title}. Made by `hob page new`; it is \
         yours to change. %}}\n\
         %DEFINE(PROTECTED) {{\n  title = \"{title}\"\n  RPT_MAX_ROWS = \"{ROWS}\"\n  \
         REQUEST_METHOD = %ENVVAR\n  HTTP_SEC_FETCH_SITE = %ENVVAR\n  \
         where = ? \"WHERE {}\"\n%}}\n\
         %DEFINE START_ROW_NUM = \"1\"\n\n",
        search(table)
    );
    page += &rows(table);
    if let Some(key) = table.key() {
        page += &row(table, key);
        page += &changes(table, key);
    }
    page += &frame();
    page += "%HTML(list) {\n@top()\n\
             <form action=\"list\"><input name=\"q\" value=\"$(q)\"> <button>Search</button></form>\n\
             @rows()\n";
    if let Some(key) = table.key() {
        page += "<p><a href=\"new\">New</a></p>\n@bottom()\n%}\n\
                 %HTML(edit) {\n@top()\n@row()\n@bottom()\n%}\n";
        page += "%HTML(new) {\n@top()\n<form method=\"post\" action=\"add\">\n";
        let fields = shown(table).filter(|column| !(column.is_key && key.is_given));
        fields.for_each(|column| page += &field(column, ""));
        page += "<p><button>Add</button></p></form>\n@bottom()\n%}\n";
        for block in ["save", "add", "delete"] {
            let _ = write!(
                page,
                "%HTML({block}) {{\n@top()\n@ask()\n@{block}()\n<p>Done.</p>\n@bottom()\n%}}\n"
            );
        }
    } else {
        page += "@bottom()\n%}\n";
    }
    page
}

/// Rows in which what a visitor looks for stands in any column; empty if they look for nothing.
fn search(table: &Table) -> String {
    let terms = shown(table).map(|column| {
        let name = &column.name;
        format!("lower(CAST(\"\"{name}\"\" AS text)) LIKE lower('%$(q)%')")
    });
    terms.collect::<Vec<_>>().join(" OR ")
}

/// Columns that a page shows.
fn shown(table: &Table) -> impl Iterator<Item = &TableColumn> {
    let columns = table.columns.iter();
    columns.filter(|column| column.kind != ColumnKind::Bytes)
}

fn names<'c>(columns: impl Iterator<Item = &'c TableColumn>) -> String {
    let names: Vec<String> = columns
        .map(|column| format!("\"{}\"", column.name))
        .collect();
    names.join(", ")
}

/// The function that lists rows.
fn rows(table: &Table) -> String {
    let (mut heads, mut cells) = (String::new(), String::new());
    for column in shown(table) {
        let name = &column.name;
        let _ = write!(heads, "<th>{name}</th>");
        let value = format!("$(V_{name})");
        let _ = match column.is_key && table.key().is_some() {
            true => write!(
                cells,
                "<td><a href=\"edit?key=@DTW_rURLESCSEQ(V_{name})\">{value}</a></td>"
            ),
            false => write!(cells, "<td>{value}</td>"),
        };
    }
    let order = match table.key() {
        Some(key) => format!(" ORDER BY \"{}\"", key.name),
        None => String::new(),
    };
    format!(
        "%FUNCTION(DTW_SQL) rows() {{\n  SELECT {} FROM {} $(where){order}\n  %REPORT {{\n\
         <table>\n<tr>{heads}</tr>\n%ROW {{<tr>{cells}</tr>\n%}}</table>\n<p>\n\
         %IF (START_ROW_NUM > \"{ROWS}\") <a href=\"list?q=@DTW_rURLESCSEQ(q)&amp;\
         START_ROW_NUM=@DTW_rSUBTRACT(START_ROW_NUM, \"{ROWS}\")\">Before</a> %ENDIF\n\
         %IF (ROW_NUM == \"@DTW_rADD(START_ROW_NUM, \"@DTW_rSUBTRACT(\"{ROWS}\", \"1\")\")\") \
         <a href=\"list?q=@DTW_rURLESCSEQ(q)&amp;\
         START_ROW_NUM=@DTW_rADD(START_ROW_NUM, \"{ROWS}\")\">More</a> %ENDIF\n</p>\n  %}}\n  \
         %MESSAGE {{ 100 : \"<p>There are no such rows.</p>\" : CONTINUE %}}\n%}}\n",
        names(shown(table)),
        table.name,
    )
}

/// The function that shows one row in a form.
fn row(table: &Table, key: &TableColumn) -> String {
    let mut fields = String::new();
    for column in shown(table).filter(|column| !column.is_key) {
        fields += &field(column, &format!("$(V_{})", column.name));
    }
    let (columns, name, key) = (names(shown(table)), &table.name, &key.name);
    let hidden = format!("<input type=\"hidden\" name=\"key\" value=\"$(V_{key})\">");
    format!(
        "%FUNCTION(DTW_SQL) row() {{\n  SELECT {columns} FROM {name} WHERE \"{key}\" = '$(key)'\n  \
         %REPORT {{%ROW {{\n<form method=\"post\" action=\"save\">{hidden}\n{fields}\
         <p><button>Save</button></p></form>\n\
         <form method=\"post\" action=\"delete\">{hidden} <button>Delete</button></form>\n\
         %}}%}}\n  %MESSAGE {{ 100 : \"<p>There is no such row.</p>\" : CONTINUE %}}\n%}}\n"
    )
}

/// A field of a form.
fn field(column: &TableColumn, value: &str) -> String {
    let name = &column.name;
    match column.kind {
        // The first line end behind the tag is none of the value's.
        ColumnKind::LongText => format!(
            "<p><label>{name}<br><textarea name=\"f_{name}\" rows=\"2\" cols=\"60\">\n{value}\
             </textarea></label></p>\n"
        ),
        _ => {
            format!("<p><label>{name}<br><input name=\"f_{name}\" value=\"{value}\"></label></p>\n")
        }
    }
}

/// What a statement gets of a field.
fn given(column: &TableColumn) -> String {
    let name = &column.name;
    match (column.kind, column.may_be_null) {
        (ColumnKind::Text | ColumnKind::LongText, true) => format!("nullif('$(f_{name})', '')"),
        (ColumnKind::Text | ColumnKind::LongText, false) => format!("'$(f_{name})'"),
        // A number or a date; nothing is NULL.
        _ => format!("$(f_{name})"),
    }
}

/// The functions that write.
fn changes(table: &Table, key: &TableColumn) -> String {
    let changed = shown(table).filter(|column| !column.is_key);
    let changed: Vec<String> = changed
        .map(|column| format!("\"{}\" = {}", column.name, given(column)))
        .collect();
    let added = || shown(table).filter(|column| !(column.is_key && key.is_given));
    let values: Vec<String> = added().map(given).collect();
    let (table, key) = (&table.name, &key.name);
    let save = match changed.is_empty() {
        // There is nothing but the key.
        true => format!("SELECT \"{key}\" FROM {table} WHERE \"{key}\" = '$(key)'"),
        false => format!(
            "UPDATE {table} SET {} WHERE \"{key}\" = '$(key)'",
            changed.join(", ")
        ),
    };
    let add = match values.is_empty() {
        true => format!("INSERT INTO {table} DEFAULT VALUES"),
        false => format!(
            "INSERT INTO {table} ({}) VALUES ({})",
            names(added()),
            values.join(", ")
        ),
    };
    let delete = format!("DELETE FROM {table} WHERE \"{key}\" = '$(key)'");
    let mut functions = String::new();
    for (name, statement) in [("save", save), ("add", add), ("delete", delete)] {
        let _ = write!(
            functions,
            "%FUNCTION(DTW_SQL) {name}() {{\n  {statement}\n%}}\n"
        );
    }
    functions
}

/// What stands around every block, and what comes before a change.
fn frame() -> String {
    "%MACRO_FUNCTION top() {<!DOCTYPE html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><title>$(title)</title>
<style>
body { font: 16px sans-serif; margin: 2em }
td, th { padding: 2px 8px; text-align: left }
</style>
</head><body>
<h1><a href=\"list\">$(title)</a></h1>
%}
%MACRO_FUNCTION bottom() {</body></html>
%}
%{ Changes come from forms of this site alone. %}
%MACRO_FUNCTION ask() {
%IF (REQUEST_METHOD != \"POST\" || HTTP_SEC_FETCH_SITE == \"cross-site\"
  || HTTP_SEC_FETCH_SITE == \"same-site\")
<p>This is done by a form of this site only.</p>
@DTW_EXIT()
%ENDIF
%}
%MESSAGE {
  100 : \"<p>There is no such row any more.</p>\" : EXIT
  -803 : \"<p>There is such a row already.</p>\" : EXIT
  -DEFAULT : \"<p>This could not be done ($(RETURN_CODE)).</p>\" : EXIT
%}
"
    .to_owned()
}
