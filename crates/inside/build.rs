//! Tells the program how it was built, and embeds the admin pages: a table of what `npm run build`
//! has made in `ui/dist`. Where nothing was built, the table is empty, and the server shows a
//! notice in its place.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    tell_how_built();
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let pages = package.join("../../ui/dist");
    let mut files = Vec::new();
    if pages.join("index.html").is_file() {
        println!("cargo:rerun-if-changed=../../ui/dist");
        collect(&pages, &mut files)?;
    }
    // A path that is not there would have this run, and the crate be compiled, each time: whoever
    // builds the pages for the first time touches this file (`make` does).
    println!("cargo:rerun-if-changed=build.rs");
    files.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    let mut table = String::from("pub(super) static FILES: &[AdminPageFile] = &[\n");
    for file in &files {
        let name = file.strip_prefix(&pages)?;
        let name = name.to_str().ok_or("a name is not UTF-8")?;
        let bytes = fs::read(file)?;
        writeln!(
            table,
            "    AdminPageFile {{ path: {:?}, tag: {:?}, bytes: include_bytes!({:?}) }},",
            format!("/{name}"),
            format!("\"{:016x}-{:x}\"", fnv(&bytes), bytes.len()),
            file.canonicalize()?,
        )?;
    }
    table.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("pages.rs");
    fs::write(out, table)?;
    Ok(())
}

/// Tells the program by which compiler it was built, for what, and how hard it was optimised.
fn tell_how_built() {
    let of = |name: &str| env::var(name).unwrap_or_default();
    let version = Command::new(of("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo:rustc-env=HOB_RUSTC={}", version.unwrap_or_default());
    for name in ["TARGET", "PROFILE", "OPT_LEVEL"] {
        println!("cargo:rustc-env=HOB_{name}={}", of(name));
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        match entry.file_type()?.is_dir() {
            _ if is_hidden => {}
            true => collect(&entry.path(), files)?,
            false => files.push(entry.path()),
        }
    }
    Ok(())
}

/// FNV-1a: tells one build of a file from another.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
