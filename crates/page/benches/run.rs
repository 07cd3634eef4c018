//! What a run of a page costs, without a server: the pages of `bench/pages.py`, each many times.
//!
//! ```text
//! cargo bench -p hob-page --bench run -- BLOCK RUNS
//! valgrind --tool=callgrind target/release/deps/run-... BLOCK RUNS
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::expect_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use hob_page::host::{Absent, Host};
use hob_page::run::{PageSettings, run};
use hob_page::tree::Page;

#[path = "../tests/site/mod.rs"]
mod site;

use site::{Echo, Site, Still, Taken, request};

const PAGE: &str = include_str!("../../../bench/pages/stock.page");
const SCHEMA: &str = "CREATE TABLE part (id INTEGER PRIMARY KEY, title TEXT, cents INTEGER);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
    INSERT INTO part SELECT i, 'part ' || i, i * 7 FROM n";

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"));
    let block = arguments.next().unwrap_or("html".into());
    let runs: u32 = arguments
        .next()
        .map_or(20_000, |runs| runs.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path(), SCHEMA);
    let page = Arc::new(Page::parse("stock.page", PAGE.as_bytes()).unwrap());
    let settings = PageSettings::default();
    let environment = [("SERVER_NAME".to_string(), b"www.example".to_vec())].to_vec();
    let begin = Instant::now();
    for _ in 0..runs {
        let host = Host {
            environment: &environment,
            sources: &site.folder,
            database: site.database.as_ref().map(|database| database as _),
            programs: &Echo,
            files: &Absent,
            registries: &Absent,
            visits: &Absent,
            clock: &Still,
        };
        let mut taken = Taken::default();
        let asked = request(&format!("{block}?id=4711&name=Ben"));
        run(&page, &asked, &settings, None, host, &mut taken, None).unwrap();
        black_box(taken.bytes);
    }
    println!(
        "{:.2}",
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(runs)
    );
}
