//! What programs of pages write to set values: it is read whatever it is, and what is written here
//! is read as it was. Words that name programs lead nowhere but down.
#![no_main]

use hob_page::program::{program_of, set_values, write_value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let values = set_values(text);
    let bytes: usize = values
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    assert!(bytes <= text.len());
    let mut written = Vec::new();
    for (name, value) in &values {
        assert!(!name.is_empty() && !name.contains(['=', ' ', '\n']));
        write_value(name, value, &mut written);
    }
    assert_eq!(set_values(&written), values);
    let Ok(word) = std::str::from_utf8(text) else {
        return;
    };
    if let Some((at, rest)) = program_of(&["a", "tools"], word) {
        assert!(at < 2 && !rest.contains("..") && !rest.starts_with('/') && !rest.contains("//"));
    }
});
