//! `hob cost`: where the time of one request goes. Makes options of the arguments; everything else
//! is in `hob_cost`. Also its hidden commands.

use std::path::{Path, PathBuf};

use hob_cost::{
    CostError, MeasuredRequest, ScriptSettings, StudyOptions, StudyPart, StudySubject, limits,
};
use hob_server::config::{self, ApplicationKind, CgiRuns, ConfigSources, ResidentRuns, SCHEMA};

use crate::args::{CostOptions, CostPart, Surroundings};
use crate::request::{body, field};
use crate::{CommandFailure, output};

/// Measures and prints what came of it.
pub(crate) fn run(options: CostOptions, surroundings: &Surroundings) -> Result<(), CommandFailure> {
    if options.schema {
        output::line(&format!("{:#}", hob_cost::schema()));
        return Ok(());
    }
    if options.reference {
        output::write(&hob_cost::reference());
        return Ok(());
    }
    let (is_json, html) = (options.json, options.html.clone());
    let report = hob_cost::study(&study(options, surroundings)?).map_err(refusal)?;
    if is_json {
        output::line(&report.json().to_string());
    } else {
        output::write(&report.table());
    }
    if let Some(path) = html {
        std::fs::write(&path, report.html()).map_err(|error| CommandFailure {
            code: 1,
            text: format!("--html {}: cannot write it: {error}", path.display()),
        })?;
    }
    match report.failure() {
        Some(text) => Err(CommandFailure { code: 1, text }),
        None => Ok(()),
    }
}

/// Becomes the hob that is measured.
pub(crate) fn run_serve(
    parent: u32,
    config: &Path,
    control: &Path,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let error = hob_cost::serve(&surroundings.program, parent, config, control);
    Err(refusal(error))
}

/// Starts programs with nothing around them.
pub(crate) fn run_bare() -> Result<(), CommandFailure> {
    hob_cost::bare().map_err(refusal)
}

fn study(
    options: CostOptions,
    surroundings: &Surroundings,
) -> Result<StudyOptions, CommandFailure> {
    let body = options
        .body
        .as_deref()
        .map(|path| body(path, limits::BODY_BYTES_MAX as u64))
        .transpose()?;
    let is_told = options.method.is_some()
        || options.query.is_some()
        || body.is_some()
        || options.insecure
        || !options.header.is_empty();
    let asked = is_told.then_some(MeasuredRequest {
        method: match (options.method, &body) {
            (Some(method), _) => method,
            (None, Some(_)) => "POST".to_owned(),
            (None, None) => "GET".to_owned(),
        },
        fields: options
            .header
            .iter()
            .map(|text| field(text))
            .collect::<Result<_, _>>()?,
        query: options.query,
        body,
        is_insecure: options.insecure,
    });
    let of_route = match &options.route {
        None => OfRoute::default(),
        Some(route) => of_route(route, &options.config)?,
    };
    Ok(StudyOptions {
        program: surroundings.program.clone(),
        search: hob_server::config::PATH.to_owned(),
        settings: of_route.settings,
        subject: match options.subject.or(of_route.script) {
            None if options.route.is_some() => {
                return Err(wrong(
                    "the route does not say which script: name the one to measure".to_owned(),
                ));
            }
            None => StudySubject::Echo,
            Some(subject) => match subject.to_str().filter(|text| text.contains("://")) {
                Some(url) => StudySubject::Url(url.to_owned()),
                None => StudySubject::Script(subject),
            },
        },
        asked,
        pid: options.pid,
        parts: options.part.iter().flat_map(|part| parts(*part)).collect(),
        count: options.count,
        rate: options.rate,
    })
}

/// What a route says of the script it runs.
#[derive(Default)]
struct OfRoute {
    settings: ScriptSettings,
    /// The script, where the route has one.
    script: Option<PathBuf>,
}

/// The settings of the first route with this path, as the config has it, or without its `/*`.
fn of_route(wanted: &str, file: &Path) -> Result<OfRoute, CommandFailure> {
    let sources = ConfigSources::read(&SCHEMA, file, &Surroundings::variable);
    let loaded = sources.and_then(|sources| config::load(&sources));
    let (config, _) = loaded.map_err(|errors| wrong(errors.to_string()))?;
    let plain = |path: &str| path.trim_end_matches('*').trim_end_matches('/').to_owned();
    let mut routes = config.sites.iter().flat_map(|site| &site.routes);
    let is_it = |path: &str| path == wanted || plain(path) == plain(wanted);
    let Some(route) = routes.find(|route| is_it(&route.path)) else {
        let all = config.sites.iter().flat_map(|site| &site.routes);
        let all: Vec<&str> = all.map(|route| route.path.as_str()).collect();
        let text = format!(
            "{} has no route {wanted}; it has {}",
            file.display(),
            all.join(", ")
        );
        return Err(wrong(text));
    };
    let (program, preload, script) = match (route.handler.cgi(), route.handler.resident()) {
        (Some(cgi), _) => {
            let preload = cgi.warm.as_ref().map(|warm| warm.preload.clone());
            let script = match &cgi.runs {
                CgiRuns::Script { file, .. } => Some(file.clone()),
                _ => None,
            };
            (cgi.program, preload.unwrap_or_default(), script)
        }
        (None, Some(resident)) => {
            let script = match &resident.runs {
                ResidentRuns::Hosted {
                    host: ApplicationKind::Python | ApplicationKind::Perl,
                    what,
                    ..
                } => Some(PathBuf::from(what)),
                _ => None,
            };
            (resident.program, Vec::new(), script)
        }
        _ => return Err(wrong(format!("the route {} runs no program", route.path))),
    };
    let env = config.programs.get(program).map(|one| one.env.clone());
    let env = env.unwrap_or_default();
    Ok(OfRoute {
        settings: ScriptSettings { env, preload },
        script,
    })
}

fn wrong(text: String) -> CommandFailure {
    CommandFailure { code: 2, text }
}

fn parts(part: CostPart) -> Vec<StudyPart> {
    match part {
        CostPart::Ladder => vec![StudyPart::Ladder],
        CostPart::Stages => vec![StudyPart::Stages],
        CostPart::Bare => vec![StudyPart::Bare],
        CostPart::Growth => vec![StudyPart::Growth],
        CostPart::Burst => vec![StudyPart::Burst],
        CostPart::Wire => vec![StudyPart::Wire],
        CostPart::All => vec![
            StudyPart::Ladder,
            StudyPart::Stages,
            StudyPart::Bare,
            StudyPart::Growth,
            StudyPart::Burst,
            StudyPart::Wire,
        ],
    }
}

fn refusal(error: CostError) -> CommandFailure {
    let code = match error {
        CostError::Arguments(_) => 2,
        _ => 1,
    };
    CommandFailure {
        code,
        text: error.to_string(),
    }
}
