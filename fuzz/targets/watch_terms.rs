//! Filters of watchers: nothing panics, whatever the words, patterns and texts are; what is hidden
//! of a target stays hidden, and an event is one line of JSON in one frame.
#![no_main]

use std::net::IpAddr;
use std::sync::Arc;

use hob_trace::watch::{
    FieldsOf, Hidden, Hub, RequestStage, Station, Trail, WatchCandidate, WatchTerms,
};
use hob_trace::{HandlerKind, Record};
use libfuzzer_sys::fuzz_target;

struct Fields<'a>(&'a [u8]);

impl FieldsOf for Fields<'_> {
    fn any(&self, _: &str, is_accepted: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        is_accepted(self.0)
    }
}

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (words, target) = text.split_once('\n').unwrap_or((&text, ""));
    let target = target.as_bytes();
    let mut shown = Vec::new();
    Hidden::default().push_target(target, &mut shown);
    if target.starts_with(b"?token=") {
        assert!(shown.starts_with(b"?token=(hidden)"));
    }
    let Ok(terms) = WatchTerms::parse(words) else {
        return;
    };
    let client = IpAddr::from([127, 0, 0, 1]);
    let subject = WatchCandidate {
        client,
        site: "*",
        path: target,
        method: b"GET",
        handler: HandlerKind::Files,
        fields: &Fields(target),
    };
    let _ = terms.match_end(&Record::empty());
    let (hub, station) = (Arc::new(Hub::default()), Station::default());
    station.set_hub(&hub);
    let Ok(watcher) = hub.add(terms, Hidden::default()) else {
        return;
    };
    assert!(station.is_on());
    let (live, held) = station.match_begin(&subject);
    let generation = station.generation();
    let trail = Trail {
        live,
        held,
        generation,
        ..Trail::default()
    };
    station.tell(&trail, RequestStage::Request, 0, |pen, _| {
        pen.text("text", target)
    });
    let frames = watcher.take();
    for frame in frames
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        assert!(frame.starts_with(b"data: {\"id\":\"") && frame.ends_with(b"\"}"));
        assert!(!frame.iter().any(u8::is_ascii_control));
    }
});
