//! What one row by its key costs a client of PostgreSQL that does nothing else: CPU time of this
//! process, without that of the database. `bench/pages_postgres.py` sets a page beside it.
//!
//! ```text
//! cargo bench -p hob-page --bench postgres -- URL STATEMENT VALUE
//! ```
#![allow(clippy::unwrap_used)]

use hob_page::sql::postgres::{PostgresDatabase, PostgresOptions};
use hob_page::sql::{
    BoundKind, BoundValue, Cell, Database, DatabaseName, RowSink, RowsEnd, Statement,
};

const STATEMENTS: u32 = 20_000;

/// Counts bytes, so that each row is looked at.
struct CountedBytes(usize);

impl RowSink for CountedBytes {
    fn columns(&mut self, _: &[&str]) -> Result<(), RowsEnd> {
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd> {
        for cell in cells {
            self.0 += match cell {
                Cell::Text(bytes) => bytes.len(),
                _ => 1,
            };
        }
        Ok(())
    }
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"));
    let (Some(url), Some(text), Some(value)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return println!("skipped: no URL, STATEMENT and VALUE");
    };
    let options = PostgresOptions::parse(&url).unwrap();
    let database = PostgresDatabase::open(options, None).unwrap();
    let statement = Statement {
        text,
        parameters: vec![BoundValue {
            kind: BoundKind::Integer,
            value: value.into_bytes(),
        }],
        procedure: None,
    };
    let mut bytes = CountedBytes(0);
    let mut ask = || {
        database
            .run(&DatabaseName::default(), &statement, &mut bytes)
            .unwrap();
    };
    // Prepared, and code and connection warm.
    (0..1_000).for_each(|_| ask());
    let before = cpu_us();
    (0..STATEMENTS).for_each(|_| ask());
    let each = (cpu_us() - before) / f64::from(STATEMENTS);
    assert!(bytes.0 > 0, "there was no row");
    println!("{each:.2}");
}

/// CPU time of this process, in microseconds.
fn cpu_us() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    let nanoseconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
    nanoseconds / 1e3
}
