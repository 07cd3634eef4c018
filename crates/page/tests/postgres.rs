//! PostgreSQL as a page's database, over a server that each test starts.

#[path = "postgres/server.rs"]
mod server;
#[path = "postgres/ways.rs"]
mod ways;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_page::fault::FunctionFault;
use hob_page::sql::postgres::{PostgresDatabase, PostgresOptions};
use hob_page::sql::{
    BoundKind, BoundValue, Cell, Database, DatabaseName, Procedure, ProcedureParameter, RowSink,
    RowsEnd, RunDone, Statement,
};

use server::PostgresServer;

/// Keeps rows as text, NULL as nothing in brackets, up to a number of them.
#[derive(Default)]
struct Rows {
    lines: Vec<String>,
}

impl RowSink for Rows {
    fn columns(&mut self, names: &[&str]) -> Result<(), RowsEnd> {
        self.lines.push(names.join(" "));
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd> {
        let cells = cells.iter().map(|cell| match cell {
            Cell::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Cell::Null => "[]".to_owned(),
            other => format!("{other:?}"),
        });
        self.lines.push(cells.collect::<Vec<_>>().join(" "));
        Ok(())
    }
}

fn database(server: &PostgresServer) -> PostgresDatabase {
    let options = PostgresOptions::parse(&server.url("hob")).expect("a URL");
    PostgresDatabase::open(options, None).expect("it is reached")
}

/// Values as a page without quotes has them.
fn values(values: &[&str]) -> Vec<BoundValue> {
    let value = |value: &&str| BoundValue {
        kind: match *value {
            "" => BoundKind::Null,
            value if value.parse::<i64>().is_ok() => BoundKind::Integer,
            value if value.parse::<f64>().is_ok() => BoundKind::Decimal,
            _ => BoundKind::Text,
        },
        value: value.as_bytes().to_vec(),
    };
    values.iter().map(value).collect()
}

fn statement(text: &str, given: &[&str]) -> Statement {
    Statement {
        text: text.to_owned(),
        parameters: values(given),
        procedure: None,
    }
}

fn run(
    database: &PostgresDatabase,
    text: &str,
    given: &[&str],
) -> Result<(RunDone, Vec<String>), FunctionFault> {
    let mut rows = Rows::default();
    let name = DatabaseName::default();
    let done = database.run(&name, &statement(text, given), &mut rows)?;
    Ok((done, rows.lines))
}

fn lines(database: &PostgresDatabase, text: &str, given: &[&str]) -> Vec<String> {
    match run(database, text, given) {
        Ok((_, lines)) => lines,
        Err(fault) => panic!("{text}: {fault:?}"),
    }
}

/// Code and state of a failure.
fn code(database: &PostgresDatabase, text: &str, given: &[&str]) -> (i64, String) {
    match run(database, text, given) {
        Ok(_) => (0, String::new()),
        Err(fault) => (fault.code, fault.sql_state.unwrap_or_default().into()),
    }
}

fn failed(code: i64, state: &str) -> (i64, String) {
    (code, state.to_owned())
}

#[test]
fn values_are_bound_to_columns_of_every_type_and_come_back_as_text() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = database(&server);
    lines(
        &database,
        "CREATE TABLE t (id int PRIMARY KEY, big bigint, small smallint, price numeric(9, 2), \
         share double precision, name text, code char(4), sold bool, day date, at timestamp, \
         zone timestamptz, bytes bytea, key uuid, data json, more jsonb, list int[], net inet)",
        &[],
    );
    lines(&database, "SET LOCAL timezone = 'UTC'", &[]);
    let row = [
        "1",
        "9223372036854775807",
        "-7",
        "12.50",
        "0.25",
        "it's ä ?",
        "ab",
        "true",
        "2026-11-29",
        "2026-11-29 03:00:00",
        "2026-11-29 03:00:00+00",
        "\\x00ff",
        "11111111-2222-3333-4444-555555555555",
        "{\"a\": 1}",
        "[1, 2]",
        "{1,NULL,3}",
        "192.0.2.7",
    ];
    let marks = vec!["?"; row.len()].join(", ");
    let (done, _) =
        run(&database, &format!("INSERT INTO t VALUES ({marks})"), &row).expect("a row");
    assert_eq!(done.changed_rows, 1);
    let found = lines(&database, "SELECT * FROM t WHERE id = ?", &["1"]);
    let wanted = "1 9223372036854775807 -7 12.50 0.25 it's ä ? ab   t 2026-11-29 \
                  2026-11-29 03:00:00 2026-11-29 03:00:00+00 \\x00ff \
                  11111111-2222-3333-4444-555555555555 {\"a\": 1} [1, 2] {1,NULL,3} 192.0.2.7";
    assert_eq!(found[1], wanted);
    let nulls = lines(
        &database,
        "INSERT INTO t (id, name, day) VALUES (?, ?, ?) RETURNING name, day, id",
        &["2", "", ""],
    );
    assert_eq!(nulls, ["name day id", "[] [] 2"]);
    // Types that nothing tells are text.
    let untold = "SELECT ? IS NULL AS a, coalesce(?, 'x') AS b, ? || '!' AS c, ? + 1 AS d";
    let found = lines(&database, untold, &["", "", "y", "41"]);
    assert_eq!(found, ["a b c d", "t x y! 42"]);
    let found = lines(
        &database,
        "SELECT id FROM t WHERE id IN (?, ?) ORDER BY id LIMIT ?",
        &["1", "2", "1"],
    );
    assert_eq!(found, ["id", "1"]);
    // A number in a column of text is text, and an operator may be a question mark.
    let (done, _) =
        run(&database, "UPDATE t SET name = ? WHERE id = ?", &["5", "2"]).expect("a row");
    assert_eq!(done.changed_rows, 1);
    let found = lines(
        &database,
        "SELECT more ? '1' AS has FROM t WHERE name = '5' OR id = 1",
        &[],
    );
    assert_eq!(found, ["has", "f", "[]"]);
    database.commit().expect("it is committed");
    let (done, rows) = run(&database, "DELETE FROM t", &[]).expect("rows");
    assert_eq!((done.changed_rows, rows.len()), (2, 0));
    database.rollback().expect("it is undone");
    assert_eq!(lines(&database, "SELECT count(*) FROM t", &[])[1], "2");
}

#[test]
fn data_stays_data_and_failures_have_the_codes_of_macros() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = database(&server);
    for text in [
        "CREATE TABLE part (id int PRIMARY KEY, name text NOT NULL, cents int CHECK (cents > 0))",
        "CREATE TABLE line (part int REFERENCES part)",
        "INSERT INTO part VALUES (1, 'bolt', 5)",
    ] {
        lines(&database, text, &[]);
    }
    for data in [
        "x' OR '1'='1",
        "'; DROP TABLE part; --",
        "\\'; SELECT 1; --",
        "$1",
        "?",
        "$$",
        "x\u{2019}",
        "/*",
        "E'\\'",
        "1) OR (1=1",
    ] {
        let found = lines(&database, "SELECT id FROM part WHERE name = ?", &[data]);
        assert_eq!(found, ["id"], "{data}");
        let back = lines(&database, "SELECT ?::text AS back", &[data]);
        assert_eq!(back[1], data);
    }
    database.commit().expect("it is committed");
    for (text, given, wanted) in [
        (
            "INSERT INTO part VALUES (?, 'nut', 5)",
            &["1"][..],
            failed(-803, "23505"),
        ),
        (
            "INSERT INTO part VALUES (2, ?, 5)",
            &[""],
            failed(-407, "23502"),
        ),
        (
            "INSERT INTO part VALUES (2, 'nut', ?)",
            &["0"],
            failed(-545, "23514"),
        ),
        (
            "INSERT INTO line VALUES (?)",
            &["99"],
            failed(-530, "23503"),
        ),
        ("SELECT * FROM none", &[], failed(-204, "42P01")),
        ("SELECT none FROM part", &[], failed(-206, "42703")),
        ("SELEC 1", &[], failed(-104, "42601")),
        ("SELECT 1; SELECT 2", &[], failed(-104, "42601")),
        ("SELECT missing()", &[], failed(-440, "42883")),
        ("SELECT 1 / ?", &["0"], failed(-801, "22012")),
        ("SELECT ?::int", &["x"], failed(-420, "22P02")),
        ("SELECT ?::date", &["2026-13-01"], failed(-181, "22008")),
        ("SELECT ?::smallint", &["70000"], failed(-413, "22003")),
        ("SELECT ?", &["a\0b"], failed(-420, "22021")),
        ("SELECT ? WHERE '?'", &["1", "2"], failed(-313, "07001")),
        ("BEGIN", &[], failed(-104, "42601")),
        ("SET search_path = x", &[], failed(-104, "42601")),
        ("COPY part TO STDOUT", &[], failed(-104, "42601")),
    ] {
        assert_eq!(code(&database, text, given), wanted, "{text}");
        // What failed takes nothing along, neither alone nor among others.
        assert_eq!(lines(&database, "SELECT id FROM part", &[]), ["id", "1"]);
        assert_eq!(code(&database, text, given), wanted, "{text}");
        assert_eq!(lines(&database, "SELECT id FROM part", &[]), ["id", "1"]);
        database.rollback().expect("it is undone");
    }
}

#[test]
fn a_transaction_is_kept_whole_or_not_at_all() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let (one, two) = (database(&server), database(&server));
    lines(
        &one,
        "CREATE TABLE t (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
        &[],
    );
    one.commit().expect("it is committed");
    // A failure in the middle leaves the rest; another connection sees nothing before the end.
    lines(&one, "INSERT INTO t VALUES (?)", &["1"]);
    assert_eq!(
        code(&one, "INSERT INTO t VALUES (?)", &["x"]),
        failed(-420, "22P02")
    );
    lines(&one, "INSERT INTO t VALUES (?)", &["2"]);
    assert_eq!(lines(&two, "SELECT count(*) FROM t", &[])[1], "0");
    one.commit().expect("it is committed");
    two.commit().expect("it only read");
    assert_eq!(lines(&two, "SELECT count(*) FROM t", &[])[1], "2");
    two.commit().expect("it only read");
    // A check at the end fails the end.
    lines(&one, "INSERT INTO t VALUES (?)", &["2"]);
    let fault = one.commit().expect_err("it is there already");
    assert_eq!(
        (fault.code, fault.sql_state.as_deref()),
        (-803, Some("23505"))
    );
    one.commit().expect("nothing is open any more");
    // Two that read what the other writes cannot both stay.
    for database in [&one, &two] {
        lines(
            database,
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            &[],
        );
        lines(database, "SELECT count(*) FROM t", &[]);
    }
    lines(&one, "INSERT INTO t VALUES (10)", &[]);
    lines(&two, "INSERT INTO t VALUES (11)", &[]);
    one.commit().expect("the first one is kept");
    let fault = two.commit().expect_err("the second one is not");
    assert_eq!(
        (fault.code, fault.sql_state.as_deref()),
        (-911, Some("40001"))
    );
    lines(&two, "INSERT INTO t VALUES (12)", &[]);
    two.commit().expect("again");
    assert_eq!(lines(&one, "SELECT count(*) FROM t", &[])[1], "4");
    one.rollback().expect("it only read");
    let reads = PostgresOptions {
        is_read_only: true,
        ..PostgresOptions::parse(&server.url("hob")).expect("a URL")
    };
    let reader = PostgresDatabase::open(reads, None).expect("it is reached");
    assert_eq!(lines(&reader, "SELECT count(*) FROM t", &[])[1], "4");
    assert_eq!(
        code(&reader, "INSERT INTO t VALUES (13)", &[]),
        failed(-817, "25006")
    );
}

#[test]
fn a_plan_is_told_and_nothing_is_done() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = database(&server);
    lines(&database, "CREATE TABLE t (id int)", &[]);
    let plan = |text: &str, given: &[&str]| {
        database.plan(&DatabaseName::default(), &statement(text, given))
    };
    let steps = plan("INSERT INTO t SELECT id FROM t WHERE id > ?", &["5"]).expect("a plan");
    assert!(steps[0].starts_with("Insert on t"), "{steps:?}");
    assert!(steps.iter().any(|step| step.contains("Seq Scan on t")));
    assert_eq!(lines(&database, "SELECT count(*) FROM t", &[])[1], "0");
    // What has none is told, and what came before it is still there.
    lines(&database, "INSERT INTO t VALUES (7)", &[]);
    assert_eq!(plan("SHOW server_version", &[]).unwrap_err().code, -104);
    database.commit().expect("it is kept");
    assert_eq!(lines(&database, "SELECT id FROM t", &[])[1], "7");
}

#[test]
fn what_may_only_read_cannot_be_made_to_write() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let writer = database(&server);
    lines(&writer, "CREATE TABLE t (id int)", &[]);
    writer.commit().expect("it is committed");
    let reads = PostgresOptions {
        is_read_only: true,
        ..PostgresOptions::parse(&server.url("hob")).expect("a URL")
    };
    let reader = PostgresDatabase::open(reads, None).expect("it is reached");
    for text in [
        "SET TRANSACTION READ WRITE",
        "SET LOCAL transaction_read_only = off",
        "SET LOCAL U&\"transaction\\005fread_only\" = off",
    ] {
        assert_eq!(code(&reader, text, &[]), failed(-817, "25006"), "{text}");
    }
    let setting = "SELECT set_config('transaction_read_only', 'off', true)";
    assert_eq!(code(&reader, setting, &[]).1, "25001");
    let setting = "SELECT set_config('default_transaction_read_only', 'off', false)";
    assert_eq!(code(&reader, setting, &[]).0, 0);
    reader.commit().expect("it only read");
    assert_eq!(
        code(&reader, "INSERT INTO t VALUES (1)", &[]),
        failed(-817, "25006")
    );
    reader.rollback().expect("it only read");
    lines(
        &reader,
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        &[],
    );
    assert_eq!(lines(&reader, "SELECT count(*) FROM t", &[])[1], "0");
    // Ends that nobody waits for are seen by the next statement, and by others at once.
    for _ in 0..100 {
        reader.commit().expect("it only read");
        lines(&reader, "SELECT id FROM t", &[]);
        lines(&writer, "INSERT INTO t VALUES (1)", &[]);
        writer.rollback().expect("it is undone");
    }
    // One run only reads, and another one from its middle on.
    writer.read_only().expect("it is told");
    lines(&writer, "SELECT id FROM t", &[]);
    assert_eq!(
        code(&writer, "INSERT INTO t VALUES (1)", &[]),
        failed(-817, "25006")
    );
    assert_eq!(
        code(&writer, "SET TRANSACTION READ WRITE", &[]),
        failed(-817, "25006")
    );
    writer.commit().expect("it only read");
    lines(&writer, "INSERT INTO t VALUES (2)", &[]);
    writer.read_only().expect("it is told");
    for _ in 0..2 {
        assert_eq!(
            code(&writer, "INSERT INTO t VALUES (1)", &[]),
            failed(-817, "25006")
        );
        assert_eq!(lines(&writer, "SELECT id FROM t", &[]), ["id", "2"]);
    }
    writer.commit().expect("it is committed");
    lines(&writer, "DELETE FROM t", &[]);
    writer.commit().expect("it is committed");
    assert_eq!(lines(&writer, "SELECT count(*) FROM t", &[])[1], "0");
}

#[test]
fn connections_go_from_thread_to_thread() {
    fn goes<T: Send>() {}
    goes::<PostgresDatabase>();
}

#[test]
fn a_server_that_was_killed_is_found_again() {
    let Some(mut server) = PostgresServer::start() else {
        return;
    };
    let database = database(&server);
    lines(&database, "CREATE TABLE t (id int)", &[]);
    database.commit().expect("it is committed");
    // In the middle of a run: what it wrote is undone, and it cannot end as if it had not been.
    lines(&database, "INSERT INTO t VALUES (1)", &[]);
    server.kill();
    let (gone, _) = code(&database, "INSERT INTO t VALUES (2)", &[]);
    assert_eq!(gone, -30081);
    assert_eq!(code(&database, "SELECT 1", &[]), failed(-30081, "08001"));
    server.go_on();
    lines(&database, "INSERT INTO t VALUES (3)", &[]);
    let fault = database.commit().expect_err("a part of it is lost");
    assert_eq!(fault.code, -911);
    database.rollback().expect("it is undone");
    assert_eq!(lines(&database, "SELECT count(*) FROM t", &[])[1], "0");
    database.commit().expect("it only read");
    // Between two runs: nobody hears of it.
    server.kill();
    server.go_on();
    lines(&database, "INSERT INTO t VALUES (4)", &[]);
    database.commit().expect("it is committed");
    assert_eq!(lines(&database, "SELECT id FROM t", &[]), ["id", "4"]);
}

#[test]
fn a_statement_that_takes_too_long_is_cancelled_on_the_server() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_over);
    let options = PostgresOptions::parse(&server.url("hob")).expect("a URL");
    let ends = Box::new(move || asked.load(Ordering::Relaxed));
    let database = PostgresDatabase::open(options.clone(), Some(ends)).expect("it is reached");
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(
        code(&database, "SELECT pg_sleep(600)", &[]),
        failed(-952, "57014")
    );
    is_over.store(false, Ordering::Relaxed);
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(6%' AND \
                  state = 'active' AND pid <> pg_backend_pid()";
    assert_eq!(lines(&database, sleeps, &[])[1], "0");
    let limited = PostgresOptions {
        statement_timeout: std::time::Duration::from_millis(10),
        ..options
    };
    let limited = PostgresDatabase::open(limited, None).expect("it is reached");
    assert_eq!(
        code(&limited, "SELECT pg_sleep(600)", &[]),
        failed(-952, "57014")
    );
    assert_eq!(lines(&limited, "SELECT 1 AS a", &[]), ["a", "1"]);
}

/// Counts rows, and looks at the memory of this process.
struct Counted {
    rows: u64,
    peak_kib: u64,
}

impl RowSink for Counted {
    fn columns(&mut self, _: &[&str]) -> Result<(), RowsEnd> {
        Ok(())
    }

    fn row(&mut self, _: &[Cell<'_>]) -> Result<(), RowsEnd> {
        self.rows += 1;
        if self.rows.is_multiple_of(10_000) {
            self.peak_kib = self.peak_kib.max(resident_kib());
        }
        Ok(())
    }
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("proc is there");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|kib| kib.parse().ok()).expect("a number")
}

#[test]
fn a_million_rows_are_handed_over_without_being_kept() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = database(&server);
    let mut counted = Counted {
        rows: 0,
        peak_kib: 0,
    };
    lines(&database, "SELECT 1", &[]);
    let before = resident_kib();
    let text = "SELECT n, repeat('x', 100) FROM generate_series(1, ?) AS n";
    let asked = statement(text, &["1000000"]);
    database
        .run(&DatabaseName::default(), &asked, &mut counted)
        .expect("all rows");
    assert_eq!(counted.rows, 1_000_000);
    // All of them are over 100 MiB. Other tests of this process have their share.
    let grown = counted.peak_kib.saturating_sub(before);
    assert!(grown < 48 << 10, "{grown} KiB");
    // A row that is too large breaks nothing but its statement.
    assert_eq!(
        code(&database, "SELECT repeat('x', 17 << 20)", &[]),
        failed(-302, "22001")
    );
    database.rollback().expect("it is undone");
    let large = "SELECT repeat('x', 3 << 20) FROM generate_series(1, 64)";
    assert_eq!(code(&database, large, &[]), failed(-302, "22001"));
    database.rollback().expect("it is undone");
    assert_eq!(lines(&database, "SELECT 1 AS a", &[]), ["a", "1"]);
}

/// Runs another statement for each row, as a report may.
struct Nested<'d> {
    database: &'d PostgresDatabase,
    text: &'static str,
    found: Vec<String>,
    most: usize,
    commits: bool,
}

impl RowSink for Nested<'_> {
    fn columns(&mut self, _: &[&str]) -> Result<(), RowsEnd> {
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), RowsEnd> {
        let Some(Cell::Text(number)) = cells.first() else {
            panic!("a number");
        };
        let number = String::from_utf8_lossy(number);
        match run(self.database, self.text, &[&number]) {
            Ok((_, lines)) => self.found.extend(lines.into_iter().skip(1)),
            Err(fault) => self.found.push(fault.code.to_string()),
        }
        if self.commits {
            self.database.commit().expect("it is committed");
        }
        match self.found.len() >= self.most {
            true => Err(RowsEnd),
            false => Ok(()),
        }
    }
}

#[test]
fn rows_run_statements_while_others_come() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = database(&server);
    let nested = |text, most, commits| {
        let mut sink = Nested {
            database: &database,
            text,
            found: Vec::new(),
            most,
            commits,
        };
        let asked = statement("SELECT generate_series(1, ?)", &["300"]);
        database
            .run(&DatabaseName::default(), &asked, &mut sink)
            .expect("all rows");
        sink.found
    };
    let squares: Vec<String> = (1..=300_u32).map(|n| (n * n).to_string()).collect();
    lines(&database, "CREATE TABLE t (n int, square int)", &[]);
    lines(
        &database,
        "INSERT INTO t SELECT n, n * n FROM generate_series(1, 300) n",
        &[],
    );
    assert_eq!(
        nested("SELECT square FROM t WHERE n = ?", 1_000, false),
        squares
    );
    // Nobody wants more; the connection goes on.
    assert_eq!(
        nested("SELECT square FROM t WHERE n = ?", 2, false),
        squares[..2]
    );
    // One that fails takes neither the rows along nor what was written.
    let failures = nested("SELECT n / (n - 2) FROM t WHERE n = ?", 1_000, false);
    assert_eq!((failures.len(), &*failures[1]), (300, "-801"));
    // Rows that fail late take nothing along of what others wrote.
    let mut sink = Nested {
        database: &database,
        text: "INSERT INTO t VALUES (?, -1) RETURNING n",
        found: Vec::new(),
        most: 1_000,
        commits: false,
    };
    let late = statement(
        "SELECT n, 1 / (n - ?) FROM generate_series(1, 300) n",
        &["200"],
    );
    let fault = database.run(&DatabaseName::default(), &late, &mut sink);
    assert_eq!(fault.expect_err("it divides by zero").code, -801);
    let wrote = sink.found.len();
    assert!((64..200).contains(&wrote), "{wrote}");
    let count = lines(
        &database,
        "SELECT count(*) FROM t WHERE square = ?",
        &["-1"],
    );
    assert_eq!(count[1], wrote.to_string());
    lines(&database, "DELETE FROM t WHERE square = ?", &["-1"]);
    // The transaction ends in the middle; the rows still come.
    assert_eq!(
        nested("SELECT square FROM t WHERE n = ?", 1_000, true),
        squares
    );
    assert_eq!(lines(&database, "SELECT count(*) FROM t", &[])[1], "300");
}

#[test]
fn prepared_statements_are_kept_up_to_a_number_and_follow_the_tables() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = database(&server);
    for number in 0..200 {
        lines(&database, &format!("SELECT {number} + ?"), &["1"]);
        lines(&database, "SELECT ? AS always", &["1"]);
    }
    assert_eq!(database.prepared_count(), 64);
    let prepared = "SELECT count(*) <= 65 FROM pg_prepared_statements WHERE name LIKE 's%'";
    assert_eq!(lines(&database, prepared, &[])[1], "t");
    lines(&database, "CREATE TABLE t (a int)", &[]);
    lines(&database, "INSERT INTO t VALUES (1)", &[]);
    assert_eq!(lines(&database, "SELECT * FROM t", &[]), ["a", "1"]);
    database.commit().expect("it is committed");
    lines(&database, "ALTER TABLE t ADD b int DEFAULT 2", &[]);
    assert_eq!(lines(&database, "SELECT * FROM t", &[]), ["a b", "1 2"]);
}

fn parameter(name: &str, is_out: bool) -> ProcedureParameter {
    ProcedureParameter {
        name: name.into(),
        sql_type: Some("INTEGER".into()),
        is_out,
        is_in: true,
    }
}

#[test]
fn procedures_give_values_and_results_back() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = database(&server);
    for text in [
        "CREATE PROCEDURE double(INOUT n int, INOUT twice int) LANGUAGE plpgsql AS \
         $$ BEGIN twice := n * 2; END $$",
        "CREATE PROCEDURE results(most int, INOUT total int, INOUT one refcursor, INOUT two refcursor) \
         LANGUAGE plpgsql AS $$ BEGIN total := most; \
         OPEN one FOR SELECT n FROM generate_series(1, most) n; OPEN two FOR SELECT 'x' AS word; \
         END $$",
    ] {
        lines(&database, text, &[]);
    }
    let call = |name: &str, given: &[&str], parameters: Vec<ProcedureParameter>, result_sets| {
        let marks = vec!["?"; given.len()].join(", ");
        let asked = Statement {
            procedure: Some(Procedure {
                name: name.to_owned(),
                parameters,
                result_sets,
            }),
            ..statement(&format!("CALL {name}({marks})"), given)
        };
        let mut rows = Rows::default();
        let done = database.run(&DatabaseName::default(), &asked, &mut rows);
        done.map(|done| (done.outs, rows.lines))
    };
    let out = |name: &str, value: &str| (name.into(), Some(value.as_bytes().to_vec()));
    let parameters = vec![parameter("n", false), parameter("twice", true)];
    // What is IN here and INOUT there comes back too, and first.
    let found = call(
        "double",
        &["21", ""],
        vec![parameter("n", true), parameter("twice", true)],
        0,
    );
    assert_eq!(
        found,
        Ok((vec![out("n", "21"), out("twice", "42")], vec![]))
    );
    let found = call(
        "results",
        &["2", ""],
        vec![parameter("most", false), parameter("total", true)],
        2,
    );
    let results = ["n", "1", "2", "word", "x"].map(str::to_owned).to_vec();
    assert_eq!(found, Ok((vec![out("total", "2")], results)));
    let fault = call("missing", &["1", ""], parameters, 0).expect_err("there is none");
    assert_eq!(fault.code, -440);
}

#[test]
fn what_only_reads_leaves_nothing_open() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = database(&server);
    lines(&database, "CREATE TABLE t (id int)", &[]);
    assert!(database.is_open());
    database.commit().expect("it is committed");
    assert!(!database.is_open());
    lines(&database, "INSERT INTO t VALUES (1)", &[]);
    database.rollback().expect("it is undone");
    assert!(!database.is_open());
    lines(&database, "SELECT * FROM t", &[]);
    assert!(!database.is_open());
    lines(&database, "INSERT INTO t VALUES (1)", &[]);
    assert!(database.is_open());
    database.commit().expect("it is committed");
    lines(&database, "SELECT * FROM t FOR UPDATE", &[]);
    assert!(database.is_open(), "a row is locked");
}
