//! `cgi` of a route: which programs run for its requests, and within which limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use regex_lite::Regex;

use super::preflight;
use crate::handle::cgi;
use crate::handle::cgi::keys::CGI;
use crate::handle::config::build_site::OnSection;
use crate::handle::config::captured::{plain_root, read_captured, refuse_captures};
use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::key::{Preset::Nothing, SchemaKey, ValueType};
use crate::handle::config::program::{CommandLine, PATH, ProgramConfig, Programs, candidates};
use crate::handle::config::text::{check_media_type, relative_name_wrong};
use crate::handle::config::tree::{Argument, Section};
use crate::handle::config::{Config, Route, Warm};
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::route::template::{CapturedPath, has_captures};
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight::ProgramCheck;

/// A process for each request.
#[derive(Clone, Debug, PartialEq)]
pub struct Cgi {
    /// What runs.
    pub runs: CgiRuns,
    /// How it runs: an index into [`crate::handle::config::Config::programs`].
    pub program: usize,
    /// What programs are told is the site's root.
    pub document_root: PathBuf,
    /// `Authorization` is passed to programs.
    pub pass_authorization: bool,
    /// Failures are explained to the client.
    pub dev: bool,
    /// What it means how a program ends.
    pub exit: ExitRule,
    /// Parameters of pages that are variables of these very names.
    pub values: Vec<String>,
    /// Limits of each run, and of all at once.
    pub limits: RunLimits,
    /// Scripts are forked from an interpreter that is kept, instead of being started.
    pub warm: Option<Warm>,
}

/// What it means for an answer how its program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitRule {
    /// A program that fails has not given a whole answer.
    Check,
    /// Nothing: an answer is whole when its output has ended.
    Trust,
}

impl ExitRule {
    /// As in the config.
    pub const fn word(self) -> &'static str {
        match self {
            ExitRule::Check => "check",
            ExitRule::Trust => "trust",
        }
    }

    pub(crate) fn of(section: &Section) -> ExitRule {
        match section.word("exit") {
            "trust" => ExitRule::Trust,
            _ => ExitRule::Check,
        }
    }
}

/// What runs for a request.
#[derive(Clone, Debug, PartialEq)]
pub enum CgiRuns {
    /// The program that the path names.
    Folder {
        /// Where the programs are.
        dir: PathBuf,
        /// The same where it is another one for each account or host.
        captured: Option<CapturedPath>,
        /// Programs that answer for a folder, first found wins.
        index: Vec<String>,
        /// Folders elsewhere that symbolic links may lead into.
        symlinks_to: Vec<PathBuf>,
        /// Endings and who runs files that have them.
        interpreters: Vec<(String, Vec<String>)>,
    },
    /// One program, for every path of the route.
    Script {
        /// Its file.
        file: PathBuf,
        /// Endings and who runs files that have them.
        interpreters: Vec<(String, Vec<String>)>,
    },
    /// A command that knows nothing of the web: what it prints is the answer's body.
    Command {
        /// The folder it works in.
        dir: PathBuf,
        /// Its name or path, then its arguments.
        arguments: Vec<Argument>,
        /// Media type of what it prints.
        output: String,
        /// Fields of the query it takes: name and pattern.
        parameters: Vec<(String, String)>,
    },
}

/// Limits of programs that run for requests; each has a counter of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Processes at once.
    pub concurrent: usize,
    /// Requests that wait for a process (503).
    pub queue: usize,
    /// How long a request waits (503).
    pub queue_time: Duration,
    /// From the start until the head of the answer is complete (504).
    pub first_byte: Duration,
    /// From the start until the end (504).
    pub total: Duration,
    /// Longest silence of a stream of events; zero is none.
    pub events: Duration,
    /// Longest head of an answer, in bytes (502).
    pub head: usize,
    /// How long a program that has ended is listened to, and one that has fallen silent waited for.
    pub linger: Duration,
    /// Between the request to end and the end by force.
    pub grace: Duration,
}

/// Where the parts of a `cgi` stand.
pub struct CgiSpots {
    pub(crate) dir: Spot,
    pub(crate) script: Spot,
    pub(crate) command: Spot,
    pub(crate) interpreters: Vec<Spot>,
}

/// The pattern of a parameter, which must match the whole value.
pub fn parameter_pattern(pattern: &str) -> Result<Regex, regex_lite::Error> {
    Regex::new(&format!(r"\A(?:{pattern})\z"))
}

impl HasSettings for cgi::Cgi {
    type Settings = Cgi;
    type Spots = CgiSpots;
}

impl Configured for cgi::Cgi {
    const KEY: SchemaKey =
        SchemaKey::new("cgi", ValueType::OrText("dir", &CGI), Nothing("")).aka(&["exec"]);

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (Cgi, CgiSpots) {
        let site_root = plain_root(on.around.site);
        build_cgi(section, site_root, on.pattern, programs, faults)
    }

    fn build(
        settings: &Cgi,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        pattern: &Pattern,
    ) -> Result<Arc<cgi::Cgi>, String> {
        around.cgi(settings, route, pattern).map(Arc::new)
    }

    fn check(
        settings: &Cgi,
        spots: &CgiSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        on_disk(config, settings, spots, looked, faults);
    }

    fn look(settings: &Cgi, spots: &CgiSpots, look: &mut ProgramCheck<'_, '_, '_>) {
        preflight::look(settings, spots, look);
    }

    fn program(settings: &Cgi) -> Option<usize> {
        Some(settings.program)
    }

    fn runs(settings: &Cgi) -> String {
        match &settings.runs {
            CgiRuns::Folder { dir, .. } => dir.display().to_string(),
            CgiRuns::Script { file, .. } => file.display().to_string(),
            CgiRuns::Command { arguments, .. } => {
                let texts = arguments.iter().filter_map(|argument| match argument {
                    Argument::Text(text) => Some(text.as_str()),
                    Argument::Query(_) => None,
                });
                texts.take(1).collect()
            }
        }
    }
}

/// The folder, the script, the command and the interpreters are there.
pub(in crate::handle) fn on_disk(
    config: &Config,
    cgi: &Cgi,
    spots: &CgiSpots,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    let path = config
        .programs
        .get(cgi.program)
        .map_or(PATH, ProgramConfig::path);
    let interpreters: &[_] = match &cgi.runs {
        CgiRuns::Folder {
            dir,
            captured,
            interpreters,
            ..
        } => {
            let fixed = captured.as_ref().map_or(dir, |captured| &captured.fixed);
            // Captures that are wrong are told already.
            if !has_captures(fixed) {
                looked.folder(fixed, spots.dir, faults);
            }
            interpreters
        }
        CgiRuns::Script { file, interpreters } => {
            let hint = "write `dir` for a folder of programs";
            if !has_captures(file) {
                looked.file(file, spots.script, hint, faults);
            }
            interpreters
        }
        CgiRuns::Command { dir, arguments, .. } => {
            looked.folder(dir, spots.dir, faults);
            if let Some(Argument::Text(name)) = arguments.first() {
                looked.program(name, path, spots.command, faults);
            }
            &[]
        }
    };
    for ((_, words), spot) in interpreters.iter().zip(&spots.interpreters) {
        if let Some(name) = words.first() {
            looked.program(name, path, *spot, faults);
        }
    }
}

/// One `cgi`. `site_root` is the site's, if it has one.
pub(crate) fn build_cgi(
    section: &Section,
    site_root: Option<&PathBuf>,
    pattern: Option<&Pattern>,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (Cgi, CgiSpots) {
    let runs = runs(section, site_root, pattern, faults);
    let document_root = match (&runs, site_root) {
        (_, Some(root)) => root.clone(),
        (CgiRuns::Folder { dir, .. } | CgiRuns::Command { dir, .. }, None) => dir.clone(),
        (CgiRuns::Script { file, .. }, None) => folder_of(file),
    };
    let spots = CgiSpots {
        dir: section.spot("dir"),
        script: section.spot("script"),
        command: section.spot("command"),
        interpreters: section
            .map("interpreters")
            .iter()
            .map(|pair| pair.spot)
            .collect(),
    };
    let values = values(section, faults);
    let program = programs.add(section, faults, |program| {
        allow(&runs, program);
        program.values.clone_from(&values);
    });
    let cgi = Cgi {
        program,
        runs,
        values,
        document_root,
        pass_authorization: section.flag("pass_authorization"),
        dev: section.flag("dev"),
        exit: ExitRule::of(section),
        limits: limits(section, faults),
        warm: None,
    };
    (cgi, spots)
}

/// Parameters of pages that are variables of their own names.
pub(crate) fn values(section: &Section, faults: &mut Faults<'_>) -> Vec<String> {
    let is_name = |text: &str| {
        let mut bytes = text.bytes();
        let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        bytes.next().is_some_and(is_first)
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.#".contains(&byte))
    };
    let all = section.texts("values");
    for (text, spot) in &all {
        if !is_name(text) {
            faults
                .error(*spot, format!("{text:?} is no name of a parameter"))
                .hint("write letters and digits: `\"kind\"`");
        }
    }
    all.iter().map(|(text, _)| (*text).to_owned()).collect()
}

/// What may be started, and where it may work.
fn allow(runs: &CgiRuns, program: &mut ProgramConfig) {
    match runs {
        CgiRuns::Folder {
            dir,
            captured,
            interpreters,
            symlinks_to,
            ..
        } => {
            program.captured.clone_from(captured);
            if captured.is_none() {
                program.roots.push(dir.clone());
            }
            program.roots.extend_from_slice(symlinks_to);
            allow_interpreters(interpreters, program);
        }
        CgiRuns::Script { file, interpreters } => {
            program.folders.push(folder_of(file));
            program.files.push(file.clone());
            allow_interpreters(interpreters, program);
        }
        CgiRuns::Command { dir, arguments, .. } => {
            program.folders.push(dir.clone());
            if let Some((Argument::Text(name), rest)) = arguments.split_first() {
                program.command_lines.push(CommandLine {
                    name: name.clone(),
                    executables: candidates(name, program.path()),
                    arguments: rest.to_vec(),
                    file_ending: None,
                    host: None,
                });
            }
        }
    }
}

fn allow_interpreters(interpreters: &[(String, Vec<String>)], program: &mut ProgramConfig) {
    for (ending, words) in interpreters {
        let Some((name, rest)) = words.split_first() else {
            continue;
        };
        program.command_lines.push(CommandLine {
            name: name.clone(),
            executables: candidates(name, program.path()),
            arguments: rest.iter().cloned().map(Argument::Text).collect(),
            file_ending: Some(ending.clone()),
            host: None,
        });
    }
}

pub(crate) fn limits(section: &Section, faults: &mut Faults<'_>) -> RunLimits {
    let limits = RunLimits {
        concurrent: section.number("concurrent"),
        queue: section.number("queue"),
        queue_time: section.time("queue_time"),
        first_byte: section.time("first_byte"),
        total: section.time("total"),
        events: section.time("events"),
        head: section.size_usize("head"),
        linger: section.time("linger"),
        grace: section.time("grace"),
    };
    if limits.first_byte > limits.total && section.given("first_byte").is_some() {
        faults
            .warn(
                section.spot("first_byte"),
                "`first_byte` is longer than `total`",
            )
            .see(section.spot("total"), "this ends the program before")
            .hint("make it shorter, or `total` longer");
    }
    limits
}

fn runs(
    section: &Section,
    site_root: Option<&PathBuf>,
    pattern: Option<&Pattern>,
    faults: &mut Faults<'_>,
) -> CgiRuns {
    const WAYS: [&str; 3] = ["dir", "script", "command"];
    let given: Vec<&str> = WAYS.into_iter().filter(|way| section.has(way)).collect();
    match given[..] {
        ["dir"] | ["script"] | ["command"] | ["dir", "command"] => {}
        [] => {
            let hint = "add `dir = \"FOLDER\"` for a folder of programs, `script = \"FILE\"` for one \
                        program, or `command = [\"NAME\"]`";
            faults
                .error(section.header, "`cgi` does not say what runs")
                .hint(hint);
        }
        [first, second, ..] => {
            let message = format!("`cgi` has both `{first}` and `{second}`");
            let hint = "keep one; write a second `[[site.route]]` for the other";
            faults
                .error(section.spot(second), message)
                .see(section.spot(first), "the first")
                .hint(hint);
        }
        [_] => {}
    }
    let is_command = section.has("command");
    unused(section, is_command, faults);
    let interpreters = interpreters(section, faults);
    let dir = section.optional_path("dir").cloned();
    if is_command || section.has("script") {
        refuse_captures(section, &["dir", "script"], ONE_PROGRAM, faults);
    }
    if is_command {
        let dir = dir.or_else(|| site_root.cloned());
        return command(section, dir.unwrap_or_else(|| PathBuf::from("/")), faults);
    }
    if let Some(file) = section.optional_path("script") {
        return CgiRuns::Script {
            file: file.clone(),
            interpreters,
        };
    }
    let index = index(section, faults);
    let spot = section.spot("dir");
    let captured = { dir.as_deref() }.and_then(|dir| read_captured(dir, pattern, spot, faults));
    if let (Some(_), Some(given)) = (&captured, section.given("symlinks_to")) {
        faults
            .error(given.key, "`symlinks_to` beside captures in `dir`")
            .see(spot, "the folder is another one for each request")
            .hint("remove it: no link leads out of such a folder");
    }
    CgiRuns::Folder {
        dir: dir.unwrap_or_default(),
        captured,
        index,
        symlinks_to: symlinks_to(section, faults),
        interpreters,
    }
}

/// Why a program has one place.
const ONE_PROGRAM: &str = "captures stand in `dir` of a `cgi` without `command` and `script`, and \
                           the rest of the path says which program of the folder runs";

/// Folders that links of a folder of programs may lead into.
pub(crate) fn symlinks_to(section: &Section, faults: &Faults<'_>) -> Vec<PathBuf> {
    let texts = section.texts("symlinks_to").into_iter();
    let path = |(text, spot): (&str, Spot)| faults.sources().resolve(spot.source, text);
    texts.map(path).collect()
}

/// Programs that answer for a folder.
pub(crate) fn index(section: &Section, faults: &mut Faults<'_>) -> Vec<String> {
    for (name, spot) in section.texts("index") {
        let wrong = match relative_name_wrong(name) {
            None if name.contains('/') => Some("write a file name, without a folder"),
            wrong => wrong,
        };
        if let Some(hint) = wrong {
            faults
                .error(spot, format!("{name:?} is no name of an index program"))
                .hint(hint);
        }
    }
    section
        .texts("index")
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect()
}

/// Tells which keys do nothing here.
fn unused(section: &Section, is_command: bool, faults: &mut Faults<'_>) {
    let (keys, hint): (&[&str], _) = match (is_command, section.has("script")) {
        (true, _) => (
            &["index", "interpreters", "pass_authorization", "symlinks_to"],
            "remove it: a command is not told of the request",
        ),
        (false, true) => (
            &["index", "output", "parameters", "symlinks_to"],
            "remove it: `script` names one CGI program",
        ),
        (false, false) => (
            &["output", "parameters"],
            "remove it: it belongs to a `command`",
        ),
    };
    for key in keys {
        if let Some(given) = section.given(key) {
            faults
                .warn(given.key, format!("`{key}` does nothing here"))
                .hint(hint);
        }
    }
}

fn interpreters(section: &Section, faults: &mut Faults<'_>) -> Vec<(String, Vec<String>)> {
    let mut interpreters = Vec::new();
    for pair in section.map("interpreters") {
        if !pair.name.starts_with('.') || pair.name.len() < 2 || pair.name.contains('/') {
            let message = format!("{:?} is no ending of file names", pair.name);
            let hint = format!("write `\".{}\"`", pair.name.trim_start_matches(['*', '.']));
            faults.error(pair.key, message).hint(hint);
        }
        let mut words: Vec<String> = pair.text.split_whitespace().map(str::to_owned).collect();
        let Some(first) = words.first_mut() else {
            let hint = "write a program, and what else stands before the file: `\"python3 -I\"`";
            faults
                .error(pair.spot, "the interpreter is empty")
                .hint(hint);
            continue;
        };
        if first.contains('/') {
            *first = text_of(&faults.sources().resolve(pair.spot.source, first));
        }
        interpreters.push((pair.name.clone(), words));
    }
    interpreters
}

fn command(section: &Section, dir: PathBuf, faults: &mut Faults<'_>) -> CgiRuns {
    let output = section.text("output");
    check_media_type(output, output, section.spot("output"), faults);
    let mut parameters = Vec::new();
    for pair in section.map("parameters") {
        if let Err(error) = parameter_pattern(&pair.text) {
            let message = format!("{:?} is no pattern: {error}", pair.text);
            let hint = "write a regular expression that the whole value must match, such as \
                        `[a-z0-9]{1,20}`";
            faults.error(pair.spot, message).hint(hint);
        }
        parameters.push((pair.name.clone(), pair.text.clone()));
    }
    let mut arguments = Vec::new();
    for (argument, spot) in section.arguments("command") {
        match argument {
            Argument::Query(name) if !parameters.iter().any(|(known, _)| known == name) => {
                let message = format!("the query's `{name}` has no pattern");
                let hint = format!("add `parameters = {{ {name} = \"[a-z0-9]{{1,20}}\" }}`");
                faults.error(spot, message).hint(hint);
            }
            Argument::Query(_) if arguments.is_empty() => {
                let hint = "write the program's name; a query chooses arguments only";
                faults
                    .error(spot, "a query cannot choose the program")
                    .hint(hint);
            }
            Argument::Text(text) if arguments.is_empty() && text.contains('/') => {
                let path = faults.sources().resolve(spot.source, text);
                arguments.push(Argument::Text(text_of(&path)));
                continue;
            }
            _ => {}
        }
        arguments.push(argument.clone());
    }
    let is_named = matches!(arguments.first(), Some(Argument::Text(name)) if !name.is_empty());
    if !is_named && section.given("command").is_some() && arguments.is_empty() {
        let hint = "write the program and its arguments: `command = [\"df\", \"-h\"]`";
        faults
            .error(section.spot("command"), "`command` is empty")
            .hint(hint);
    }
    for pair in section.map("parameters") {
        let is_used = |one: &Argument| matches!(one, Argument::Query(name) if *name == pair.name);
        if !arguments.iter().any(is_used) {
            let message = format!("the parameter `{}` is not used", pair.name);
            let hint = format!("write `\"${{query.{}}}\"` among the arguments", pair.name);
            faults.warn(pair.key, message).hint(hint);
        }
    }
    CgiRuns::Command {
        dir,
        arguments,
        output: output.to_owned(),
        parameters,
    }
}

pub(crate) fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("/")).to_path_buf()
}

/// Config texts are UTF-8, and so are paths made of them.
pub(crate) fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
