//! `hob check`: everything that is wrong with a config, without serving it; and what its keys mean.

use hob_server::config::{self, Sources};
use hob_server::handle::admin::endpoints;
use hob_server::handle::{metrics, variables};

use crate::Refusal;
use crate::args::{CheckOptions, Surroundings};

/// Loads the config and says what came of it.
pub(crate) fn run(options: &CheckOptions, _: &Surroundings) -> Result<(), Refusal> {
    if let Some(key) = &options.explain {
        return explain(key, options.json);
    }
    if options.reference {
        print!("{}", config::reference());
        return Ok(());
    }
    if options.variables {
        print!("{}", variables::reference());
        return Ok(());
    }
    if options.metrics {
        print!("{}", metrics::reference());
        return Ok(());
    }
    if options.endpoints {
        print!("{}", endpoints::reference());
        return Ok(());
    }
    if options.schema {
        println!("{:#}", config::json_schema());
        return Ok(());
    }
    let loaded = Sources::read(&options.config, &Surroundings::variable)
        .and_then(|sources| config::load(&sources));
    let is_ok = loaded.is_ok();
    if options.json {
        let mut answer = match &loaded {
            Ok((_, warnings)) => warnings.to_json(),
            Err(errors) => errors.to_json(),
        };
        answer["ok"] = is_ok.into();
        println!("{answer}");
    } else {
        match &loaded {
            Ok((_, warnings)) if warnings.is_empty() => {}
            Ok((_, warnings)) => eprintln!("{warnings}"),
            Err(errors) => eprintln!("{errors}"),
        }
        if is_ok {
            println!("{}: no errors", options.config.display());
        }
    }
    if is_ok {
        Ok(())
    } else {
        Err(Refusal {
            code: 2,
            text: String::new(),
        })
    }
}

/// Says what a key means, from the table that the config is read by.
fn explain(key: &str, as_json: bool) -> Result<(), Refusal> {
    let text = config::explain_key(key).ok_or_else(|| Refusal {
        code: 2,
        text: config::unknown_key(key),
    })?;
    if as_json {
        println!("{}", serde_json::json!({ "key": key, "text": text }));
    } else {
        println!("{}", text.trim_end());
    }
    Ok(())
}
