//! `cargo xtask native [--release]`: libhob, as programs find it, and the C programs of the
//! repository.
//!
//! Beside `hob` in the target folder: `libhob.so`, `libhob.so.1`, `libhob.a`, `libhob.pc`, and `c/`
//! with the examples of `lang/c` and the programs that `bench/rivals` compares.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run;

/// C files that are programs of the library, or folders full of them.
const PROGRAMS: &[&str] = &["lang/c/examples", "bench/rivals/resident.c"];

/// Builds all of it.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let is_release = match arguments {
        [] => false,
        [flag] if flag == "--release" => true,
        _ => return Err("usage: cargo xtask native [--release]".to_string()),
    };
    let mut build = run::cargo();
    build.args(["build", "--locked", "-p", "libhob"]);
    if is_release {
        build.arg("--release");
    }
    if !run::succeeds(build.current_dir(root)) {
        return Err("libhob does not build; `cargo build -p libhob` says why".to_string());
    }
    let target = target_folder()?.join(if is_release { "release" } else { "debug" });
    name_library(root, &target)?;
    let programs = target.join("c");
    fs::create_dir_all(&programs).map_err(|error| format!("making {programs:?}: {error}"))?;
    let mut is_good = true;
    for source in sources(root)? {
        is_good &= compile(root, &target, &programs, &source);
    }
    println!("{}: libhob and its programs", target.display());
    Ok(is_good)
}

/// Compiles a program of the library beside its source, with the library in it, as it was built
/// with hob.
pub(crate) fn link(root: &Path, source: &Path) -> Result<(), String> {
    let library = run::built("hob")?.with_file_name("libhob.a");
    if !library.exists() {
        let library = library.display();
        return Err(format!(
            "there is no {library}: `cargo build -p libhob` makes it"
        ));
    }
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("crates/libhob/include"))
        .arg("-o")
        .arg(source.with_extension(""))
        .args([source, &library])
        .args(["-pthread", "-lm"]);
    match compiler.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("cc does not compile {}", source.display())),
        Err(error) => Err(format!("starting cc for {}: {error}", source.display())),
    }
}

/// The name that programs look for at run time, and the file that pkg-config reads.
pub(crate) fn name_library(root: &Path, target: &Path) -> Result<(), String> {
    let soname = target.join("libhob.so.1");
    let _ = fs::remove_file(&soname);
    std::os::unix::fs::symlink("libhob.so", &soname)
        .map_err(|error| format!("making {}: {error}", soname.display()))?;
    let template = root.join("crates/libhob/libhob.pc.in");
    let text = fs::read_to_string(&template).map_err(|error| format!("reading it: {error}"))?;
    let text = text
        .replace("@prefix@", "/usr/local")
        .replace("@version@", env!("CARGO_PKG_VERSION"));
    fs::write(target.join("libhob.pc"), text).map_err(|error| format!("libhob.pc: {error}"))
}

fn sources(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut sources = Vec::new();
    for place in PROGRAMS {
        if place.ends_with(".c") {
            sources.push(root.join(place));
            continue;
        }
        let entries = fs::read_dir(root.join(place));
        let entries = entries.map_err(|error| format!("reading {place}: {error}"))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        sources.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "c")));
    }
    sources.sort();
    Ok(sources)
}

/// The target folder: this program lies in one of its own.
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("finding xtask itself: {error}"))?;
    let folder = own.ancestors().nth(2).map(Path::to_path_buf);
    folder.ok_or_else(|| format!("{} lies in no target folder", own.display()))
}

fn compile(root: &Path, target: &Path, programs: &Path, source: &Path) -> bool {
    let name = source.file_stem().unwrap_or_default();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("crates/libhob/include"))
        .arg(source)
        .arg("-o")
        .arg(programs.join(name))
        .arg("-L")
        .arg(target)
        .args(["-lhob", "-pthread", "-Wl,-rpath,$ORIGIN/.."]);
    let is_good = compiler.status().is_ok_and(|status| status.success());
    if !is_good {
        println!("{}: does not compile", source.display());
    }
    is_good
}
