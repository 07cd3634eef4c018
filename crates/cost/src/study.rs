//! A study from what was asked to its report.

use std::path::PathBuf;

use crate::advice;
use crate::echo::{self, Kind};
use crate::error::CostError;
use crate::ladder;
use crate::limits::{BODY_BYTES_MAX, COUNT_MAX};
use crate::load::Asked;
use crate::private::{Folder, Private};
use crate::report::Report;
use crate::rungs::{self, Rung};
use crate::script::{Language, Script};
use crate::site::{self, LISTENERS, Records};
use crate::stages;
use crate::stop::Stop;

/// What is to be measured, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The hob that is started.
    pub program: PathBuf,
    /// Folders in which programs are looked for.
    pub search: String,
    /// The script; the built-in echo where there is none.
    pub script: Option<PathBuf>,
    /// What the script is asked.
    pub asked: Option<Asked>,
    /// Requests of each kind.
    pub count: u64,
    /// Requests per second for which savings are told.
    pub rate: f64,
}

/// Measures. Interrupted by SIGINT or SIGTERM, it ends what it started and reports nothing.
pub fn study(options: &Options) -> Result<Report, CostError> {
    check(options)?;
    let stop = Stop::listen()?;
    let script = options.script.as_deref().map(Script::look).transpose()?;
    let folder = Folder::new()?;
    let asked = match (&options.asked, &script) {
        (Some(asked), _) => asked.clone(),
        (None, None) => echo::asked(),
        (None, Some(_)) => Asked {
            method: "GET".to_owned(),
            fields: Vec::new(),
            query: None,
            body: None,
        },
    };
    let rungs = rungs_of(options, &folder, script.as_ref())?;
    let config = site::config(&folder, &rungs, None)?;
    let hob = Private::start(&options.program, &folder, &config, LISTENERS, &stop)?;
    let records = Records::of(&folder);
    let measured = ladder::measure(&hob, &records, &rungs, &asked, options.count, &stop)?;
    let staged = staged(options, &folder, script.as_ref(), &rungs)?;
    let stages = staged
        .map(|(index, script)| {
            stages::measure(&stages::Subject {
                program: &options.program,
                folder: &folder,
                hob: &hob,
                records: &records,
                script: &script,
                path: rungs[index].path(index),
                asked: &asked,
                search: &options.search,
                count: options.count,
                stop: &stop,
            })
        })
        .transpose()?;
    stop.check()?;
    let sentence = match &script {
        Some(script) => advice::sentence(&script.name(), &measured, options.rate),
        None => advice::echo_sentence(&measured, options.rate),
    };
    Ok(Report {
        subject: match &script {
            Some(script) => script.path.display().to_string(),
            None => "the built-in echo".to_owned(),
        },
        asked,
        count: options.count,
        rate: options.rate,
        rungs: measured,
        stages,
        sentence,
    })
}

fn check(options: &Options) -> Result<(), CostError> {
    let wrong = |text: String| Err(CostError::Arguments(text));
    if !(1..=COUNT_MAX).contains(&options.count) {
        return wrong(format!("requests of each kind: from 1 to {COUNT_MAX}"));
    }
    if !(options.rate.is_finite() && options.rate > 0.0) {
        return wrong("the rate must be more than no request a second".to_owned());
    }
    let body = options.asked.as_ref().and_then(|asked| asked.body.as_ref());
    if body.is_some_and(|body| body.len() > BODY_BYTES_MAX) {
        return wrong(format!("a body has at most {BODY_BYTES_MAX} bytes here"));
    }
    Ok(())
}

/// The rungs of the script, and below it those of an echo that stays, in the same language; or all
/// of the echo.
fn rungs_of(
    options: &Options,
    folder: &Folder,
    script: Option<&Script>,
) -> Result<Vec<Rung>, CostError> {
    let Some(script) = script else {
        return rungs::of_echo(folder, &options.search, |_| true);
    };
    let mut all = rungs::of_script(script)?;
    let has_resident = all
        .iter()
        .any(|rung| rung.handler == "resident" && rung.route.is_ok());
    if !has_resident {
        let echoes = rungs::of_echo(folder, &options.search, |language| {
            language == script.language
        })?;
        all.extend(echoes.into_iter().filter(|rung| rung.handler == "resident"));
    }
    Ok(all)
}

/// Whose stages are told: the script's, or those of the echo that has most of them.
fn staged(
    options: &Options,
    folder: &Folder,
    script: Option<&Script>,
    rungs: &[Rung],
) -> Result<Option<(usize, Script)>, CostError> {
    if let Some(script) = script {
        let is_there = rungs.first().is_some_and(|rung| rung.route.is_ok());
        return Ok(is_there.then(|| (0, script.clone())));
    }
    for language in [
        Language::Python,
        Language::Perl,
        Language::Shell,
        Language::Compiled,
    ] {
        let Some(file) = echo::write(folder, language, Kind::Cgi, &options.search)? else {
            continue;
        };
        let is_it = |rung: &Rung| rung.handler == "cgi" && rung.file == file;
        if let Some(index) = rungs.iter().position(is_it) {
            return Ok(Some((index, Script::look(&file)?)));
        }
    }
    Ok(None)
}
