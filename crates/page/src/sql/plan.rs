//! Plans: how a database would run a statement, as it tells itself.

use crate::fault::FunctionFault;

use super::{Cell, Database, DatabaseName, RowSink, RowsEnd, Statement};

/// Lines of a plan that are taken.
const LINES_MAX: usize = 100;

/// The last column of each row: the steps of a plan, in the databases that there are.
#[derive(Default)]
struct PlanLines(Vec<String>);

impl RowSink for PlanLines {
    fn columns(&mut self, _: &[&str]) -> Result<(), RowsEnd> {
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd> {
        if let Some(Cell::Text(step)) = cells.last() {
            self.0.push(String::from_utf8_lossy(step).into_owned());
        }
        match self.0.len() < LINES_MAX {
            true => Ok(()),
            false => Err(RowsEnd),
        }
    }
}

/// What the database tells behind this word, `EXPLAIN` or what it calls it.
pub(super) fn told(
    database: &dyn Database,
    word: &str,
    name: &DatabaseName,
    statement: &Statement,
) -> Result<Vec<String>, FunctionFault> {
    let asked = Statement {
        text: format!("{word} {}", statement.text),
        ..statement.clone()
    };
    let mut lines = PlanLines::default();
    database.run(name, &asked, &mut lines)?;
    Ok(lines.0)
}
