//! Every limit of a run: what reaches it ends there, and is told which one it was.

mod site;

use std::sync::Arc;

use hob_page::fault::{PageFault, PageFaultKind};
use hob_page::host::{Absent, CivilTime, Host, PageClock};
use hob_page::limits::PageLimits;
use hob_page::run::{RunOutcome, run};
use hob_page::tree::Page;

use site::{Site, Still, Taken, pages, request};

const SCHEMA: &str = "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3), (4), (5)";

const SOURCE: &str = "%DEFINE { t = %TABLE i = \"0\" }
%FUNCTION(DTW_SQL) all() { SELECT a FROM t %REPORT { %ROW { $(V_a) %} %} %}
%FUNCTION(DTW_SQL) out(OUT rows) { SELECT a FROM t %}
%HTML(loop) { %WHILE (i < \"9\") { @DTW_ADD(i, \"1\", i) $(i) %} %}
%HTML(rows) { @all() %}
%HTML(table) { @out(t) %}
%HTML(include) { %INCLUDE \"part1.inc\" %INCLUDE \"part2.inc\" %}
%HTML(work) { @DTW_PAD(\"x\", \"100000\", big)
  %WHILE (i < \"200\") { @DTW_ADD(i, \"1\", i) @DTW_POS(\"y\", big, at) %} %}
%HTML(text) { @DTW_rPAD(\"x\", \"50\") %}
%FUNCTION(DTW_SYSTEM) call() { %EXEC { program %} %}
%HTML(calls) { @call() @call() %}
%HTML(grow) { @DTW_TB_SETCOLS(t, \"2\") @DTW_TB_APPENDROW(t, \"9\") $(RETURN_CODE) %}
";

fn asked(block: &str, limits: PageLimits) -> (Result<RunOutcome, PageFault>, String) {
    let mut site = Site::new(&pages(), SCHEMA);
    site.settings.limits = limits;
    let source = SOURCE.replace("\"0\" }", "\"0\" %}");
    let page = Arc::new(Page::parse("page", source.as_bytes()).expect("it is read"));
    let answer = site.ask(&page, &request(block), None);
    let text = answer.text();
    (answer.outcome, text)
}

#[test]
fn a_run_that_reaches_a_limit_ends_there() {
    let all = PageLimits::default();
    let limits = [
        (
            "loop",
            "steps_max",
            PageLimits {
                steps_max: 20,
                ..all
            },
        ),
        (
            "loop",
            "turns_max",
            PageLimits {
                turns_max: 5,
                ..all
            },
        ),
        (
            "loop",
            "output_bytes_max",
            PageLimits {
                output_bytes_max: 10,
                ..all
            },
        ),
        ("rows", "rows_max", PageLimits { rows_max: 3, ..all }),
        (
            "table",
            "cells_max",
            PageLimits {
                cells_max: 3,
                ..all
            },
        ),
        (
            "include",
            "includes_max",
            PageLimits {
                includes_max: 1,
                ..all
            },
        ),
        (
            "calls",
            "programs_max",
            PageLimits {
                programs_max: 1,
                ..all
            },
        ),
        (
            "include",
            "depth_max",
            PageLimits {
                depth_max: 0,
                ..all
            },
        ),
        (
            "loop",
            "variables_max",
            PageLimits {
                variables_max: 1,
                ..all
            },
        ),
    ];
    for (block, name, limits) in limits {
        assert!(asked(block, all).0.is_ok(), "{name}");
        let fault = asked(block, limits).0.expect_err(name);
        assert_eq!(fault.kind, PageFaultKind::Limit(name));
        assert!(fault.message.contains(name), "{fault}");
    }
}

#[test]
fn what_is_done_with_large_values_counts_as_more_steps() {
    let few = PageLimits {
        steps_max: 50_000,
        ..PageLimits::default()
    };
    let fault = asked("work", few).0.expect_err("it ends");
    assert_eq!(fault.kind, PageFaultKind::Limit("steps_max"));
}

#[test]
fn functions_refuse_what_would_be_too_large() {
    let all = PageLimits::default();
    let small = PageLimits {
        value_bytes_max: 40,
        ..all
    };
    assert_eq!(asked("text", small).1.trim(), "");
    assert_eq!(asked("text", all).1.trim().len(), 1);
    let small = PageLimits {
        cells_max: 5,
        ..all
    };
    assert_eq!(asked("grow", small).1.trim(), "1007");
    assert_eq!(asked("grow", all).1.trim(), "0");
}

#[test]
fn a_report_is_clamped_whatever_the_page_says() {
    let few = PageLimits {
        report_rows_max: 2,
        ..PageLimits::default()
    };
    let (outcome, text) = asked("rows", few);
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["1", "2"]);
    let used = outcome.expect("it ends").used;
    assert_eq!((used.rows, used.statements), (3, 1));
}

/// A clock whose time is up.
struct Over;

impl PageClock for Over {
    fn micros(&self) -> u64 {
        0
    }

    fn civil(&self) -> CivilTime {
        Still.civil()
    }

    fn is_over(&self) -> Option<&'static str> {
        Some("its time is up")
    }
}

#[test]
fn a_run_ends_when_its_time_is_up() {
    let source = b"%HTML(a) { %WHILE (\"1\") { x %} %}";
    let page = Arc::new(Page::parse("page", source).expect("it is read"));
    let host = Host {
        environment: &Absent,
        sources: &Absent,
        database: None,
        programs: &Absent,
        files: &Absent,
        registries: &Absent,
        visits: &Absent,
        clock: &Over,
    };
    let (request, mut taken) = (request("a"), Taken::default());
    let settings = hob_page::run::PageSettings::default();
    let outcome = run(&page, &request, &settings, None, host, &mut taken, None);
    let fault = outcome.expect_err("it ends");
    assert_eq!(fault.kind, PageFaultKind::Limit("time"));
    assert!(fault.message.contains("its time is up"), "{fault}");
}

#[test]
fn a_visit_keeps_no_more_than_it_may() {
    let source = b"@DTW_STATIC() %DEFINE { h = \"\" big = \"\" %} @DTW_RTVHANDLE(h)\n\
                   %HTML(a) { @DTW_ACCEPT(h) @DTW_PAD(\"x\", \"5000\", big) kept %}";
    let page = Arc::new(Page::parse("page", source).expect("it is read"));
    let mut site = Site::new(&pages(), SCHEMA);
    site.settings.limits.saved_bytes_max = 4_000;
    let refused = site.ask(&page, &request("a"), None);
    let fault = refused.outcome.expect_err("it is too much");
    assert_eq!(fault.kind, PageFaultKind::Limit("saved_bytes_max"));
    site.settings.limits.saved_bytes_max = 10_000;
    let kept = site.ask(&page, &request("a"), None).outcome;
    assert!(kept.is_ok_and(|outcome| outcome.saved.is_some()));
}
