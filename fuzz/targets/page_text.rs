//! Pages: nothing panics, a fault has a place that there is, and every block of a page that is read
//! runs to an end within small limits.
#![no_main]

use std::sync::Arc;

use hob_page::fault::PageFault;
use hob_page::host::{Absent, CivilTime, Host, PageClock, PageHead, Sink, SinkGone};
use hob_page::limits::PageLimits;
use hob_page::request::PageRequest;
use hob_page::run::{PageSettings, run};
use hob_page::tree::Page;
use libfuzzer_sys::fuzz_target;

struct Still;

impl PageClock for Still {
    fn micros(&self) -> u64 {
        0
    }

    fn civil(&self) -> CivilTime {
        CivilTime {
            year: 2024,
            month: 2,
            day: 29,
            hour: 0,
            minute: 0,
            second: 0,
            micros: 0,
        }
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn begin(&mut self, _: &PageHead) -> Result<(), SinkGone> {
        Ok(())
    }

    fn piece(&mut self, bytes: &mut Vec<u8>) -> Result<(), SinkGone> {
        bytes.clear();
        Ok(())
    }
}

fn is_placed(source: &[u8], fault: &PageFault) {
    let line = source.split(|byte| *byte == b'\n').nth(fault.line - 1);
    let line = line.expect("there is such a line");
    assert!((1..=line.len() + 1).contains(&fault.column));
    assert!(!fault.message.is_empty());
}

fuzz_target!(|source: &[u8]| {
    if let Err(fault) = Page::parse_body("page", source) {
        is_placed(source, &fault);
    }
    let page = match Page::parse("page", source) {
        Ok(page) => Arc::new(page),
        Err(fault) => return is_placed(source, &fault),
    };
    hob_page::lint::check(&page, &Absent, None);
    let laid_out = Page::format("page", source).expect("what is read can be laid out");
    let again = Page::format("page", &laid_out).expect("and read again");
    assert!(laid_out == again, "a layout is laid out already");
    let settings = PageSettings {
        limits: PageLimits {
            steps_max: 2_000,
            turns_max: 100,
            output_bytes_max: 100_000,
            value_bytes_max: 10_000,
            cells_max: 1_000,
            ..PageLimits::default()
        },
        ..PageSettings::default()
    };
    for block in page.entries() {
        let mut request = PageRequest {
            block: block.to_string(),
            ..PageRequest::default()
        };
        let _ = request.add_fields(b"a=%27%3C&b=5&x=$(a)", 10);
        let host = Host {
            environment: &Absent,
            sources: &Absent,
            database: None,
            programs: &Absent,
            files: &Absent,
            registries: &Absent,
            visits: &Absent,
            clock: &Still,
        };
        if let Err(fault) = run(&page, &request, &settings, None, host, &mut Nowhere, None) {
            is_placed(source, &fault);
        }
    }
});
