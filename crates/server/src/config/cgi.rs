//! `cgi` of a route: which programs run for its requests, and within which limits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use regex_lite::Regex;

use super::fault::{Faults, Spot};
use super::program::{Program, Programs};
use super::text::{check_media_type, relative_name_wrong};
use super::tree::{Argument, Section};
use super::warm::Warm;

/// A process for each request.
#[derive(Clone, Debug, PartialEq)]
pub struct Cgi {
    /// What runs.
    pub runs: CgiRuns,
    /// How it runs: an index into [`super::Config::programs`].
    pub program: usize,
    /// What programs are told is the site's root.
    pub document_root: PathBuf,
    /// `Authorization` is passed to programs.
    pub pass_authorization: bool,
    /// Failures are explained to the client.
    pub dev: bool,
    /// Limits of each run, and of all at once.
    pub limits: RunLimits,
    /// Scripts are forked from an interpreter that is kept, instead of being started.
    pub warm: Option<Warm>,
}

/// What runs for a request.
#[derive(Clone, Debug, PartialEq)]
pub enum CgiRuns {
    /// The program that the path names.
    Folder {
        /// Where the programs are.
        dir: PathBuf,
        /// Programs that answer for a folder, first found wins.
        index: Vec<String>,
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
    /// Longest head of an answer, in bytes (502).
    pub head: usize,
    /// How long a program that has ended is listened to, and one that has fallen silent waited for.
    pub linger: Duration,
    /// Between the request to end and the end by force.
    pub grace: Duration,
}

/// Where the parts of a `cgi` stand.
pub(crate) struct CgiSpots {
    pub(crate) dir: Spot,
    pub(crate) script: Spot,
    pub(crate) command: Spot,
    pub(crate) interpreters: Vec<Spot>,
}

/// Folders in which programs are looked for that are named without one, unless `env` has a `PATH`.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The files a name of a program may mean, first found wins. One with a slash in it means itself.
pub fn candidates(name: &str, path: &str) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![PathBuf::from(name)];
    }
    let folders = path.split(':').map(Path::new);
    let folders = folders.filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).collect()
}

/// The pattern of a parameter, which must match the whole value.
pub fn parameter_pattern(pattern: &str) -> Result<Regex, regex_lite::Error> {
    Regex::new(&format!(r"\A(?:{pattern})\z"))
}

/// One `cgi`. `site_root` is the site's, if it has one.
pub(crate) fn build_cgi(
    section: &Section,
    site_root: Option<&PathBuf>,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (Cgi, CgiSpots) {
    let runs = runs(section, site_root, faults);
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
    let program = programs.add(section, faults, |program| allow(&runs, program));
    let cgi = Cgi {
        program,
        runs,
        document_root,
        pass_authorization: section.flag("pass_authorization"),
        dev: section.flag("dev"),
        limits: limits(section, faults),
        warm: None,
    };
    (cgi, spots)
}

impl Program {
    /// Folders in which programs are looked for.
    pub fn path(&self) -> &str {
        let own = self.env.iter().find(|(name, _)| name == "PATH");
        own.map_or(PATH, |(_, path)| path)
    }
}

/// What may be started, and where it may work.
pub(super) fn allow(runs: &CgiRuns, program: &mut Program) {
    let path = program.path().to_owned();
    let mut names: Vec<&str> = Vec::new();
    match runs {
        CgiRuns::Folder {
            dir, interpreters, ..
        } => {
            program.roots.push(dir.clone());
            names.extend(first_words(interpreters));
        }
        CgiRuns::Script { file, interpreters } => {
            program.folders.push(folder_of(file));
            program.executables.push(file.clone());
            names.extend(first_words(interpreters));
        }
        CgiRuns::Command { dir, arguments, .. } => {
            program.folders.push(dir.clone());
            if let Some(Argument::Text(name)) = arguments.first() {
                names.push(name);
            }
        }
    }
    let files: Vec<PathBuf> = names
        .iter()
        .flat_map(|name| candidates(name, &path))
        .collect();
    program.executables.extend(files);
}

fn first_words(interpreters: &[(String, Vec<String>)]) -> impl Iterator<Item = &str> {
    interpreters
        .iter()
        .filter_map(|(_, words)| words.first().map(String::as_str))
}

pub(super) fn limits(section: &Section, faults: &mut Faults<'_>) -> RunLimits {
    let limits = RunLimits {
        concurrent: section.number("concurrent"),
        queue: section.number("queue"),
        queue_time: section.time("queue_time"),
        first_byte: section.time("first_byte"),
        total: section.time("total"),
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

fn runs(section: &Section, site_root: Option<&PathBuf>, faults: &mut Faults<'_>) -> CgiRuns {
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
    CgiRuns::Folder {
        dir: dir.unwrap_or_default(),
        index,
        interpreters,
    }
}

/// Programs that answer for a folder.
pub(super) fn index(section: &Section, faults: &mut Faults<'_>) -> Vec<String> {
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
            &["index", "interpreters", "pass_authorization"],
            "remove it: a command is not told of the request",
        ),
        (false, true) => (
            &["index", "output", "parameters"],
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

pub(super) fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("/")).to_path_buf()
}

/// Config texts are UTF-8, and so are paths made of them.
pub(super) fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
