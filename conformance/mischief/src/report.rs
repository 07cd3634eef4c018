//! What a run of mischief tells: a table of acts and outcomes, what was not to be expected and how
//! to repeat it, and how those fared who behaved.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use hob_load::page::{count, time};
use hob_load::parts::{RequestTally, failures, times};
use hob_load::{LoadError, Protocol};
use serde_json::{Value, json};

use super::act::{Act, Fingerprint};
use super::result::{ActResult, Beside, FORMAT, MischiefResult, OutcomeCount};
use super::run::Exercise;
use super::seen::Seen;
use crate::limits::ACTOR_COUNT;

/// Unexpected outcomes that a table lists; JSON has all.
const LISTED_COUNT_MAX: usize = 50;
/// What --timeout is when nobody says so.
const USUAL_TIMEOUT: Duration = Duration::from_secs(10);

/// An act, and what came of it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) act: Act,
    pub(crate) seen: Seen,
    /// What is wrong with that.
    pub(crate) fault: Option<String>,
    pub(crate) took: Duration,
}

/// The result of a run of mischief.
#[derive(Debug)]
pub struct Exercised {
    pub(crate) exercise: Exercise,
    pub(crate) address: String,
    /// The status of requests that behave.
    pub(crate) usual: u16,
    /// In order of their numbers.
    pub(crate) done: Vec<Done>,
    pub(crate) elapsed: Duration,
    /// Requests that behaved, beside the acts.
    pub(crate) beside: RequestTally,
    /// Why they came to an end before the acts did.
    pub(crate) beside_fault: Option<LoadError>,
    /// The status when all was over.
    pub(crate) afterwards: Result<u16, LoadError>,
    pub(crate) is_interrupted: bool,
}

impl Exercised {
    /// Was there an outcome that is not allowed, a request beside that failed, or no answer
    /// afterwards?
    pub fn has_failed(&self) -> bool {
        self.faults().next().is_some()
            || self.beside.failures.count() > 0
            || self.beside_fault.is_some()
            || self.afterwards_fault().is_some()
    }

    /// The result for people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = self.write_setting(&mut text);
        let _ = self.write_outcomes(&mut text);
        let _ = self.write_faults(&mut text);
        let _ = self.write_beside(&mut text);
        text
    }

    /// Every act, one a line, in order of their numbers.
    pub fn sequence(&self) -> String {
        let line = |one: &Done| {
            let (act, outcome) = (&one.act, one.seen.text());
            let (number, name, detail) = (act.number, act.name, &act.script.detail);
            format!("act {number}: {name}: {detail}: {outcome}\n")
        };
        self.done.iter().map(line).collect()
    }

    /// The result for machines, as [`crate::schema`] describes it.
    pub fn json(&self) -> Value {
        json!(self.result())
    }

    fn result(&self) -> MischiefResult {
        let acts = self.done.iter().map(|one| ActResult {
            number: one.act.number,
            name: one.act.name,
            detail: one.act.script.detail.clone(),
            outcome: one.seen.text(),
            fault: one.fault.clone(),
            took_ms: one.took.as_secs_f64() * 1e3,
            repeat: self.repeat(one),
        });
        let outcomes = self.outcomes().into_iter();
        let outcomes = outcomes.map(|((act, outcome), (count, unexpected))| OutcomeCount {
            act,
            outcome,
            count,
            unexpected,
        });
        MischiefResult {
            format: FORMAT,
            url: self.exercise.url.text.clone(),
            address: self.address.clone(),
            protocol: self.exercise.protocol.name(),
            seed: self.exercise.seed,
            act: self.exercise.only,
            sequence: format!("{:016x}", self.fingerprint()),
            usual_status: self.usual,
            elapsed_s: self.elapsed.as_secs_f64(),
            interrupted: self.is_interrupted,
            acts: acts.collect(),
            outcomes: outcomes.collect(),
            unexpected: self.faults().count() as u64,
            beside: Beside {
                due: self.beside.due,
                good: self.beside.good,
                failed: self.beside.failures.count(),
                failures: failures(&self.beside.failures),
                response: times(&self.beside.response),
                fault: self.beside_fault.as_ref().map(LoadError::to_string),
            },
            afterwards: self.afterwards.as_ref().ok().copied(),
            passed: !self.has_failed(),
        }
    }

    fn faults(&self) -> impl Iterator<Item = (&Done, &String)> {
        let done = self.done.iter();
        done.filter_map(|one| one.fault.as_ref().map(|fault| (one, fault)))
    }

    fn afterwards_fault(&self) -> Option<String> {
        match &self.afterwards {
            Ok(status) if *status == self.usual => None,
            Ok(status) => Some(format!("answers with {status}, before with {}", self.usual)),
            Err(error) => Some(error.to_string()),
        }
    }

    fn fingerprint(&self) -> u64 {
        Fingerprint::of(self.done.iter().map(|one| &one.act))
    }

    /// How often each act had each outcome, and how often that was not allowed.
    fn outcomes(&self) -> BTreeMap<(&'static str, String), (u64, u64)> {
        let mut outcomes = BTreeMap::new();
        for one in &self.done {
            let entry = outcomes.entry((one.act.name, one.seen.kind()));
            let (times, faults) = entry.or_insert((0, 0));
            *times += 1;
            *faults += u64::from(one.fault.is_some());
        }
        outcomes
    }

    /// The command that repeats one act.
    fn repeat(&self, one: &Done) -> String {
        let exercise = &self.exercise;
        let http = match exercise.protocol {
            Protocol::H1 => "",
            Protocol::H2 => " --http 2",
            Protocol::H3 => " --http 3",
        };
        let unix = exercise.unix.as_ref().map_or_else(String::new, |path| {
            format!(" --unix {}", quoted(&path.to_string_lossy()))
        });
        let owned = if exercise.is_owned {
            " --i-own-this-host"
        } else {
            ""
        };
        let timeout = match exercise.timeout {
            USUAL_TIMEOUT => String::new(),
            other if other.subsec_nanos() == 0 => format!(" --timeout {}s", other.as_secs()),
            other => format!(" --timeout {}us", other.as_micros()),
        };
        let (url, seed, act) = (quoted(&exercise.url.text), exercise.seed, one.act.number);
        format!(
            "cargo run -qp hob-mischief -- {url}{http}{unix} --seed {seed} --act {act}{timeout}{owned}"
        )
    }

    fn write_setting(&self, text: &mut String) -> std::fmt::Result {
        let exercise = &self.exercise;
        writeln!(
            text,
            "{} at {}, {}",
            exercise.url.text,
            self.address,
            exercise.protocol.title()
        )?;
        let how_many = match self.done.len() {
            1 => "1 act".to_owned(),
            many => format!("{} acts", count(many as u64)),
        };
        let early = match (self.is_interrupted, self.done.len() as u64) {
            (true, _) => ", then interrupted",
            (false, made) if exercise.only.is_none() && made < exercise.count => {
                ", then time was up"
            }
            _ => "",
        };
        writeln!(
            text,
            "{how_many} of mischief from seed {} (sequence {:016x}), {ACTOR_COUNT} at a time, in {:.1} s{early}\n",
            exercise.seed,
            self.fingerprint(),
            self.elapsed.as_secs_f64()
        )
    }

    fn write_outcomes(&self, text: &mut String) -> std::fmt::Result {
        let outcomes = self.outcomes();
        let width = outcomes
            .keys()
            .map(|(name, _)| name.len())
            .max()
            .unwrap_or(0);
        let width = width.max("act".len());
        writeln!(text, "{:<width$}  times  outcomes", "act")?;
        let mut rest: Vec<_> = outcomes.into_iter().collect();
        while let Some(((name, _), _)) = rest.first() {
            let name = *name;
            let own = rest
                .iter()
                .take_while(|((other, _), _)| *other == name)
                .count();
            let own: Vec<_> = rest.drain(..own).collect();
            let times: u64 = own.iter().map(|(_, (times, _))| times).sum();
            let each = own.iter().map(|((_, outcome), (times, faults))| {
                let mark = if *faults > 0 { " (!)" } else { "" };
                format!("{outcome}: {times}{mark}")
            });
            let each = each.collect::<Vec<_>>().join(", ");
            writeln!(text, "{name:<width$}  {times:>5}  {each}")?;
        }
        Ok(())
    }

    fn write_faults(&self, text: &mut String) -> std::fmt::Result {
        let all = self.faults().count();
        if all == 0 {
            return writeln!(text, "\nevery outcome is one that is allowed");
        }
        writeln!(text, "\nunexpected: {}", count(all as u64))?;
        for (one, fault) in self.faults().take(LISTED_COUNT_MAX) {
            let act = &one.act;
            let (number, name, detail) = (act.number, act.name, &act.script.detail);
            let outcome = one.seen.text();
            writeln!(text, "  act {number}, {name}: {detail}: {outcome}: {fault}")?;
            writeln!(text, "    {}", self.repeat(one))?;
        }
        Ok(())
    }

    fn write_beside(&self, text: &mut String) -> std::fmt::Result {
        let tally = &self.beside;
        let failed = tally.failures.count();
        write!(
            text,
            "\nbeside      {} asked, {} answered rightly, {} failed",
            count(tally.due),
            count(tally.good),
            count(failed)
        )?;
        if tally.response.count() > 0 {
            let percent = |percent| time(tally.response.percentile(percent) as f64);
            let most = time(tally.response.max() as f64);
            write!(
                text,
                "; p50 {}, p99 {}, max {most}",
                percent(50.0),
                percent(99.0)
            )?;
        }
        writeln!(text)?;
        for (kind, times, first) in tally.failures.all() {
            writeln!(text, "            {kind}: {}, first: {first}", count(times))?;
        }
        if let Some(fault) = &self.beside_fault {
            writeln!(text, "            {fault}")?;
        }
        match self.afterwards_fault() {
            None => writeln!(text, "afterwards  answers with {} as before", self.usual)?,
            Some(fault) => writeln!(text, "afterwards  {fault}")?,
        }
        let verdict = if self.has_failed() {
            "FAILED"
        } else {
            "passed"
        };
        writeln!(text, "{verdict}")
    }
}

/// A URL as a shell takes it.
fn quoted(url: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/.-_~%+=,@".contains(&byte);
    match url.bytes().all(is_plain) {
        true => url.to_owned(),
        false => format!("'{}'", url.replace('\'', "'\\''")),
    }
}
