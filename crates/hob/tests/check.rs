//! `hob check`: what is wrong with a config, for people and for programs, and what a key means.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "check/machine.rs"]
mod machine;
#[path = "check/starts.rs"]
mod starts;

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
    let page = text_of(&place.run(&["check", "--explain", "503"]));
    for reason in ["## 503: ", "no worker became free"] {
        assert!(page.contains(reason), "{page}");
    }
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

#[test]
fn programs_that_would_be_sent_as_source_are_named() {
    let place = Place::new();
    for folder in ["site/static", "site/cgi-bin"] {
        place.folder(folder);
    }
    place.write("site/static/old.php", "<?php echo 1;");
    place.write("site/static/a.css", "a {}");
    let check = |static_above: bool, cgi_path: &str| {
        let files = "[[site.route]]\npath = \"/static/*\"\nfiles = { root = \"site/static\" }\n";
        let php = "[[site.route]]\npath = \"*.php\"\n\
                   cgi = { dir = \"site\", interpreters = { \".php\" = \"sh\" } }\n";
        let routes = match static_above {
            true => format!("{files}{php}"),
            false => format!("{php}{files}"),
        };
        let cgi = format!("[[site.route]]\npath = \"{cgi_path}\"\ncgi = \"site/cgi-bin\"\n");
        let text = harness::config("", "site");
        place.write("hob.toml", &format!("{text}{routes}{cgi}"));
        let output = place.run(&["check"]);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        text_of(&output)
    };
    let sent = |text: &str| text.matches("sent as they stand").count();
    assert!(!check(false, "/cgi-bin/*").contains("source and all"));
    let told = check(true, "/cgi-bin/*");
    assert!(
        told.contains("site/static/old.php is sent as it stands, source and all"),
        "{told}"
    );
    assert_eq!(sent(&told), 0, "{told}");
    let told = check(false, "/programs/*");
    assert!(told.contains("below /cgi-bin/"), "{told}");
    assert_eq!(sent(&told), 1, "{told}");
}
