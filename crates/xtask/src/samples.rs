//! `cargo xtask samples`: every config that README and docs show has to pass `hob check`.
//!
//! A sample is a block marked `toml`. Most are parts of a config; what they leave out (the site
//! around a route) is added, and the folders, files and programs they name are made in a temporary
//! folder, so that nothing of theirs has to be installed. A block marked `toml,fragment` is left
//! alone: it only shows a form.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::run::{self, Scratch};
use crate::tally::TestTally;

/// A config shown in a document.
#[derive(Debug, PartialEq)]
struct Sample {
    /// The line of its first line of text.
    line: usize,
    text: String,
}

/// Checks the samples of README.md and of the book.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask samples".to_string());
    }
    let program = run::built("hob")?;
    let mut sum = TestTally::default();
    for path in documents(root)? {
        let text = fs::read_to_string(root.join(&path)).map_err(|e| format!("{path}: {e}"))?;
        for sample in samples_of(&text) {
            let problem = check(&program, &sample.text)?;
            if let Some(problem) = &problem {
                println!("{path}:{}: {}", sample.line, problem.trim());
            }
            sum += TestTally::of_check(problem.is_none());
        }
    }
    println!("{sum}");
    Ok(sum.is_good())
}

/// README.md and the pages of the book.
fn documents(root: &Path) -> Result<Vec<String>, String> {
    let mut documents = vec!["README.md".to_string()];
    let mut folders = vec!["docs/src".to_string()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(root.join(&folder)).map_err(|error| format!("{folder}: {error}"))?;
        for entry in entries.filter_map(Result::ok) {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{folder}/{name}");
            if entry.path().is_dir() {
                folders.push(path);
            } else if name.ends_with(".md") && !path.starts_with("docs/src/reference/") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    Ok(documents)
}

fn samples_of(document: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut open: Option<Sample> = None;
    for (index, line) in document.lines().enumerate() {
        match (&mut open, line.trim_end()) {
            (None, "```toml") => {
                let line = index + 2;
                let text = String::new();
                open = Some(Sample { line, text });
            }
            (Some(_), "```") => samples.extend(open.take()),
            (Some(sample), line) => {
                sample.text.push_str(line);
                sample.text.push('\n');
            }
            (None, _) => {}
        }
    }
    samples
}

/// A whole config: with the site that parts of a site stand in.
fn completed(sample: &str) -> String {
    let first = sample
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with('['));
    match first {
        Some(header) if header.starts_with("[site.") || header.starts_with("[[site.") => {
            let at = sample.find(header).unwrap_or(0);
            let (before, after) = sample.split_at(at);
            format!("{before}[[site]]\nroot = \"site\"\n\n{after}")
        }
        _ if !sample.contains("[[site]]") => format!("{sample}\n[[site]]\nroot = \"site\"\n"),
        _ => sample.to_string(),
    }
}

/// How the keys begin whose value is a folder.
const FOLDERS: &[&str] = &[
    "root = \"",
    "files = \"",
    "registries = \"",
    "dir = \"",
    "cgi = \"",
    "scripts = \"",
    "sendfile = [\"",
];
/// The same for programs.
const PROGRAMS: &[&str] = &["script = \"", "dns = { run = \""];
/// The same for an interpreter, which is made where it is a path.
const INTERPRETER: &str = "interpreter = \"";

/// The same for files of TLS: with a certificate in them, or its key.
const CERTIFICATES: &[&str] = &["certificate = \"", "ca = \"", "offers = \""];
const KEY: &str = " key = \"";

/// The same for files of accounts, of keys of links and of tokens, and of paths that have moved.
const ACCOUNTS: &[&str] = &[
    "htpasswd = \"",
    "groups = \"",
    "signed_urls = \"",
    "keys = \"",
    "redirects = \"",
];

/// The same for files of countries, with some of them in it.
const COUNTRIES: &str = "countries = \"";
const COUNTRIES_FILE: &[u8] = include_bytes!("../../server/tests/config/keys/countries.mmdb");

/// The sample with paths like `/usr/lib/x` inside the folder it is checked in.
fn relocated(sample: &str) -> String {
    let mut text = sample.to_string();
    let of_files = { CERTIFICATES.iter().chain(PROGRAMS) }
        .chain(ACCOUNTS)
        .chain([&KEY, &COUNTRIES]);
    for key in FOLDERS.iter().chain(of_files) {
        text = text.replace(&format!("{key}/"), key);
    }
    text
}

/// What stands in a line behind a key that begins so.
fn values<'a>(line: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let after = line.split(key).skip(1);
    after.filter_map(|rest| rest.split('"').next())
}

/// A certificate that signs itself with its key behind it, and the key alone, both as PEM.
fn certificate(folder: &Path) -> Result<(String, String), String> {
    let (made, key) = (folder.join("made.pem"), folder.join("made.key"));
    let mut openssl = Command::new("openssl");
    openssl
        .args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"])
        .args([
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-subj",
            "/CN=example.org",
        ])
        .args([
            "-addext",
            "subjectAltName=DNS:example.org,DNS:*.example.org",
        ])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&made);
    run::captured(&mut openssl)?;
    let read = |path: &Path| fs::read_to_string(path).map_err(|e| format!("{path:?}: {e}"));
    let key = read(&key)?;
    Ok((read(&made)? + &key, key))
}

/// Makes the folders and programs a sample names, the files of `error_pages` and those of TLS.
fn make_paths(sample: &str, folder: &Path) -> Result<(), String> {
    let named = |error: std::io::Error| format!("{}: {error}", folder.display());
    run::create(&folder.join("site/index.html"))?;
    for line in sample.lines() {
        for value in FOLDERS.iter().flat_map(|key| values(line, key)) {
            fs::create_dir_all(folder.join(value)).map_err(named)?;
        }
        for value in ACCOUNTS.iter().flat_map(|key| values(line, key)) {
            run::create(&folder.join(value))?;
        }
        let interpreters = values(line, INTERPRETER).filter(|value| value.contains('/'));
        let programs = PROGRAMS.iter().flat_map(|key| values(line, key));
        for value in programs.chain(interpreters) {
            let script = folder.join(value);
            run::create(&script)?;
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(named)?;
        }
        let certificates: Vec<_> = CERTIFICATES
            .iter()
            .flat_map(|key| values(line, key))
            .collect();
        let keys: Vec<_> = values(line, KEY).collect();
        if !certificates.is_empty() || !keys.is_empty() {
            let (certificate, key) = certificate(folder)?;
            let certificates = certificates.into_iter().map(|path| (path, &certificate));
            for (path, text) in certificates.chain(keys.into_iter().map(|path| (path, &key))) {
                let path = folder.join(path);
                run::create(&path)?;
                fs::write(&path, text).map_err(named)?;
            }
        }
        for value in values(line, COUNTRIES) {
            let file = folder.join(value);
            run::create(&file)?;
            fs::write(file, COUNTRIES_FILE).map_err(named)?;
        }
        for file in values(line, "ini = \"") {
            run::create(&folder.join(file))?;
        }
        if let Some((_, pages)) = line.split_once("error_pages = ") {
            for page in pages.split('"').skip(1).step_by(2) {
                run::create(&folder.join(page))?;
            }
        }
    }
    Ok(())
}

/// What `hob check` has to say against a sample.
fn check(program: &Path, sample: &str) -> Result<Option<String>, String> {
    let scratch = Scratch::new("sample")?;
    let sample = relocated(sample);
    make_paths(&sample, &scratch.0)?;
    let config = scratch.0.join("hob.toml");
    fs::write(&config, completed(&sample)).map_err(|e| format!("{}: {e}", config.display()))?;
    let mut command = Command::new(program);
    command
        .args(["check", "--no-machine", "--config"])
        .arg(&config)
        .current_dir(&scratch.0);
    Ok(run::captured(&mut command).err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_toml_are_samples() {
        let document = "a\n```toml\nb = 1\n\nc = 2\n```\n```sh\nd\n```\n```toml,fragment\ne\n```\n";
        let text = "b = 1\n\nc = 2\n".to_string();
        assert_eq!(samples_of(document), [Sample { line: 3, text }]);
    }

    #[test]
    fn part_of_a_site_gets_its_site() {
        assert_eq!(
            completed("top = 1\n[[site.route]]\npath = \"/\"\n"),
            "top = 1\n[[site]]\nroot = \"site\"\n\n[[site.route]]\npath = \"/\"\n"
        );
        assert_eq!(
            completed("[limits]\n"),
            "[limits]\n\n[[site]]\nroot = \"site\"\n"
        );
        let whole = "[[listen]]\n[[site]]\nroot = \"x\"\n[[site.route]]\n";
        assert_eq!(completed(whole), whole);
    }

    #[test]
    fn paths_a_sample_names_are_made() {
        let scratch = Scratch::new("sample-paths").unwrap();
        let sample = "files = \"a/b\"\nfiles = { root = \"c\", listing = true }\n\
                      error_pages = { 404 = \"d/404.html\", 500 = \"d/500.html\" }\n\
                      cgi = { script = \"/e/f.cgi\" }\ncgi = \"g\"\nsendfile = [\"/h\"]\n\
                      scripts = \"i\", interpreter = \"venv/bin/j\"\ninterpreter = \"k\"\n";
        let sample = &relocated(sample);
        make_paths(sample, &scratch.0).unwrap();
        for path in [
            "site",
            "a/b",
            "c",
            "d/404.html",
            "d/500.html",
            "e/f.cgi",
            "g",
            "h",
            "i",
            "venv/bin/j",
        ] {
            assert!(scratch.0.join(path).exists(), "{path}");
        }
        assert!(!scratch.0.join("k").exists());
    }
}
