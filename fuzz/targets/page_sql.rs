//! Files of SQL that are pages: any text is read or refused with its place. What stands between
//! quotes or in comments never becomes a parameter, so the statement has a `?` for each.
#![no_main]

use hob_page::sql_page::{FIRST_LINE, SqlPage};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let source = [FIRST_LINE.as_bytes(), b"\n", input].concat();
    assert!(SqlPage::is_one(&source));
    if let Err(fault) = SqlPage::parse("fuzzed.sql", &source) {
        assert!(fault.line >= 1 && fault.column >= 1, "{fault}");
    }
});
