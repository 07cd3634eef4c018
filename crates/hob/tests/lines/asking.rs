//! What a program is told, and what it asks.

use crate::harness::client::call;
use crate::program::{serve, serve_one};

#[test]
fn variables_are_told_in_lines_and_in_blocks() {
    let site = serve_one();
    let names = "SCRIPT_NAME,REQUEST_METHOD,QUERY_STRING,HTTP_X_FIELD,HTTP_NONE,HOB_FD";
    let target = format!("/app/tell/{names}?a=b%20c");
    let ask = |expected: &str| {
        let reply = call(
            site.port(),
            "GET",
            &target,
            "X-Field: =a \"value\"\r\n",
            b"",
        );
        assert_eq!(reply.answer.text(), expected);
    };
    let expected = "SCRIPT_NAME=/app\nREQUEST_METHOD=GET\nQUERY_STRING=a=b%20c\n\
                    HTTP_X_FIELD==a \"value\"\nHTTP_NONE=-\nHOB_FD=-";
    ask(expected);
    assert_eq!(site.text("/app/struct_from_now_on"), "asked");
    ask(expected);
    site.stop();
}

#[test]
fn callouts_are_answered_and_quiet_ones_are_not() {
    let site = serve_one();
    let worker = site.worker();
    let root = site.place.path("site");
    let root = root.to_str().unwrap();
    for (callout, expected) in [
        ("NOOP:", "200 ok\n".to_owned()),
        ("MAP-PATH:_/a/../b", format!("200 {root}/b\n")),
        ("TIMEOUT:_10s", "200 ok\n".to_owned()),
        ("lifetime:_-1", "200 ok\n".to_owned()),
        ("FLY:_away", "400 unknown callout\n".to_owned()),
        ("!NOOP:", String::new()),
        ("!LOG:_info_a_word_from_the_program", String::new()),
    ] {
        assert_eq!(site.text(&format!("/app/call_out/{callout}")), expected);
    }
    site.hob().wait_for("a word from the program");
    assert_eq!(
        site.text("/app/call_out_midway"),
        format!("before 200 {root}/x after")
    );
    assert_eq!(site.worker(), worker);
    site.stop();
}

#[test]
fn program_can_ask_for_less_time() {
    let site = serve("workers = { max = 1 }, grace = \"100ms\"");
    assert_eq!(site.text("/app/call_out/!LIFETIME:_1"), "");
    assert_eq!(site.text("/app/call_out/TIMEOUT:_5m"), "200 ok\n");
    site.stop();
}
