//! `hob status`: the state of the running hob, as tables for people and as JSON.

mod cache;
mod certificates;
mod overall;
mod programs;

use serde_json::Value;

use crate::args::{StatusOptions, Surroundings};
use crate::control;
use crate::facts::Facts;
use crate::{Refusal, escape, output};

/// How a part of the state is written for people, on a terminal of some width.
type Written = fn(Facts<'_>, Option<usize>) -> String;

/// Shows the state, or a part of it.
pub(crate) fn run(options: &StatusOptions, surroundings: &Surroundings) -> Result<(), Refusal> {
    let state = control::hob(&options.control, surroundings)?.get("/v1/status")?;
    let parts: [(bool, &str, Written); 3] = [
        (options.cache, "cache", cache::text),
        (options.certificates, "certificates", certificates::text),
        (options.programs, "programs", programs::text),
    ];
    let part = parts.into_iter().find(|(is_wanted, ..)| *is_wanted);
    let (shown, written) = match part {
        Some((_, name, written)) => (state.get(name).cloned().unwrap_or(Value::Null), written),
        None => (state, overall::text as Written),
    };
    if options.control.json {
        output::line(&escape::json(&shown));
    } else {
        output::write(&written(Facts(&shown), output::width()));
    }
    Ok(())
}

/// Names and what they stand for, a line each, the names as wide as the widest.
fn pairs(pairs: &[(&str, Option<String>)]) -> String {
    let wide = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let known = pairs
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)));
    known
        .map(|(name, value)| format!("{name:<wide$}  {}\n", escape::line(value)))
        .collect()
}
