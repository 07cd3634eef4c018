//! What the head of an answer says of its visit.

use crate::place::serve;

/// A handle as a program of old made one for itself.
const OWN: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

#[test]
fn field_counts_wherever_it_stands_and_is_noted() {
    let shop = serve("");
    let handle = shop.begin();
    shop.said(&handle, "head?X-First=1&Accept-HTSession=H");
    let record = shop.record(&format!(
        "/shop/{}.../head?X-First=1&Accept-HTSession=H",
        &handle[1..5]
    ));
    let note = "Accept-HTSession is not the first field of the head";
    assert_eq!(record["note"], note);
    shop.said(&handle, "head?Accept-HTSession=H&Accept-HTSession=H");
    assert_eq!(shop.said(&handle, "add/tea"), "tea");
}

#[test]
fn handle_that_cannot_be_taken_is_the_programs_fault_and_ends_the_visit() {
    let shop = serve("");
    for (fields, reason) in [
        ("Accept-HTSession=42", "can be guessed"),
        ("Accept-HTSession=", "not one handle"),
        ("Accept-HTSession=a%20b", "not one handle"),
        ("Accept-HTSession=..%2F..%2Fa", "not one handle"),
        (
            &format!("Accept-HTSession=H&Accept-HTSession={OWN}"),
            "not one handle",
        ),
    ] {
        let handle = shop.begin();
        let pid = shop.pid_of(&handle);
        let target = format!("head?{fields}");
        assert_eq!(shop.status_of(&handle, &target), 502, "{fields}");
        let record = shop.record(&format!("/shop/{}.../{target}", &handle[1..5]));
        let told = record["reason"].as_str().unwrap();
        assert!(told.contains(reason), "{fields}: {told}");
        assert_eq!(record["fault"], "script");
        shop.gone(pid);
        assert_eq!(shop.status_of(&handle, "pid"), 410);
    }
    shop.counts("session_handles_refused", 5);
}

#[test]
fn handle_of_another_visit_is_not_taken() {
    let shop = serve("");
    let (one, other) = (shop.begin(), shop.begin());
    shop.said(&other, "add/tea");
    let target = format!("head?Accept-HTSession={other}");
    assert_eq!(shop.status_of(&one, &target), 502);
    assert_eq!(shop.status_of(&one, "pid"), 410);
    assert_eq!(shop.said(&other, "add/cup"), "tea,cup");
}

#[test]
fn programs_own_handle_is_taken_where_it_looks_random() {
    let shop = serve("overlap = \"0s\"");
    let handle = shop.begin();
    shop.said(&handle, "add/tea");
    shop.said(&handle, &format!("head?Accept-HTSession={OWN}"));
    assert_eq!(shop.said(OWN, "tell/HTSession"), OWN);
    assert_eq!(shop.said(OWN, &format!("head?Accept-HTSession={OWN}")), OWN);
    assert_eq!(shop.status_of(&handle, "pid"), 410);
}

#[test]
fn time_out_is_in_minutes_up_to_the_most() {
    let shop = serve("wait = \"2m\", wait_max = \"5m\"");
    let handle = shop.begin();
    let wait = || shop.visits()[0]["visits"][0]["wait_s"].clone();
    assert_eq!(wait(), 120);
    for (minutes, seconds) in [("3", 180), ("60", 300), ("0", 120), ("x", 120), ("-1", 120)] {
        shop.said(&handle, &format!("minutes/{minutes}"));
        assert_eq!(wait(), seconds, "{minutes}");
    }
    let record = shop.record(&format!("/shop/{}.../minutes/x", &handle[1..5]));
    assert_eq!(record["note"], "HTTimeout is no whole number of minutes");
    shop.said(&handle, "head?HTTimeout=5");
    let record = shop.record(&format!("/shop/{}.../head?HTTimeout=5", &handle[1..5]));
    let note = "HTTimeout without Accept-HTSession says nothing";
    assert_eq!(record["note"], note);
    assert_eq!(shop.status_of(&handle, "pid"), 410);
}
