//! `hob check`: what is wrong with a config, for people and for programs, and what a key means.

mod harness;

use harness::{Place, text_of};

#[test]
fn sound_config_says_so_and_exits_0() {
    let place = Place::new();
    place.write_config("", "site");
    let output = place.run(&["check"]);
    assert_eq!(
        (output.status.code(), text_of(&output).as_str()),
        (Some(0), "hob.toml: no errors\n")
    );
}

#[test]
fn every_error_is_told_with_its_place_and_the_nearest_word() {
    let place = Place::new();
    place.write_config("drian = \"10s\"\nthreads = \"many\"", "site");
    let output = place.run(&["check", "--config", "hob.toml"]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("hob.toml:1:1: error") && text.contains("drain"),
        "{text}"
    );
    assert!(text.contains("hob.toml:2:"), "{text}");
}

#[test]
fn programs_get_json() {
    let place = Place::new();
    place.write_config("drian = \"10s\"", "site");
    let output = place.run(&["check", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&answer["ok"], output.status.code()),
        (&false.into(), Some(2))
    );
    assert_eq!(
        (&answer["errors"][0]["file"], &answer["errors"][0]["line"]),
        (&"hob.toml".into(), &1.into())
    );
    place.write_config("", "site");
    let output = place.run(&["check", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["ok"], true);
}

#[test]
fn key_is_explained_and_an_unknown_one_exits_2() {
    let place = Place::new();
    let output = place.run(&["check", "--explain", "backlog"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text_of(&output).contains("listen.backlog"),
        "{}",
        text_of(&output)
    );
    let output = place.run(&["check", "--explain", "no-such-key"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn reference_and_schema_are_printed_and_an_unknown_key_has_a_nearest_one() {
    let place = Place::new();
    let reference = text_of(&place.run(&["check", "--reference"]));
    assert!(reference.starts_with("# Config reference\n"), "{reference}");
    assert!(reference.contains("\n### `limits.head_time`\n"));
    let output = place.run(&["check", "--schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["properties"]["limits"]["type"], "object");
    let text = text_of(&place.run(&["check", "--explain", "backlok"]));
    assert!(text.contains("did you mean `backlog`?"), "{text}");
}
