//! Changing the config from the pages.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Hob, Place, User, config, is_root, text_of};
use crate::place::{KETTLE, Pages, Visitor, admin, json_of, serve};

/// A server that owns its config and lets it be edited.
fn serve_own(place: &Place, keys: &str) -> Hob {
    let text = format!(
        "# by hand\n{}\n{}",
        config("drain = \"1s\" # short", "site"),
        admin(keys)
    );
    place.write("hob.toml", &text);
    let owner = place.path("run").metadata().unwrap();
    let path = place.path("hob.toml");
    std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    place.serve(&["--config", "hob.toml"])
}

/// The one file of the config.
fn file(visitor: &Visitor<'_>) -> Value {
    visitor.look("/v1/config")["files"][0].clone()
}

fn apply(visitor: &Visitor<'_>, file: &Value, text: &str) -> crate::harness::client::Answer {
    let body = json!({ "path": file["path"], "text": text, "base_hash": file["hash"] });
    visitor.post("/v1/config/apply", &body)
}

#[test]
fn a_change_is_checked_shown_made_and_taken_back() {
    let place = Place::new();
    let hob = serve_own(&place, "edit = true");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let told = visitor.look("/v1/config");
    assert_eq!(
        (&told["editable"], &told["why_not"]),
        (&json!(true), &Value::Null)
    );
    let before = file(&visitor);
    let old = before["text"].as_str().unwrap().to_owned();
    let new = old.replace("drain = \"1s\"", "drain = \"2s\"");
    let with_text = |text: &str| json!({ "path": before["path"], "text": text });
    let checked = visitor.act("/v1/config/check", &with_text(&new));
    assert_eq!(
        (&checked["ok"], &checked["faults"]),
        (&json!(true), &json!([]))
    );
    let diff = visitor.act("/v1/config/diff", &with_text(&new))["diff"].clone();
    let diff = diff.as_str().unwrap();
    assert!(
        diff.contains("\n-drain = \"1s\" # short\n+drain = \"2s\" # short\n"),
        "{diff}"
    );

    let answer = apply(&visitor, &before, &new);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(json_of(&answer)["generation"], 2);
    let on_disk = || std::fs::read_to_string(place.path("hob.toml")).unwrap();
    assert_eq!(on_disk(), new);
    assert!(on_disk().starts_with("# by hand\n"));
    assert_eq!(place.status()["generation"], 2);

    let back = visitor.act("/v1/config/rollback", &json!({}));
    assert_eq!(back["generation"], 3);
    assert_eq!(on_disk(), old);
    let again = visitor.post("/v1/config/rollback", &json!({}));
    assert_eq!(again.status, 409);
    assert_eq!(
        std::fs::read_dir(place.path("")).unwrap().count(),
        4,
        "nothing is left beside"
    );
    hob.stop();
}

#[test]
fn a_change_with_a_fault_is_refused_and_the_old_config_stays() {
    let place = Place::new();
    let hob = serve_own(&place, "edit = true");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let before = file(&visitor);
    let old = before["text"].as_str().unwrap().to_owned();
    let wrong = old.replace("drain", "drian");
    let body = json!({ "path": before["path"], "text": wrong });
    let checked = visitor.act("/v1/config/check", &body);
    assert_eq!(checked["ok"], false);
    let fault = &checked["faults"][0];
    assert_eq!((&fault["line"], &fault["column"]), (&json!(2), &json!(1)));
    assert!(
        fault["text"]
            .as_str()
            .unwrap()
            .contains("did you mean `drain`?")
    );
    let answer = apply(&visitor, &before, &wrong);
    assert_eq!(answer.status, 422);
    assert!(json_of(&answer)["faults"][0]["line"] == 2);
    // Right as far as a look can tell, but not for a running server: the address is taken.
    let port = pages.port;
    let taken = old.replacen("127.0.0.1:0", &format!("127.0.0.1:{port}"), 1);
    let answer = apply(&visitor, &before, &taken);
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert!(
        answer.text().contains("the file is as it was before"),
        "{}",
        answer.text()
    );
    assert_eq!(
        std::fs::read_to_string(place.path("hob.toml")).unwrap(),
        old
    );
    assert_eq!(place.status()["generation"], 1);
    visitor.look("/v1/session");
    hob.stop();
}

#[test]
fn nobody_overwrites_what_they_have_not_seen() {
    let place = Place::new();
    let hob = serve_own(&place, "edit = true");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let before = file(&visitor);
    let text = before["text"].as_str().unwrap();
    std::fs::write(place.path("hob.toml"), format!("{text}# meanwhile\n")).unwrap();
    let answer = apply(&visitor, &before, &format!("{text}# mine\n"));
    assert_eq!(answer.status, 409);
    assert!(answer.text().contains("has changed meanwhile"));
    assert_eq!(file(&visitor)["in_force"], false);
    for path in ["/etc/passwd", "../hob.toml", ""] {
        for action in ["check", "diff", "apply"] {
            let body = json!({ "path": path, "text": "x", "base_hash": before["hash"] });
            let answer = visitor.post(&format!("/v1/config/{action}"), &body);
            assert_eq!(answer.status, 404, "{action} {path}");
        }
    }
    let answer = visitor.post("/v1/config/apply", &json!({ "path": "x" }));
    assert_eq!(answer.status, 400);
    hob.stop();
}

#[test]
fn who_may_not_edit_is_told_why() {
    let place = Place::new();
    let user = format!("[[admin.user]]\nname = \"ben\"\npassword = \"{KETTLE}\"\n");
    let hob = serve_own(&place, &user);
    let pages = Pages::of(&hob);
    let operator = pages.operator();
    let told = operator.look("/v1/config");
    assert_eq!(told["editable"], false);
    assert!(told["why_not"].as_str().unwrap().contains("`edit = true`"));
    assert!(file(&operator)["text"].as_str().unwrap().contains(KETTLE));
    let before = file(&operator);
    let answer = apply(&operator, &before, before["text"].as_str().unwrap());
    assert_eq!(answer.status, 403);
    // Who may only look could guess at passwords.
    let ben = pages.visitor(&json!({ "user": "ben", "password": "kettle" }));
    let seen = file(&ben);
    assert!(!seen["text"].as_str().unwrap().contains("$argon2"));
    assert_eq!(apply(&ben, &seen, "").status, 403);
    // A text without its passwords is none to put in the place of what is there.
    assert!(seen["command"].is_null());
    let path = place.path("hob.toml").display().to_string();
    let base = before["hash"].as_str().unwrap();
    let command = format!("hob config apply --config {path} --file {path} --base {base} new.toml");
    assert_eq!(before["command"], command);
    hob.stop();
}

#[test]
fn what_root_started_is_not_changed_from_a_page() {
    if !is_root() {
        println!("skipped: needs root, to start hob as root");
        return;
    }
    let place = Place::for_user(User::Same);
    let hob = serve(&place, "", "edit = true");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let told = visitor.look("/v1/config");
    assert!(
        told["why_not"]
            .as_str()
            .unwrap()
            .contains("started by root"),
        "{told}"
    );
    let before = file(&visitor);
    let answer = apply(&visitor, &before, before["text"].as_str().unwrap());
    assert_eq!(answer.status, 403);
    // The page tells what to type: exactly that changes it, once.
    let text = before["text"].as_str().unwrap();
    place.write("new.toml", &format!("{text}\n# By root.\n"));
    let command = before["command"].as_str().unwrap();
    let typed = command.replacen("sudo hob", "./hob", 1);
    let run = || {
        let mut shell = place.command_of(Path::new("sh"));
        shell.args(["-c", &typed]).output().unwrap()
    };
    let applied = run();
    assert!(applied.status.success(), "{}", text_of(&applied));
    assert!(
        file(&visitor)["text"]
            .as_str()
            .unwrap()
            .ends_with("# By root.\n")
    );
    assert_eq!(file(&visitor)["in_force"], true);
    let again = run();
    assert_eq!(again.status.code(), Some(1), "{}", text_of(&again));
    hob.stop();
}

/// Whoever may look may have a text checked: that must tell of no other file of the machine, and
/// wait for none.
#[test]
fn text_that_is_checked_includes_nothing_outside_the_config() {
    let place = Place::new();
    let hob = serve_own(&place, "edit = true");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let before = file(&visitor);
    let own = place.path("");
    let own = own.display();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("pipe.toml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
        0,
    )
    .unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(
        elsewhere.path().join("secret.toml"),
        "password = \"hidden\"\n",
    )
    .unwrap();
    let elsewhere = elsewhere.path().display();
    let outside = "is not below the folder of the config";
    for (include, told) in [
        ("/dev/ptmx".to_owned(), outside),
        ("/etc/*".to_owned(), outside),
        (format!("{elsewhere}/secret.toml"), outside),
        (format!("{own}/../*/secret.toml"), outside),
        (format!("{own}/pipe.toml"), "it is no regular file"),
        ("missing.toml".to_owned(), "there is no such file"),
    ] {
        let text = before["text"].as_str().unwrap();
        let text = format!("include = [{include:?}]\n{text}");
        let asked = json!({ "path": before["path"], "text": text });
        let checked = visitor.act("/v1/config/check", &asked).to_string();
        assert!(checked.contains(told), "{include}: {checked}");
        assert!(!checked.contains("hidden"), "{checked}");
    }
    hob.stop();
}

/// Values of variables are passwords of databases and keys of others' services.
#[test]
fn who_may_only_look_sees_and_learns_no_values_of_variables() {
    let place = Place::new();
    let hob = serve_own(
        &place,
        &format!(
            "edit = true\n[[admin.user]]\nname = \"ben\"\npassword = \"{KETTLE}\"\n\
             [program]\nenv = {{ TOKEN = \"sesame\", FOLDER = \"${{XDG_STATE_HOME}}\" }}\n"
        ),
    );
    let pages = Pages::of(&hob);
    let operator = pages.operator();
    assert!(file(&operator)["text"].as_str().unwrap().contains("sesame"));
    let ben = pages.visitor(&json!({ "user": "ben", "password": "kettle" }));
    let seen = file(&ben);
    let text = seen["text"].as_str().unwrap();
    let hidden = "env = { TOKEN = \"(hidden)\", FOLDER = \"(hidden)\" }\n";
    assert!(text.contains(hidden), "{text}");
    let act = |visitor: &Visitor<'_>, what: &str, text: &str| {
        let body = json!({ "path": seen["path"], "text": text });
        visitor
            .act(&format!("/v1/config/{what}"), &body)
            .to_string()
    };
    assert_eq!(act(&ben, "diff", text), json!({ "diff": "" }).to_string());
    let all = act(&ben, "diff", "");
    assert!(!all.contains("sesame") && !all.contains("$argon2"), "{all}");
    // What is told of a text could tell a variable that the config has as such a value.
    let asks = "[[listen]]\naddress = \"${XDG_STATE_HOME}\"\n";
    let folder = place.path("run").display().to_string();
    let told = act(&operator, "check", asks);
    assert!(told.contains(&folder), "{told}");
    let told = act(&ben, "check", asks);
    assert!(!told.contains(&folder), "{told}");
    hob.stop();
}

#[test]
fn a_pipe_in_the_place_of_the_config_holds_nobody_up() {
    let place = Place::new();
    let hob = serve_own(&place, "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let (before, pipe) = (file(&visitor), place.path("pipe"));
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
    std::fs::rename(pipe, place.path("hob.toml")).unwrap();
    let now = file(&visitor);
    assert_eq!(now["on_disk"], false);
    assert_eq!(now["text"], before["text"]);
    let body = json!({ "path": before["path"], "text": "" });
    assert_eq!(visitor.post("/v1/config/diff", &body).status, 409);
    hob.stop();
}
