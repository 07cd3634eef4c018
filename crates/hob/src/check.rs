//! `hob check`: everything that is wrong with a config, without serving it; and what its keys mean.

use std::time::Duration;

use hob_inside::admin::endpoints;
use hob_inside::api::Answers;
use hob_inside::metrics;
use hob_keeper::preflight::{self, Extent, RunningAddresses};
use hob_keeper::servers::servers_of;
use hob_load::layout;
use hob_server::config::{self, ConfigSources, RealDisk, SCHEMA};
use hob_server::handle::script::variables;
use serde_json::Value;

use crate::args::{CheckOptions, ControlOptions, Surroundings};
use crate::{CommandFailure, control, output};

/// Loads the config and says what came of it.
pub(crate) fn run(
    options: &CheckOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    if let Some(key) = &options.explain {
        return explain(key, options.json);
    }
    if let Some(text) = printed(options) {
        output::write(&text);
        return Ok(());
    }
    let running = || running(options, surroundings);
    let extent = Extent {
        opens_control: true,
        runtime: Some(&surroundings.runtime),
        running: Some(&running),
        starts: !options.no_start,
    };
    let loaded = ConfigSources::read(&SCHEMA, &options.config, &Surroundings::variable).and_then(
        |sources| match options.no_machine {
            true => config::load(&sources),
            false => preflight::load(&sources, &RealDisk, &extent),
        },
    );
    let is_ok = loaded.is_ok();
    if options.json {
        let mut answer = match &loaded {
            Ok((_, warnings)) => warnings.to_json(),
            Err(errors) => errors.to_json(),
        };
        answer["ok"] = is_ok.into();
        output::line(&answer.to_string());
    } else {
        match &loaded {
            Ok((_, warnings)) if warnings.is_empty() => {}
            Ok((_, warnings)) => eprintln!("{warnings}"),
            Err(errors) => eprintln!("{errors}"),
        }
        if let Ok((config, _)) = &loaded {
            output::line(&format!("{}: no errors", options.config.display()));
            if let Some(told) = config.unknown_hosts() {
                output::line(told);
            }
        }
    }
    if is_ok {
        Ok(())
    } else {
        Err(CommandFailure {
            code: 2,
            text: String::new(),
        })
    }
}

/// What is printed instead of a check, if anything.
fn printed(options: &CheckOptions) -> Option<String> {
    let texts: [(bool, fn() -> String); 7] = [
        (options.reference, || SCHEMA.reference()),
        (options.variables, variables::reference),
        (options.metrics, metrics::reference),
        (options.endpoints, admin_reference),
        (options.words, || SCHEMA.foreign_words()),
        (options.schema, || format!("{:#}\n", SCHEMA.json())),
        (options.answers, || {
            let schema = layout::schema::<Answers>("answers of the admin API");
            format!("{schema:#}\n")
        }),
    ];
    let mut texts = texts.into_iter();
    texts.find_map(|(is_wanted, text)| is_wanted.then(text))
}

/// The reference page of the admin API: its requests, and the types of their answers.
fn admin_reference() -> String {
    format!(
        "{}\n## Answers\n\nEvery answer is one JSON object of a type below, but for events, which \
         come one by one, and `/metrics`. A field that may be missing is there where it has \
         something to tell. New fields may be added; `hob check --answers` prints the JSON \
         schema.\n\n{}",
        endpoints::reference(),
        layout::types::<Answers>(["answer to", "type"]),
    )
}

/// Addresses of the hob that runs with this config, if one does.
fn running(options: &CheckOptions, surroundings: &Surroundings) -> RunningAddresses {
    let servers = surroundings.runtime.servers();
    let own = servers_of(&servers, &options.config);
    if !own.is_empty() {
        let addresses = own.iter().flat_map(|server| server.addresses.clone());
        return RunningAddresses::Has(addresses.collect());
    }
    // One of another account is known by the control socket that the config names.
    let whose = ControlOptions {
        control: None,
        config: Some(options.config.clone()),
        json: false,
    };
    let asked = control::hob(&whose, surroundings);
    let status = match asked.and_then(|hob| hob.with_patience(PATIENCE).get("/v1/status")) {
        Ok(status) => status,
        Err(refusal) if refusal.code == control::NOBODY => return RunningAddresses::Has(Vec::new()),
        Err(_) => return RunningAddresses::Unknown,
    };
    let addresses = status["listening"].as_array().into_iter().flatten();
    let text = |address: &Value| address.as_str().map(str::to_owned);
    RunningAddresses::Has(addresses.filter_map(text).collect())
}

/// How long the running hob may take to tell its addresses.
const PATIENCE: Duration = Duration::from_secs(5);

/// The page of the docs about the statuses that `FAILURES` has: their reasons, and the ways out.
const FAILURES_PAGE: &str = include_str!("../../../docs/src/how-to/502.md");
/// Statuses of what could not be answered.
pub(crate) const FAILURES: [&str; 3] = ["502", "503", "504"];

/// Says what a key means, from the table that the config is read by; or why a status is answered.
fn explain(key: &str, as_json: bool) -> Result<(), CommandFailure> {
    let page = FAILURES.contains(&key).then(|| FAILURES_PAGE.to_owned());
    let text = page.or_else(|| SCHEMA.explain_key(key));
    let text = text.ok_or_else(|| CommandFailure {
        code: 2,
        text: SCHEMA.unknown_key(key),
    })?;
    if as_json {
        output::line(&serde_json::json!({ "key": key, "text": text }).to_string());
    } else {
        output::line(text.trim_end());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hob_inside::admin::endpoints::{ENDPOINTS, EndpointMethod};

    use super::*;

    /// These answer with events.
    const STREAMS: [&str; 3] = ["/v1/live", "/v1/watch", "/v1/logs/{id}/tail"];

    #[test]
    fn every_answer_to_get_has_a_type() {
        let types = layout::types::<Answers>(["answer to", "type"]);
        let is_asked = |path: &&str| path.starts_with("/v1/") && !STREAMS.contains(path);
        let gets = ENDPOINTS
            .iter()
            .filter(|one| one.method == EndpointMethod::Get);
        for path in gets.map(|one| one.path).filter(is_asked) {
            assert!(types.contains(&format!("| `GET {path}`")), "{path}");
        }
    }
}
