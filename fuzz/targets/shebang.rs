//! First lines of scripts: nothing panics, and what is named stands in the line.
#![no_main]

use hob_keeper::shebang::{Interpreter, LINE_BYTES_MAX, shebang};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|begin: &[u8]| {
    let Some(said) = shebang(begin) else {
        return;
    };
    let (Interpreter::Path(word) | Interpreter::Name(word)) = said.interpreter;
    assert!(begin.starts_with(b"#!"));
    assert!(!word.is_empty() && word.len() < LINE_BYTES_MAX);
    assert!(!word.iter().any(|byte| b" \t\r\n".contains(byte)));
    assert!(begin.windows(word.len()).any(|part| part == word));
});
