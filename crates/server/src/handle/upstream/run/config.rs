//! What the config says of a program that hob runs and asks itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::handle::config::Config;
use crate::handle::config::build_site::OnSection;
use crate::handle::config::captured::plain_root;
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::program::{PATH, ProgramConfig, Programs, check_program, resolve};
use crate::handle::config::schema::PROGRAM;
use crate::handle::config::tree::Section;
use crate::handle::upstream::run::keys::{RECYCLE, RUN, RUN_KEYS};
use crate::handle::upstream::run::start;
use hob_keeper::preflight::ProgramCheck;

/// A program that hob runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// How it is started.
    pub kind: RunKind,
    /// Its name or path: the one that was found, where the config names none of its version.
    pub program: String,
    /// Its arguments, without its name.
    pub words: Vec<String>,
    /// The folder it works in.
    pub dir: PathBuf,
    /// Processes that answer.
    pub children: usize,
    /// Requests after which one is replaced; 0 is never.
    pub recycle: u64,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// How it runs: an index into [`crate::handle::config::Config::programs`].
    pub rules: usize,
}

/// How a program is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// php-fpm: a master with children, of which it is told in a file.
    Fpm,
    /// php-cgi: a parent with children, of which its environment tells.
    PhpCgi,
    /// One process for each child.
    Plain,
}

impl RunKind {
    fn of(program: &str) -> RunKind {
        match file_name(program) {
            name if name.starts_with("php-fpm") => RunKind::Fpm,
            name if name.starts_with("php-cgi") => RunKind::PhpCgi,
            _ => RunKind::Plain,
        }
    }
}

impl RunSettings {
    /// As a handler's section says; `None` where it runs nothing. Tells where it says who answers
    /// twice, or not at all.
    pub(crate) fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> Option<RunSettings> {
        section.table().key(RUN)?;
        let name = section.table().name;
        if !section.has(RUN) {
            if !section.has("to") {
                faults
                    .error(section.header, format!("`{name}` does not say who answers"))
                    .hint("add `to = \"ADDRESS\"`, or `run = \"PROGRAM\"` for one that hob starts");
            }
            warn_of_idle_keys(section, faults);
            return None;
        }
        if section.has("to") {
            faults
                .error(
                    section.spot(RUN),
                    format!("`{name}` has both `to` and `run`"),
                )
                .see(section.spot("to"), "somebody else's program")
                .hint(
                    "keep `run` for a program that hob starts, or `to` for one that runs already",
                );
        }
        check_program(section, faults);
        let (program, words) = command(section, faults)?;
        let counts = section.table().key(RECYCLE).is_some();
        let kind = match counts {
            true => RunKind::of(&program),
            false => RunKind::Plain,
        };
        if let Some(given) = section.given(RECYCLE).filter(|_| kind == RunKind::Plain) {
            faults
                .error(
                    given.key,
                    format!("hob does not count the requests of {program}"),
                )
                .hint("remove `recycle`: it is for php-fpm and php-cgi");
        }
        let mut settings = RunSettings {
            kind,
            program,
            words,
            dir: dir(section, on, faults),
            children: section.number("children"),
            recycle: if counts { section.number(RECYCLE) } else { 0 },
            grace: section.time("grace"),
            rules: 0,
        };
        settings.rules = programs.add(section, faults, |program| {
            settings.program = installed(&settings.program, program.path());
            start::allow(&settings, program);
        });
        Some(settings)
    }

    /// How it is called for people.
    pub fn name(&self) -> &str {
        file_name(&self.program)
    }

    /// How many processes hob starts.
    pub(super) fn processes(&self) -> usize {
        match self.kind {
            RunKind::Fpm | RunKind::PhpCgi => 1,
            RunKind::Plain => self.children,
        }
    }

    /// Tells when it is not there.
    pub(crate) fn check(
        &self,
        spot: Spot,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        let rules = config.programs.get(self.rules);
        let path = rules.map_or(PATH, ProgramConfig::path);
        looked.program(&self.program, path, spot, faults);
    }

    /// Tells what this machine has in its way.
    pub(crate) fn look(&self, spot: Spot, look: &mut ProgramCheck<'_, '_, '_>) {
        look.enters(&self.dir, spot);
        look.runs(&self.program, spot);
    }
}

/// The program and its arguments; `None` for an empty list, which is told.
fn command(section: &Section, faults: &mut Faults<'_>) -> Option<(String, Vec<String>)> {
    let mut words = Vec::new();
    for (word, spot) in section.texts(RUN) {
        words.push(match words.is_empty() && word.contains('/') {
            true => {
                let path = faults.sources().resolve(spot.source, word);
                path.to_string_lossy().into_owned()
            }
            false => word.to_owned(),
        });
    }
    if words.first().is_none_or(String::is_empty) {
        if section.given(RUN).is_some() {
            faults
                .error(section.spot(RUN), "`run` is empty")
                .hint("write the program, such as `run = \"php-fpm\"`");
        }
        return None;
    }
    let program = words.remove(0);
    Some((program, words))
}

/// Where it works: with the scripts, if there are some.
fn dir(section: &Section, on: &OnSection<'_>, faults: &Faults<'_>) -> PathBuf {
    let own = section
        .table()
        .key("root")
        .and_then(|_| section.optional_path("root"));
    let root = own.or_else(|| plain_root(on.around.site));
    root.filter(|_| has_scripts(section)).map_or_else(
        || faults.sources().dir(section.header.source).to_path_buf(),
        PathBuf::clone,
    )
}

/// What is asked are scripts, below a folder; else another server.
fn has_scripts(section: &Section) -> bool {
    section.table().name != "proxy"
}

/// Keys that say how a program runs are nothing where none does.
fn warn_of_idle_keys(section: &Section, faults: &mut Faults<'_>) {
    let keys = RUN_KEYS.iter().chain(PROGRAM.keys).map(|key| key.name);
    let keys = keys.chain([RECYCLE]);
    // `env` is what every request for a script has, too.
    for key in keys.filter(|key| *key != "env" || !has_scripts(section)) {
        if let Some(given) = section.given(key) {
            faults
                .warn(given.key, format!("`{key}` does nothing here"))
                .hint("remove it: it is for a program that hob starts with `run`");
        }
    }
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The program of this name; of PHP, the newest that is installed where none has just the name.
fn installed(name: &str, path: &str) -> String {
    if !matches!(name, "php-fpm" | "php-cgi") || resolve(name, path).is_ok() {
        return name.to_owned();
    }
    let folders = path.split(':').map(Path::new);
    let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok());
    let of_version = files.flatten().flatten().filter_map(|entry| {
        let version = version(entry.file_name().to_str()?.strip_prefix(name)?)?;
        Some((version, entry.path()))
    });
    let newest = of_version.max_by_key(|(version, _)| *version);
    newest.map_or_else(
        || name.to_owned(),
        |(_, file)| file.to_string_lossy().into_owned(),
    )
}

/// `8.2`
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_php_is_meant_where_none_has_the_plain_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        assert_eq!(installed("php-fpm", &path), "php-fpm");
        for name in [
            "php-fpm8.2",
            "php-fpm8.10",
            "php-fpm7.4",
            "php-fpm8.x",
            "php-fpm",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        // The one of the plain name cannot be executed.
        assert_eq!(installed("php-fpm", &path), format!("{path}/php-fpm8.10"));
        assert_eq!(installed("php-fpm8.2", &path), "php-fpm8.2");
    }
}
