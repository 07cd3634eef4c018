//! A handler as the config has it: folders opened, names of programs looked up, patterns compiled.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::handle::cgi::captured::CapturedPrograms;
use crate::handle::cgi::command::RouteCommand;
use crate::handle::cgi::find::{Allowed, Interpreter, ProgramFolder, interpreter_of};
use crate::handle::cgi::{Cgi, RouteProgram, Runs};
use crate::handle::config::program::resolve;
use crate::handle::config::{self, Argument, CgiRuns, ProgramConfig, parameter_pattern};
use crate::handle::files::open::Root;
use crate::handle::script::build::half_close;
use crate::handle::script::stderr::StderrRateLimit;
use crate::handle::script::used::{RouteScripts, Scripts};
use crate::handle::warm::{self, RouteHosts};
use crate::route::pattern::Pattern;
use crate::route::template::{CapturedPath, TemplateError};
use crate::serve::ServerState;
use crate::serve::captured::Captured;
use hob_config::AccountRule;
use hob_keeper::process::{ProgramRef, Strings};

/// Where a handler answers.
pub struct On<'a> {
    /// Its site's name.
    pub site: &'a str,
    /// Its route.
    pub route: &'a config::Route,
    /// The route's pattern.
    pub pattern: &'a Pattern,
    /// The folder of programs, for settings that have one; where that has captures, the folder
    /// before the first of them.
    pub root: Option<Arc<Root>>,
    /// So many folders are kept open that captures give.
    pub roots_max: usize,
}

/// Makes a handler of its settings. May wait for a disk.
///
/// # Errors
/// What is not there, or not as it should be.
pub fn build(
    settings: &config::Cgi,
    on: On<'_>,
    (program, reference): (&ProgramConfig, ProgramRef),
    shared: &ServerState,
) -> Result<Cgi, String> {
    let (environment, set_names) = environment(program)?;
    let runs = runs(settings, &on, program, shared)?;
    let warm = forked_from(settings, (program, reference), shared)?;
    Ok(Cgi {
        warm,
        id: shared.handler_id(format!("cgi {settings:?}")),
        way: shared.handler_id(way(settings, program)),
        runs,
        program: reference,
        environment,
        set_names,
        document_root: bytes(&settings.document_root),
        gate: shared.gate(
            &gate_name(settings, on.route),
            program_name(settings, on.route),
            (settings.limits.concurrent, settings.limits.queue),
        ),
        scripts: scripts(settings, &shared.scripts, (on.site, on.route)),
        pace: StderrRateLimit::default(),
        half_close: half_close(on.route),
        settings: settings.clone(),
    })
}

/// What runs, with folders opened and names of programs looked up.
fn runs(
    settings: &config::Cgi,
    on: &On<'_>,
    program: &ProgramConfig,
    shared: &ServerState,
) -> Result<Runs, String> {
    let (path, account) = (program.path(), program.account.as_ref());
    Ok(match &settings.runs {
        CgiRuns::Folder {
            dir,
            captured: None,
            index,
            symlinks_to,
            interpreters,
        } => {
            let Some(root) = on.root.clone() else {
                return Err(format!("the folder {} is not open", dir.display()));
            };
            Runs::Folder(ProgramFolder {
                pool: shared.pool.for_lane(root.lane()),
                root,
                index: index.clone(),
                places: [dir]
                    .into_iter()
                    .chain(symlinks_to)
                    .map(|place| Allowed::of(place))
                    .collect(),
                interpreters: resolved(interpreters, path)?,
                is_captured: false,
            })
        }
        CgiRuns::Folder {
            captured: Some(captured),
            index,
            interpreters,
            ..
        } => {
            let interpreters = resolved(interpreters, path)?;
            captured_runs(captured, index, interpreters, (on, account), shared)?
        }
        CgiRuns::Script { file, interpreters } => {
            let file = file.as_os_str().as_bytes().to_vec();
            let mut interpreters = resolved(interpreters, path)?;
            let interpreter = interpreter_of(&interpreters, &file);
            Runs::Script(RouteProgram {
                interpreter: interpreter.map(|index| interpreters.swap_remove(index)),
                file,
                splits_path: !on.pattern.is_one_path(),
            })
        }
        CgiRuns::Command {
            dir,
            arguments,
            output,
            parameters,
        } => {
            let Some(Argument::Text(name)) = arguments.first() else {
                return Err("the command has no name".to_owned());
            };
            let compiled = parameters.iter().map(|(name, pattern)| {
                let pattern = parameter_pattern(pattern).map_err(|error| error.to_string())?;
                Ok::<_, String>((name.clone(), pattern))
            });
            Runs::Command(RouteCommand {
                program: bytes(&resolve(name, path)?),
                arguments: arguments.clone(),
                parameters: compiled.collect::<Result<_, _>>()?,
                dir: bytes(dir),
                output: output.clone(),
            })
        }
    })
}

/// Programs in folders that captures give.
fn captured_runs(
    captured: &CapturedPath,
    index: &[String],
    interpreters: Vec<Interpreter>,
    (on, account): (&On<'_>, Option<&AccountRule>),
    shared: &ServerState,
) -> Result<Runs, String> {
    let template = captured.bind(on.pattern);
    let template = template.map_err(|fault| TemplateError { at: 0, fault }.to_string())?;
    let Some(fixed) = on.root.clone() else {
        return Err(format!(
            "the folder {} is not open",
            captured.fixed.display()
        ));
    };
    Ok(Runs::Captured(Arc::new(CapturedPrograms {
        pool: shared.pool.for_lane(fixed.lane()),
        folders: Captured::new(template, fixed, on.roots_max),
        index: index.to_vec(),
        interpreters,
        account: account.cloned(),
    })))
}

/// What its processes are forked from, when they are.
fn forked_from(
    settings: &config::Cgi,
    (program, reference): (&ProgramConfig, ProgramRef),
    shared: &ServerState,
) -> Result<Option<RouteHosts>, String> {
    let Some(warm) = &settings.warm else {
        return Ok(None);
    };
    let interpreter = bytes(&resolve(&warm.interpreter, program.path())?);
    let dir = match &settings.runs {
        CgiRuns::Folder { dir, .. } | CgiRuns::Command { dir, .. } => dir,
        CgiRuns::Script { file, .. } => file.parent().unwrap_or(Path::new("/")),
    };
    warm::build::build(warm, &interpreter, dir, (program, reference), shared).map(Some)
}

/// How scripts are run. The program's number in the config is no part of it: other routes move it.
fn way(settings: &config::Cgi, program: &ProgramConfig) -> String {
    let (runs, warm) = (&settings.runs, &settings.warm);
    format!("way {runs:?} {warm:?} {program:?}")
}

/// Two routes that run the same program have a gate each, and a route keeps its own over a reload.
fn gate_name(settings: &config::Cgi, route: &config::Route) -> String {
    format!("{} {:?}", route.label(), settings.runs)
}

/// Scripts of two routes are apart, and so are those of a route before and after it became warm.
fn scripts(
    settings: &config::Cgi,
    all: &Scripts,
    (site, route): (&str, &config::Route),
) -> Arc<RouteScripts> {
    all.route(&format!("{site} {}", program_name(settings, route)))
}

/// What people call who runs there.
fn program_name(settings: &config::Cgi, route: &config::Route) -> String {
    let how = if settings.warm.is_some() {
        "warm"
    } else {
        "cgi"
    };
    format!("{} {how}", route.label())
}

/// Variables that every run has, and their names.
fn environment(program: &ProgramConfig) -> Result<(Strings, Vec<String>), String> {
    let mut environment = Strings::new();
    let mut names = Vec::new();
    for (name, value) in program.variables() {
        push(&mut environment, name, value)?;
        names.push(name.to_owned());
    }
    names.sort_unstable();
    Ok((environment, names))
}

fn push(environment: &mut Strings, name: &str, value: &str) -> Result<(), String> {
    let pushed = environment.push_pair(name.as_bytes(), value.as_bytes());
    pushed.map_err(|error| format!("env {name:?}: {error}"))
}

fn resolved(
    interpreters: &[(String, Vec<String>)],
    path: &str,
) -> Result<Vec<Interpreter>, String> {
    interpreters
        .iter()
        .map(|(ending, words)| {
            let mut words: Vec<Vec<u8>> =
                words.iter().map(|word| word.clone().into_bytes()).collect();
            if let Some(first) = words.first_mut() {
                *first = bytes(&resolve(&String::from_utf8_lossy(first), path)?);
            }
            Ok(Interpreter {
                ending: ending.clone(),
                words,
            })
        })
        .collect()
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
