//! `cargo xtask dependencies`: what packages of others may be: under a licence we may pass on, from
//! crates.io, and each in one version.
//!
//! Cargo tells what is built for the machines we ship for; nothing has to be installed for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::run;
use crate::tally::TestTally;

const LICENCES: &[&str] = &[
    "Apache-2.0",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Packages that are there in two versions, and why.
const TWICE: &[(&str, &str)] = &[
    ("base64", "instant-acme is one behind rcgen"),
    (
        "fallible-iterator",
        "postgres-protocol is one behind rusqlite",
    ),
    ("getrandom", "tun-rs hashes with an older one"),
    ("syn", "derive macros follow its new version one by one"),
    ("untrusted", "aws-lc-rs is one behind rustls-webpki"),
];

const TARGETS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// A package of others.
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    /// As its manifest has it.
    licence: &'a str,
}

/// Checks all rules; the last line counts them.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask dependencies".to_string());
    }
    let read = |name: &str| {
        fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let (lock, manifest) = (read("Cargo.lock")?, read("Cargo.toml")?);
    let tree = tree(root)?;
    let packages = packages(&tree);
    let mut sum = TestTally::default();
    for findings in [
        licences(&packages),
        versions(&packages),
        sources(&lock),
        wildcards(&manifest),
    ] {
        sum += TestTally::of_check(findings.is_empty());
        findings.iter().for_each(|finding| println!("{finding}"));
    }
    println!("{sum}");
    Ok(sum.is_good())
}

/// What cargo says is built, tests included, one `NAME vVERSION|LICENCE` a line.
fn tree(root: &Path) -> Result<String, String> {
    let mut tree = run::cargo();
    tree.args(["tree", "--workspace", "--all-features", "--locked"]);
    tree.args(["--edges", "normal,build,dev", "--prefix", "none"]);
    tree.args(["--no-dedupe", "--format", "{p}|{l}"]);
    for target in TARGETS {
        tree.args(["--target", target]);
    }
    run::captured(tree.current_dir(root))
}

/// Every package once; ours, which have a path, are left out.
fn packages(tree: &str) -> Vec<Package<'_>> {
    let mut all = BTreeMap::new();
    for line in tree.lines().filter(|line| !line.contains(" (/")) {
        let (package, licence) = line.split_once('|').unwrap_or((line, ""));
        let mut words = package.split(' ');
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            all.insert((name, version), licence);
        }
    }
    let package = |((name, version), licence)| Package {
        name,
        version,
        licence,
    };
    all.into_iter().map(package).collect()
}

fn licences(packages: &[Package<'_>]) -> Vec<String> {
    let bad = packages
        .iter()
        .filter(|package| !is_allowed(package.licence));
    bad.map(|package| {
        format!(
            "{} {} is under {:?}; we may pass on: {}",
            package.name,
            package.version,
            package.licence,
            LICENCES.join(", ")
        )
    })
    .collect()
}

fn versions(packages: &[Package<'_>]) -> Vec<String> {
    let mut findings = vec![];
    let count = |name: &str| {
        packages
            .iter()
            .filter(|package| package.name == name)
            .count()
    };
    let is_listed = |name: &str| TWICE.iter().any(|(listed, _)| *listed == name);
    for pair in packages.windows(2) {
        let (one, next) = (&pair[0], &pair[1]);
        if one.name == next.name && !is_listed(one.name) {
            findings.push(format!(
                "{} is there as {} and as {}: take one, or say in dependencies.rs why not",
                one.name, one.version, next.version
            ));
        }
    }
    for (name, reason) in TWICE.iter().filter(|(name, _)| count(name) < 2) {
        findings.push(format!(
            "{name} is there once: no more need for {reason:?} in dependencies.rs"
        ));
    }
    findings
}

fn sources(lock: &str) -> Vec<String> {
    let sources = lock.lines().filter(|line| line.starts_with("source = "));
    let others = sources.filter(|line| *line != CRATES_IO);
    others
        .map(|line| format!("Cargo.lock: {line}: packages come from crates.io"))
        .collect()
}

fn wildcards(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().enumerate();
    let open = lines.filter(|(_, line)| line.contains("= \"*\""));
    open.map(|(index, _)| format!("Cargo.toml:{}: any version is no version", index + 1))
        .collect()
}

/// Do these terms, an SPDX expression, leave us one of the licences that we may pass on?
fn is_allowed(terms: &str) -> bool {
    // Before expressions, a stroke stood between the ones to choose from.
    let spaced = terms
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let is_met = is_any_met(&mut words);
    is_met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// `A OR B`; all of it is read, whatever the first says.
fn is_any_met(words: &mut Words<'_>) -> bool {
    let mut is_met = is_every_met(words);
    while words.next_if_eq(&"OR").is_some() {
        is_met |= is_every_met(words);
    }
    is_met
}

/// `A AND B`, which binds closer.
fn is_every_met(words: &mut Words<'_>) -> bool {
    let mut is_met = is_one_met(words);
    while words.next_if_eq(&"AND").is_some() {
        is_met &= is_one_met(words);
    }
    is_met
}

/// A licence, perhaps with an exception, or an expression in brackets.
fn is_one_met(words: &mut Words<'_>) -> bool {
    let Some(word) = words.next() else {
        return false;
    };
    if word == "(" {
        return is_any_met(words) & (words.next() == Some(")"));
    }
    // An exception gives more rights, never less.
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
    }
    LICENCES.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_as_they_are_meant() {
        for terms in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/GPL-2.0",
            "GPL-2.0 OR MIT",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
            "GPL-2.0 AND ISC OR MIT",
        ] {
            assert!(is_allowed(terms), "{terms}");
        }
        for terms in [
            "",
            "GPL-2.0",
            "MIT AND GPL-2.0",
            "MIT AND (GPL-2.0 OR LGPL-2.1)",
            "(MIT",
            "MIT)",
            "MIT AND",
        ] {
            assert!(!is_allowed(terms), "{terms}");
        }
    }

    #[test]
    fn second_version_and_foreign_source_are_found() {
        let tree = "hob v0.1.0 (/src/hob)|\na v1.0.0|MIT\na v2.0.0|MIT\na v1.0.0|MIT\n\
                    base64 v1.0.0|MIT\nbase64 v2.0.0|MIT\nfallible-iterator v1.0.0|MIT\n\
                    fallible-iterator v2.0.0|MIT\ngetrandom v1.0.0|MIT\ngetrandom v2.0.0|MIT\n\
                    untrusted v1.0.0|ISC\n\
                    untrusted v2.0.0|ISC\nsyn v1.0.0 (proc-macro)|MIT\n";
        let all = packages(tree);
        assert_eq!(all.len(), 11);
        let found = versions(&all);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a is there as v1.0.0 and as v2.0.0"));
        assert!(found[1].starts_with("syn is there once"));
        assert_eq!(licences(&all), [""; 0]);
        let lock = format!("{CRATES_IO}\nsource = \"git+https://elsewhere.example\"\n");
        assert_eq!(sources(&lock).len(), 1);
        assert_eq!(wildcards("[a]\nb = \"1\"\nc = \"*\"\n").len(), 1);
    }
}
