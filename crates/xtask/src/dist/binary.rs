//! The program as it is shipped: built without a trace of where, dynamic against the C library
//! alone, stripped, its symbols in a file beside it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Release, sbom};
use crate::run;

/// What comes with every glibc: its own parts, and the unwinder, which it loads itself. (Linked
/// statically, a newer compiler's unwinder would want a newer glibc than `GLIBC_MAX`.)
const LIBRARIES: [&str; 5] = [
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// Ubuntu 22.04 has 2.35, Debian 12 has 2.36, RHEL 9 and its kin have this.
const GLIBC_MAX: (u32, u32) = (2, 34);

const PROGRAM_BYTES_MAX: u64 = 25_000_000;

/// What cargo built.
pub(super) struct Built {
    pub(super) program: PathBuf,
    pub(super) library: PathBuf,
}

/// What is shipped of it.
pub(super) struct ShippedBinary {
    pub(super) path: PathBuf,
    /// What debuggers want, found by the name that stands in the program.
    pub(super) symbols: PathBuf,
    /// What of others is in it.
    pub(super) bill: PathBuf,
}

/// Builds program and library from the sources in `source`.
pub(super) fn build(release: &Release, source: &Path, target: &Path) -> Result<Built, String> {
    let triple = release.machine.triple;
    let pages = source.join("ui/dist/index.html");
    if !pages.exists() {
        return Err(format!(
            "there is no {}: `make pages` makes the admin pages",
            pages.display()
        ));
    }
    let prefixes = prefixes(source, target)?;
    let rust: Vec<String> = prefixes
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={from}={to}"))
        .collect();
    let c: Vec<String> = prefixes
        .iter()
        .map(|(from, to)| format!("-ffile-prefix-map={from}={to}"))
        .collect();
    let mut cargo = run::cargo();
    cargo.args([
        "build",
        "--release",
        "--locked",
        "-p",
        "hob",
        "-p",
        "libhob",
    ]);
    cargo.args(["--target", triple, "--target-dir"]).arg(target);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"));
    cargo.env("CFLAGS", c.join(" "));
    cargo.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    if !release.is_for_this_machine() {
        let compiler = format!("{}gcc", release.machine.tools);
        let name = triple.replace('-', "_");
        cargo.env(format!("CC_{name}"), &compiler);
        let name = name.to_ascii_uppercase();
        cargo.env(format!("CARGO_TARGET_{name}_LINKER"), compiler);
    }
    let status = cargo.current_dir(source).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err(format!(
            "hob does not build for {triple}; it needs `rustup target add {triple}` and {}gcc",
            release.machine.tools
        ));
    }
    let folder = target.join(triple).join("release");
    Ok(Built {
        program: folder.join("hob"),
        library: folder.join("libhob.so"),
    })
}

/// Where things lie here, and what is said of them instead.
fn prefixes(source: &Path, target: &Path) -> Result<Vec<(String, &'static str)>, String> {
    let cargo_home = match std::env::var("CARGO_HOME") {
        Ok(home) => home,
        Err(_) => std::env::var("HOME").map_err(|_| "HOME is not set")? + "/.cargo",
    };
    // Of two that fit, the last one counts.
    Ok(vec![
        (source.display().to_string(), "/hob"),
        (target.display().to_string(), "/hob/target"),
        (cargo_home, "/cargo"),
    ])
}

/// Checks what was built, and takes the symbols out of it.
pub(super) fn finish(release: &Release, built: &Built) -> Result<ShippedBinary, String> {
    let folder = release.folder.join("program");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (path, symbols) = (
        folder.join("hob"),
        release.folder.join(format!("{}.debug", release.name())),
    );
    let objcopy = || release.tool(&format!("{}objcopy", release.machine.tools));
    let separate = objcopy()
        .args(["--only-keep-debug", "--compress-debug-sections"])
        .args([&built.program, &symbols])
        .status();
    let link = format!("--add-gnu-debuglink={}", symbols.display());
    let strip = objcopy()
        .args(["--strip-all", &link])
        .args([&built.program, &path])
        .status();
    if ![separate, strip]
        .iter()
        .all(|status| status.as_ref().is_ok_and(|status| status.success()))
    {
        return Err(format!(
            "{}objcopy cannot take the symbols out of {}",
            release.machine.tools,
            built.program.display()
        ));
    }
    let mut findings = linked(&path)?;
    findings.extend(linked(&built.library)?);
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if bytes.len() as u64 > PROGRAM_BYTES_MAX {
        let size = bytes.len();
        findings.push(format!("hob has {size} bytes, above {PROGRAM_BYTES_MAX}"));
    }
    findings.extend(traces(&bytes, &prefixes(release.root, &release.folder)?));
    if !findings.is_empty() {
        return Err(findings.join("\n"));
    }
    let bill = sbom::write(release)?;
    Ok(ShippedBinary {
        path,
        symbols,
        bill,
    })
}

/// What a program or library wants of a system that not every one has.
pub(super) fn linked(path: &Path) -> Result<Vec<String>, String> {
    let read = |flags: &[&str]| {
        let mut readelf = Command::new("readelf");
        run::captured(readelf.env("LC_ALL", "C").args(flags).arg(path))
    };
    let mut findings = foreign_libraries(&read(&["-d"])?);
    findings.extend(newer_symbols(&read(&["-W", "--dyn-syms"])?));
    Ok(findings
        .into_iter()
        .map(|finding| format!("{}: {finding}", path.display()))
        .collect())
}

fn foreign_libraries(dynamic: &str) -> Vec<String> {
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let names = needed.filter_map(|line| line.split_once('[')?.1.strip_suffix(']'));
    names
        .filter(|name| !LIBRARIES.contains(name))
        .map(|name| format!("needs {name}, which is no part of glibc"))
        .collect()
}

fn newer_symbols(symbols: &str) -> Vec<String> {
    let newer = symbols.lines().filter_map(|line| {
        let name = line.split_whitespace().nth(7)?;
        let version = name.split_once("@GLIBC_")?.1;
        let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
        let version = (numbers.next()?, numbers.next()?);
        (version > GLIBC_MAX).then(|| {
            let (major, minor) = GLIBC_MAX;
            format!("wants {name}, newer than glibc {major}.{minor}")
        })
    });
    newer.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Paths of the machine that it was built on.
fn traces(bytes: &[u8], prefixes: &[(String, &str)]) -> Vec<String> {
    let has = |path: &str| {
        bytes
            .windows(path.len())
            .any(|window| window == path.as_bytes())
    };
    prefixes
        .iter()
        .filter(|(path, _)| has(path))
        .map(|(path, _)| format!("hob has {path} in it, where it was built"))
        .collect()
}

/// Builds a copy of what is committed at another place: is it the same, byte for byte?
pub(super) fn is_the_same_elsewhere(release: &Release, first: &Built) -> Result<bool, String> {
    let scratch = run::Scratch::new("dist-again")?;
    let source = scratch.0.join("elsewhere");
    fs::create_dir_all(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    let copy = release
        .tool("sh")
        .args([
            "-c",
            "git archive HEAD | tar -x -C \"$0\" && cp -r ui/dist \"$0/ui/\"",
        ])
        .arg(&source)
        .current_dir(release.root)
        .status();
    if !copy.is_ok_and(|status| status.success()) {
        return Err("the sources cannot be copied".to_string());
    }
    let second = build(release, &source, &scratch.0.join("target"))?;
    let mut is_same = true;
    for (first, second) in [
        (&first.program, &second.program),
        (&first.library, &second.library),
    ] {
        let same = fs::read(first).ok() == fs::read(second).ok();
        let verdict = if same { "the same" } else { "NOT the same" };
        println!("{}: built elsewhere it is {verdict}", first.display());
        is_same &= same;
    }
    Ok(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_beside_glibc_are_found() {
        let dynamic = " 0x01 (NEEDED)   Shared library: [libc.so.6]\n \
             0x01 (NEEDED)   Shared library: [libssl.so.3]\n 0x0e (SONAME) [libhob.so.1]\n";
        assert_eq!(
            foreign_libraries(dynamic),
            ["needs libssl.so.3, which is no part of glibc"]
        );
    }

    #[test]
    fn symbols_of_a_newer_glibc_are_found() {
        let symbols = "\
   2: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND read@GLIBC_2.2.5 (2)\n\
   3: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND pthread_create@GLIBC_2.34 (3)\n\
   4: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND _dl_find_object@GLIBC_2.35 (4)\n\
   5: 0000000000000000     0 FUNC    WEAK   DEFAULT  UND pidfd_spawnp\n";
        assert_eq!(
            newer_symbols(symbols),
            ["wants _dl_find_object@GLIBC_2.35, newer than glibc 2.34"]
        );
    }

    #[test]
    fn paths_of_the_builder_are_found() {
        let prefixes = [("/src/of/me".to_string(), "/hob")];
        assert_eq!(traces(b"..../hob/src/main.rs", &prefixes).len(), 0);
        assert_eq!(traces(b"../src/of/me/main", &prefixes).len(), 1);
    }
}
