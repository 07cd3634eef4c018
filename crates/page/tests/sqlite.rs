//! SQLite as a page's database: what it refuses, how writers meet, when writing stays.

mod site;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hob_page::fault::FunctionFault;
use hob_page::sql::sqlite::{SqliteDatabase, SqliteOptions};
use hob_page::sql::{Cell, Database, DatabaseName, RowSink, RowsEnd, RunDone, Statement};
use hob_page::tree::Page;

use site::{Site, pages, request};

/// Keeps rows as text, up to a number of them.
struct Rows {
    lines: Vec<String>,
    most: usize,
}

impl RowSink for Rows {
    fn columns(&mut self, names: &[&str]) -> Result<(), RowsEnd> {
        self.lines.push(names.join(" "));
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd> {
        let cells = cells.iter().map(|cell| format!("{cell:?}"));
        self.lines.push(cells.collect::<Vec<_>>().join(" "));
        match self.lines.len() > self.most {
            true => Err(RowsEnd),
            false => Ok(()),
        }
    }
}

fn options(path: &Path) -> SqliteOptions {
    SqliteOptions {
        path: path.to_path_buf(),
        is_read_only: false,
        creates: true,
        busy_timeout: Duration::from_millis(10),
        value_bytes_max: 1 << 20,
    }
}

fn run(database: &SqliteDatabase, text: &str) -> Result<(RunDone, Vec<String>), FunctionFault> {
    let statement = Statement {
        text: text.to_string(),
        ..Statement::default()
    };
    let mut rows = Rows {
        lines: Vec::new(),
        most: 100,
    };
    let done = database.run(&DatabaseName::default(), &statement, &mut rows)?;
    Ok((done, rows.lines))
}

fn code(database: &SqliteDatabase, text: &str) -> Result<(), i64> {
    run(database, text).map(|_| ()).map_err(|fault| fault.code)
}

#[test]
fn a_statement_reaches_no_other_file_and_no_code() {
    let home = tempfile::tempdir().expect("a folder");
    let database = SqliteDatabase::open(&options(&home.path().join("a.db")), None).expect("opens");
    let other = home.path().join("b.db");
    assert_eq!(code(&database, "CREATE TABLE t (a)"), Ok(()));
    assert_eq!(
        code(&database, "SELECT * FROM pragma_table_info('t')"),
        Ok(())
    );
    for text in [
        format!("ATTACH '{}' AS b", other.display()),
        format!("VACUUM INTO '{}'", other.display()),
        "SELECT load_extension('x')".to_string(),
        "PRAGMA writable_schema = 1".to_string(),
        "PRAGMA query_only = 0".to_string(),
        "PRAGMA journal_mode = DELETE".to_string(),
        "CREATE VIRTUAL TABLE v USING csv(filename = 'x')".to_string(),
        "UPDATE sqlite_master SET sql = 'x'".to_string(),
        "SELECT \"no such column\" FROM t".to_string(),
        "SELECT 1; SELECT 2".to_string(),
        "BEGIN".to_string(),
    ] {
        assert!(code(&database, &text).is_err(), "{text}");
        let _ = database.rollback();
    }
    assert!(!other.exists());
}

#[test]
fn what_only_reads_writes_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("a.db");
    let writer = SqliteDatabase::open(&options(&path), None).expect("opens");
    run(&writer, "CREATE TABLE t (a)").expect("a table");
    run(&writer, "INSERT INTO t VALUES (1)").expect("a row");
    writer.commit().expect("it is committed");
    let reads = SqliteOptions {
        is_read_only: true,
        creates: false,
        ..options(&path)
    };
    let reader = SqliteDatabase::open(&reads, None).expect("opens");
    let (_, rows) = run(&reader, "SELECT a FROM t").expect("it is read");
    assert_eq!(rows, ["a", "Integer(1)"]);
    assert_eq!(code(&reader, "INSERT INTO t VALUES (2)"), Err(-817));
    let missing = SqliteOptions {
        path: home.path().join("none.db"),
        ..reads
    };
    assert_eq!(
        SqliteDatabase::open(&missing, None)
            .err()
            .map(|fault| fault.code),
        Some(-204)
    );
}

#[test]
fn a_second_writer_is_refused_at_its_start() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("a.db");
    let first = SqliteDatabase::open(&options(&path), None).expect("opens");
    let second = SqliteDatabase::open(&options(&path), None).expect("opens");
    run(&first, "CREATE TABLE t (a)").expect("a table");
    first.commit().expect("it is committed");
    run(&first, "INSERT INTO t VALUES (1)").expect("a row");
    assert_eq!(code(&second, "INSERT INTO t VALUES (2)"), Err(-913));
    let (_, rows) = run(&second, "SELECT count(*) FROM t").expect("readers do not wait");
    assert_eq!(rows[1], "Integer(0)");
    first.rollback().expect("it is undone");
    assert_eq!(code(&second, "INSERT INTO t VALUES (2)"), Ok(()));
    second.commit().expect("it is committed");
}

#[test]
fn a_statement_ends_when_its_time_is_up() {
    let home = tempfile::tempdir().expect("a folder");
    let is_over = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_over);
    // The first look already says yes.
    let ends = Box::new(move || {
        asked.store(true, Ordering::Relaxed);
        true
    });
    let database = SqliteDatabase::open(&options(&home.path().join("a.db")), Some(ends));
    let database = database.expect("opens");
    let endless = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)
        SELECT count(*) FROM n";
    assert_eq!(code(&database, endless), Err(-952));
    assert!(is_over.load(Ordering::Relaxed));
}

#[test]
fn rows_stop_when_nobody_wants_more() {
    let home = tempfile::tempdir().expect("a folder");
    let database = SqliteDatabase::open(&options(&home.path().join("a.db")), None).expect("opens");
    let endless = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)
        SELECT i FROM n";
    let (_, rows) = run(&database, endless).expect("it is read");
    assert_eq!(rows.len(), 101);
}

#[test]
fn a_page_whose_commit_fails_is_not_ended_as_if_it_had_not() {
    let schema = "CREATE TABLE parent (id INTEGER PRIMARY KEY);
        CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)";
    let site = Site::new(&pages(), schema);
    let source = "%FUNCTION(DTW_SQL) add() { INSERT INTO child VALUES ($(id)) %}
        %FUNCTION(DTW_SQL) count() { SELECT count(*) FROM child %REPORT { %ROW { $(V1) %} %} %}
        %HTML(add) { @add() added %} %HTML(count) { @count() %}";
    let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
    let answer = site.ask(&page, &request("add?id=7"), None);
    let fault = answer.outcome.expect_err("the commit fails");
    assert!(fault.message.contains("FOREIGN KEY"), "{fault}");
    assert_eq!(answer.taken.bytes, b"", "the last piece did not leave");
    let answer = site.ask(&page, &request("count"), None);
    assert_eq!(answer.text().trim(), "0");
}

#[test]
fn an_error_of_one_statement_undoes_the_run_unless_each_stands_alone() {
    let site = Site::new(&pages(), "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    let source = "%FUNCTION(DTW_SQL) add(id) { INSERT INTO t VALUES ($(id))
            %MESSAGE { DEFAULT : \"no\" : CONTINUE %} %}
        %FUNCTION(DTW_SQL) count() { SELECT count(*) FROM t %REPORT { %ROW { $(V1) %} %} %}
        %HTML(all) { @add(\"1\") @add(\"1\") %}
        %HTML(each) { @DTW_ASSIGN(TRANSACTION_SCOPE, \"SINGLE\") @add(\"1\") @add(\"1\") %}
        %HTML(count) { @count() %}";
    let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
    let count = || {
        site.ask(&page, &request("count"), None)
            .text()
            .trim()
            .to_string()
    };
    site.ask(&page, &request("all"), None)
        .outcome
        .expect("it ends");
    assert_eq!(count(), "0");
    site.ask(&page, &request("each"), None)
        .outcome
        .expect("it ends");
    assert_eq!(count(), "1");
}
