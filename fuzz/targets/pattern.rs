//! Patterns, templates and the route table: lines are patterns, the last line is a path. The table
//! finds what a walk over the patterns finds; what covers a pattern matches what it matches; an
//! expanded redirect has no byte that could end a header line; a path on the disk stays below its
//! fixed part, and gives back what was put into it.
#![no_main]

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_server::route::pattern::Pattern;
use hob_server::route::table::{RouteAnswer, RouteTable};
use hob_server::route::template::{CapturedPath, Location, Rewrite, TemplateValues};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let mut lines: Vec<&str> = text.split('\n').collect();
    let path = lines.pop().unwrap_or_default().as_bytes();
    let patterns: Vec<Pattern> = lines
        .iter()
        .take(8)
        .filter_map(|line| Pattern::parse(line).ok())
        .collect();

    let walked = patterns
        .iter()
        .position(|pattern| pattern.matches(path).is_some());
    let table = RouteTable::build(&patterns);
    let found = table.find(path);
    assert_eq!(found.map(|found| found.route as usize), walked);

    // Some routes leave the path to others.
    let silent = input.first().copied().unwrap_or_default();
    let is_silent = |route: u32| silent & (1 << route) != 0;
    let answers = |route: u32| match is_silent(route) {
        true => RouteAnswer::No(table.next(route)),
        false => RouteAnswer::Yes,
    };
    let walked = (0u32..).zip(&patterns).find_map(|(route, pattern)| {
        let is_it = !is_silent(route) && pattern.matches(path).is_some();
        is_it.then_some(route)
    });
    let found = table.find_where(path, answers);
    assert_eq!(found.map(|found| found.route), walked);

    for narrow in &patterns {
        let Some(captures) = narrow.matches(path) else {
            continue;
        };
        for wide in patterns.iter().filter(|wide| wide.covers(narrow)) {
            assert!(wide.matches(path).is_some());
        }
        let facts = TemplateValues {
            path,
            raw_path: path,
            query: Some(path),
            host: path,
            captures: &captures,
        };
        for line in &lines {
            let mut out = Vec::new();
            stays_below(line, narrow, &facts);
            if let Ok(location) = Location::parse(line, narrow) {
                let _ = location.expand(&facts, &mut out);
                assert!(out.iter().all(|byte| matches!(byte, 0x21..=0x7e)));
                assert!(line.starts_with("//") || !out.starts_with(b"//"));
            }
            if let Ok(rewrite) = Rewrite::parse(line, narrow)
                && rewrite.expand_path(&facts, &mut out).is_ok()
            {
                assert!(out.starts_with(b"/"));
                assert!(!out.windows(4).any(|window| window == b"/../"));
            }
        }
    }
});

fn stays_below(line: &str, pattern: &Pattern, facts: &TemplateValues<'_>) {
    let Ok(Some(captured)) = CapturedPath::parse(Path::new(line)) else {
        return;
    };
    let Ok(template) = captured.bind(pattern) else {
        return;
    };
    let mut out = Vec::new();
    if !line.starts_with('/') || line.contains('\0') || template.expand(facts, &mut out).is_err() {
        return;
    }
    let names: Vec<&[u8]> = out.split(|byte| *byte == b'/').collect();
    assert_eq!(names.len(), captured.names.len());
    assert!(!names.contains(&b"..".as_slice()) && !out.contains(&0));
    let whole = template.whole(&out);
    let read = captured.read(whole.as_os_str().as_bytes());
    assert!(read.is_some_and(|(values, rest)| {
        values.len() == captured.captures().count() && rest.is_empty()
    }));
}
