//! `hob check`: everything that is wrong with a config, without serving it.

use hob_server::config::{self, Sources};

use crate::Refusal;
use crate::args::{CheckOptions, Surroundings};

/// Loads the config and says what came of it.
pub(crate) fn run(options: &CheckOptions, _: &Surroundings) -> Result<(), Refusal> {
    let name = options.config.display();
    let loaded = Sources::read(&options.config, &Surroundings::variable)
        .and_then(|sources| config::load(&sources));
    let (warnings, errors) = match &loaded {
        Ok((_, warnings)) => (
            warnings.iter().map(ToString::to_string).collect(),
            Vec::new(),
        ),
        Err(errors) => (
            Vec::new(),
            errors.to_string().lines().map(str::to_owned).collect(),
        ),
    };
    let is_ok = errors.is_empty();
    if options.json {
        let answer = serde_json::json!({ "ok": is_ok, "errors": errors, "warnings": warnings });
        println!("{answer}");
    } else {
        for line in errors.iter().chain(&warnings) {
            eprintln!("{line}");
        }
        if is_ok {
            println!("{name}: no errors");
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
