//! Client and servers in two network namespaces, joined by a link.

use std::path::PathBuf;

use super::harness::{Place, User, is_root, text_of};
use super::{compare, left, result};

#[test]
fn servers_answer_over_a_link_and_no_faster_than_it_carries() {
    if !is_root() {
        return println!("skipped: a link between network namespaces needs root");
    }
    let place = Place::for_user(User::Same);
    let json = place.path("result.json");
    let json = json.to_str().unwrap();
    let only = ["file.h1.clear.keep.64k.c10", "file.h1.clear.close.0k.c1"];
    let output = compare(&place, &["--link", "20Mbit,4ms", "--json", json])
        .args(["--round", "300ms", "--rounds", "1"])
        .args(only.map(|row| ["--only", row]).as_flattened())
        .output()
        .unwrap();
    let text = text_of(&output);
    if text.contains("a TUN device") {
        return println!("skipped: {text}");
    }
    assert!(output.status.success(), "{text}");
    assert!(text.contains("of link"), "{text}");
    assert!(text.contains("a link of 20 Mbit/s each way, a round trip takes 4 ms longer"));
    let told = result(&place, json);
    assert_eq!(told["link"]["bits_per_second"], 20_000_000);
    assert_eq!(told["link"]["round_trip_us"], 4000.0);
    assert!(told["link"]["frames"]["passed"].as_u64().unwrap() > 0);
    assert!(text.contains("frames that the link lost: hob "), "{text}");
    let rows = told["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{text}");
    // All that were found serve files: each has answered.
    for row in rows {
        for cell in row["cells"].as_array().unwrap() {
            assert_eq!(cell["not_measured"].as_str(), None, "{cell:#}");
            assert_eq!(cell["failed"], 0, "{cell:#}");
            // All frames are counted, and those that were lost.
            let frames = &cell["link_frames"];
            assert!(frames["passed"].as_u64().unwrap() > 0, "{cell:#}");
            assert!(frames["lost"].is_u64(), "{cell:#}");
            let percent = cell["link_percent"].as_f64().unwrap();
            assert!(percent <= 100.0, "{cell:#}");
            let round = &cell["rounds"][0];
            assert!(round["good"].as_u64().unwrap() > 0, "{cell:#}");
            // Opening a connection takes the way there and back as well.
            let trips = if row["keep_alive"] == true { 1.0 } else { 2.0 };
            assert!(
                round["p50_us"].as_f64().unwrap() >= trips * 4000.0,
                "{cell:#}"
            );
        }
    }
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn link_that_cannot_be_made_is_refused_with_what_it_needs() {
    let place = Place::new();
    if !is_root() {
        println!("whoever is no root makes no namespace either");
    }
    let arguments = [
        "--link",
        "1Gbit,0.2ms",
        "--only",
        "file.h1.clear.keep.0k.c1",
    ];
    let output = compare(&place, &arguments).output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("--link: ") && text.contains("it needs root"),
        "{text}"
    );
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn wrong_link_is_refused_with_what_to_write() {
    let place = Place::new();
    for (link, wanted) in [
        ("1Gbit", "it has no comma"),
        (
            "1Gigabit,1ms",
            "\"1Gigabit\" is no rate; write 1Gbit, 100Mbit",
        ),
        ("1Gbit,0.2", "\"0.2\" is no duration"),
        ("1Gbit,1m", "\"1m\" is too long, 10s is the most"),
    ] {
        let output = compare(&place, &["--link", link]).output().unwrap();
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(wanted), "{text}");
        assert!(
            text.contains("write RATE,DELAY as in 1Gbit,0.2ms"),
            "{text}"
        );
    }
}

#[test]
fn programs_on_another_machine_are_asked_by_servers_behind_a_link() {
    if !is_root() {
        return println!("skipped: a link between network namespaces needs root");
    }
    let place = Place::for_user(User::Same);
    let json = place.path("result.json");
    let json = json.to_str().unwrap();
    // Over the loopback of the servers' machine, and from there to a third one.
    let only = ["remote.c.loopback.0k.c1", "remote.c.200us.0k.c1"];
    let output = compare(&place, &["--link", "1Gbit,1ms", "--json", json])
        .args(["--round", "50ms", "--rounds", "1", "--servers", "nginx"])
        .args(only.map(|row| ["--only", row]).as_flattened())
        .output()
        .unwrap();
    let text = text_of(&output);
    if text.contains("a TUN device") || text.contains("no rows with a program in C") {
        return println!("skipped: {text}");
    }
    assert!(output.status.success(), "{text}");
    let told = result(&place, json);
    let rows = told["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{text}");
    for row in rows {
        for cell in row["cells"].as_array().unwrap() {
            assert_eq!(cell["not_measured"].as_str(), None, "{cell:#}");
            assert_eq!(cell["failed"], 0, "{cell:#}");
            let round = &cell["rounds"][0];
            assert!(round["good"].as_u64().unwrap() > 0, "{cell:#}");
            assert!(round["p50_us"].as_f64().unwrap() >= 1000.0, "{cell:#}");
        }
    }
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}
