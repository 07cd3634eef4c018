//! What one row by its key costs a client of PostgreSQL that does nothing else: CPU time of this
//! process, without that of the database. `bench/pages_postgres.py` sets a page beside it.
//!
//! ```text
//! cargo bench -p hob-page --bench postgres -- URL STATEMENT VALUE [THREADS]
//! ```
//!
//! With THREADS, so many threads ask, each in its own connection, and are told what by another.
#![allow(clippy::unwrap_used)]

use std::sync::mpsc;

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
    let threads: u32 = arguments.next().map_or(0, |count| count.parse().unwrap());
    let client = move || {
        let options = PostgresOptions::parse(&url).unwrap();
        let database = PostgresDatabase::open(options, None).unwrap();
        let statement = Statement {
            text: text.clone(),
            parameters: vec![BoundValue {
                kind: BoundKind::Integer,
                value: value.clone().into_bytes(),
            }],
            procedure: None,
        };
        let mut bytes = CountedBytes(0);
        move || {
            database
                .run(&DatabaseName::default(), &statement, &mut bytes)
                .unwrap();
            assert!(bytes.0 > 0, "there was no row");
        }
    };
    let mut ask_all: Box<dyn FnMut(u32)> = match threads {
        0 => {
            let mut ask = client();
            Box::new(move |count| (0..count).for_each(|_| ask()))
        }
        _ => handed_over(threads, client),
    };
    // Prepared, and code and connection warm.
    ask_all(1_000);
    let before = cpu_us();
    ask_all(STATEMENTS);
    println!("{:.2}", (cpu_us() - before) / f64::from(STATEMENTS));
}

/// Asks on other threads: this one hands over a statement for each that was answered, as a server
/// has to whose own threads may not wait.
fn handed_over<A: FnMut()>(
    threads: u32,
    client: impl Fn() -> A + Clone + Send + 'static,
) -> Box<dyn FnMut(u32)> {
    let (done, answers) = mpsc::channel();
    let orders: Vec<_> = (0..threads)
        .map(|index| {
            let (order, orders) = mpsc::channel();
            let (client, done) = (client.clone(), done.clone());
            std::thread::spawn(move || {
                let mut ask = client();
                while orders.recv().is_ok() {
                    ask();
                    done.send(index as usize).unwrap();
                }
            });
            order
        })
        .collect();
    Box::new(move |count| {
        let first = threads.min(count);
        (0..first as usize).for_each(|index| orders[index].send(()).unwrap());
        for handed in first..count + first {
            let index: usize = answers.recv().unwrap();
            if handed < count {
                orders[index].send(()).unwrap();
            }
        }
    })
}

/// CPU time of this process, in microseconds.
fn cpu_us() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of_task = |task: std::io::Result<std::fs::DirEntry>| -> f64 {
        let text = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    };
    tasks.map(of_task).sum::<f64>() / 1e3
}
