//! `hob reload`, `upgrade` and `stop`, and the way to the running hob for every command that asks
//! it something: HTTP over its control socket.

mod event_stream;
mod exchange;

use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_server::config::{self, Sources};

use crate::args::{ControlOptions, Surroundings};
use crate::{Refusal, escape, output};

pub(crate) use event_stream::Event;
pub(crate) use exchange::{Answer, Came, Hob, Listening};

/// An upgrade may check for 30 s and wait for the new server for 10 s.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Has the running hob do something and says what came of it.
pub(crate) fn act(
    verb: &str,
    options: &ControlOptions,
    surroundings: &Surroundings,
) -> Result<(), Refusal> {
    let answer = hob(options, surroundings)?.ask("POST", &format!("/v1/{verb}"))?;
    if options.json {
        output::line(&escape::json(&answer.body));
        let text = String::new();
        return if answer.status == 200 {
            Ok(())
        } else {
            Err(Refusal { code: 1, text })
        };
    }
    let text = answer.text();
    answer.told()?;
    output::line(&text);
    Ok(())
}

/// The running hob.
pub(crate) fn hob(options: &ControlOptions, surroundings: &Surroundings) -> Result<Hob, Refusal> {
    Ok(Hob::new(control_path(options, surroundings)?, ANSWER_LIMIT))
}

/// The socket that was named, else the one of the config, else the usual one.
fn control_path(options: &ControlOptions, surroundings: &Surroundings) -> Result<PathBuf, Refusal> {
    if let Some(path) = &options.control {
        return Ok(path.clone());
    }
    let usual = surroundings.usual_control.clone();
    let (file, is_named) = match &options.config {
        Some(file) => (file.as_path(), true),
        None => (Path::new("hob.toml"), false),
    };
    if !is_named && !file.exists() {
        return Ok(usual);
    }
    let loaded =
        Sources::read(file, &Surroundings::variable).and_then(|sources| config::load(&sources));
    match loaded {
        Ok((config, _)) => Ok(config.control.unwrap_or(usual)),
        // A config that is just being edited must not keep us from the server that runs.
        Err(_) if !is_named => Ok(usual),
        Err(errors) => Err(Refusal {
            code: 2,
            text: errors.to_string(),
        }),
    }
}
