//! Configs: any text loads or is refused with errors that can be printed; what loads
//! travels to another process unchanged.
#![no_main]

use std::path::Path;

use hob_server::config::{ConfigSources, SCHEMA, TrustedDisk, load_with};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // Included files would be read from the disk.
    let text = String::from_utf8_lossy(input).replace("include", "exclude");
    let variables = |name: &str| name.starts_with('A').then(|| "text".to_owned());
    let Ok(sources) = ConfigSources::from_text(&SCHEMA, "fuzz", &text, Path::new("/"), &variables)
    else {
        return;
    };
    match load_with(&sources, &TrustedDisk) {
        Ok((config, warnings)) => {
            let _ = warnings.to_string();
            let again = ConfigSources::decode(&sources.encode());
            let again = again.map(|again| load_with(&again, &TrustedDisk).map(|(it, _)| it));
            assert!(matches!(again, Some(Ok(again)) if again == config));
        }
        Err(errors) => {
            assert!(!errors.faults().is_empty());
            let _ = (errors.to_string(), errors.to_json());
        }
    }
});
