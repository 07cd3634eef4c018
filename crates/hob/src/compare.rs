//! `hob compare`: servers side by side on this machine. Makes a plan of the arguments; everything
//! else is in `hob_compare`.

use std::path::{Path, PathBuf};

use hob_compare::{CompareError, Plan, Scope, Settings};

use crate::Refusal;
use crate::args::{CompareOptions, Surroundings};

/// Where servers are that are not in everybody's PATH.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Compares, and prints what came of it.
pub(crate) fn run(options: CompareOptions, surroundings: &Surroundings) -> Result<(), Refusal> {
    let (json, html, list) = (options.json.clone(), options.html.clone(), options.list);
    let plan = plan(options, surroundings);
    if list {
        print!("{}", hob_compare::list(&plan).map_err(refusal)?);
        return Ok(());
    }
    // Before minutes are spent on it.
    for path in [&json, &html].into_iter().flatten() {
        write(path, "")?;
    }
    let report = hob_compare::compare(&plan).map_err(refusal)?;
    print!("{}", report.table());
    if let Some(path) = json {
        write(&path, &format!("{:#}\n", report.json()))?;
    }
    if let Some(path) = html {
        write(&path, &report.html())?;
    }
    Ok(())
}

/// The process that holds a server; started by `compare`.
pub(crate) fn run_keeper() -> Result<(), Refusal> {
    hob_compare::keep().map_err(|text| Refusal { code: 1, text })
}

fn plan(options: CompareOptions, surroundings: &Surroundings) -> Plan {
    let folders = Surroundings::program_folders();
    Plan {
        scope: match (options.quick, options.full) {
            (true, _) => Scope::Quick,
            (_, true) => Scope::Full,
            _ => Scope::Usual,
        },
        only: options.only,
        servers: options.servers,
        rivals: options.rival,
        settings: match options.tuned {
            true => Settings::Tuned,
            false => Settings::Usual,
        },
        program: surroundings.program.clone(),
        folders: folders
            .into_iter()
            .chain(SYSTEM_FOLDERS.map(PathBuf::from))
            .collect(),
        temporary: Surroundings::temporary_folder(),
        round: options.round,
        rounds: options.rounds,
    }
}

fn write(path: &Path, text: &str) -> Result<(), Refusal> {
    std::fs::write(path, text).map_err(|error| Refusal {
        code: 1,
        text: format!("cannot write {}: {error}", path.display()),
    })
}

fn refusal(error: CompareError) -> Refusal {
    let code = match error {
        CompareError::Arguments(_) => 2,
        CompareError::Subject(_) | CompareError::System { .. } => 1,
    };
    Refusal {
        code,
        text: error.to_string(),
    }
}
