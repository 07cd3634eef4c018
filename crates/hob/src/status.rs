//! `hob status`: the state of the running hob, as tables for people and as JSON.

mod cache;
mod certificates;
mod environment;
mod overall;
pub(crate) mod programs;
mod statistics;

use hob_inside::api::Status;
use hob_load::layout;
use serde_json::Value;

use crate::args::{StatusOptions, Surroundings};
use crate::control::{self, Hob};
use crate::facts::JsonView;
use crate::{CommandFailure, escape, output};

/// How something is written for people, on a terminal of some width.
type Written = fn(JsonView<'_>, Option<usize>) -> String;

/// What can be shown: where it is asked for, which field of that it is, how it is written, and what
/// else people are told.
struct StatusSection {
    is_wanted: bool,
    target: &'static str,
    field: Option<&'static str>,
    written: Written,
    more: Option<(&'static str, Written)>,
}

/// Shows the state, or a part of it.
pub(crate) fn run(
    options: &StatusOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    if options.schema {
        let schema = layout::schema::<Status>("result of `hob status --json`");
        output::line(&format!("{schema:#}"));
        return Ok(());
    }
    if options.reference {
        output::write(&reference());
        return Ok(());
    }
    let mut hob = control::hob(&options.control, surroundings)?;
    if options.admin_url {
        return admin_url(&mut hob, options.control.json);
    }
    if options.zero {
        hob.ask("POST", "/v1/statistics/zero")?.told()?;
    }
    let parts = parts(options);
    let part = parts.iter().find(|part| part.is_wanted);
    let part = part.unwrap_or(&StatusSection {
        is_wanted: true,
        target: "/v1/status",
        field: None,
        written: overall::text,
        more: None,
    });
    let told = hob.get(part.target)?;
    let shown = match part.field {
        Some(field) => told.get(field).cloned().unwrap_or(Value::Null),
        None => told,
    };
    if options.control.json {
        output::line(&escape::json(&shown));
        return Ok(());
    }
    let width = output::width();
    let mut text = (part.written)(JsonView(&shown), width);
    if let Some((target, written)) = part.more {
        // A server of another version may not tell of it.
        let told = hob.ask("GET", target)?;
        if told.status == 200 {
            text.push_str(&written(JsonView(&told.body), width));
        }
    }
    output::write(&text);
    Ok(())
}

/// The reference page, in Markdown.
fn reference() -> String {
    format!(
        "# The state of a server\n\n\
         `hob status --json` prints one JSON object with these fields, which `GET /v1/status` \
         answers too; `hob status --schema` prints its JSON schema. Every field is always there; \
         those marked *or null* hold null where there is nothing to tell. New fields may be \
         added.\n\n{}",
        layout::table::<Status>()
    )
}

/// Prints a URL of the admin pages that is good for one login.
fn admin_url(hob: &mut Hob, as_json: bool) -> Result<(), CommandFailure> {
    let told = hob.ask("POST", "/v1/admin-url")?.told()?;
    match JsonView(&told).text("url") {
        Some(url) if !as_json => output::line(&escape::line(url)),
        _ => output::line(&escape::json(&told)),
    };
    Ok(())
}

fn parts(options: &StatusOptions) -> [StatusSection; 5] {
    let of_status = |is_wanted, field, written| StatusSection {
        is_wanted,
        target: "/v1/status",
        field: Some(field),
        written,
        more: None,
    };
    let whole = |is_wanted, target, written| StatusSection {
        is_wanted,
        target,
        field: None,
        written,
        more: None,
    };
    [
        StatusSection {
            more: Some(("/v1/cache?limit=20", cache::largest)),
            ..of_status(options.cache, "cache", cache::text)
        },
        StatusSection {
            more: Some(("/v1/certificates", certificates::served)),
            ..of_status(options.certificates, "certificates", certificates::text)
        },
        of_status(options.programs, "programs", programs::text),
        whole(options.environment, "/v1/environment", |told, _| {
            environment::text(told.0)
        }),
        whole(options.statistics, "/v1/statistics", |told, _| {
            statistics::text(told.0)
        }),
    ]
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
