//! Formats of access logs, with values that requests gave for them: nothing panics, and a record is
//! one line whatever came.
#![no_main]

use hob_trace::format::{AskedValueWriter, LineCache};
use hob_trace::{AccessLogFormat, Record, RecordNames, Texts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut pieces = data.split(|byte| *byte == 0);
    let Some(Ok(format)) = pieces.next().map(str::from_utf8) else {
        return;
    };
    let rest: Vec<&[u8]> = pieces.collect();
    let variable = |_: &str| {
        rest.last()
            .map(|text| String::from_utf8_lossy(text).into_owned())
    };
    let Ok(format) = AccessLogFormat::parse_with(format, &variable) else {
        return;
    };
    let mut written = Vec::new();
    let mut writer = AskedValueWriter::new(&mut written, format.asked().len());
    for (index, _) in format.asked().iter().enumerate() {
        writer.put(rest.iter().skip(index).take(2).copied());
    }
    writer.finish();
    let (names, mut cache) = (RecordNames::new(), LineCache::new());
    // What was written, and what nobody writes.
    for asked in [&written[..], data] {
        let texts = Texts {
            target: data,
            asked,
            ..Texts::default()
        };
        let mut out = Vec::new();
        format.push_line(&mut cache, &names, &Record::empty(), &texts, &mut out);
        let line = str::from_utf8(&out).expect("lines are UTF-8");
        let line = line.strip_suffix('\n').expect("a line ends");
        assert!(!line.contains(['\n', '\r', '\0']));
    }
});
