//! What a terminal shows of a run, and how it is left by signals.

use std::process::Command;

use super::harness::terminal::{ENTER, LEAVE, on_terminal};
use super::hello;
use super::server::{Reply, Server, answer};

/// What is shown of a run without end, with these steps.
fn shown(url: &str, steps: &str) -> String {
    let hob = env!("CARGO_BIN_EXE_hob");
    on_terminal(
        Command::new("python3"),
        steps,
        &[
            hob,
            "bench",
            url,
            "-c",
            "2",
            "--for",
            "1h",
            "--warm-up",
            "0s",
            "--think",
            "5ms",
            "--timeout",
            "1h",
        ],
    )
}

#[test]
fn terminal_shows_the_run_until_control_c_and_is_given_back() {
    let server = hello();
    let text = shown(
        &server.url(),
        r#"[["wait", "slowest"], ["type", "\u0003"]]"#,
    );
    let (screen, report) = text.split_once(LEAVE).unwrap_or_else(|| panic!("{text}"));
    assert!(screen.contains(ENTER), "{screen:?}");
    assert!(
        screen.contains("of 3600 s") && screen.contains("Ctrl-C"),
        "{screen:?}"
    );
    assert!(report.contains(", then interrupted\r\n"), "{report}");
    assert!(report.ends_with("\nEXIT 0 ECHO True\n"), "{report}");
}

#[test]
fn stall_is_said_on_a_screen_that_goes_on_being_drawn() {
    let server = Server::start(|number| match number {
        0..10 => Reply::Bytes(answer("200 OK", "hello\n")),
        _ => Reply::Never,
    });
    let steps = r#"[["wait", "no answer for"], ["draws", 3], ["type", "\u0003"]]"#;
    let text = shown(&server.url(), steps);
    let (screen, _) = text.split_once(LEAVE).unwrap_or_else(|| panic!("{text}"));
    assert!(screen.contains("no answer for"), "{screen:?}");
    assert!(text.ends_with("\nEXIT 0 ECHO True\n"), "{text}");
}

#[test]
fn control_z_gives_the_terminal_back_until_the_run_goes_on() {
    let server = hello();
    let steps = r#"[
        ["wait", "slowest"], ["type", "\u001a"], ["stops"], ["echo"],
        ["go on"], ["wait", "slowest"], ["echo"], ["type", "\u0003"]
    ]"#;
    let text = shown(&server.url(), steps);
    let (first, rest) = text
        .split_once("\nSTOPPED 1\n\nECHO 1\n")
        .unwrap_or_else(|| panic!("{text}"));
    assert!(first.contains(ENTER) && first.ends_with(LEAVE), "{first:?}");
    let (again, report) = rest.split_once(LEAVE).unwrap_or_else(|| panic!("{rest}"));
    // All of it, not only what has changed.
    assert!(again.starts_with(ENTER), "{again:?}");
    assert!(again.contains("closed loop, 2 connections"), "{again:?}");
    assert!(again.contains("\nECHO 0\n"), "{again:?}");
    assert!(report.contains(", then interrupted\r\n"), "{report}");
    assert!(report.ends_with("\nEXIT 0 ECHO True\n"), "{report}");
}

#[test]
fn quit_gives_the_terminal_back_and_ends_as_it_always_does() {
    let server = hello();
    let text = shown(
        &server.url(),
        r#"[["wait", "slowest"], ["type", "\u001c"]]"#,
    );
    // By the signal itself.
    let end = format!("{LEAVE}\nEXIT -3 ECHO True\n");
    assert!(text.ends_with(&end), "{text:?}");
}
