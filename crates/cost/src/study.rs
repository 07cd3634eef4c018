//! A study from what was asked to its report.

use std::path::PathBuf;

use hob_load::{Environment, Url};

use crate::advice;
use crate::echo::{self, EchoKind};
use crate::error::CostError;
use crate::experiment;
use crate::growth;
use crate::ladder::{self, RungMeasurement};
use crate::limits::{BODY_BYTES_MAX, COUNT_MAX};
use crate::load::MeasuredRequest;
use crate::private::{Private, TemporaryFolder};
use crate::processes::{resolution_us, servers};
use crate::report::StudyReport;
use crate::rungs::{self, Rung};
use crate::script::{MeasuredScript, ScriptLanguage, ScriptSettings};
use crate::site::{self, LISTENERS, PLAIN, Records, SECURE};
use crate::stages::{self, Stages};
use crate::stop::InterruptFlag;
use crate::wire::{self, WireCosts};

/// A part of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StudyPart {
    /// Every way of running the script.
    Ladder,
    /// Where one request goes.
    Stages,
    /// Processes made with no server around them.
    Bare,
    /// The script as cgi with a server of 10 MB, 100 MB and 1 GB.
    Growth,
    /// 200 starts at once.
    Burst,
    /// Packets, bytes, round trips and system calls, for each way of connecting.
    Wire,
}

impl StudyPart {
    /// As it is asked for.
    pub(crate) fn word(self) -> &'static str {
        match self {
            StudyPart::Ladder => "ladder",
            StudyPart::Stages => "stages",
            StudyPart::Bare => "bare",
            StudyPart::Growth => "growth",
            StudyPart::Burst => "burst",
            StudyPart::Wire => "wire",
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StudySubject {
    /// The built-in echo.
    Echo,
    /// A script.
    Script(PathBuf),
    /// Whatever answers there: `http://HOST[:PORT]/PATH`, or `https`.
    Url(String),
}

/// What is to be measured, and how.
#[derive(Debug, Clone)]
pub struct StudyOptions {
    /// The hob that is started.
    pub program: PathBuf,
    /// Folders in which programs are looked for.
    pub search: String,
    /// What is measured.
    pub subject: StudySubject,
    /// How a script runs, as its route has it.
    pub settings: ScriptSettings,
    /// What it is asked; what is usual for it where nothing is said.
    pub asked: Option<MeasuredRequest>,
    /// A process of a URL's server, whose system calls are counted.
    pub pid: Option<u32>,
    /// What is measured; what is usual where nothing is named.
    pub parts: Vec<StudyPart>,
    /// Requests of each kind.
    pub count: u64,
    /// Requests per second for which savings are told.
    pub rate: f64,
}

/// Measures. Interrupted by SIGINT or SIGTERM, it ends what it started and reports nothing.
pub fn study(options: &StudyOptions) -> Result<StudyReport, CostError> {
    check(options)?;
    let stop = InterruptFlag::listen()?;
    let folder = TemporaryFolder::new()?;
    let script = match &options.subject {
        StudySubject::Url(url) => return of_url(options, &folder, url, &stop),
        StudySubject::Script(path) => Some(MeasuredScript {
            settings: options.settings.clone(),
            ..MeasuredScript::look(path)?
        }),
        StudySubject::Echo => None,
    };
    let asked = match (&options.asked, &script) {
        (Some(asked), _) => asked.clone(),
        (None, None) => echo::asked(),
        (None, Some(_)) => MeasuredRequest::get(),
    };
    let rungs = rungs_of(options, &folder, script.as_ref(), &asked)?;
    let config = site::config(&folder, &rungs, None)?;
    let has = |part: StudyPart| options.has(part);
    let mut outcome = StudyOutcome::default();
    let around = StudyContext {
        options,
        folder: &folder,
        script: script.as_ref(),
        rungs: &rungs,
        asked: &asked,
        stop: &stop,
    };
    let first = around.measured(&config, &mut outcome)?;
    let exchanges = outcome.part(has(StudyPart::Bare).then_some(StudyPart::Bare), || {
        experiment::measure(&options.program, &folder, options.count, &stop)
    })?;
    let is_cgi = |rung: &Rung| rung.handler == "cgi" && rung.route.is_ok();
    let position = rungs.iter().position(is_cgi);
    let subject = position.map(|index| growth::GrowthSubject {
        program: &options.program,
        folder: &folder,
        rungs: &rungs[..=index],
        index,
        asked: &asked,
        count: options.count,
        stop: &stop,
    });
    let (mut grown, mut bursts) = (None, None);
    if let Some(subject) = &subject {
        let part = |part: StudyPart| has(part).then_some(part);
        grown = outcome.part(part(StudyPart::Growth), || growth::growth(subject))?;
        bursts = outcome.part(part(StudyPart::Burst), || growth::burst(subject))?;
    }
    stop.check()?;
    stop.tell("");
    let sentence = sentence(options, script.as_ref(), &first.rungs);
    Ok(StudyReport {
        subject: match &script {
            Some(script) => script.path.display().to_string(),
            None => "the built-in echo".to_owned(),
        },
        asked,
        count: options.count,
        rate: options.rate,
        rungs: first.rungs,
        stages: first.stages,
        exchanges: exchanges.unwrap_or_default(),
        grown: grown.unwrap_or_default(),
        bursts: bursts.unwrap_or_default(),
        wire: first.wire,
        failed: outcome.failed,
        environment: Environment::look(),
        sentence,
    })
}

/// What moving the script, or the echo, would save.
fn sentence(
    options: &StudyOptions,
    script: Option<&MeasuredScript>,
    rungs: &[RungMeasurement],
) -> String {
    let scale = advice::Scale {
        rate: options.rate,
        resolution_us: resolution_us(options.count),
    };
    match script {
        _ if rungs.is_empty() => String::new(),
        Some(script) => advice::sentence(&script.name(), rungs, scale),
        None => advice::echo_sentence(rungs, scale),
    }
}

/// What a URL costs on its way.
fn of_url(
    options: &StudyOptions,
    folder: &TemporaryFolder,
    url: &str,
    stop: &InterruptFlag,
) -> Result<StudyReport, CostError> {
    if options.parts.iter().any(|part| *part != StudyPart::Wire) {
        return Err(CostError::Arguments(
            "of a URL only the part wire can be measured; name a script for the others".to_owned(),
        ));
    }
    let parsed: Url = url.parse().map_err(CostError::Arguments)?;
    let (is_secure, ..) = parsed.origin();
    let asked = options.asked.clone().unwrap_or_else(MeasuredRequest::get);
    let there = Some(url.to_owned());
    let wire = wire::measure(&wire::Target {
        clear: there.clone().filter(|_| !is_secure),
        secure: there.filter(|_| is_secure),
        asked: &asked,
        count: options.count,
        pids: options.pid.map(servers).unwrap_or_default(),
        folder,
        search: &options.search,
        stop,
    })?;
    stop.tell("");
    Ok(StudyReport {
        subject: url.to_owned(),
        asked,
        count: options.count,
        rate: options.rate,
        rungs: Vec::new(),
        stages: None,
        exchanges: Vec::new(),
        grown: Vec::new(),
        bursts: Vec::new(),
        failed: Vec::new(),
        environment: Environment::look(),
        sentence: advice::of_wire(&wire),
        wire: Some(wire),
    })
}

impl StudyOptions {
    fn has(&self, part: StudyPart) -> bool {
        match (self.parts.is_empty(), part) {
            (false, _) => self.parts.contains(&part),
            (true, StudyPart::Ladder | StudyPart::Stages) => true,
            (true, StudyPart::Bare) => self.subject == StudySubject::Echo,
            (true, StudyPart::Growth | StudyPart::Burst | StudyPart::Wire) => false,
        }
    }
}

/// What one hob tells.
struct First {
    rungs: Vec<RungMeasurement>,
    stages: Option<Stages>,
    wire: Option<WireCosts>,
}

/// What is known of the parts so far.
#[derive(Default)]
struct StudyOutcome {
    is_any_finished: bool,
    failed: Vec<(&'static str, String)>,
}

impl StudyOutcome {
    /// Does a part, where it is wanted. Once another is finished, one that fails is named and the
    /// rest goes on.
    fn part<T>(
        &mut self,
        part: Option<StudyPart>,
        measure: impl FnOnce() -> Result<T, CostError>,
    ) -> Result<Option<T>, CostError> {
        let Some(part) = part else { return Ok(None) };
        match measure() {
            Ok(measured) => {
                self.is_any_finished = true;
                Ok(Some(measured))
            }
            Err(error) if !self.is_any_finished || matches!(error, CostError::Interrupted) => {
                Err(error)
            }
            Err(error) => {
                self.failed.push((part.word(), error.to_string()));
                Ok(None)
            }
        }
    }
}

/// What parts have in common.
struct StudyContext<'a> {
    options: &'a StudyOptions,
    folder: &'a TemporaryFolder,
    script: Option<&'a MeasuredScript>,
    rungs: &'a [Rung],
    asked: &'a MeasuredRequest,
    stop: &'a InterruptFlag,
}

impl StudyContext<'_> {
    /// Ladder, stages and wire, with a hob that lives as long as this.
    fn measured(&self, config: &str, outcome: &mut StudyOutcome) -> Result<First, CostError> {
        let &StudyContext {
            options,
            folder,
            rungs,
            asked,
            stop,
            ..
        } = self;
        let hob = Private::start(&options.program, folder, config, LISTENERS, stop)?;
        let records = Records::of(folder);
        let wanted = |part: StudyPart| options.has(part).then_some(part);
        let measured = outcome.part(wanted(StudyPart::Ladder), || {
            ladder::measure(&hob, &records, rungs, asked, options.count, stop)
        })?;
        let staged = match options.has(StudyPart::Stages) {
            true => staged(options, folder, self.script, rungs, asked)?,
            false => None,
        };
        let stages = match &staged {
            None => None,
            Some((index, script)) => outcome.part(Some(StudyPart::Stages), || {
                stages::measure(&stages::StageSubject {
                    program: &options.program,
                    folder,
                    hob: &hob,
                    records: &records,
                    script,
                    path: rungs[*index].path(*index),
                    asked,
                    search: &options.search,
                    count: options.count,
                    stop,
                })
            })?,
        };
        let is_possible = |rung: &Rung| rung.route.is_ok();
        let answering = rungs.iter().position(is_possible);
        let wire = match answering {
            None => None,
            Some(index) => outcome.part(wanted(StudyPart::Wire), || {
                let path = rungs[index].path(index);
                wire::measure(&wire::Target {
                    clear: Some(hob.url(PLAIN, &path)),
                    secure: Some(hob.secure_url(SECURE, &path)),
                    asked,
                    count: options.count,
                    pids: vec![hob.family.server],
                    folder,
                    search: &options.search,
                    stop,
                })
            })?,
        };
        Ok(First {
            rungs: measured.unwrap_or_default(),
            stages,
            wire,
        })
    }
}

fn check(options: &StudyOptions) -> Result<(), CostError> {
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
    options: &StudyOptions,
    folder: &TemporaryFolder,
    script: Option<&MeasuredScript>,
    asked: &MeasuredRequest,
) -> Result<Vec<Rung>, CostError> {
    let Some(script) = script else {
        return rungs::of_echo(folder, &options.search, asked, |_| true);
    };
    let mut all = rungs::of_script(script)?;
    let has_resident = all
        .iter()
        .any(|rung| rung.handler == "resident" && rung.route.is_ok());
    if !has_resident {
        let echoes = rungs::of_echo(folder, &options.search, asked, |language| {
            language == script.language
        })?;
        all.extend(echoes.into_iter().filter(|rung| rung.handler == "resident"));
    }
    Ok(all)
}

/// Whose stages are told: the script's, or those of the echo that has most of them.
fn staged(
    options: &StudyOptions,
    folder: &TemporaryFolder,
    script: Option<&MeasuredScript>,
    rungs: &[Rung],
    asked: &MeasuredRequest,
) -> Result<Option<(usize, MeasuredScript)>, CostError> {
    if let Some(script) = script {
        let is_there = rungs.first().is_some_and(|rung| rung.route.is_ok());
        return Ok(is_there.then(|| (0, script.clone())));
    }
    for language in [
        ScriptLanguage::Python,
        ScriptLanguage::Perl,
        ScriptLanguage::Shell,
        ScriptLanguage::Compiled,
    ] {
        let Some(file) = echo::write(folder, language, EchoKind::Cgi, &options.search, asked)?
        else {
            continue;
        };
        let is_it = |rung: &Rung| rung.handler == "cgi" && rung.file == file;
        if let Some(index) = rungs.iter().position(is_it) {
            return Ok(Some((index, MeasuredScript::look(&file)?)));
        }
    }
    Ok(None)
}
