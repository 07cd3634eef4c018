//! What the events of one request cost: nanoseconds per request for a watcher of everything, with
//! the texts of a small file from the cache. Medians of rounds; compare two builds on one machine,
//! never bare numbers. What a server takes is more: there the caches hold other things.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use hob_trace::HandlerKind;
use hob_trace::watch::{
    FieldsOf, Hidden, Hub, RequestStage, Station, TextPart, Trail, WatchCandidate, WatchTerms,
};

const ROUNDS: usize = 200;
/// Requests per round; their events are fewer bytes than a watcher may wait for.
const REQUESTS: u32 = 64;
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct NoFields;

impl FieldsOf for NoFields {
    fn any(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }
}

fn main() {
    let hub = Arc::new(Hub::default());
    let station = Station::default();
    station.set_hub(&hub);
    let terms = WatchTerms::parse("").expect("no terms are terms");
    let watcher = hub
        .add(terms, Hidden::default())
        .expect("there is a place for it");
    let mut rounds = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for request in 0..REQUESTS {
            tell(&station, black_box(request));
        }
        let took = begun.elapsed();
        rounds.push(took.as_nanos() as f64 / f64::from(REQUESTS));
        bytes = watcher.take().len();
    }
    assert!(bytes > 0, "it was told");
    rounds.sort_by(f64::total_cmp);
    let per_request = bytes as f64 / f64::from(REQUESTS);
    println!(
        "events of a request {:7.1} ns, {per_request:.0} bytes",
        rounds[ROUNDS / 2]
    );
}

fn tell(station: &Station, request: u32) {
    assert!(station.is_on(), "somebody watches");
    let subject = WatchCandidate {
        client: CLIENT,
        site: "*",
        path: b"/0k.txt",
        method: b"GET",
        handler: HandlerKind::Files,
        fields: &NoFields,
    };
    let (live, held) = station.match_begin(&subject);
    let trail = Trail {
        connection: 7,
        request,
        live,
        held,
        generation: station.generation(),
        started_us: 1_000_000,
    };
    station.push(&trail, |out, _| {
        station.write(&trail, RequestStage::Request, 1_000_000, out, |pen| {
            pen.parts(
                "text",
                [
                    TextPart::Text(b"GET"),
                    TextPart::Word(" "),
                    TextPart::Text(black_box(b"/0k.txt")),
                    TextPart::Word(" "),
                    TextPart::Word("HTTP/1.1"),
                ],
            );
            pen.text("method", black_box(b"GET"));
            pen.text("target", black_box(b"/0k.txt"));
            pen.text("host", black_box(b"127.0.0.1:17999"));
            pen.address("client", CLIENT);
            pen.number("client_port", 53174);
            pen.number("started_unix_ms", 1_795_429_447_890);
            pen.text("site", black_box(b"*"));
            pen.text("route", black_box(b"/*"));
            pen.word("handler", "files");
        });
        station.write(&trail, RequestStage::Route, 1_000_067, out, |pen| {
            pen.parts(
                "text",
                [
                    TextPart::Word("no site has the host's name; route "),
                    TextPart::Number(1),
                    TextPart::Word(" of "),
                    TextPart::Number(1),
                    TextPart::Word(" fits first"),
                ],
            );
        });
    });
    station.tell(&trail, RequestStage::Answer, 1_000_068, |pen, _| {
        pen.number("status", 200);
    });
    station.push(&trail, |out, _| {
        station.write(&trail, RequestStage::Done, 1_000_081, out, |pen| {
            pen.number("status", 200);
            pen.word("outcome", "complete");
            pen.word("cache", "hit");
            pen.number("total_us", 81);
            pen.number_above_zero("first_byte_us", black_box(81));
            pen.number_above_zero("queue_us", black_box(0));
            pen.number_above_zero("bytes_in", black_box(47));
            pen.number_above_zero("head_bytes_out", black_box(225));
        });
    });
}
