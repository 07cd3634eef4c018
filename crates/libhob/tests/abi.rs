//! The ABI is what it was: the header compiles as C and C++, and names, numbers and signatures are
//! those of `abi/1.txt`. Lines may be added to it; one that changes needs another soname.
//! `UPDATE_GOLDEN=1` writes it.

mod worker;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn header() -> String {
    std::fs::read_to_string(folder().join("include/hob.h")).expect("it is committed")
}

#[test]
fn names_numbers_and_signatures_are_frozen() {
    let found = declarations(&header()).join("\n") + "\n";
    let path = folder().join("abi/1.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, kept, "abi/1.txt: what was there must stay as it was");
}

#[test]
fn the_library_exports_what_the_header_declares_and_its_soname_has_the_number() {
    let library = worker::library().join("libhob.so");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(&library).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let exported: BTreeSet<_> = run("nm", &["-D", "--defined-only"])
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .map(str::to_string)
        .collect();
    let declared: BTreeSet<_> = declarations(&header())
        .iter()
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("hob_"))
        .map(str::to_string)
        .collect();
    assert_eq!(exported, declared);
    assert!(run("readelf", &["-d"]).contains("Library soname: [libhob.so.1]"));
}

#[test]
fn the_header_compiles_as_c_and_as_cpp() {
    for (compiler, language, standard) in [
        ("cc", "c", "-std=c99"),
        ("cc", "c", "-std=c11"),
        ("c++", "c++", "-std=c++11"),
    ] {
        let status = Command::new(compiler)
            .args([
                "-x",
                language,
                standard,
                "-pedantic",
                "-Wall",
                "-Wextra",
                "-Werror",
            ])
            .args(["-fsyntax-only", "include/hob.h"])
            .current_dir(folder())
            .status();
        match status {
            Ok(status) => assert!(status.success(), "{compiler} {standard}"),
            // The C compiler is needed for more than this; C++ may not be here.
            Err(error) => assert!(compiler == "c++", "{compiler}: {error}"),
        }
    }
}

/// Constants, types and functions, one a line, sorted.
fn declarations(header: &str) -> Vec<String> {
    let mut code = String::new();
    let mut rest = header;
    while let Some((before, after)) = rest.split_once("/*") {
        code.push_str(before);
        rest = after.split_once("*/").expect("comments end").1;
    }
    code.push_str(rest);
    let mut found = Vec::new();
    let mut declaration = String::new();
    for line in code.lines().map(str::trim) {
        if line.starts_with("#define HOB_") && line.split(' ').count() == 3 {
            found.push(line.to_string());
        }
        let is_code = !line.is_empty() && !line.starts_with('#') && line != "}";
        if is_code && line != "extern \"C\" {" {
            declaration.push_str(line);
            match line.ends_with(';') {
                true => found.push(std::mem::take(&mut declaration)),
                false if line.ends_with(',') => declaration.push(' '),
                false => {}
            }
        }
    }
    found.sort();
    found
}
