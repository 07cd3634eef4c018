//! Tables of a database: their columns and keys, as the database tells them.

use hob_page::fault::FunctionFault;
use hob_page::sql::{
    BoundKind, BoundValue, Cell, Database, DatabaseName, RowSink, RowsEnd, Statement,
};

/// A table.
pub(super) struct Table {
    /// As a statement has it, in quotes.
    pub(super) name: String,
    pub(super) columns: Vec<TableColumn>,
    /// Columns that are there and cannot be in a page: their names are no names of the language.
    pub(super) left_out: Vec<String>,
}

/// A column.
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    pub(super) is_key: bool,
    /// It may be NULL.
    pub(super) may_be_null: bool,
    /// The database gives it a value where it gets none.
    pub(super) is_given: bool,
}

/// How a column's values are written and edited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// Text of several lines.
    LongText,
    Text,
    /// Numbers, dates and the like.
    Value,
    /// Bytes, which a form does not show.
    Bytes,
}

impl ColumnKind {
    fn of(sql_type: &str) -> ColumnKind {
        let sql_type = sql_type.to_ascii_uppercase();
        let is = |words: &[&str]| words.iter().any(|word| sql_type.contains(word));
        match sql_type.as_str() {
            _ if is(&["CHAR", "CITEXT"]) => ColumnKind::Text,
            _ if is(&["TEXT", "CLOB"]) => ColumnKind::LongText,
            _ if is(&["BLOB", "BYTEA"]) => ColumnKind::Bytes,
            _ => ColumnKind::Value,
        }
    }
}

/// Columns of a table of SQLite. A whole number that is the key is given by the database.
const OF_SQLITE: &str = "SELECT name, type, pk > 0, \"notnull\" = 0, \
     pk > 0 AND upper(type) = 'INTEGER' FROM pragma_table_info(?)";
/// The same of PostgreSQL.
const OF_POSTGRES: &str = "SELECT a.attname, format_type(a.atttypid, a.atttypmod), \
     (a.attnum = ANY (i.indkey))::int, (NOT a.attnotnull)::int, \
     (a.atthasdef OR a.attidentity <> '')::int \
     FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary \
     WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped \
     AND a.attgenerated = '' ORDER BY a.attnum";

impl Table {
    /// Reads a table's columns; none are there if there is no such table.
    pub(super) fn read(
        database: &dyn Database,
        is_sqlite: bool,
        name: &str,
    ) -> Result<Table, FunctionFault> {
        let parts: Vec<String> = name.split('.').map(|part| format!("\"{part}\"")).collect();
        let quoted = parts.join(".");
        let (text, asked) = match is_sqlite {
            true => (OF_SQLITE, name),
            false => (OF_POSTGRES, &*quoted),
        };
        let statement = Statement {
            text: text.to_owned(),
            parameters: vec![BoundValue {
                kind: BoundKind::Text,
                value: asked.as_bytes().to_vec(),
            }],
            procedure: None,
        };
        let mut rows = ColumnRows::default();
        database.run(&DatabaseName::default(), &statement, &mut rows)?;
        database.rollback()?;
        let (columns, others) = rows
            .columns
            .into_iter()
            .partition(|column: &TableColumn| is_name(&column.name));
        let others: Vec<TableColumn> = others;
        Ok(Table {
            name: quoted,
            columns,
            left_out: others.into_iter().map(|column| column.name).collect(),
        })
    }

    /// The column that tells rows apart, if there is one such column.
    pub(super) fn key(&self) -> Option<&TableColumn> {
        let mut keys = self.columns.iter().filter(|column| column.is_key);
        match (keys.next(), keys.next()) {
            (Some(key), None) => Some(key),
            _ => None,
        }
    }
}

/// Whether it is a name both in a page and in a statement.
pub(super) fn is_name(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[derive(Default)]
struct ColumnRows {
    columns: Vec<TableColumn>,
}

impl RowSink for ColumnRows {
    fn columns(&mut self, _: &[&str]) -> Result<(), RowsEnd> {
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd> {
        let text = |index: usize| match cells.get(index) {
            Some(Cell::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Some(Cell::Integer(number)) => number.to_string(),
            _ => String::new(),
        };
        let is = |index: usize| text(index) == "1";
        self.columns.push(TableColumn {
            name: text(0),
            kind: ColumnKind::of(&text(1)),
            is_key: is(2),
            may_be_null: is(3),
            is_given: is(4),
        });
        Ok(())
    }
}
