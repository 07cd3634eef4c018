//! What a record costs on its way to the log: nanoseconds per push into a ring, per drained record,
//! and per formatted line. Medians of rounds; compare two builds on one machine, never bare
//! numbers.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use hob_trace::format::LineCache;
use hob_trace::{AccessLogFormat, Record, RecordNames, Texts, ring};

const ROUNDS: usize = 200;
/// Records per round; they fill about half of the ring.
const RECORDS: usize = 1500;
const RING_BYTES: usize = 1 << 20;

fn main() {
    let record = Record {
        started_unix_ms: 1_795_295_587_250,
        body_bytes_out: 1024,
        status: 200,
        log: 1,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        ..Record::empty()
    };
    let typical = Texts {
        method: b"GET",
        target: b"/images/some/picture.png?size=120",
        host: b"www.example.org",
        referer: b"https://www.example.org/articles/2026/11/",
        user_agent: b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        user: b"",
        detail: b"",
        asked: b"",
    };
    let short = Texts {
        method: b"GET",
        target: b"/1k.txt",
        host: b"127.0.0.1",
        ..typical
    };
    let short = Texts {
        referer: b"",
        user_agent: b"",
        ..short
    };
    for (name, texts) in [("typical", typical), ("short", short)] {
        bench_ring(name, record, &texts);
        for format in ["common", "combined", "json"] {
            bench_format(name, format, record, &texts);
        }
    }
    bench_format("two clients in turn", "combined", record, &typical);
}

fn bench_ring(name: &str, mut record: Record, texts: &Texts<'_>) {
    let (mut producer, mut consumer) = ring(RING_BYTES);
    let (mut pushes, mut drains) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        pushes.push(ns_per_record(|| {
            for n in 0..RECORDS {
                record.request = n as u32;
                black_box(producer.push(black_box(&record), black_box(texts)));
            }
        }));
        drains.push(ns_per_record(|| {
            let count = consumer.drain(|record, texts| {
                black_box((record.request, texts.target.len()));
            });
            assert_eq!(count, RECORDS, "nothing was refused");
        }));
    }
    println!("{name:>20}  push      {:7.1} ns", median(pushes));
    println!("{name:>20}  drain     {:7.1} ns", median(drains));
}

fn bench_format(name: &str, format: &str, record: Record, texts: &Texts<'_>) {
    let compiled = AccessLogFormat::parse(format).expect("a format of its own name");
    let names = RecordNames::new();
    let mut cache = LineCache::new();
    let mut out = Vec::new();
    let other = Record {
        client: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 77)),
        ..record
    };
    let other = if name.starts_with("two") {
        other
    } else {
        record
    };
    let rounds = (0..ROUNDS).map(|_| {
        ns_per_record(|| {
            for _ in 0..RECORDS / 2 {
                for record in [&record, &other] {
                    let (record, texts) = black_box((record, texts));
                    compiled.push_line(&mut cache, &names, record, texts, &mut out);
                }
                // As the writer does after a batch, so that the buffer stays in the cache.
                if out.len() > 64 * 1024 {
                    black_box(&out);
                    out.clear();
                }
            }
        })
    });
    println!(
        "{name:>20}  {format:<9} {:7.1} ns",
        median(rounds.collect())
    );
}

fn ns_per_record(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_nanos() as f64 / RECORDS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
