//! Rows that tell more than CPU time: compressed copies, file systems, many clients.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;

use super::harness::{DEADLINE, Place, User, is_root, send_signal, text_of, wait_for_end};
use super::{below, compare, endless_with, has_nginx, left, result};

/// The first of the rows of a result, and the table.
fn measured(place: &Place, only: &str) -> (Value, String) {
    let json = place.path("result.json");
    let json = json.to_str().unwrap();
    let output = compare(place, &["--only", only, "--json", json])
        .args(["--round", "100ms", "--rounds", "1"])
        .output()
        .unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    (result(place, json)["rows"][0].clone(), text)
}

fn cells(row: &Value) -> &[Value] {
    row["cells"].as_array().unwrap()
}

fn cell<'a>(row: &'a Value, label: &str) -> &'a Value {
    let mut all = cells(row).iter();
    all.find(|cell| cell["label"] == label)
        .unwrap_or_else(|| panic!("no {label} in {row:#}"))
}

#[test]
fn compressed_copies_are_told_with_what_went_over_the_wire() {
    let place = Place::new();
    let (row, text) = measured(&place, "gzip.h1.clear.keep.64k.c10");
    for cell in cells(&row) {
        assert_eq!(cell["not_measured"], Value::Null, "{cell:#}");
        assert_eq!(cell["failed"], 0, "{cell:#}");
        let bytes = cell["body_bytes"].as_f64().unwrap();
        let is_plain = cell["label"].as_str().unwrap().ends_with("not compressed");
        assert_eq!(bytes == 65536.0, is_plain, "{cell:#}");
        assert!(bytes > 4096.0, "{cell:#}");
    }
    let bytes = |label| cell(&row, label)["body_bytes"].as_f64().unwrap();
    // The best that gzip does was made beforehand; what is made in a hurry is no shorter.
    assert!(bytes("hob, made each time") >= bytes("hob, copy beside it") * 0.98);
    assert!(text.contains("bytes of a body on the wire: hob, copy beside it "));
    if has_nginx() {
        assert_eq!(bytes("nginx, copy beside it"), bytes("hob, copy beside it"));
    }
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn clients_that_come_at_once_are_told_with_how_even_their_shares_are() {
    let place = Place::new();
    let (row, text) = measured(&place, "flow");
    assert_eq!(row["connections"], 30);
    // Apache closes connections that are kept where it has no thread left for them.
    for cell in cells(&row).iter().filter(|cell| cell["failed"] == 0) {
        let flow = &cell["flow"];
        assert_eq!(flow["clients"], 6, "{cell:#}");
        let fairness = flow["fairness"].as_f64().unwrap();
        assert!((1.0 / 6.0..=1.000_001).contains(&fairness), "{cell:#}");
        let round = &cell["rounds"][0];
        let good = round["good"].as_u64().unwrap();
        let least = round["flow"]["least_bytes"].as_u64().unwrap();
        let most = round["flow"]["most_bytes"].as_u64().unwrap();
        let all = good * 2_406_400;
        assert!(least <= all / 6 && all / 6 <= most, "{cell:#}");
    }
    assert_eq!(cell(&row, "hob")["failed"], 0, "{row:#}");
    assert!(text.contains("6 clients got "), "{text}");
    assert!(text.contains("Jain's index"), "{text}");
}

#[test]
fn file_lies_on_each_file_system_that_can_be_mounted_and_the_others_say_why_not() {
    let place = Place::for_user(User::Same);
    let (row, text) = measured(&place, "store.h1.clear.uncached");
    let not_measured: Vec<&Value> = cells(&row)
        .iter()
        .filter(|cell| !cell["not_measured"].is_null())
        .collect();
    if is_root() {
        for label in ["hob, tmpfs", "hob, overlay"] {
            assert_eq!(cell(&row, label)["failed"], 0, "{row:#}");
            assert_eq!(cell(&row, label)["not_measured"], Value::Null, "{row:#}");
        }
    }
    for cell in not_measured {
        let why = cell["not_measured"].as_str().unwrap();
        let is_told = [
            "this kernel knows no ",
            "only root can mount",
            "cannot mount",
            "exported",
        ];
        assert!(is_told.iter().any(|told| why.contains(told)), "{why}");
        println!("skipped: {}: {why}", cell["label"]);
    }
    // The first is what lies in the temporary folder, with nothing mounted.
    assert_eq!(cells(&row)[0]["not_measured"], Value::Null, "{text}");
    if Path::new("/dev/fuse").exists() && is_root() {
        let fuse = cell(&row, "hob, fuse");
        assert!(fuse["rounds"][0]["good"].as_u64().unwrap() > 0, "{fuse:#}");
    }
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

/// Does a process see something mounted below a folder? One that has ended sees nothing.
fn sees_mounts(process: &str, folder: &Path) -> bool {
    let mounts = std::fs::read_to_string(format!("/proc/{process}/mountinfo"));
    let folder = folder.display().to_string();
    mounts.is_ok_and(|mounts| mounts.lines().any(|line| line.contains(&folder)))
}

#[test]
fn killed_comparison_leaves_no_mount_behind() {
    if !is_root() {
        return println!("skipped: mounting needs root");
    }
    let place = Place::for_user(User::Same);
    let run = place.path("run");
    let only = ["--only", "store.h1.clear.uncached"];
    let (mut child, _) = endless_with(&place, &only, "hob");
    let begun = Instant::now();
    let mut started = below(child.id());
    // Those in a mount namespace of their own see it, and nobody else.
    while !started
        .iter()
        .any(|pid| sees_mounts(&pid.to_string(), &run))
    {
        assert!(begun.elapsed() < DEADLINE, "nothing is mounted");
        std::thread::yield_now();
        started = below(child.id());
    }
    assert!(!sees_mounts("self", &run));
    send_signal(child.id(), Signal::KILL);
    child.wait().unwrap();
    for pid in started {
        wait_for_end(pid);
    }
    assert!(!sees_mounts("self", &run));
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}
