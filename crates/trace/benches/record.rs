//! What a finished request costs its thread: nanoseconds for the history and for the histograms of
//! its route, alone and together, beside a push into the access log's ring. Medians of rounds;
//! compare two builds on one machine, never bare numbers. With a number as its argument it only
//! finishes so many requests, for a tool that counts instructions.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_trace::history::{HistoryWriter, RequestHistory, Retention, SegmentOrigin};
use hob_trace::series::{SeriesName, SeriesRegistry, SeriesWriter};
use hob_trace::{HandlerKind, Record, Recorder, Texts};

const ROUNDS: usize = 200;
const RECORDS: usize = 5000;

fn main() {
    let history = Arc::new(RequestHistory::new(
        SegmentOrigin::default(),
        Retention {
            bytes_max: 8 << 20,
            time_max: Duration::from_secs(3600),
        },
    ));
    let series = Arc::new(SeriesRegistry::new(1));
    let number = series.number(SeriesName {
        site: "*".into(),
        route: "/*".into(),
        handler: HandlerKind::Files,
        program: String::new(),
    });
    let record = Record {
        started_unix_ms: 1_795_295_587_250,
        total_us: 12,
        first_byte_us: 12,
        bytes_in: 60,
        head_bytes_out: 180,
        status: 200,
        handler: HandlerKind::Files,
        series: number,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        connection: 7,
        ..Record::empty()
    };
    let short = Texts {
        method: b"GET",
        target: b"/0k.txt",
        host: b"127.0.0.1:8080",
        ..Texts::default()
    };
    let typical = Texts {
        target: b"/images/some/picture.png?size=120",
        host: b"www.example.org",
        referer: b"https://www.example.org/articles/2026/11/",
        user_agent: b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        ..short
    };
    let recorder = Recorder::new(&history, Some(&series));
    if let Some(count) = std::env::args()
        .nth(1)
        .and_then(|text| text.parse::<u32>().ok())
    {
        return finish(&recorder, record, &short, count);
    }
    for (name, texts) in [("short", short), ("typical", typical)] {
        bench(name, "both", || {
            finish(&recorder, record, &texts, RECORDS as u32)
        });
        let mut writer = HistoryWriter::new(&history);
        bench(name, "history", || {
            for request in 0..RECORDS as u32 {
                let record = Record { request, ..record };
                writer.push(black_box(&record), black_box(&texts), 0);
            }
        });
        let counts = SeriesWriter::new(&series);
        bench(name, "series", || {
            (0..RECORDS).for_each(|_| counts.record(black_box(&record)));
        });
    }
}

fn finish(recorder: &Recorder, mut record: Record, texts: &Texts<'_>, count: u32) {
    for request in 0..count {
        record.request = request;
        record.started_unix_ms += 1;
        recorder.finished(black_box(&record), black_box(texts));
    }
}

fn bench(name: &str, what: &str, mut work: impl FnMut()) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed().as_nanos() as f64 / RECORDS as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{name:>10}  {what:<8} {:7.1} ns", rounds[ROUNDS / 2]);
}
