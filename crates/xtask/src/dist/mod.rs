//! `cargo xtask dist`: what people install, made in `target/dist` and checked.
//!
//! - `binary` the program as it is shipped: what it is linked with, how large it is, its symbols
//! - `tree` every file of an installation, where it belongs
//! - `deb` the package for Debian and Ubuntu
//! - `archive` the tarball, checksums and their signature
//! - `sbom` what of others is in the program
//! - `image` OCI images
//! - `installed` `--check`: a package of the program as it was just built, in a fresh system

mod archive;
mod binary;
mod deb;
mod image;
mod installed;
mod sbom;
mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{native, run};

const USAGE: &str = "usage: cargo xtask dist [--target TRIPLE] [--twice] | --check [SUITE]";

/// A kind of machine.
pub(crate) struct TargetMachine {
    /// As Rust has it.
    triple: &'static str,
    /// As Debian and OCI have it.
    name: &'static str,
    /// What the names of its compiler and its binutils begin with.
    tools: &'static str,
}

const MACHINES: [TargetMachine; 2] = [
    TargetMachine {
        triple: "x86_64-unknown-linux-gnu",
        name: "amd64",
        tools: "x86_64-linux-gnu-",
    },
    TargetMachine {
        triple: "aarch64-unknown-linux-gnu",
        name: "arm64",
        tools: "aarch64-linux-gnu-",
    },
];

fn own_machine() -> Result<&'static TargetMachine, String> {
    let own = std::env::consts::ARCH;
    let mut machines = MACHINES.iter();
    let found = machines.find(|machine| machine.triple.starts_with(own));
    found.ok_or_else(|| format!("nothing is made for {own}"))
}

/// What is released, and where it is made.
pub(crate) struct Release<'a> {
    /// The repository.
    root: &'a Path,
    /// `target/dist`.
    folder: PathBuf,
    machine: &'static TargetMachine,
    version: &'static str,
    /// Other Debians, whose perls get native parts as this one's does.
    suites: &'static [&'static str],
    /// The moment that everything made has as its own, so that it is the same each time.
    epoch: u64,
}

impl<'a> Release<'a> {
    fn new(root: &'a Path, machine: &'static TargetMachine) -> Result<Release<'a>, String> {
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => run::captured(
                Command::new("git")
                    .args(["log", "-1", "--format=%ct"])
                    .current_dir(root),
            )?,
        };
        let epoch = epoch.trim().parse();
        Ok(Release {
            root,
            folder: root.join("target/dist"),
            machine,
            version: env!("CARGO_PKG_VERSION"),
            suites: &["trixie"],
            epoch: epoch.map_err(|_| "SOURCE_DATE_EPOCH is no number".to_string())?,
        })
    }

    /// `hob-0.1.0-amd64`.
    fn name(&self) -> String {
        format!("hob-{}-{}", self.version, self.machine.name)
    }

    fn is_for_this_machine(&self) -> bool {
        self.machine.triple.starts_with(std::env::consts::ARCH)
    }

    /// A program that reads the clock only where it is told what it says.
    fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SOURCE_DATE_EPOCH", self.epoch.to_string());
        command.env("LC_ALL", "C").env("TZ", "UTC");
        command
    }
}

/// Makes everything; `--twice` also makes the program again elsewhere and compares.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let mut machine = own_machine()?;
    let (mut is_twice, mut words) = (false, arguments.iter());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--check" if words.len() + 1 == arguments.len() => {
                return installed::command(root, words.as_slice());
            }
            "--twice" => is_twice = true,
            "--target" => {
                let name = words.next().ok_or(USAGE)?;
                let found = MACHINES.iter().find(|machine| machine.triple == name);
                machine = found.ok_or_else(|| format!("nothing is made for {name}\n{USAGE}"))?;
            }
            _ => return Err(USAGE.to_string()),
        }
    }
    let release = Release::new(root, machine)?;
    let built = binary::build(&release, root, &release.folder.join("build"))?;
    let program = binary::finish(&release, &built)?;
    let tree = tree::stage(&release, &program, &built, &release.folder.join("tree"))?;
    let mut made = vec![program.symbols.clone(), program.bill.clone()];
    made.push(deb::make(
        &release,
        &tree,
        &deb::revision(&release),
        ["-Zxz", "-z9"],
    )?);
    made.push(archive::make(&release, &tree)?);
    made.extend(image::make(&release, &tree)?);
    archive::sums(&release, &made)?;
    for path in &made {
        let size = std::fs::metadata(path).map_or(0, |file| file.len());
        println!("{:>9} KiB  {}", size / 1024, path.display());
    }
    if is_twice {
        return binary::is_the_same_elsewhere(&release, &built);
    }
    Ok(true)
}
