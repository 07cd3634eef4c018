//! Golden pages: each file of `pages/` is run as its first comment says, and compared with `.out`.
//!
//! The comment has lines `sql STATEMENT` that make the database, and `get BLOCK?QUERY`, which are
//! asked for one after the other. `UPDATE_GOLDEN=1` writes what came.

mod site;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use hob_page::tree::Page;

use site::{Site, pages, request};

/// What all requests of a page come to.
fn answers(path: &Path) -> String {
    let source = std::fs::read(path).expect("the page is read");
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let page = match Page::parse(name, &source) {
        Ok(page) => Arc::new(page),
        Err(fault) => return format!("{fault}\n"),
    };
    let text = String::from_utf8_lossy(&source);
    let comment = text.split("%}").next().unwrap_or_default();
    let lines = |word: &str| {
        let lines = comment.lines().map(str::trim);
        let lines = lines.filter_map(|line| line.strip_prefix(word).map(str::trim));
        lines.map(str::to_string).collect::<Vec<String>>()
    };
    let site = Site::new(&pages(), &lines("sql ").join(";\n"));
    let mut saved = None;
    let mut all = String::new();
    for target in lines("get ") {
        let answer = site.ask(&page, &request(&target), saved.as_ref());
        let _ = writeln!(all, "== {target}");
        for line in &answer.kept.lines {
            let _ = writeln!(all, "{line}");
        }
        if let Some(head) = &answer.taken.head {
            for cookie in &head.cookies {
                let _ = writeln!(all, "cookie: {cookie}");
            }
        }
        let _ = writeln!(all, "--\n{}", answer.text().trim_end());
        match answer.outcome {
            Ok(outcome) if !outcome.has_block => all += "(no such block)\n",
            Ok(outcome) => saved = outcome.saved,
            Err(fault) => {
                let _ = writeln!(all, "{fault}");
            }
        }
    }
    all
}

#[test]
fn pages_come_to_what_is_written_beside_them() {
    let mut names: Vec<_> = std::fs::read_dir(pages())
        .expect("there are pages")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "d2w" || end == "page")
        })
        .collect();
    names.sort();
    assert!(names.len() > 10, "pages are found");
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = String::new();
    for path in names {
        let out = path.with_extension("out");
        let found = answers(&path);
        let wanted = std::fs::read_to_string(&out).unwrap_or_default();
        if is_update {
            std::fs::write(&out, &found).expect("the answer is written");
        } else if found != wanted {
            let _ = writeln!(wrong, "{}:\n{found}", path.display());
        }
    }
    assert!(wrong.is_empty(), "these differ:\n{wrong}");
}
