//! `hob explain`: what would answer a request, and why. Loads the config as `serve` would and looks
//! at the disk as the user the server would be.

use std::path::PathBuf;

use hob_keeper::become_server_user;
use hob_server::config;
use hob_server::explain::{ExplainedRequest, explain};
use serde_json::json;

use crate::args::{ExplainOptions, ServeOptions};
use crate::serve;
use crate::{CommandFailure, output};

/// Explains one request.
pub(crate) fn run(options: &ExplainOptions) -> Result<(), CommandFailure> {
    let wrong = |text: String| CommandFailure { code: 2, text };
    let asked = ExplainedRequest {
        method: options.method.clone(),
        url: options.url.clone(),
        fields: options
            .header
            .iter()
            .map(|text| field(text))
            .collect::<Result<_, _>>()?,
        from: options.from,
        user: options.user.clone(),
        groups: options.group.clone(),
    };
    let sources = serve::sources(&as_serve(options.config.clone()))?;
    let loaded = sources().and_then(|sources| {
        let (config, warnings) = config::load(&sources)?;
        Ok((config, sources, warnings))
    });
    let (config, sources, warnings) = loaded.map_err(|errors| wrong(errors.to_string()))?;
    if !warnings.is_empty() {
        eprintln!("{warnings}");
    }
    let user = become_server_user(&config);
    let mut explanation = explain((&config, &sources), &asked, None).map_err(wrong)?;
    match user {
        Ok(None) => {}
        Ok(Some(user)) => explanation.note(format!("files were looked at as {user}")),
        Err(text) => explanation.note(format!("files were looked at as you: {text}")),
    }
    if options.json {
        output::line(&json!(explanation.told()).to_string());
    } else {
        output::write(&explanation.to_string());
    }
    Ok(())
}

/// What `serve` does with this config and no other argument.
fn as_serve(config: Option<PathBuf>) -> ServeOptions {
    ServeOptions {
        dir: None,
        config,
        listen: Vec::new(),
        control: None,
        log: None,
        resume: false,
        unlisted: false,
        handover_check: None,
    }
}

fn field(text: &str) -> Result<(String, String), CommandFailure> {
    let (name, value) = text.split_once(':').ok_or_else(|| CommandFailure {
        code: 2,
        text: format!("--header {text:?}: write NAME:VALUE"),
    })?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
