//! Golden tests of the config: `tests/config/NAME.toml` in, `NAME.out` out.
//!
//! The answer is the normal form (and warnings, if any) of a config that is right, else its errors.
//! `UPDATE_GOLDEN=1` writes the answers instead of comparing them. The package's folder is shown as
//! `DIR`. The environment has `PORT=8080`, `ROOT=site`, `COUNT=3` and `YES=true`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hob_server::config::key::{Kind, MapValue, Preset, paths};
use hob_server::config::{
    Disk, Found, Sources, TrustedDisk, explain_key, json_schema, load, load_with, reference,
};

fn env(name: &str) -> Option<String> {
    let value = match name {
        "PORT" => "8080",
        "ROOT" => "site",
        "COUNT" => "3",
        "YES" => "true",
        _ => return None,
    };
    Some(value.to_owned())
}

/// Where the cases are, from the folder in which tests run: the package's.
const CASES: &str = "tests/config";

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(CASES).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

/// What a case answers.
fn answer(path: &Path) -> String {
    let loaded = Sources::read(path, &env).and_then(|sources| load(&sources));
    let text = match loaded {
        Ok((config, warnings)) => format!("{config}{warnings}"),
        Err(errors) => errors.to_string(),
    };
    text.replace(env!("CARGO_MANIFEST_DIR"), "DIR")
}

#[test]
fn each_config_gives_its_golden_answer() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let golden = case.with_extension("out");
        let answer = answer(&case);
        if update {
            fs::write(&golden, &answer).unwrap();
        } else if fs::read_to_string(&golden).unwrap_or_default() != answer {
            wrong.push(format!("--- {}\n{answer}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "answers differ (UPDATE_GOLDEN=1 accepts):\n{}", wrong.join("\n"));
}

/// The paths of the keys a text sets.
fn keys_set(table: &dyn toml_edit::TableLike, prefix: &str, all: &mut BTreeSet<String>) {
    for (name, item) in table.iter() {
        let path = format!("{prefix}{name}");
        let below = format!("{path}.");
        all.insert(path);
        if let Some(list) = item.as_array_of_tables() {
            list.iter().for_each(|table| keys_set(table, &below, all));
        } else if let Some(table) = item.as_table_like() {
            keys_set(table, &below, all);
        }
    }
}

#[test]
fn each_key_is_set_in_a_golden_config_that_is_right() {
    let mut set = BTreeSet::new();
    for case in cases() {
        let golden = fs::read_to_string(case.with_extension("out")).unwrap_or_default();
        let text = fs::read_to_string(&case).unwrap();
        if !golden.starts_with("threads = ") {
            continue;
        }
        keys_set(toml_edit::Document::parse(text).unwrap().as_table(), "", &mut set);
    }
    let missing: Vec<_> =
        paths().into_iter().map(|(path, _)| path).filter(|path| !set.contains(path)).collect();
    assert!(missing.is_empty(), "no golden config sets {missing:?}");
}
