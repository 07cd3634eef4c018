//! History in memory: what is kept, found, filtered and paged.

mod orders;

use std::io::{Seek, SeekFrom, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use super::search::SCANNED_MAX;
use super::*;
use crate::record::{
    CacheOutcome, Fault, HandlerKind, Protocol, Record, Texts, TlsHandshake, TlsVersion,
};
use crate::series::{SeriesName, SeriesRegistry};

const HERE: SegmentOrigin = SegmentOrigin { run: 7, server: 2 };
const FOREVER: Retention = Retention {
    bytes_max: 64 << 20,
    time_max: Duration::from_secs(3600),
};

fn record(request: u32, finished_ms: u64) -> Record {
    Record {
        started_unix_ms: finished_ms - 1,
        total_us: 1_500,
        first_byte_us: 1_200,
        status: 200,
        client: IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)),
        connection: 5,
        request,
        ..Record::empty()
    }
}

fn texts(target: &str) -> Texts<'_> {
    Texts {
        method: b"GET",
        target: target.as_bytes(),
        host: b"example.org",
        user_agent: b"Agent/1.0",
        ..Texts::default()
    }
}

/// A history with requests 0 to `count` of one thread, a millisecond apart from 1,001 ms on.
fn filled(count: u32) -> Arc<RequestHistory> {
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let mut writer = HistoryWriter::new(&history);
    for request in 0..count {
        let target = format!("/{request}?q");
        writer.push(
            &record(request, 1_001 + u64::from(request)),
            &texts(&target),
            0,
        );
    }
    history
}

fn page(mut search: HistorySearch) -> HistoryPage {
    while search.step() {}
    search.page()
}

fn newest(history: &RequestHistory, filter: Filter, limit: usize) -> HistoryPage {
    page(HistorySearch::newest(history, &[], filter, None, limit))
}

/// Where the next page of those with the newest first begins.
fn next_place(page: &HistoryPage) -> Option<HistoryPosition> {
    assert_eq!(page.next.is_some(), page.has_more);
    page.next.map(|next| match next {
        Mark::Newest(place) => place,
        other => panic!("{other}"),
    })
}

fn requests(page: &HistoryPage) -> Vec<u32> {
    let found = page.found.iter();
    found.map(|found| found.finished().record.request).collect()
}

#[test]
fn everything_that_is_known_of_a_request_comes_back() {
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let mut writer = HistoryWriter::new(&history);
    let full = Record {
        started_unix_ms: 1_781_524_800_123,
        total_us: u64::from(u32::MAX) + 5,
        first_byte_us: 3,
        queue_us: 4,
        program_us: 5,
        start_us: 6,
        cpu_us: 7,
        pid: 17,
        program_end: crate::record::ProgramEnd::Failed,
        end_number: 18,
        disk_wait_us: 8,
        client_take_us: 9,
        client_body_us: 10,
        rtt_us: 11,
        retransmits: 12,
        window_bytes: 13,
        bytes_in: 14,
        head_bytes_out: 15,
        body_bytes_out: 1 << 40,
        status: 502,
        protocol: Protocol::Http3,
        handler: HandlerKind::Resident,
        cache: CacheOutcome::Miss,
        fault: Fault::Script,
        outcome: crate::record::Outcome::Broken,
        series: 9,
        client: IpAddr::V6(Ipv6Addr::LOCALHOST),
        client_port: 4711,
        connection: 99,
        request: 3,
        tls_version: TlsVersion::Tls13,
        tls_suite: "TLS_AES_128_GCM_SHA256",
        tls_handshake: TlsHandshake::Resumed,
        handshake_us: 16,
        reason: Some("the program ended"),
        note: Some("strange"),
        trace: crate::traceparent::Trace {
            id: [7; 16],
            ..crate::traceparent::Trace::NONE
        },
        ..Record::empty()
    };
    let all = Texts {
        method: b"PROPFIND",
        target: b"/a?b",
        host: b"h",
        referer: b"http://r/",
        user_agent: b"ua",
        user: b"me",
        detail: b"line 3",
        asked: b"",
    };
    writer.push(&full, &all, 0);
    // What is the same as before is told again; what is not there is not.
    writer.push(&full, &all, 0);
    writer.push(&record(1, 1_781_524_800_123), &texts("/"), 0);
    writer.hand_over();
    let page = newest(&history, Filter::default(), 10);
    assert_eq!(page.found.len(), 3);
    for found in page.found.iter().filter(|found| found.id.connection == 99) {
        let told = found.finished();
        let comparable = Record {
            tls_suite: "",
            reason: None,
            note: None,
            ..full
        };
        assert_eq!(format!("{:?}", told.record), format!("{comparable:?}"));
        assert_eq!(format!("{:?}", told.texts), format!("{all:?}"));
        assert_eq!(told.tls_suite, full.tls_suite.as_bytes());
        assert_eq!(told.reason, b"the program ended");
        assert_eq!(told.note, b"strange");
        assert_eq!(found.id.to_string(), "2.99.3");
    }
    let plain = &page.found[2].finished();
    assert_eq!((plain.texts.referer, plain.tls_suite), (&b""[..], &b""[..]));
    assert_eq!(plain.texts.user_agent, b"Agent/1.0");
}

#[test]
fn texts_are_cut_to_their_limits() {
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let mut writer = HistoryWriter::new(&history);
    let long = vec![b'x'; 70_000];
    let all = Texts {
        method: &long,
        target: &long,
        host: &long,
        referer: &long,
        user_agent: &long,
        user: &long,
        detail: &long,
        asked: &long,
    };
    for _ in 0..100 {
        writer.push(&record(0, 5), &all, 0);
    }
    writer.hand_over();
    let page = newest(&history, Filter::default(), 1);
    let told = page.found[0].finished().texts;
    let lengths = [
        (told.method, entry::METHOD_BYTES_MAX),
        (told.target, entry::TARGET_BYTES_MAX),
        (told.host, entry::HOST_BYTES_MAX),
        (told.referer, entry::REFERER_BYTES_MAX),
        (told.user_agent, entry::AGENT_BYTES_MAX),
        (told.user, entry::USER_BYTES_MAX),
        (told.detail, entry::DETAIL_BYTES_MAX),
    ];
    lengths
        .iter()
        .for_each(|(text, bytes_max)| assert_eq!(text.len(), *bytes_max));
    assert_eq!(history.holdings().count, 100);
}

#[test]
fn newest_come_first_and_pages_follow_each_other_without_gap() {
    let history = filled(3_000);
    let all = newest(&history, Filter::default(), 1000);
    assert_eq!(requests(&all), (2_000..3_000).rev().collect::<Vec<_>>());
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let search = HistorySearch::newest(&history, &[], Filter::default(), before, 7);
        let page = page(search);
        seen.extend(requests(&page));
        before = next_place(&page);
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, (0..3_000).rev().collect::<Vec<_>>());
}

#[test]
fn threads_are_merged_by_the_end_of_requests() {
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let mut writers = [0; 3].map(|_| HistoryWriter::new(&history));
    for request in 0..600u32 {
        let of = record(request, 10_000 + u64::from(request));
        writers[request as usize % 3].push(&of, &texts("/"), 0);
        if request % 50 == 49 {
            writers[request as usize / 50 % 3].hand_over();
        }
    }
    writers.iter_mut().for_each(HistoryWriter::hand_over);
    let mut before = None;
    let mut seen = Vec::new();
    for _ in 0..60 {
        let page = page(HistorySearch::newest(
            &history,
            &[],
            Filter::default(),
            before,
            10,
        ));
        seen.extend(requests(&page));
        before = next_place(&page);
    }
    assert_eq!((seen, before), ((0..600).rev().collect(), None));
}

#[test]
fn filters_keep_what_they_say() {
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let series = SeriesRegistry::new(1);
    let name = |site: &str, route: &str| SeriesName {
        site: site.into(),
        route: route.into(),
        handler: HandlerKind::Files,
        program: String::new(),
    };
    let (a, b) = (
        series.number(name("a", "/*")),
        series.number(name("b", "/x")),
    );
    let mut writer = HistoryWriter::new(&history);
    for (number, change) in [
        Record {
            series: a,
            ..record(0, 1_000)
        },
        Record {
            series: b,
            status: 404,
            ..record(1, 2_000)
        },
        Record {
            handler: HandlerKind::Cgi,
            fault: Fault::Script,
            status: 502,
            ..record(2, 3_000)
        },
        Record {
            total_us: 2_000_000,
            ..record(3, 4_000)
        },
        Record {
            client: IpAddr::V6(Ipv6Addr::LOCALHOST),
            ..record(4, 5_000)
        },
    ]
    .into_iter()
    .enumerate()
    {
        let mut of = texts(["/", "/X/1?a", "/cgi-bin/t.sh", "/slow/*", "/six"][number]);
        if number == 0 {
            of.method = b"POST";
        }
        writer.push(&change, &of, 0);
    }
    writer.hand_over();
    let found = |filter: Filter| {
        let names = series.names();
        requests(&page(HistorySearch::newest(
            &history, &names, filter, None, 100,
        )))
    };
    let text = |text: &str| Some(text.to_owned());
    let none = Filter::default;
    for (filter, expected) in [
        (
            Filter {
                site: text("b"),
                ..none()
            },
            vec![1],
        ),
        (
            Filter {
                route: text("/*"),
                ..none()
            },
            vec![0],
        ),
        (
            Filter {
                site: text("c"),
                ..none()
            },
            vec![],
        ),
        (
            Filter {
                status: Statuses::parse("4xx"),
                ..none()
            },
            vec![1],
        ),
        (
            Filter {
                status: Statuses::parse("502"),
                ..none()
            },
            vec![2],
        ),
        (
            Filter {
                handler: Some(HandlerKind::Cgi),
                ..none()
            },
            vec![2],
        ),
        (
            Filter {
                fault: Some(Fault::Script),
                ..none()
            },
            vec![2],
        ),
        (
            Filter {
                slower_us: Some(100_000),
                ..none()
            },
            vec![3],
        ),
        (
            Filter {
                client: text("::1"),
                ..none()
            },
            vec![4],
        ),
        (
            Filter {
                client: text("10.1."),
                ..none()
            },
            vec![3, 2, 1, 0],
        ),
        (
            Filter {
                method: text("post"),
                ..none()
            },
            vec![0],
        ),
        (
            Filter {
                path: text("/x/*"),
                ..none()
            },
            vec![],
        ),
        (
            Filter {
                path: text("/X/?"),
                ..none()
            },
            vec![1],
        ),
        (
            Filter {
                text: text("x/1?A"),
                ..none()
            },
            vec![1],
        ),
        (
            Filter {
                text: text("agent/"),
                ..none()
            },
            vec![3, 4, 2, 1, 0],
        ),
        (
            Filter {
                since_unix_ms: Some(2_999),
                until_unix_ms: Some(4_000),
                ..none()
            },
            vec![3, 2],
        ),
    ] {
        let mut told = found(filter.clone());
        let mut expected = expected;
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(told, expected, "{filter:?}");
    }
}

#[test]
fn one_is_found_by_its_id() {
    let history = filled(1_000);
    let one = |text: &str| {
        let page = page(HistorySearch::one(
            &history,
            RequestId::parse(text).unwrap(),
        ));
        requests(&page)
    };
    assert_eq!(one("2.5.777"), [777]);
    assert_eq!(one("1.5.777"), Vec::<u32>::new());
    assert_eq!(one("9-2.5.777"), Vec::<u32>::new());
    for bad in [
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "a.b.c",
        "-1.2.3",
        "1-2-3.4.5",
        "1.2.-3",
    ] {
        assert_eq!(RequestId::parse(bad), None, "{bad}");
    }
}

#[test]
fn memory_has_an_end_and_so_has_time() {
    let history = Arc::new(RequestHistory::new(
        HERE,
        Retention {
            bytes_max: 200_000,
            time_max: Duration::from_secs(10),
        },
    ));
    let mut writer = HistoryWriter::new(&history);
    for request in 0..10_000 {
        writer.push(
            &record(request, 50_000),
            &texts("/a/target/like/any/other"),
            0,
        );
    }
    let held = history.holdings();
    assert!(held.bytes <= 200_000 && held.bytes > 100_000, "{held:?}");
    assert!(held.count > 1_000 && held.count < 10_000, "{held:?}");
    writer.hand_over();
    history.expire(60_000);
    assert!(history.holdings().count > 0);
    history.expire(60_001);
    assert_eq!(history.holdings(), Holdings::default());
    history.set_retention(Retention {
        bytes_max: 0,
        ..FOREVER
    });
    writer.push(&record(0, 70_000), &texts("/"), 0);
    writer.hand_over();
    assert_eq!(history.holdings().count, 0);
}

#[test]
fn an_open_segment_is_handed_over_when_it_is_a_second_old() {
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let mut writer = HistoryWriter::new(&history);
    let waiting = writer.waiting();
    assert!(!waiting.is_any());
    writer.push(&record(0, 1_000), &texts("/"), 5_000);
    writer.turn(5_999);
    assert_eq!((waiting.is_any(), history.holdings().count), (true, 0));
    writer.turn(6_000);
    assert_eq!((waiting.is_any(), history.holdings().count), (false, 1));
}

#[test]
fn whatever_is_cut_or_changed_is_refused_and_never_a_panic() {
    let history = filled(3);
    let segment = history.segments()[0].clone();
    let base = segment.extent.base_unix_ms;
    assert!(is_sound(&segment.bytes, base));
    for end in 0..segment.bytes.len() {
        let _ = is_sound(&segment.bytes[..end], base);
    }
    assert!(!is_sound(&segment.bytes[..segment.bytes.len() - 1], base));
    assert!(!is_sound(&[], base));
    for at in 0..segment.bytes.len() {
        let mut bytes = segment.bytes.clone();
        bytes[at] ^= 0xff;
        let _ = is_sound(&bytes, base);
    }
}

fn ring_file() -> std::fs::File {
    tempfile::tempfile().unwrap()
}

fn loaded(file: &std::fs::File) -> (Loaded, Arc<RequestHistory>, SeriesRegistry) {
    let history = Arc::new(RequestHistory::new(
        SegmentOrigin { run: 8, server: 1 },
        FOREVER,
    ));
    let series = SeriesRegistry::new(1);
    // Numbers are others here.
    series.number(SeriesName {
        site: "another".into(),
        route: "/".into(),
        handler: HandlerKind::Files,
        program: String::new(),
    });
    let file = HistoryFile::new(file.try_clone().unwrap(), FILE_BYTES_MIN);
    let loaded = file.load(&history, &series, 3_000_000).unwrap();
    (loaded, history, series)
}

#[test]
fn a_file_gives_back_what_was_written_with_the_names_of_routes() {
    let file = ring_file();
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let series = SeriesRegistry::new(1);
    let name = SeriesName {
        site: "example.org".into(),
        route: "/cgi-bin/*".into(),
        handler: HandlerKind::Cgi,
        program: "t".into(),
    };
    let number = series.number(name.clone());
    let mut writer = HistoryWriter::new(&history);
    let ring = HistoryFile::new(file.try_clone().unwrap(), FILE_BYTES_MIN);
    for request in 0..5 {
        let of = Record {
            series: number,
            ..record(request, 1_000 + u64::from(request))
        };
        writer.push(&of, &texts("/"), 0);
        writer.hand_over();
        ring.append(&history, &series).unwrap();
    }
    let (told, again, names) = loaded(&file);
    assert_eq!(
        told,
        Loaded {
            requests: 5,
            damaged: 0
        }
    );
    let page = newest(&again, Filter::default(), 10);
    assert_eq!(requests(&page), [4, 3, 2, 1, 0]);
    let told = page.found[0].finished().record;
    assert_eq!(*names.names()[usize::from(told.series)], name);
    assert_eq!(page.found[0].id.to_string(), "7-2.5.4");
}

#[test]
fn a_file_goes_round_and_keeps_the_newest() {
    let file = ring_file();
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let series = SeriesRegistry::new(1);
    let mut writer = HistoryWriter::new(&history);
    // Two writers, as while a server drains.
    let rings = [0; 2].map(|_| HistoryFile::new(file.try_clone().unwrap(), FILE_BYTES_MIN));
    let long = "x".repeat(900);
    for request in 0..3_000u32 {
        writer.push(
            &record(request, 1_000 + u64::from(request)),
            &texts(&long),
            0,
        );
        if request % 37 == 36 {
            writer.hand_over();
            rings[request as usize % 2]
                .append(&history, &series)
                .unwrap();
        }
    }
    writer.hand_over();
    rings[0].append(&history, &series).unwrap();
    assert!(file.metadata().unwrap().len() <= FILE_BYTES_MIN);
    let (told, again, _) = loaded(&file);
    assert_eq!(told.damaged, 0);
    assert!(told.requests > 700, "{told:?}");
    let page = newest(&again, Filter::default(), 1000);
    let expected: Vec<u32> = (3_000 - page.found.len() as u32..3_000).rev().collect();
    assert_eq!(requests(&page), expected);
}

#[test]
fn torn_and_foreign_bytes_are_passed_over() {
    let mut file = ring_file();
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let series = SeriesRegistry::new(1);
    let mut writer = HistoryWriter::new(&history);
    let ring = HistoryFile::new(file.try_clone().unwrap(), FILE_BYTES_MIN);
    for request in 0..4 {
        writer.push(&record(request, 1_000), &texts("/"), 0);
        writer.hand_over();
    }
    ring.append(&history, &series).unwrap();
    // The second is changed, the last is cut off in its middle, the head is gone.
    file.write_all_at(b"!", 512 * 2 + 60).unwrap();
    file.set_len(512 * 4 + 70).unwrap();
    file.write_all_at(&[0xff; 24], 0).unwrap();
    let (told, again, _) = loaded(&file);
    assert_eq!(
        told,
        Loaded {
            requests: 2,
            damaged: 2
        }
    );
    assert_eq!(requests(&newest(&again, Filter::default(), 9)), [2, 0]);
    // It goes on behind what can be read.
    writer.push(&record(9, 1_001), &texts("/"), 0);
    writer.hand_over();
    ring.append(&history, &series).unwrap();
    assert_eq!(
        loaded(&file).0,
        Loaded {
            requests: 3,
            damaged: 1
        }
    );
    // A file that never was one is no trouble.
    file.set_len(0).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&b"GET / HTTP/1.1\r\n".repeat(1_000))
        .unwrap();
    assert_eq!(loaded(&file).0, Loaded::default());
}

#[test]
fn what_a_file_does_not_take_is_written_later() {
    let history = filled(3);
    let series = SeriesRegistry::new(1);
    let full = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/full")
        .unwrap();
    HistoryFile::new(full, FILE_BYTES_MIN)
        .append(&history, &series)
        .unwrap_err();
    let file = ring_file();
    let ring = HistoryFile::new(file.try_clone().unwrap(), FILE_BYTES_MIN);
    ring.append(&history, &series).unwrap();
    assert_eq!(loaded(&file).0.requests, 3);
    assert_eq!(history.unwritten(), 0);
}

#[test]
fn what_leaves_memory_before_it_is_written_is_counted() {
    let history = filled(10);
    let series = SeriesRegistry::new(1);
    let ring = HistoryFile::new(ring_file(), FILE_BYTES_MIN);
    ring.append(&history, &series).unwrap();
    let mut writer = HistoryWriter::new(&history);
    writer.push(&record(0, 1_000), &texts("/"), 0);
    writer.hand_over();
    history.expire(u64::MAX);
    assert_eq!(history.unwritten(), 1);
}
