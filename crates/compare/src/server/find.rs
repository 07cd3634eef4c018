//! Which servers are installed, and which version of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Kind;

/// A server that is installed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed {
    /// What tables call it.
    pub(crate) name: String,
    /// What it understands.
    pub(crate) kind: Kind,
    /// The program.
    pub(crate) program: PathBuf,
    /// What it says of itself.
    pub(crate) version: String,
}

/// A server that was looked for in vain, or that does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// What tables call it.
    pub(crate) name: String,
    /// Why it is not compared.
    pub(crate) why: String,
}

/// Name, kind, what its program may be called, and how that is asked for its version.
const KNOWN: &[(&str, Kind, &[&str], &str)] = &[
    ("nginx", Kind::Nginx, &["nginx"], "-v"),
    ("apache", Kind::Apache, &["apache2", "httpd"], "-v"),
    ("lighttpd", Kind::Lighttpd, &["lighttpd"], "-v"),
    ("h2o", Kind::H2o, &["h2o"], "-v"),
    ("caddy", Kind::Caddy, &["caddy"], "version"),
];

/// Looks for everything that is known in these folders. hob itself comes first, then other builds
/// of it.
pub(crate) fn find(
    own: &Path,
    rivals: &[PathBuf],
    folders: &[PathBuf],
) -> (Vec<Installed>, Vec<Missing>) {
    let mut found = vec![];
    let mut missing = vec![];
    let mut take = |name: &str, kind, program: PathBuf, argument| match ask(&program, argument) {
        Ok(version) => found.push(Installed {
            name: name.to_owned(),
            kind,
            program,
            version,
        }),
        Err(why) => missing.push(Missing {
            name: name.to_owned(),
            why: format!("{} {why}", program.display()),
        }),
    };
    take("hob", Kind::Hob, own.to_owned(), "--version");
    for (index, rival) in rivals.iter().enumerate() {
        let name = match rivals.len() {
            1 => "other hob".to_owned(),
            _ => format!("other hob {}", index + 1),
        };
        take(&name, Kind::Hob, rival.clone(), "--version");
    }
    let mut absent = vec![];
    for (name, kind, programs, argument) in KNOWN {
        let candidates = programs.iter().flat_map(|program| {
            let at = move |folder: &PathBuf| folder.join(program);
            folders.iter().map(at)
        });
        match { candidates }.find(|path| is_program(path)) {
            Some(program) => take(name, *kind, program, argument),
            None => absent.push(Missing {
                name: (*name).to_owned(),
                why: format!("{} is not installed", programs.join(" or ")),
            }),
        }
    }
    missing.extend(absent);
    (found, missing)
}

/// The names of everything that is known.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("hob").chain(KNOWN.iter().map(|(name, ..)| *name))
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

/// Runs a program that prints its version and ends.
fn ask(program: &Path, argument: &str) -> Result<String, String> {
    let mut command = Command::new(program);
    let output = command.arg(argument).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot be run: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let version = version_in(&text);
    version.ok_or_else(|| format!("{argument} prints no version"))
}

/// The first word with digits around a dot: `nginx/1.22.1`, `v2.6.2`, `Apache/2.4.71`.
fn version_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || "/(),".contains(c));
    let trimmed = words.map(|word| word.trim_start_matches('v'));
    let mut versions = trimmed.filter(|word| {
        let mut parts = word.split('.');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let begins = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        parts.next().is_some_and(is_number) && parts.next().is_some_and(begins)
    });
    versions.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_servers_print() {
        for (text, version) in [
            ("nginx version: nginx/1.22.1\n", "1.22.1"),
            (
                "Server version: Apache/2.4.71 (Debian)\nServer built: 2026-11-12T08:58\n",
                "2.4.71",
            ),
            (
                "lighttpd/1.4.69 (ssl) - a light and fast webserver\n",
                "1.4.69",
            ),
            (
                "h2o version 2.2.5\nOpenSSL: OpenSSL 3.0.19 27 Jan 2026\n",
                "2.2.5",
            ),
            ("h2o version 2.3.0-DEV@13ba727\n", "2.3.0-DEV@13ba727"),
            ("v2.11.1 h1:9abc=\n", "2.11.1"),
            ("hob 0.1.0\n", "0.1.0"),
        ] {
            assert_eq!(version_in(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(version_in("no version at all, e.g. this."), None);
    }

    #[test]
    fn what_is_not_there_is_said_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("hob");
        let (found, missing) = find(&own, &[], &[folder.path().to_owned()]);
        assert_eq!(found, []);
        let names: Vec<&str> = missing.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, super::names().collect::<Vec<_>>());
        assert_eq!(missing[2].why, "apache2 or httpd is not installed");
    }
}
