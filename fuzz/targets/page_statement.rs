//! Statements: parts between bytes 1 are the author's and data in turn. Whatever the data, the
//! statement has the text it has with other data, and as many values, or it is refused.
#![no_main]

use hob_page::sql::{BindRules, Statement, bind};
use hob_page::value::{Provenance, Text, ValueOrigin};
use libfuzzer_sys::fuzz_target;

fn bound(input: &[u8], data: Option<&[u8]>) -> Option<Statement> {
    let mut text = Text::new();
    for (index, part) in input.split(|byte| *byte == 1).enumerate() {
        match index % 2 {
            0 => text.push_macro(part),
            _ if part.is_empty() => {}
            _ => text.push(data.unwrap_or(part), Provenance::of(ValueOrigin::Client)),
        }
    }
    bind(&text, &BindRules::default()).ok()
}

fuzz_target!(|input: &[u8]| {
    let (Some(found), Some(other)) = (bound(input, None), bound(input, Some(b"x"))) else {
        return;
    };
    assert_eq!(found.text, other.text);
    assert_eq!(found.parameters.len(), other.parameters.len());
});
