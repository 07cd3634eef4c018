//! `hob native build`: has each interpreter build its native part, of the sources in `lib/hob`,
//! into the folder where servers look for it. A server itself builds nothing: what it loads is made
//! by root or the owner of hob.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::{NativeBuildOptions, NativeCommand};
use crate::{CommandFailure, output};

/// An interpreter, and what its builder is called with.
struct NativeBuild {
    interpreter: PathBuf,
    flags: &'static [&'static str],
    /// Below `lib/hob/source`.
    builder: &'static str,
    /// Below `lib/hob`.
    folder: &'static str,
    /// Below that; the folder itself where there is none.
    files: &'static [&'static str],
}

/// Builds them; what one interpreter lacks does not keep the other from its part.
pub(crate) fn run(command: &NativeCommand) -> Result<(), CommandFailure> {
    let NativeCommand::Build(options) = command;
    let folder = folder()?;
    let faults: Vec<String> = parts(options)
        .iter()
        .filter_map(|part| build(part, &folder).err())
        .collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(refusal(faults.join("\nhob: "))),
    }
}

/// Where the server looks, if it would load what lies there.
fn folder() -> Result<PathBuf, CommandFailure> {
    let mut trouble = None;
    let folder = hob_keeper::process::native_folder(&mut |text| trouble = Some(text));
    let folder = folder.ok_or_else(|| {
        refusal(trouble.unwrap_or_else(|| {
            "there is no lib/hob beside this program, nor beside the folder it is in: it comes \
             with the package and the tarball"
                .to_owned()
        }))
    })?;
    match folder.join("source").is_dir() {
        true => Ok(folder),
        false => Err(refusal(format!(
            "there is no {}/source: it comes with the package and the tarball",
            folder.display()
        ))),
    }
}

/// Those that are named, else both.
fn parts(options: &NativeBuildOptions) -> Vec<NativeBuild> {
    let is_any = options.python.is_none() && options.perl.is_none();
    let or = |named: &Option<PathBuf>, usual: &str| {
        named.clone().or_else(|| is_any.then(|| usual.into()))
    };
    let python = or(&options.python, "python3").map(|interpreter| NativeBuild {
        interpreter,
        flags: &["-I", "-B"],
        builder: "lang/python/build_native.py",
        folder: "python",
        files: &["_native.abi3.so", "_warm.abi3.so"],
    });
    let perl = or(&options.perl, "perl").map(|interpreter| NativeBuild {
        interpreter,
        flags: &[],
        builder: "lang/perl/build_native.pl",
        folder: "perl",
        files: &[""],
    });
    [python, perl].into_iter().flatten().collect()
}

/// Has an interpreter build its part; the builder says on standard error what is missing.
fn build(part: &NativeBuild, folder: &Path) -> Result<(), String> {
    let interpreter = part.interpreter.display();
    let made = folder.join(part.folder);
    fs::create_dir_all(&made).map_err(|error| {
        format!(
            "cannot make {}: {error}; only root and the owner of hob build native parts",
            made.display()
        )
    })?;
    let mut command = Command::new(&part.interpreter);
    command
        .args(part.flags)
        .arg(folder.join("source").join(part.builder))
        .args(part.files.iter().map(|file| made.join(file)));
    let status = command
        .status()
        .map_err(|error| format!("cannot start {interpreter}: {error}; name another one"))?;
    if !status.success() {
        return Err(format!(
            "no native part for {interpreter}, as was said above; a compiler, its C library and \
             the interpreter's headers are needed (Debian: gcc, libc6-dev, and python3-dev or perl)"
        ));
    }
    let said = format!("{interpreter}: built into {}", made.display());
    output::line(&said);
    Ok(())
}

fn refusal(text: String) -> CommandFailure {
    CommandFailure { code: 1, text }
}
