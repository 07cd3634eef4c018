//! What is said of configs and command lines that are wrong in the ways people get them wrong:
//! `wrong/NAME.toml` in, what `hob check` prints in `NAME.out`.
//!
//! `UPDATE_GOLDEN=1` writes the answers instead of comparing them. The folder of the test is shown
//! as `DIR`; it has a folder `site`.

mod harness;

use std::fs;
use std::path::Path;

use harness::{Place, text_of};

/// Where the cases are, from the folder in which tests run: the package's.
const CASES: &str = "tests/wrong";

/// What a command says, with its exit code.
fn answer(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    let code = output.status.code();
    assert_eq!(code, Some(2), "{arguments:?}: {}", text_of(&output));
    let dir = place.path("").display().to_string();
    text_of(&output).replace(dir.trim_end_matches('/'), "DIR")
}

#[test]
fn each_wrong_config_gets_its_golden_answer() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let place = Place::new();
    let mut different = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(CASES).unwrap() {
        let case = entry.unwrap().path();
        if case.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        count += 1;
        let name = case.file_name().unwrap().to_str().unwrap();
        place.write(name, &fs::read_to_string(&case).unwrap());
        let answer = answer(&place, &["check", "--no-machine", "--config", name]);
        assert!(longest_list(&answer) <= 8, "a wall of words:\n{answer}");
        let golden = case.with_extension("out");
        if update {
            fs::write(&golden, &answer).unwrap();
        } else if fs::read_to_string(&golden).unwrap_or_default() != answer {
            different.push(format!("--- {}\n{answer}", case.display()));
        }
    }
    assert!(count >= 35, "{count} cases");
    assert!(
        different.is_empty(),
        "answers differ (UPDATE_GOLDEN=1 accepts):\n{}",
        different.join("\n")
    );
}

/// Words in quotes, one behind the other, within the longest list of an answer.
fn longest_list(answer: &str) -> usize {
    let lists = answer.lines().map(|line| line.matches("`, `").count() + 1);
    lists.max().unwrap_or(0)
}

#[test]
fn each_wrong_command_line_is_told_what_to_write() {
    let place = Place::new();
    place.write("hob.toml", "[[site]]\nroot = \"site\"\n");
    for (arguments, told) in [
        (
            &["serve", "/no/such/folder"][..],
            "hob: there is no folder /no/such/folder\n",
        ),
        (
            &["serve", "hob.toml"],
            "hob: hob.toml is a file; a config is named with `--config hob.toml`\n",
        ),
        (
            &["serve", "site", "--listen", "kettle"],
            "command line: error: `kettle` is no address to listen on\n   do: write \
             `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080`, `unix:PATH` or \
             `systemd:NAME`\n1 error\n",
        ),
        (
            &["watch", "slow=10"],
            "hob: \"slow=10\" is no filter; did you mean `slower=10`?\n",
        ),
        (
            &["history", "statu=500"],
            "hob: \"statu=500\" is no filter; did you mean `status=500`?\n",
        ),
        (
            &["check", "--explain", "no_such_key"],
            "hob: there is no key `no_such_key`; `hob check --reference` lists them all\n",
        ),
    ] {
        assert_eq!(answer(&place, arguments), told);
    }
    let told = answer(&place, &["serve", "--port", "8097"]);
    assert!(told.contains("tip: write '--listen 8097'"), "{told}");
}

#[test]
fn reader_that_has_left_is_no_fault() {
    let place = Place::new();
    place.write(
        "hob.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n",
    );
    for arguments in [
        &["check", "--reference"][..],
        &["check", "--explain", "body"],
        &["check"],
        &["explain", "GET", "/"],
        &["bench", "--reference"],
        &["compare", "--list"],
        &["cost", "--schema"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.command();
        let output = command.args(arguments).stdout(writer).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            text_of(&output)
        );
    }
}

#[test]
fn words_of_other_servers_and_aliases_are_explained() {
    let place = Place::new();
    let explained = |word: &str| {
        let output = place.run(&["check", "--explain", word]);
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        text_of(&output)
    };
    let body = explained("client_max_body_size");
    assert!(
        body.starts_with("client_max_body_size, a word of nginx"),
        "{body}"
    );
    assert!(
        body.contains("hob's word is `body`: `body = \"10MiB\"`"),
        "{body}"
    );
    assert!(
        body.contains("\nlimits.body\n") && body.contains("\nsite.route.body\n"),
        "{body}"
    );
    assert!(explained("max_body").contains("\nlimits.body\n"));
    let alias = explained("datadir");
    assert!(
        alias.starts_with("datadir has another name here\n\nstate\n"),
        "{alias}"
    );
    let lacks = explained("ProxyRequests");
    assert!(
        lacks.contains("this version has no forward proxy\n"),
        "{lacks}"
    );
    assert!(lacks.contains("see how-to/coming-from.md"), "{lacks}");
    // A key of ours is explained as it was, also where others have a word like it.
    assert!(explained("limits.body").starts_with("limits.body\n"));
    let output = place.run(&["check", "--words"]);
    assert!(text_of(&output).contains("\n| `proxy_pass` `ProxyPass` "));
}

#[test]
fn pages_that_answers_name_are_there() {
    let docs = Path::new("../../docs/src");
    let mut named = 0;
    for entry in fs::read_dir(CASES).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for rest in text.split("see how-to/").skip(1) {
            let page = rest.split_whitespace().next().unwrap();
            assert!(docs.join("how-to").join(page).is_file(), "{page}");
            named += 1;
        }
    }
    assert!(named > 5);
}
