//! `warm` of a route: scripts whose processes are forks of an interpreter that is kept. What else
//! holds for them is as for `cgi`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::handle::cgi::config::{
    Cgi, CgiRuns, CgiSpots, ExitRule, folder_of, index, limits, symlinks_to, text_of, values,
};
use crate::handle::config::build_site::OnSection;
use crate::handle::config::captured::{plain_root, refuse_captures};
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::Faults;
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::{
    CommandLine, HostSource, ProgramConfig, Programs, candidates,
};
use crate::handle::config::tree::{Argument, Section};
use crate::handle::config::{Config, Language, Route};
use crate::handle::warm::keys::WARM;
use crate::handle::{self, Configured, HasSettings, cgi};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight::ProgramCheck;

/// The interpreter that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warm {
    /// Its name, or its path.
    pub interpreter: String,
    /// Whose scripts it runs.
    pub language: Language,
    /// Modules it loads beforehand.
    pub preload: Vec<String>,
    /// How many are kept.
    pub hosts: usize,
    /// Scripts are kept compiled.
    pub compile: bool,
    /// Limit of CPU time of each request's process. The interpreter itself has none: it works for
    /// all of them.
    pub cpu: Option<Duration>,
}

impl Warm {
    /// What the interpreter is told: to run what stands on its standard input, then how. Perl is
    /// given the file itself: it goes on reading it where the host has put the script.
    pub fn words(&self) -> Vec<String> {
        let source = match self.language {
            Language::Python => "-",
            Language::Perl => "/proc/self/fd/0",
        };
        let how = if self.compile { "compile" } else { "each" };
        let seconds = self.cpu.map_or(0, |time| time.as_secs()).to_string();
        let words = [source, how, &seconds].into_iter();
        let modules = self.preload.iter().map(String::as_str);
        words.chain(modules).map(str::to_owned).collect()
    }
}

/// A route of this kind: one of `cgi` that says what its processes are forked from.
#[derive(Clone, Debug, PartialEq)]
pub struct WarmSettings(pub Cgi);

impl HasSettings for handle::warm::Warm {
    type Settings = WarmSettings;
    type Spots = CgiSpots;
}

impl Configured for handle::warm::Warm {
    const KEY: SchemaKey = SchemaKey::new("warm", ValueType::OrText("dir", &WARM), Nothing(""));

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (WarmSettings, CgiSpots) {
        let site_root = plain_root(on.around.site);
        let (cgi, spots) = build_warm(section, site_root, programs, faults);
        (WarmSettings(cgi), spots)
    }

    fn build(
        settings: &WarmSettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        pattern: &Pattern,
    ) -> Result<Arc<handle::warm::Warm>, String> {
        let cgi = around.cgi(&settings.0, route, pattern)?;
        Ok(Arc::new(handle::warm::Warm(Arc::new(cgi))))
    }

    fn check(
        settings: &WarmSettings,
        spots: &CgiSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        cgi::Cgi::check(&settings.0, spots, config, looked, faults);
    }

    fn look(settings: &WarmSettings, spots: &CgiSpots, look: &mut ProgramCheck<'_, '_, '_>) {
        cgi::Cgi::look(&settings.0, spots, look);
    }

    fn program(settings: &WarmSettings) -> Option<usize> {
        cgi::Cgi::program(&settings.0)
    }

    fn runs(settings: &WarmSettings) -> String {
        cgi::Cgi::runs(&settings.0)
    }
}

/// Why programs of many accounts are not forked from one.
const ONE_INTERPRETER: &str = "an interpreter that is kept runs as one account, and one for each \
                               would stay for each: `cgi` takes captures, and starts a process for \
                               each request";

/// One `warm`. `site_root` is the site's, if it has one.
pub(crate) fn build_warm(
    section: &Section,
    site_root: Option<&PathBuf>,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (Cgi, CgiSpots) {
    refuse_captures(section, &["dir", "script"], ONE_INTERPRETER, faults);
    let script = section.optional_path("script").cloned();
    let mut warm = warm(section, script.as_deref(), faults);
    check_ways(section, faults);
    let interpreters = vec![(
        warm.language.ending().to_owned(),
        vec![warm.interpreter.clone()],
    )];
    let runs = match script {
        Some(file) => CgiRuns::Script { file, interpreters },
        None => CgiRuns::Folder {
            dir: section.optional_path("dir").cloned().unwrap_or_default(),
            captured: None,
            index: index(section, faults),
            symlinks_to: symlinks_to(section, faults),
            interpreters,
        },
    };
    let folder = match &runs {
        CgiRuns::Script { file, .. } => folder_of(file),
        CgiRuns::Folder { dir, .. } | CgiRuns::Command { dir, .. } => dir.clone(),
    };
    let values = values(section, faults);
    let program = programs.add(section, faults, |program| {
        program.values.clone_from(&values);
        warm.cpu = program.limits.cpu.take();
        allow(&warm, &folder, program);
    });
    let spots = CgiSpots {
        dir: section.spot("dir"),
        script: section.spot("script"),
        command: section.header,
        interpreters: vec![section.spot("interpreter")],
    };
    let cgi = Cgi {
        program,
        runs,
        document_root: site_root.cloned().unwrap_or(folder),
        pass_authorization: section.flag("pass_authorization"),
        dev: section.flag("dev"),
        exit: ExitRule::of(section),
        values,
        limits: limits(section, faults),
        warm: Some(warm),
    };
    (cgi, spots)
}

/// What may be started, and where it may work. Scripts are not: they are forked from what is.
fn allow(warm: &Warm, folder: &Path, program: &mut ProgramConfig) {
    program.folders.push(folder.to_path_buf());
    program.command_lines.push(CommandLine {
        name: warm.interpreter.clone(),
        executables: candidates(&warm.interpreter, program.path()),
        arguments: warm.words().into_iter().map(Argument::Text).collect(),
        file_ending: None,
        host: Some(match warm.language {
            Language::Python => HostSource::WarmPython,
            Language::Perl => HostSource::WarmPerl,
        }),
    });
}

fn check_ways(section: &Section, faults: &mut Faults<'_>) {
    match (section.has("dir"), section.has("script")) {
        (false, false) => {
            let hint = "add `dir = \"FOLDER\"` for a folder of scripts, or `script = \"FILE\"` for \
                        one";
            faults
                .error(section.header, "`warm` does not say what runs")
                .hint(hint);
        }
        (true, true) => {
            faults
                .error(section.spot("script"), "`warm` has both `dir` and `script`")
                .see(section.spot("dir"), "the first")
                .hint("keep one; write a second `[[site.route]]` for the other");
        }
        (false, true) => {
            if let Some(given) = section.given("index") {
                faults
                    .warn(given.key, "`index` does nothing here")
                    .hint("remove it: `script` names one script");
            }
        }
        (true, false) => {}
    }
}

fn warm(section: &Section, script: Option<&Path>, faults: &mut Faults<'_>) -> Warm {
    let spot = section.spot("interpreter");
    let by_ending = || {
        let name = script?.to_str()?;
        let known = [Language::Python, Language::Perl];
        let language = known.into_iter().find(|one| name.ends_with(one.ending()))?;
        Some(language.usual_interpreter().to_owned())
    };
    let mut interpreter = match section.optional_text("interpreter") {
        Some(name) => name.to_owned(),
        None => by_ending().unwrap_or_else(|| {
            let message = "`warm` does not say which interpreter is kept";
            let hint = "add `interpreter = \"python3\"` or `interpreter = \"perl\"`";
            faults.error(section.header, message).hint(hint);
            Language::Python.usual_interpreter().to_owned()
        }),
    };
    let language = Language::of_interpreter(&interpreter).unwrap_or_else(|| {
        let message = format!("{interpreter:?} is no interpreter that can be kept");
        let hint = "write `python3` or `perl`, or the path of one; `cgi` runs all others";
        faults.error(spot, message).hint(hint);
        Language::Python
    });
    if interpreter.contains('/') {
        interpreter = text_of(&faults.sources().resolve(spot.source, &interpreter));
    }
    let mut preload = Vec::new();
    for (name, spot) in section.texts("preload") {
        if !is_module(name, language) {
            let message = format!("{name:?} is no name of a module");
            let hint = match language {
                Language::Python => "write it as `import` does: `\"os.path\"`",
                Language::Perl => "write it as `use` does: `\"File::Spec\"`",
            };
            faults.error(spot, message).hint(hint);
        }
        preload.push(name.to_owned());
    }
    Warm {
        interpreter,
        language,
        preload,
        hosts: section.number("hosts"),
        compile: section.flag("compile"),
        cpu: None,
    }
}

/// Words between the separators of the language, each a name.
fn is_module(name: &str, language: Language) -> bool {
    let separator = match language {
        Language::Python => ".",
        Language::Perl => "::",
    };
    let is_word = |word: &str| {
        let mut chars = word.chars();
        let first = chars.next();
        first.is_some_and(|first| first == '_' || first.is_alphabetic())
            && chars.all(|other| other == '_' || other.is_alphanumeric())
    };
    name.split(separator).all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_told_by_the_name_of_the_interpreter() {
        for (name, expected) in [
            ("python3", Some(Language::Python)),
            ("/opt/venv/bin/python3.13", Some(Language::Python)),
            ("perl", Some(Language::Perl)),
            ("/usr/bin/perl5.36.0", Some(Language::Perl)),
            ("/opt/python/bin/ruby", None),
            ("sh", None),
            ("", None),
        ] {
            assert_eq!(Language::of_interpreter(name), expected, "{name}");
        }
    }

    #[test]
    fn modules_are_named_as_their_language_does() {
        for name in ["json", "os.path", "_thread", "größe"] {
            assert!(is_module(name, Language::Python), "{name}");
        }
        for name in ["CGI", "File::Spec", "DBD::SQLite"] {
            assert!(is_module(name, Language::Perl), "{name}");
        }
        for name in ["", "a b", "a;b", "1a", "File::Spec", "a.", "-c"] {
            assert!(!is_module(name, Language::Python), "{name}");
        }
        for name in ["", "os.path", "A::", "A:B", "A; exit"] {
            assert!(!is_module(name, Language::Perl), "{name}");
        }
    }
}
