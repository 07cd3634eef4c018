//! `cargo xtask dist --check [SUITE]`: packages of the program as it was just built, looked over
//! and tried: installed into a fresh Debian that systemd has started as it would a machine, used,
//! upgraded under load, purged.
//!
//! The system is made of Debian's own packages by `mmdebstrap` and kept in the target folder, so
//! that only the first check needs the network. `systemd-nspawn` boots it in namespaces of its own,
//! network included: what runs there is the unit itself, with its capabilities and filters.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::binary::{self, Built, ShippedBinary};
use super::{Release, deb, native, sbom, tree};
use crate::run;
use crate::tally::TestTally;

/// The Debians that they can be tried in; the first where none is named, and releases are built on
/// it.
const SUITES: [&str; 2] = ["bookworm", "trixie"];

/// What a machine has that people install hob on; `curl` and `openssl` are for the checks.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,python3,ca-certificates,curl,openssl,procps";

/// A system in namespaces of its own, known to nobody else.
const NSPAWN: [&str; 4] = [
    "--quiet",
    "--register=no",
    "--keep-unit",
    "--private-network",
];

/// How the packages are compressed, which are not for anybody.
const QUICK: [&str; 2] = ["-Zgzip", "-z1"];

/// Downloading and installing Debian.
const SYSTEM_LIMIT: Duration = Duration::from_secs(400);
/// All checks in it, the start of systemd included.
const CHECK_LIMIT: Duration = Duration::from_secs(240);

/// Makes the packages and checks them, in the Debian that is named; the last line counts.
pub(super) fn command(root: &Path, named: &[String]) -> Result<bool, String> {
    let suite = match named {
        [] => &SUITES[0],
        [name] => {
            let mut suites = SUITES.iter();
            let found = suites.find(|suite| *suite == name);
            found.ok_or_else(|| format!("packages are tried in one of {}", SUITES.join(", ")))?
        }
        _ => return Err(super::USAGE.to_string()),
    };
    let mut release = Release::new(root, super::own_machine()?)?;
    release.folder = native::target_folder()?.join("package");
    release.suites = match is_built_on(suite) {
        true => &[],
        false => std::slice::from_ref(suite),
    };
    let program = run::built("hob")?;
    run::build(root)?;
    fs::create_dir_all(&release.folder).map_err(|error| format!("target: {error}"))?;
    let stripped = release.folder.join("hob");
    let mut objcopy = Command::new("objcopy");
    run::captured(objcopy.arg("--strip-all").args([&program, &stripped]))?;
    let built = Built {
        library: program.with_file_name("libhob.so"),
        program,
    };
    let program = ShippedBinary {
        symbols: built.program.clone(),
        bill: sbom::write(&release)?,
        path: stripped,
    };
    let tree = tree::stage(&release, &program, &built, &release.folder.join("tree"))?;
    let first = deb::make(&release, &tree, &deb::revision(&release), QUICK)?;
    let second = deb::make(&release, &tree, &format!("{}-2", release.version), QUICK)?;

    let mut sum = linked(&program.path)?;
    for (name, command) in lints(root, &tree, &second) {
        let said = match command {
            Some(mut command) => run::captured(&mut command),
            None => {
                println!("skipped: {name} is not installed");
                sum += TestTally::SKIPPED;
                continue;
            }
        };
        if let Err(said) = &said {
            println!("{name}: {said}");
        }
        sum += TestTally::of_check(said.is_ok());
    }
    sum += used(&release, suite, [&first, &second])?;
    println!("{sum}");
    Ok(sum.is_good())
}

/// Whether the program runs on every system that it is for. Where a newer Debian builds it, it does
/// not; a release is built on this one.
fn linked(program: &Path) -> Result<TestTally, String> {
    let [oldest, ..] = SUITES;
    if !is_built_on(oldest) {
        println!("skipped: what the program is linked with: this is not {oldest}");
        return Ok(TestTally::SKIPPED);
    }
    let findings = binary::linked(program)?;
    findings.iter().for_each(|finding| println!("{finding}"));
    Ok(TestTally::of_check(findings.is_empty()))
}

fn is_built_on(suite: &str) -> bool {
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    system.contains(&format!("VERSION_CODENAME={suite}\n"))
}

/// Programs that look over what was made; none where they are not installed.
fn lints(root: &Path, tree: &Path, package: &Path) -> Vec<(&'static str, Option<Command>)> {
    let share = tree.join("usr/share");
    let with = |name: &str, arguments: &[&str], paths: &[PathBuf]| {
        run::succeeds(Command::new("which").arg(name)).then(|| {
            let mut command = Command::new(name);
            command.args(arguments).args(paths);
            command
        })
    };
    let lintian = [
        "--fail-on",
        "error",
        "--allow-root",
        "--tag-display-limit",
        "0",
    ];
    let pages = fs::read_dir(share.join("man/man1")).into_iter().flatten();
    let pages: Vec<PathBuf> = pages.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let bash = share.join("bash-completion/completions/hob");
    let offered = "source \"$0\"; COMP_WORDS=(hob exp) COMP_CWORD=1; _hob hob exp hob; \
                   test \"${COMPREPLY[*]}\" = explain";
    let judge = root.join("target/cyclonedx/bin/python");
    let bill = share.join("doc/hob/sbom.cdx.json");
    vec![
        (
            "cyclonedx-python-lib",
            with(&judge.to_string_lossy(), &["-c", JUDGE_BILL], &[bill]),
        ),
        (
            "lintian",
            with("lintian", &lintian, &[package.to_path_buf()]),
        ),
        (
            "mandoc",
            with("mandoc", &[], &[]).and(with("bash", &["-c", LINT_PAGES, "bash"], &pages)),
        ),
        ("bash", with("bash", &["-c", offered], &[bash])),
        (
            "zsh",
            with("zsh", &["-n"], &[share.join("zsh/vendor-completions/_hob")]),
        ),
        (
            "fish",
            with(
                "fish",
                &["-n"],
                &[share.join("fish/vendor_completions.d/hob.fish")],
            ),
        ),
    ]
}

/// Holds a bill of materials against CycloneDX's own schema, which the package brings along.
const JUDGE_BILL: &str = "import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(fault and str(fault))";

/// mandoc itself takes a page that is compressed for text.
const LINT_PAGES: &str =
    r#"for page; do zcat "$page" | mandoc -T lint -W error >&2 || exit 1; done"#;

/// Has the packages installed and used in a system of their own.
fn used(release: &Release, suite: &str, packages: [&Path; 2]) -> Result<TestTally, String> {
    let skipped = |reason: &str| {
        println!("skipped: the package is not tried in a fresh system: {reason}");
        Ok(TestTally::SKIPPED)
    };
    if !run::succeeds(Command::new("sh").args(["-c", "test \"$(id -u)\" = 0"])) {
        return skipped("needs root");
    }
    for tool in ["mmdebstrap", "systemd-nspawn"] {
        if !run::succeeds(Command::new("which").arg(tool)) {
            return skipped(&format!("there is no {tool}"));
        }
    }
    let system = release.folder.join(format!("{suite}.tar"));
    if !system.exists() {
        let new = system.with_extension("new.tar");
        let mut mmdebstrap = Command::new("mmdebstrap");
        mmdebstrap.args(["--variant=minbase", &format!("--include={PACKAGES}"), suite]);
        let log = release.folder.join("mmdebstrap.log");
        let made = run::unshown(mmdebstrap.arg(&new), &log, SYSTEM_LIMIT)?;
        if !made.is_success {
            return skipped("mmdebstrap cannot make one of Debian's packages");
        }
        fs::rename(&new, &system).map_err(|error| format!("{}: {error}", system.display()))?;
    }
    let scratch = run::Scratch::new("dist-check")?;
    let place = scratch.0.join("check");
    run::captured(
        Command::new("tar")
            .arg("-C")
            .arg(&scratch.0)
            .arg("-xf")
            .arg(system),
    )?;
    for (from, to) in [
        (packages[0], "first.deb"),
        (packages[1], "second.deb"),
        (&release.root.join("packaging/check/installed"), "installed"),
    ] {
        tree::copy(from, &place.join(to))?;
    }
    tree::copy(
        &release.root.join("packaging/check/installed.service"),
        &scratch.0.join("etc/systemd/system/installed.service"),
    )?;
    let begin = || {
        let mut nspawn = Command::new("systemd-nspawn");
        nspawn.args(NSPAWN).arg("--directory").arg(&scratch.0);
        nspawn
    };
    if let Err(said) = run::captured(begin().arg("true")) {
        return skipped(&format!("systemd-nspawn starts nothing here: {said}"));
    }
    let mut nspawn = begin();
    nspawn.args([
        "--boot",
        "systemd.unit=installed.service",
        "systemd.show_status=no",
    ]);
    let log = release.folder.join("nspawn.log");
    run::unshown(&mut nspawn, &log, CHECK_LIMIT)?;
    let Ok(text) = fs::read_to_string(place.join("result")) else {
        return Err(format!(
            "the system did not start: {} says why",
            log.display()
        ));
    };
    let tally = TestTally::of_text(&text);
    // The counts are told once, in the sum.
    for line in text.lines().filter(|line| !line.ends_with(" skipped")) {
        println!("{line}");
    }
    Ok(if tally == TestTally::default() {
        TestTally::FAILED
    } else {
        tally
    })
}
