//! Golden pages: each file of `pages/` is run as its first comment says, and compared with `.out`.
//!
//! The comment has lines `sql STATEMENT` that make the database, and `get BLOCK?QUERY`, which are
//! asked for one after the other. `UPDATE_GOLDEN=1` writes what came.

mod site;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_page::tree::Page;

use site::{Site, pages, request};

/// What all requests of a page come to.
fn answers(path: &Path, layout: fn(&str, Vec<u8>) -> Vec<u8>) -> String {
    let source = std::fs::read(path).expect("the page is read");
    let source = layout("page", source);
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

/// All pages, in the order of their names.
fn all() -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(pages())
        .expect("there are pages")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "d2w" || end == "page")
        })
        .collect();
    names.sort();
    assert!(names.len() > 10, "pages are found");
    names
}

#[test]
fn a_page_that_was_laid_out_comes_to_the_same() {
    for path in all() {
        let source = std::fs::read(&path).expect("the page is read");
        let Ok(text) = Page::format("page", &source) else {
            continue;
        };
        assert_eq!(
            Page::format("page", &text),
            Ok(text.clone()),
            "{}",
            path.display()
        );
        // Faults name lines, which a layout may move.
        if path.file_name().is_some_and(|name| name == "limits.page") {
            continue;
        }
        let plain = answers(&path, |_, source| source);
        let laid_out = answers(&path, |file, source| {
            Page::format(file, &source).expect("again")
        });
        assert_eq!(laid_out, plain, "{}", path.display());
    }
}

#[test]
fn words_are_written_as_the_reference_writes_them() {
    let source = b"%define{ a = \"%if\" %}  \n\n\n\n%{ x  %}  \n%html(b){ %if(a) @dtw_RSUBSTR(a,\"1\")  \n\n\n %endif %}";
    let wanted = "%DEFINE{ a = \"%if\" %}\n\n%{ x  %}\n%HTML(b){ %IF(a) @DTW_rSUBSTR(a,\"1\")  \n\n\n %ENDIF %}\n";
    let found = Page::format("page", source).expect("it is read");
    assert_eq!(String::from_utf8_lossy(&found), wanted);
}

#[test]
fn pages_come_to_what_is_written_beside_them() {
    let names = all();
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = String::new();
    for path in names {
        let out = path.with_extension("out");
        let found = answers(&path, |_, source| source);
        let wanted = std::fs::read_to_string(&out).unwrap_or_default();
        if is_update {
            std::fs::write(&out, &found).expect("the answer is written");
        } else if found != wanted {
            let _ = writeln!(wrong, "{}:\n{found}", path.display());
        }
    }
    assert!(wrong.is_empty(), "these differ:\n{wrong}");
}
