//! What a run asks of a database.

use crate::fault::FunctionFault;

/// The return code of a statement that would write where nothing may be written.
pub const READS_ONLY: i64 = -817;

/// Runs statements of one request. It is shared: a report may run statements while rows of another
/// one are coming.
pub trait Database {
    /// Runs one statement. Rows are handed over as they come.
    fn run(
        &self,
        name: &DatabaseName,
        statement: &Statement,
        rows: &mut dyn RowSink,
    ) -> Result<RunDone, FunctionFault>;
    /// From here on to [`Database::commit`] or [`Database::rollback`] nothing is written: a
    /// statement that would gets the code [`READS_ONLY`].
    fn read_only(&self) -> Result<(), FunctionFault>;
    /// Whether something was written that would be lost if the connection were given up now.
    fn is_open(&self) -> bool {
        true
    }
    /// Makes what was written last.
    fn commit(&self) -> Result<(), FunctionFault>;
    /// Undoes what was written.
    fn rollback(&self) -> Result<(), FunctionFault>;
    /// How it would run a statement, a line for each step. Nothing is run for it.
    fn plan(&self, _: &DatabaseName, _: &Statement) -> Result<Vec<String>, FunctionFault> {
        Err(FunctionFault::new(
            -1,
            "this kind of database tells no plan",
        ))
    }
    /// Why this run cannot go on, whatever its page says: what the database ran in has crashed.
    fn crash(&self) -> Option<String> {
        None
    }
}

/// Which database a page names, from `DATABASE` and `LOGIN`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DatabaseName {
    /// `DATABASE`; empty is the route's own.
    pub database: String,
    /// `LOGIN`, if the page may say it.
    pub login: String,
    /// `PASSWORD`, likewise.
    pub password: String,
}

/// A statement: text of the author with a `?` for each parameter.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Statement {
    /// The same text is the same shape: it may be prepared once.
    pub text: String,
    /// A value for each `?`, in order.
    pub parameters: Vec<BoundValue>,
    /// Names and types, if it calls a stored procedure.
    pub procedure: Option<Procedure>,
}

/// A bound value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoundValue {
    /// What it looks like.
    pub kind: BoundKind,
    /// Its bytes; a database takes text as UTF-8.
    pub value: Vec<u8>,
}

/// What a bound value looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoundKind {
    /// Nothing was there.
    Null,
    /// Digits, with or without a sign; it fits into 64 bits.
    Integer,
    /// Digits with a point.
    Decimal,
    /// Anything else, and whatever stood in quotes.
    Text,
}

/// A call of a stored procedure by the parameters of its function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Procedure {
    /// Its name as the page has it.
    pub name: String,
    /// One for each `?`.
    pub parameters: Vec<ProcedureParameter>,
    /// How many tables take result sets.
    pub result_sets: usize,
}

/// A parameter of a stored procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcedureParameter {
    /// Its name.
    pub name: Box<str>,
    /// Its type as it was written.
    pub sql_type: Option<Box<str>>,
    /// Whether it comes back.
    pub is_out: bool,
    /// Whether a value goes there.
    pub is_in: bool,
}

/// A value of a result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Text, or anything the database gives as text.
    Text(&'a [u8]),
}

/// Takes rows.
pub trait RowSink {
    /// A result begins; these are its columns.
    fn columns(&mut self, names: &[&str]) -> Result<(), RowsEnd>;
    /// The next row, with a cell for each column.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd>;
}

/// No more rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowsEnd;

/// What came of a statement.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RunDone {
    /// Rows that were changed.
    pub changed_rows: u64,
    /// Values of a procedure's parameters that come back, by name.
    pub outs: Vec<(Box<str>, Option<Vec<u8>>)>,
    /// A warning's code; 100 is known here: no row came.
    pub warning: i64,
}
