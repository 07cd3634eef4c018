//! `hob cost`: where the time of one request goes. Makes options of the arguments; everything else
//! is in `hob_cost`. Also its hidden commands.

use std::path::Path;

use hob_cost::{Asked, CostError, Options, Part, Subject, limits};

use crate::Refusal;
use crate::args::{CostOptions, CostPart, Surroundings};
use crate::request::{body, field};

/// Measures and prints what came of it.
pub(crate) fn run(options: CostOptions, surroundings: &Surroundings) -> Result<(), Refusal> {
    if options.schema {
        println!("{:#}", hob_cost::schema());
        return Ok(());
    }
    if options.reference {
        print!("{}", hob_cost::reference());
        return Ok(());
    }
    let (is_json, html) = (options.json, options.html.clone());
    let report = hob_cost::study(&study(options, surroundings)?).map_err(refusal)?;
    if is_json {
        println!("{}", report.json());
    } else {
        print!("{}", report.table());
    }
    if let Some(path) = html {
        std::fs::write(&path, report.html()).map_err(|error| Refusal {
            code: 1,
            text: format!("--html {}: cannot write it: {error}", path.display()),
        })?;
    }
    match report.failure() {
        Some(text) => Err(Refusal { code: 1, text }),
        None => Ok(()),
    }
}

/// Becomes the hob that is measured.
pub(crate) fn run_serve(
    parent: u32,
    config: &Path,
    control: &Path,
    surroundings: &Surroundings,
) -> Result<(), Refusal> {
    let error = hob_cost::serve(&surroundings.program, parent, config, control);
    Err(refusal(error))
}

/// Starts programs with nothing around them.
pub(crate) fn run_bare() -> Result<(), Refusal> {
    hob_cost::bare().map_err(refusal)
}

fn study(options: CostOptions, surroundings: &Surroundings) -> Result<Options, Refusal> {
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
    let asked = is_told.then_some(Asked {
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
    Ok(Options {
        program: surroundings.program.clone(),
        search: hob_server::config::PATH.to_owned(),
        subject: match options.subject {
            None => Subject::Echo,
            Some(subject) => match subject.to_str().filter(|text| text.contains("://")) {
                Some(url) => Subject::Url(url.to_owned()),
                None => Subject::Script(subject),
            },
        },
        asked,
        pid: options.pid,
        parts: options.part.iter().flat_map(|part| parts(*part)).collect(),
        count: options.count,
        rate: options.rate,
    })
}

fn parts(part: CostPart) -> Vec<Part> {
    match part {
        CostPart::Ladder => vec![Part::Ladder],
        CostPart::Stages => vec![Part::Stages],
        CostPart::Bare => vec![Part::Bare],
        CostPart::Growth => vec![Part::Growth],
        CostPart::Burst => vec![Part::Burst],
        CostPart::Wire => vec![Part::Wire],
        CostPart::All => vec![
            Part::Ladder,
            Part::Stages,
            Part::Bare,
            Part::Growth,
            Part::Burst,
            Part::Wire,
        ],
    }
}

fn refusal(error: CostError) -> Refusal {
    let code = match error {
        CostError::Arguments(_) => 2,
        _ => 1,
    };
    Refusal {
        code,
        text: error.to_string(),
    }
}
