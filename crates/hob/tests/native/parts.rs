//! The native parts, built once, and a site with a route for every host.
// Every test program uses its own part of this.
#![allow(dead_code)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::site::Programs;

/// Every host, by its route.
pub(crate) const HOSTS: &[&str] = &["wsgi", "asgi", "python", "psgi", "perl", "scripts"];
/// Those in Python.
pub(crate) const PYTHONS: &[&str] = &["wsgi", "asgi", "python"];

/// Where a host's program answers.
pub(crate) fn at(host: &str) -> String {
    match host {
        "scripts" => "/scripts/script.pl".to_owned(),
        host => format!("/{host}"),
    }
}

/// What lies beside the program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Uses {
    /// The native parts.
    Parts,
    /// Files of their names that are something else.
    Broken,
    /// The native parts, which anybody may change.
    Writable,
    /// What they are built of.
    Sources,
    /// What `hob native build` makes of that.
    Built,
    /// Nothing.
    Nothing,
}

/// The folder that `cargo xtask native` makes.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let hob = Path::new(env!("CARGO_BIN_EXE_hob"));
        let target = hob.parent().unwrap();
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["run", "--locked", "--quiet", "-p", "xtask", "--", "native"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .env("CARGO_TARGET_DIR", target.parent().unwrap());
        if target.ends_with("release") {
            build.arg("--release");
        }
        let output = build.output().unwrap();
        let said = crate::harness::text_of(&output);
        assert!(output.status.success(), "{said}");
        let parts = target.join("lib/hob");
        assert!(
            parts.join("python/_native.abi3.so").exists() && !said.contains("left out"),
            "the native parts cannot be built here; `make setup-test` installs what they need: \
             {said}"
        );
        parts
    })
}

/// A site with all hosts, at `/wsgi/`, `/asgi/` and so on; `workers` are further keys of each
/// Python host's table of that name.
pub(crate) fn serve(uses: Uses, workers: &str) -> Programs {
    let site = Programs::new()
        .with_mode("acts.py", include_str!("acts.py"), 0o644)
        .with_mode("wsgi_app.py", include_str!("wsgi_app.py"), 0o644)
        .with_mode("asgi_app.py", include_str!("asgi_app.py"), 0o644)
        .with_mode("looping.py", include_str!("looping.py"), 0o644)
        .with_mode("Acts.pm", include_str!("Acts.pm"), 0o644)
        .with_mode("app.psgi", include_str!("app.psgi"), 0o644)
        .with_mode("looping.pl", include_str!("looping.pl"), 0o644)
        .with("scripts/script.pl", include_str!("script.pl"));
    lay(&site.place.path(""), uses);
    let workers = match workers {
        "" => "max = 1".to_owned(),
        keys => format!("max = 1, {keys}"),
    };
    let routes: Vec<String> = [
        (
            "wsgi",
            "wsgi = \"wsgi_app:application\", dir = \"cgi\"",
            &*workers,
        ),
        (
            "asgi",
            "asgi = \"asgi_app:application\", dir = \"cgi\"",
            &workers,
        ),
        ("python", "python = \"cgi/looping.py\"", "max = 1"),
        ("psgi", "psgi = \"cgi/app.psgi\"", "max = 1"),
        ("perl", "perl = \"cgi/looping.pl\"", "max = 1"),
        ("scripts", "scripts = \"cgi/scripts\"", "max = 1"),
    ]
    .into_iter()
    .map(|(host, runs, workers)| {
        format!(
            "path = \"/{host}/*\"\nbody = \"64MiB\"\n\
             resident = {{ {runs}, workers = {{ {workers} }} }}\n"
        )
    })
    .collect();
    site.serve_route(&routes.join("\n[[site.route]]\n"))
}

/// Puts `lib/hob` into a folder.
pub(crate) fn lay(folder: &Path, uses: Uses) {
    let (mode, text) = match uses {
        Uses::Nothing => return,
        Uses::Parts | Uses::Sources | Uses::Built => (0o755, None),
        Uses::Broken => (0o755, Some("this is no library")),
        Uses::Writable => (0o757, None),
    };
    let mut left = vec![PathBuf::from("")];
    while let Some(path) = left.pop() {
        let (from, to) = (built().join(&path), folder.join("lib/hob").join(&path));
        let is_built = path.starts_with("python") || path.starts_with("perl");
        if is_built && matches!(uses, Uses::Sources | Uses::Built) {
            continue;
        }
        if from.is_dir() {
            fs::create_dir_all(&to).unwrap();
            let entries = fs::read_dir(&from).unwrap();
            left.extend(entries.map(|entry| path.join(entry.unwrap().file_name())));
        } else if let Some(text) = text {
            fs::write(&to, text).unwrap();
        } else {
            fs::copy(&from, &to).unwrap();
        }
        fs::set_permissions(&to, PermissionsExt::from_mode(mode)).unwrap();
    }
    fs::set_permissions(folder.join("lib"), PermissionsExt::from_mode(0o755)).unwrap();
    if let Uses::Built = uses {
        let program = folder.join("hob");
        let mut build = Command::new(&program);
        let output = build.args(["native", "build"]).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            crate::harness::text_of(&output)
        );
    }
}
