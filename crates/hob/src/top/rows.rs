//! Programs, running requests and routes as rows: what stands in them, which of them are shown, and
//! in which order.

use serde_json::Value;

use super::snapshot::Snapshot;
use crate::args::TopView;
use crate::facts::JsonView;
use crate::history;
use crate::table::{Column, TextCell, TextTable, numbers, texts, words};

/// What the rows of a view are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sort {
    /// Index of the column.
    pub(crate) column: usize,
    pub(crate) is_falling: bool,
}

impl Sort {
    /// As a view begins.
    pub(crate) fn usual(view: TopView) -> Sort {
        let column = match view {
            // Busy workers, ages, the 99th percentile.
            TopView::Programs => 2,
            TopView::Running => 1,
            TopView::Overview | TopView::Routes => 5,
        };
        Sort {
            column,
            is_falling: true,
        }
    }
}

/// The rows of a view, in the order they came in.
pub(crate) struct ViewRows<'a> {
    pub(crate) table: TextTable,
    /// What a row is of, and the name it keeps from one look to the next.
    pub(crate) subjects: Vec<(String, JsonView<'a>)>,
}

impl<'a> ViewRows<'a> {
    /// All rows of a view; the overview shows routes.
    pub(crate) fn of(view: TopView, snapshot: &'a Snapshot) -> ViewRows<'a> {
        match view {
            TopView::Programs => ViewRows::made(&snapshot.programs, PROGRAMS, program),
            TopView::Running => ViewRows::made(&snapshot.running, RUNNING, running),
            TopView::Overview | TopView::Routes => ViewRows::made(&snapshot.routes, ROUTES, route),
        }
    }

    fn made(
        list: &'a Value,
        columns: &[Column],
        row: fn(JsonView<'_>) -> (String, Vec<TextCell>),
    ) -> ViewRows<'a> {
        let mut rows = ViewRows {
            table: TextTable::new(columns),
            subjects: Vec::new(),
        };
        for item in JsonView(list).each_item() {
            let (name, cells) = row(item);
            rows.table.push(cells);
            rows.subjects.push((name, item));
        }
        rows
    }

    /// Leaves those that have the text somewhere, in order.
    pub(crate) fn arrange(&mut self, sort: Sort, filter: &str) {
        let wanted = filter.to_lowercase();
        let has = |row: &[TextCell]| {
            let mut cells = row.iter();
            cells.any(|cell| cell.shown().to_lowercase().contains(&wanted))
        };
        let rows = std::mem::take(&mut self.table.rows);
        let subjects = std::mem::take(&mut self.subjects);
        let mut both: Vec<_> = rows
            .into_iter()
            .zip(subjects)
            .filter(|(row, _)| has(row))
            .collect();
        // Of what is equal the order does not change from one look to the next.
        both.sort_by(|(one, (one_name, _)), (other, (other_name, _))| {
            let order = one[sort.column].order(&other[sort.column], sort.is_falling);
            order.then_with(|| one_name.cmp(other_name))
        });
        (self.table.rows, self.subjects) = both.into_iter().unzip();
    }

    /// The row of that name.
    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.subjects.iter().position(|(own, _)| own == name)
    }
}

/// How many columns a view has.
pub(crate) fn column_count(view: TopView) -> usize {
    columns(view).len()
}

/// The columns of a view.
pub(crate) fn columns(view: TopView) -> &'static [Column] {
    match view {
        TopView::Programs => PROGRAMS,
        TopView::Running => RUNNING,
        TopView::Overview | TopView::Routes => ROUTES,
    }
}

const PROGRAMS: &[Column] = &[
    texts("PROGRAM"),
    words("HANDLER"),
    numbers("BUSY"),
    numbers("WORKERS"),
    numbers("MAX"),
    numbers("QUEUED"),
    numbers("RESTARTS"),
    numbers("MEMORY"),
    numbers("CPU"),
];

fn program(one: JsonView<'_>) -> (String, Vec<TextCell>) {
    let name = one.text("name").unwrap_or_default();
    let sum = |field| {
        let each = one.each("workers").map(|worker| worker.count(field));
        each.flatten().reduce(u64::saturating_add)
    };
    // A route with a process for each request has scripts instead of workers.
    let scripts = one.each("scripts").map(|script| script.count("used_us"));
    let scripts_us = scripts.flatten().reduce(u64::saturating_add);
    let cells = vec![
        TextCell::text(one.text("name")),
        TextCell::text(one.text("handler")),
        TextCell::count(one.count("busy")),
        TextCell::count(Some(one.list("workers").len() as u64)),
        TextCell::count(one.count("max")),
        TextCell::count(one.count("queued")),
        TextCell::count(one.count("restarts")),
        TextCell::bytes(sum("memory_bytes")),
        TextCell::us(sum("cpu_us").or(scripts_us)),
    ];
    // Several routes may run one program.
    let route = one.text("route").unwrap_or_default();
    (format!("{name} {route}"), cells)
}

const RUNNING: &[Column] = &[
    words("ID"),
    numbers("AGE"),
    words("STATE"),
    texts("CLIENT"),
    words("HANDLER"),
    numbers("PID"),
    texts("REQUEST"),
];

fn running(one: JsonView<'_>) -> (String, Vec<TextCell>) {
    let pid = one.count("worker_pid").map(|pid| pid.to_string());
    let cells = vec![
        TextCell::text(one.text("id")),
        TextCell::us(one.count("age_us")),
        TextCell::text(one.text("state")),
        TextCell::text(history::client(one)),
        TextCell::text(one.text("handler").filter(|handler| *handler != "none")),
        TextCell::text(pid.as_deref()),
        TextCell::text(Some(&history::asked(one))),
    ];
    (one.text("id").unwrap_or_default().to_owned(), cells)
}

const ROUTES: &[Column] = &[
    texts("ROUTE"),
    words("HANDLER"),
    numbers("RATE"),
    numbers("ERRORS"),
    numbers("50 %"),
    numbers("99 %"),
    numbers("MAX"),
];

fn route(one: JsonView<'_>) -> (String, Vec<TextCell>) {
    let name = |field| one.text(field).unwrap_or_default();
    // The site that answers for all names goes without saying.
    let place = match (name("site"), name("route")) {
        ("*", route) if !route.is_empty() => route.to_owned(),
        (site, route) => format!("{site}{route}"),
    };
    let cells = vec![
        TextCell::text(Some(&place)),
        TextCell::text(one.text("handler")),
        TextCell::rate(one.number("rate_s")),
        TextCell::count(one.count("errors")),
        TextCell::us(one.count("total.p50_us")),
        TextCell::us(one.count("total.p99_us")),
        TextCell::us(one.count("total.max_us")),
    ];
    let name = format!("{} {} {}", name("site"), name("route"), name("class"));
    (name, cells)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            routes: json!([
                { "site": "a", "route": "/x", "total": { "p99_us": 10 } },
                { "site": "b", "route": "/y" },
                { "site": "c", "route": "/z", "total": { "p99_us": 500 } },
            ]),
            ..Snapshot::default()
        }
    }

    fn names(sort: Sort, filter: &str) -> Vec<String> {
        let snapshot = snapshot();
        let mut rows = ViewRows::of(TopView::Routes, &snapshot);
        rows.arrange(sort, filter);
        let names = rows.subjects.iter();
        names.map(|(name, _)| name.trim().to_owned()).collect()
    }

    #[test]
    fn rows_are_sorted_and_filtered() {
        let sort = Sort::usual(TopView::Routes);
        assert_eq!(names(sort, ""), ["c /z", "a /x", "b /y"]);
        let rising = Sort {
            is_falling: false,
            ..sort
        };
        assert_eq!(names(rising, ""), ["a /x", "c /z", "b /y"]);
        assert_eq!(names(sort, "/Z"), ["c /z"]);
        let none: [&str; 0] = [];
        assert_eq!(names(sort, "nothing like it"), none);
    }

    #[test]
    fn views_have_as_many_cells_as_columns() {
        let one = json!([{ "id": 5, "workers": [{ "cpu_us": 1 }, {}] }, null, "x"]);
        let snapshot = Snapshot {
            programs: one.clone(),
            running: one.clone(),
            routes: one,
            ..Snapshot::default()
        };
        for view in [TopView::Programs, TopView::Running, TopView::Routes] {
            let rows = ViewRows::of(view, &snapshot);
            assert_eq!(rows.table.rows.len(), 3);
            assert!(Sort::usual(view).column < column_count(view));
        }
    }
}
