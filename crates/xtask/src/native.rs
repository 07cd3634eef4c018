//! `cargo xtask native [--release]`: libhob, as programs find it, the native parts of the other
//! languages, and the C programs of the repository.
//!
//! Beside `hob` in the target folder: `libhob.so`, `libhob.so.1`, `libhob.a`, `libhob.pc`;
//! `lib/hob`, where `hob` finds what makes Python and Perl programs faster; and `c/` with the
//! examples of `lang/c` and the programs that `bench/rivals` compares.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run;

/// C files that are programs of the library, or folders full of them.
const PROGRAMS: &[&str] = &[
    "lang/c/examples",
    "bench/rivals/lines.c",
    "bench/rivals/resident.c",
];

/// What builds a language's native part: the interpreter, its program, and what to make in
/// `lib/hob`. It ends with 2 where the part cannot be built.
const PARTS: &[(&str, &str, &str)] = &[
    (
        "python3",
        "lang/python/build_native.py",
        "python/_native.abi3.so",
    ),
    (
        "python3",
        "lang/python/build_native.py",
        "python/_warm.abi3.so",
    ),
    ("perl", "lang/perl/build_native.pl", "perl"),
];
const CANNOT_BE_BUILT: i32 = 2;

/// What the native parts are built of, at the same places below `lib/hob/source`.
const SOURCES: &[&str] = &[
    "crates/libhob/include/hob.h",
    "lang/c/host/*.h",
    "lang/perl/build_native.pl",
    "lang/perl/host/Warm.xs",
    "lang/perl/lib/Hob/*.h",
    "lang/perl/lib/Hob/Native.*",
    "lang/python/build_native.py",
    "lang/python/host/_*",
    "lang/python/src/hob/_*.[ch]",
];

/// Builds all of it.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let is_release = match arguments {
        [] => false,
        [flag] if flag == "--release" => true,
        _ => return Err("usage: cargo xtask native [--release]".to_string()),
    };
    if is_release {
        let mut build = run::cargo();
        build.args(["build", "--locked", "--release", "-p", "libhob"]);
        if !run::succeeds(build.current_dir(root)) {
            return Err("libhob does not build; `cargo build -p libhob` says why".to_string());
        }
    } else {
        run::build(root)?;
    }
    let target = target_folder()?.join(if is_release { "release" } else { "debug" });
    name_library(root, &target)?;
    lay_sources(root, &target.join("lib/hob"))?;
    let mut is_good = parts(root, &target.join("lib/hob"))?;
    let programs = target.join("c");
    fs::create_dir_all(&programs).map_err(|error| format!("making {programs:?}: {error}"))?;
    for source in sources(root)? {
        is_good &= compile(root, &target, &programs, &source);
    }
    println!("{}: libhob, native parts, programs in C", target.display());
    Ok(is_good)
}

/// Copies the sources of native parts to where `hob native build` has them built.
pub(crate) fn lay_sources(root: &Path, folder: &Path) -> Result<(), String> {
    let script = format!(
        "cp --parents {} \"$0\" && chmod -R u=rwX,go=rX \"$0\"",
        SOURCES.join(" ")
    );
    let source = folder.join("source");
    fs::create_dir_all(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut copy = Command::new("sh");
    copy.args(["-c", &script]).arg(source).current_dir(root);
    run::captured(&mut copy).map(|_| ())
}

/// Builds the native parts of the languages into a folder; false when one does not compile.
pub(crate) fn parts(root: &Path, folder: &Path) -> Result<bool, String> {
    let mut is_good = true;
    for (interpreter, builder, made) in PARTS {
        is_good &= build_part(root, &folder.join(made), interpreter, builder)?;
    }
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
    let parts = target.join("lib/hob");
    fs::create_dir_all(&parts).map_err(|error| format!("making {}: {error}", parts.display()))?;
    symlink("libhob.so", &target.join("libhob.so.1"))?;
    symlink("../../libhob.so", &parts.join("libhob.so.1"))?;
    let template = root.join("crates/libhob/libhob.pc.in");
    let text = fs::read_to_string(&template).map_err(|error| format!("reading it: {error}"))?;
    let text = text
        .replace("@prefix@", "/usr/local")
        .replace("@version@", env!("CARGO_PKG_VERSION"));
    fs::write(target.join("libhob.pc"), text).map_err(|error| format!("libhob.pc: {error}"))
}

/// Makes a link, in place of what was there.
fn symlink(to: &str, name: &Path) -> Result<(), String> {
    let new = name.with_extension("new");
    let _ = fs::remove_file(&new);
    std::os::unix::fs::symlink(to, &new)
        .and_then(|()| fs::rename(&new, name))
        .map_err(|error| format!("making {}: {error}", name.display()))
}

/// Has a language build its native part; false when that failed. One that cannot be built here is
/// left out: programs do without.
fn build_part(root: &Path, made: &Path, interpreter: &str, builder: &str) -> Result<bool, String> {
    let folder = match made.extension() {
        Some(_) => made.parent().unwrap_or(made),
        None => made,
    };
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut command = Command::new(interpreter);
    let status = match command.arg(root.join(builder)).arg(made).status() {
        Ok(status) => status,
        Err(error) => {
            println!("{builder}: left out, {interpreter} does not run: {error}");
            return Ok(true);
        }
    };
    if !status.success() && status.code() != Some(CANNOT_BE_BUILT) {
        println!("{builder}: it does not compile");
        return Ok(false);
    }
    Ok(true)
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
