//! The table of releases, with the real program and a copy of it as the release before.

use super::harness::{Place, text_of};
use super::{compare, left};

/// The cells of the row of a release.
fn row(text: &str, release: &str) -> Vec<String> {
    let mut rows = text
        .lines()
        .filter(|line| line.starts_with(&format!("| {release} |")));
    let row = rows
        .next()
        .unwrap_or_else(|| panic!("no {release} in {text}"));
    assert_eq!(rows.next(), None, "{text}");
    let cells = row.trim_matches('|').split('|');
    cells.map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn row_of_this_release_is_made_and_replaced_and_older_ones_stay() {
    let place = Place::new();
    let (table, old) = (place.path("run/releases.md"), place.path("old-hob"));
    std::fs::copy(place.path("hob"), &old).unwrap();
    let (table, old) = (table.to_str().unwrap(), old.to_str().unwrap());
    let arguments = [
        "--releases",
        table,
        "--rival",
        old,
        "--only",
        "file.h1.clear.keep.1k.c1",
        "--only",
        "script.sh.clear.keep",
        "--round",
        "200ms",
        "--rounds",
        "2",
    ];
    // The table, and what was told while it was made. A machine that is busy with something else
    // may leave no row without doubt; then it is made once more.
    let made = || {
        for _ in 0..10 {
            let output = compare(&place, &arguments).output().unwrap();
            let text = text_of(&output);
            // Others are not compared, whatever is installed.
            assert!(!text.contains("nginx"), "{text}");
            if output.status.code() == Some(2) && text.contains("measured without doubt") {
                continue;
            }
            assert_eq!(output.status.code(), Some(0), "{text}");
            return (std::fs::read_to_string(table).unwrap(), text);
        }
        panic!("no row without doubt in ten runs");
    };
    let (first, told) = made();
    assert!(first.starts_with("# Release beside release\n"), "{first}");
    let version = env!("CARGO_PKG_VERSION");
    let head = row(&first, "release");
    let cells = row(&first, version);
    assert_eq!(cells[1], version);
    let of = |class: &str| &cells[head.iter().position(|one| one == class).unwrap()];
    for class in ["file", "program CGI"] {
        if of(class) == "–" {
            assert!(told.contains("of its CPU time is taken from"), "{told}");
            continue;
        }
        // Of one round that is left there is no interval.
        let (ratio, interval) = of(class).split_once(' ').unwrap_or((of(class), ""));
        assert!(ratio.parse::<f64>().unwrap() > 0.0, "{class}: {cells:?}");
        let is_interval = interval.starts_with('(') && interval.contains(" to ");
        assert!(interval.is_empty() || is_interval, "{cells:?}");
    }
    assert_eq!(of("HTTP/2"), "–");

    // One of an older release, and words below: both stay.
    let older = first.replace(&format!("| {version} | {version} |"), "| 0.0.1 | 0.0.0 |");
    std::fs::write(table, format!("{older}\nand so on\n")).unwrap();
    made();
    let (again, _) = made();
    assert_eq!(row(&again, "0.0.1")[3..], cells[3..]);
    assert_eq!(row(&again, version).len(), cells.len());
    assert!(again.ends_with("\nand so on\n"), "{again}");
    std::fs::remove_file(table).unwrap();
    assert_eq!(left(&place), Vec::<std::path::PathBuf>::new());
}

#[test]
fn table_of_releases_wants_another_build() {
    let place = Place::new();
    let table = place.path("run/releases.md");
    let table = table.to_str().unwrap();
    let output = compare(&place, &["--releases", table]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
    let nginx = place.path("bin/nginx");
    place.script("bin/nginx", "#!/bin/sh\necho nginx/1.2.3\n");
    let nginx = nginx.to_str().unwrap();
    let output = compare(&place, &["--releases", table, "--rival", nginx]).output();
    let output = output.unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("there is no other build of hob"), "{text}");
    assert_eq!(left(&place), Vec::<std::path::PathBuf>::new());
}
