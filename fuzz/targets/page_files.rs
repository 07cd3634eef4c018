//! Flat files and registries. Any file is read; the first line of the input is a delimiter. What is
//! written of values is read as the same values, whatever they hold.
#![no_main]

use hob_page::builtin::RowFormat;
use hob_page::files::{parse_entries, print_entries};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (delimiter, content) = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (&b";"[..], input),
    };
    let delimited = RowFormat::delimited(delimiter).into_iter();
    for format in delimited.chain([RowFormat::text()]) {
        for line in RowFormat::lines(content) {
            let cells = format.cells(line);
            let mut written = Vec::new();
            format.push_row(cells.iter().map(Vec::as_slice), &mut written);
            assert_eq!(RowFormat::lines(&written).count(), 1);
            assert_eq!(format.cells(&written), cells);
        }
        let mut written = Vec::new();
        format.push_row([content].into_iter(), &mut written);
        assert_eq!(format.cells(&written), [content]);
    }
    if let Some(entries) = parse_entries(content, 1_000) {
        assert_eq!(
            parse_entries(&print_entries(&entries), 1_000),
            Some(entries)
        );
    }
    let entry = vec![(delimiter.to_vec(), content.to_vec())];
    assert_eq!(parse_entries(&print_entries(&entry), 1), Some(entry));
});
