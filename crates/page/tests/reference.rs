//! The page about the language says what the tables of the program say.

use hob_page::builtin::reference;
use hob_page::limits::{FileLimits, PageLimits};
use hob_page::lint::RULES;
use hob_page::request::CONTROL_VARIABLES;

fn page() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/src/reference/pages.md"
    );
    std::fs::read_to_string(path).expect("the page is there")
}

fn rules() -> String {
    let rows = RULES.iter();
    rows.map(|(name, what)| format!("| `{name}` | {what} |\n"))
        .collect()
}

#[test]
fn the_tables_of_the_page_are_those_of_the_program() {
    let page = page();
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (before, _) = page
        .split_once("| function | forms |")
        .unwrap_or((&page, ""));
    let (first, rest) = before
        .split_once("| rule | what it finds |\n| --- | --- |\n")
        .expect("a table");
    let (_, behind) = rest.split_once("\n## Built-in").expect("the next part");
    let head = "| rule | what it finds |\n| --- | --- |\n";
    let wanted = format!(
        "{first}{head}{}\n## Built-in{behind}{}",
        rules(),
        reference()
    );
    if is_update {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/src/reference/pages.md"
        );
        std::fs::write(path, &wanted).expect("the page is written");
    } else {
        assert!(
            page == wanted,
            "out of date; run this test with UPDATE_GOLDEN=1"
        );
    }
}

#[test]
fn the_page_names_every_variable_a_client_cannot_set() {
    let page = page();
    for name in CONTROL_VARIABLES {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn the_page_names_the_limits_there_are() {
    let page = page();
    let limits = PageLimits::default();
    let files = FileLimits::default();
    for (what, number) in [
        ("steps of a run", limits.steps_max),
        ("turns of `%WHILE`", limits.turns_max),
        ("rows of all results", limits.rows_max),
        ("files included", limits.includes_max.into()),
        ("programs called", limits.programs_max.into()),
        ("variables", limits.variables_max as u64),
        ("cells of a table", limits.cells_max as u64),
        ("uses of flat files and registries", limits.files_max.into()),
        ("rows of a flat file", limits.file_rows_max as u64),
        (
            "bytes of what a visit keeps",
            limits.saved_bytes_max as u64 >> 20,
        ),
        ("entries of a registry", files.entries_max as u64),
        ("bytes of a flat file or registry", files.bytes_max >> 20),
    ] {
        let digits = number.to_string();
        let groups = digits.as_bytes().rchunks(3).rev();
        let groups: Vec<&str> = groups
            .filter_map(|group| std::str::from_utf8(group).ok())
            .collect();
        let unit = if what.starts_with("bytes") {
            " MiB"
        } else {
            ""
        };
        let row = format!("| {what} | {}{unit} |", groups.join(","));
        assert!(page.contains(&row), "{row}");
    }
    assert!(page.contains(&format!(
        "| levels inside each other | {};",
        limits.depth_max
    )));
}
