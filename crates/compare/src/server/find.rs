//! Which servers are installed, and which version of them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ServerSoftware;

/// A server that is installed here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Installed {
    /// What tables call it.
    pub(crate) name: String,
    /// What it understands.
    pub(crate) kind: ServerSoftware,
    /// The program.
    pub(crate) program: PathBuf,
    /// What it says of itself.
    pub(crate) version: String,
    /// nginx, where it may stand before it.
    pub(crate) front: Option<PathBuf>,
    /// Somebody gave its path.
    pub(crate) is_named: bool,
}

/// A server that was looked for in vain, or that does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Missing {
    /// The server.
    pub(crate) name: String,
    /// Why not.
    pub(crate) why: String,
    /// Somebody gave its path.
    #[serde(skip)]
    pub(crate) is_named: bool,
}

/// A server that is looked for.
struct KnownServer {
    name: &'static str,
    kind: ServerSoftware,
    /// What its program may be called, perhaps with a version behind.
    programs: &'static [&'static str],
    /// How it is asked for its version.
    version: &'static str,
}

const fn known(
    name: &'static str,
    kind: ServerSoftware,
    programs: &'static [&'static str],
    version: &'static str,
) -> KnownServer {
    KnownServer {
        name,
        kind,
        programs,
        version,
    }
}

const KNOWN: &[KnownServer] = &[
    known("nginx", ServerSoftware::Nginx, &["nginx"], "-v"),
    known(
        "apache",
        ServerSoftware::Apache,
        &["apache2", "httpd"],
        "-v",
    ),
    known("lighttpd", ServerSoftware::Lighttpd, &["lighttpd"], "-v"),
    known("h2o", ServerSoftware::H2o, &["h2o"], "-v"),
    known("caddy", ServerSoftware::Caddy, &["caddy"], "version"),
    known("php-fpm", ServerSoftware::Fpm, &["php-fpm"], "-v"),
    known("uwsgi", ServerSoftware::Uwsgi, &["uwsgi"], "--version"),
    known(
        "granian",
        ServerSoftware::Granian,
        &["granian"],
        "--version",
    ),
    known(
        "gunicorn",
        ServerSoftware::Gunicorn,
        &["gunicorn"],
        "--version",
    ),
    known(
        "uvicorn",
        ServerSoftware::Uvicorn,
        &["uvicorn"],
        "--version",
    ),
];

/// Looks for everything that is known in these folders. hob itself comes first, then other builds
/// of it. A rival is one of them, or a known server that is taken instead of the one in a folder.
pub(crate) fn find(
    own: &Path,
    rivals: &[PathBuf],
    folders: &[PathBuf],
) -> (Vec<Installed>, Vec<Missing>) {
    let mut search = ServerSearch::default();
    search.take(
        "hob",
        (ServerSoftware::Hob, "--version"),
        own.to_owned(),
        false,
    );
    let (servers, builds): (Vec<&PathBuf>, Vec<&PathBuf>) =
        rivals.iter().partition(|rival| known_as(rival).is_some());
    for (index, build) in builds.iter().enumerate() {
        let name = match builds.len() {
            1 => "other hob".to_owned(),
            _ => format!("other hob {}", index + 1),
        };
        search.take(
            &name,
            (ServerSoftware::Hob, "--version"),
            (*build).clone(),
            true,
        );
    }
    for one in KNOWN {
        let how = (one.kind, one.version);
        let mut named = servers.iter().filter(|path| {
            let known = known_as(path);
            known.is_some_and(|known| known.kind == one.kind)
        });
        if let Some(path) = named.next() {
            search.take(one.name, how, (*path).clone(), true);
            continue;
        }
        match installed(one, folders) {
            Some(program) => search.take(one.name, how, program, false),
            None => search.lacks(one.name, why_not(one, folders)),
        }
    }
    search.end()
}

/// What was found so far.
#[derive(Default)]
struct ServerSearch {
    found: Vec<Installed>,
    missing: Vec<Missing>,
}

impl ServerSearch {
    fn take(
        &mut self,
        name: &str,
        (kind, argument): (ServerSoftware, &str),
        program: PathBuf,
        is_named: bool,
    ) {
        match ask(&program, argument) {
            Ok(version) => self.found.push(Installed {
                name: name.to_owned(),
                kind,
                program,
                version,
                front: None,
                is_named,
            }),
            Err(why) => self.missing.push(Missing {
                name: name.to_owned(),
                why: format!("{} {why}", program.display()),
                is_named,
            }),
        }
    }

    fn lacks(&mut self, name: &str, why: String) {
        self.missing.push(Missing {
            name: name.to_owned(),
            why,
            is_named: false,
        });
    }

    /// Gives those that stand behind nginx what they stand behind.
    fn end(mut self) -> (Vec<Installed>, Vec<Missing>) {
        let nginx = self
            .found
            .iter()
            .find(|server| server.kind == ServerSoftware::Nginx);
        let front = nginx.map(|nginx| nginx.program.clone());
        for server in &mut self.found {
            if matches!(server.kind, ServerSoftware::Fpm | ServerSoftware::Uwsgi) {
                server.front = front.clone();
            }
        }
        if front.is_none() {
            let is_alone = |server: &Installed| server.kind != ServerSoftware::Fpm;
            let (alone, behind) = self.found.into_iter().partition(is_alone);
            self.found = alone;
            let behind: Vec<Installed> = behind;
            for server in behind {
                self.missing.push(Missing {
                    name: server.name,
                    why: "nginx, which stands before it, is not installed".to_owned(),
                    is_named: server.is_named,
                });
            }
        }
        (self.found, self.missing)
    }
}

/// The server whose program this is, by its name.
fn known_as(path: &Path) -> Option<&'static KnownServer> {
    let name = path.file_name()?.to_str()?;
    let is_its = |known: &&KnownServer| {
        known
            .programs
            .iter()
            .any(|program| is_called(name, program))
    };
    KNOWN.iter().find(is_its)
}

/// Is that the program's name, perhaps with a version behind it?
fn is_called(name: &str, program: &str) -> bool {
    let rest = name.strip_prefix(program);
    rest.is_some_and(|rest| {
        rest.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// The first program of a server in these folders; of several versions, the one with the last name.
fn installed(known: &KnownServer, folders: &[PathBuf]) -> Option<PathBuf> {
    let candidates = known.programs.iter().flat_map(|program| {
        let at = move |folder: &PathBuf| folder.join(program);
        folders.iter().map(at)
    });
    if let Some(plain) = { candidates }.find(|path| is_program(path)) {
        return Some(plain);
    }
    // Only PHP is installed as several versions beside each other.
    if known.kind != ServerSoftware::Fpm {
        return None;
    }
    let entries = folders.iter().flat_map(std::fs::read_dir);
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    let of_it = paths.filter(|path| known_as(path).is_some_and(|one| one.kind == known.kind));
    of_it.filter(|path| is_program(path)).max()
}

/// Why nothing of a server can be run: servers run as whoever compares them.
fn why_not(known: &KnownServer, folders: &[PathBuf]) -> String {
    let names = known.programs.join(" or ");
    let user = rustix::process::geteuid();
    let is_closed = |path: &Path| {
        let asked = rustix::fs::access(path, rustix::fs::Access::EXEC_OK);
        asked.is_err_and(|error| error == rustix::io::Errno::ACCESS)
    };
    let in_folder = |folder: &PathBuf| {
        known
            .programs
            .iter()
            .map(|name| folder.join(name))
            .collect()
    };
    let candidates = folders.iter().flat_map::<Vec<PathBuf>, _>(in_folder);
    if let Some(program) = { candidates }.find(|path| path.is_file() && is_closed(path)) {
        return format!("user {user} may not run {}", program.display());
    }
    match folders.iter().find(|folder| is_closed(folder)) {
        Some(folder) => format!(
            "{names} is not installed where user {user} may look; {} is closed to it",
            folder.display()
        ),
        None => format!("{names} is not installed"),
    }
}

/// The names of everything that is known.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("hob").chain(KNOWN.iter().map(|known| known.name))
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

/// Runs a program that prints its version and ends.
fn ask(program: &Path, argument: &str) -> Result<String, String> {
    let mut command = Command::new(program);
    let output = command.arg(argument).stdin(Stdio::null()).output();
    let user = rustix::process::geteuid();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => format!("cannot be run by user {user}: {error}"),
        _ => format!("cannot be run: {error}"),
    })?;
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
            (
                "PHP 8.2.36 (fpm-fcgi) (built: Nov 18 2026 20:02:04)\n",
                "8.2.36",
            ),
            ("2.0.21-debian\n", "2.0.21-debian"),
            ("granian 2.8.7\n", "2.8.7"),
            ("gunicorn (version 27.0.1)\n", "27.0.1"),
            (
                "Running uvicorn 0.54.0 with CPython 3.11.7 on Linux\n",
                "0.54.0",
            ),
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

    /// A program that says a version. What this process had open for writing while another thread
    /// forked could not be executed at once.
    fn program(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        let script = "printf '#!/bin/sh\necho 1.2.3\n' > \"$0\" && chmod 755 \"$0\"";
        let written = Command::new("sh").args(["-c", script]).arg(&path).status();
        assert!(written.unwrap().success());
        path
    }

    #[test]
    fn rival_with_a_known_name_is_taken_instead_of_the_one_that_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let own = program(folder.path(), "hob");
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        let installed = folder.path().join("bin");
        program(&installed, "granian");
        let rivals = [
            program(folder.path(), "granian"),
            program(folder.path(), "hob-of-last-year"),
        ];
        let (found, _) = find(&own, &rivals, &[installed]);
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_str(), &one.program, one.is_named))
            .collect();
        assert_eq!(
            told,
            [
                ("hob", &own, false),
                ("other hob", &rivals[1], true),
                ("granian", &rivals[0], true)
            ]
        );
    }

    #[test]
    fn php_is_found_by_its_newest_version_and_needs_nginx_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let own = program(folder.path(), "hob");
        for name in ["php-fpm8.1", "php-fpm8.2", "php-fpm-tool"] {
            program(folder.path(), name);
        }
        let folders = [folder.path().to_owned()];
        let (_, missing) = find(&own, &[], &folders);
        let php = missing.iter().find(|one| one.name == "php-fpm").unwrap();
        assert_eq!(php.why, "nginx, which stands before it, is not installed");
        let nginx = program(folder.path(), "nginx");
        let (found, _) = find(&own, &[], &folders);
        let php = found.iter().find(|one| one.name == "php-fpm").unwrap();
        assert_eq!(php.program, folder.path().join("php-fpm8.2"));
        assert_eq!(php.front.as_ref(), Some(&nginx));
    }
}
