//! Who may what, and whether a request would be let in: told by the config in force, tried without
//! a password, a request or a count.

use serde_json::{Value, json};

use crate::harness::client::ask;
use crate::harness::{Hob, Place};
use crate::place::{KETTLE, Pages, Visitor, admin, json_of};

/// A site with a route for each way to keep somebody out, and one that only answers with TLS.
const SITES: &str = r#"
[[listen]]
address = "127.0.0.1:0"

[[listen]]
address = "127.0.0.1:0"
tls = true

[[auth]]
name = "staff"
htpasswd = "users"
groups = "groups"

[[auth]]
name = "tokens"
jwt = { keys = "jwks.json", issuer = "https://id.test", audience = ["shop"] }

[[auth]]
name = "sso"
forward = { path = "/verify" }

[[ban]]
name = "guessers"
refused = ["sign_in"]
status = ["404"]
count = "3/10m"
time = "1h"

[[site]]
root = "site"
rate = "3/1h"

[[site.route]]
path = "/office/*"
files = {}
access = { allow = ["10.0.0.0/8"], deny = ["10.9.0.0/16"], methods = ["GET"] }

[[site.route]]
path = "/lab/*"
files = {}
require = { auth = "staff", users = ["ann"], groups = ["lab"] }

[[site.route]]
path = "/any/*"
files = {}
access = { allow = ["10.0.0.0/8"] }
require = { auth = "staff", satisfy = "any" }

[[site.route]]
path = "/api/*"
files = {}
require = { auth = "tokens", groups = ["lab"] }

[[site.route]]
path = "/app/*"
files = {}
require = { auth = "sso", users = ["ann"] }
concurrency = { requests = 3 }

[[site.route]]
path = "/verify"
internal = true
respond = { status = 204 }

[[site]]
names = ["tls.test"]
https_only = true

[[site.route]]
path = "/*"
respond = { body = "well" }
"#;

/// A public key, as an issuer publishes it.
const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","alg":"EdDSA",
"x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

fn start(place: &Place) -> Hob {
    for folder in ["office", "lab", "any", "api", "app"] {
        place.folder(&format!("site/{folder}"));
        place.write(&format!("site/{folder}/a.txt"), "within\n");
    }
    // Nobody has these passwords: none is asked for here.
    place.write("users", "ann:{SHA}x\nbob:{SHA}x\ncid:{SHA}x\n");
    place.write("groups", "lab: bob\n");
    place.write("jwks.json", KEYS);
    let user =
        format!("[[admin.user]]\nname = \"ben\"\npassword = \"{KETTLE}\"\nrole = \"look\"\n");
    place.serve_text(&format!("{}{}{SITES}", admin(""), user))
}

/// A trial: outcome, status, the rule that decides, and what it is provided that.
fn tried(visitor: &Visitor<'_>, query: &str) -> (String, Value, Value, String) {
    let told = visitor.look(&format!("/v1/explain?{query}"));
    let verdict = &told["verdict"];
    (
        verdict["outcome"].as_str().unwrap().to_owned(),
        told["answer"]["status"].clone(),
        verdict["rule"].clone(),
        verdict["provided"].to_string(),
    )
}

/// The line of the config that begins so behind the route of a path.
fn line_of(path: &str, key: &str) -> String {
    let text = format!("{}{}", admin(""), USER_LINES) + SITES;
    let lines: Vec<&str> = text.lines().collect();
    let route = format!("path = \"{path}\"");
    let from = lines.iter().position(|line| *line == route).unwrap();
    let behind = lines[from..].iter().position(|line| line.starts_with(key));
    format!(":{}", from + behind.unwrap() + 1)
}

/// As many lines as the user of the pages has.
const USER_LINES: &str = "\n\n\n\n";

#[test]
fn who_may_what_is_told_of_every_route() {
    let place = Place::new();
    let hob = start(&place);
    let pages = Pages::of(&hob);
    let visitor = pages.visitor(&json!({ "user": "ben", "password": "kettle" }));
    let told = visitor.look("/v1/access");
    let routes = told["sites"][0]["routes"].as_array().unwrap();
    let row = |path: &str| routes.iter().find(|one| one["path"] == path).unwrap();
    let whos = [
        (
            "/office/*",
            "who comes from 10.0.0.0/8, not from 10.9.0.0/16, with GET, HEAD",
        ),
        ("/lab/*", "ann and members of lab signed in to staff"),
        (
            "/any/*",
            "who comes from 10.0.0.0/8, or who signs in to staff",
        ),
        ("/api/*", "members of lab signed in to tokens"),
        ("/app/*", "ann signed in to sso"),
        ("/verify", "only other routes"),
        ("/*", "everybody"),
    ];
    for (path, who) in whos {
        let row = row(path);
        assert_eq!(row["who"], who, "{path}");
        assert_eq!(row["open"], who == "everybody", "{path}");
    }
    assert_eq!(routes.len(), whos.len());
    let kinds = ["/lab/*", "/api/*", "/app/*"].map(|path| row(path)["sign_in"]["kind"].clone());
    assert_eq!(
        kinds,
        ["htpasswd", "jwt", "forward"].map(|kind| json!(kind))
    );
    assert_eq!(row("/any/*")["satisfy"], "any");
    assert_eq!(
        row("/office/*")["access"]["methods"],
        json!(["GET", "HEAD"])
    );
    let place_of = |value: &Value| value["place"].as_str().unwrap().to_owned();
    let access = place_of(&row("/office/*")["access"]);
    assert!(
        access.ends_with(&line_of("/office/*", "access")),
        "{access}"
    );
    let require = place_of(&row("/api/*")["sign_in"]);
    assert!(
        require.ends_with(&line_of("/api/*", "require")),
        "{require}"
    );
    let limits = |path: &str| {
        let limits = row(path)["limits"].as_array().unwrap().iter();
        limits.map(|one| one["limit"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(limits("/app/*"), ["rate", "concurrency"]);
    assert_eq!(limits("/lab/*"), ["rate"]);
    assert_eq!(told["bans"][0]["name"], "guessers");
    let text = told["bans"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("3 in 10m of 404, sign_in ban for 1h"),
        "{text}"
    );
    let tls = &told["sites"][1];
    assert_eq!(
        (&tls["site"], &tls["https_only"]),
        (&json!("tls.test"), &json!(true))
    );
    // Where accounts are kept, and their hashes, are told nobody.
    let all = told.to_string();
    for secret in ["{SHA}", "htpasswd\":", "jwks.json", "/users", "$argon2id"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
    hob.stop();
}

#[test]
fn a_request_is_tried_by_each_rule_there_is() {
    let place = Place::new();
    let hob = start(&place);
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let cases = [
        (
            "url=/office/a.txt&from=10.1.2.3",
            "answered",
            200,
            "access",
            "[]",
        ),
        (
            "url=/office/a.txt&from=192.0.2.1",
            "refused",
            403,
            "access.allow",
            "[]",
        ),
        (
            "url=/office/a.txt&from=10.9.1.1",
            "refused",
            403,
            "access.deny",
            "[]",
        ),
        (
            "url=/office/a.txt&from=10.1.2.3&method=DELETE",
            "refused",
            405,
            "access.methods",
            "[]",
        ),
        ("url=/office/a.txt", "answered", 200, "access", "address"),
        ("url=/lab/a.txt", "sign-in", 401, "require", "[]"),
        (
            "url=/lab/a.txt&user=ann",
            "answered",
            200,
            "require",
            "the password is right",
        ),
        (
            "url=/lab/a.txt&user=bob",
            "answered",
            200,
            "require",
            "the password is right",
        ),
        ("url=/lab/a.txt&user=cid", "refused", 403, "require", "[]"),
        ("url=/lab/a.txt&user=dan", "sign-in", 401, "require", "[]"),
        // As if they were in other groups than the file says.
        (
            "url=/lab/a.txt&user=cid&groups=x,+lab",
            "answered",
            200,
            "require",
            "password",
        ),
        (
            "url=/lab/a.txt&user=bob&groups=x",
            "refused",
            403,
            "require",
            "[]",
        ),
        (
            "url=/any/a.txt&from=10.1.2.3",
            "answered",
            200,
            "require.satisfy",
            "[]",
        ),
        (
            "url=/any/a.txt&from=192.0.2.1",
            "sign-in",
            401,
            "require",
            "[]",
        ),
        (
            "url=/any/a.txt&from=192.0.2.1&user=cid",
            "answered",
            200,
            "require",
            "password",
        ),
        ("url=/any/a.txt", "sign-in", 401, "require", "[]"),
        ("url=/api/a.txt", "sign-in", 401, "require", "[]"),
        (
            "url=/api/a.txt&user=eve",
            "answered",
            200,
            "require",
            "has one of lab",
        ),
        (
            "url=/api/a.txt&user=eve&groups=lab",
            "answered",
            200,
            "require",
            "in lab",
        ),
        (
            "url=/api/a.txt&user=eve&groups=x",
            "refused",
            403,
            "require",
            "[]",
        ),
        (
            "url=/app/a.txt&user=ann",
            "answered",
            200,
            "require",
            "/verify",
        ),
        ("url=/app/a.txt&user=bob", "refused", 403, "require", "[]"),
    ];
    for (query, outcome, status, rule, provided) in cases {
        let found = tried(&visitor, query);
        assert_eq!(
            (found.0.as_str(), &found.1, &found.2),
            (outcome, &json!(status), &json!(rule)),
            "{query}"
        );
        assert!(found.3.contains(provided), "{query}: {}", found.3);
    }
    let told = visitor.look("/v1/explain?url=/office/a.txt&from=10.9.1.1");
    let line = told["verdict"]["place"].as_str().unwrap();
    assert!(line.ends_with(&line_of("/office/*", "access")), "{line}");
    let lines = told["lines"].to_string();
    assert!(lines.contains("refuses: it has 10.9.1.1"), "{lines}");
    hob.stop();
}

#[test]
fn what_no_rule_keeps_out_may_still_not_be_answered() {
    let place = Place::new();
    let hob = start(&place);
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let none = Value::Null;
    let cases = [
        (
            "url=/office/none&from=10.1.2.3",
            "error",
            404,
            json!("access"),
        ),
        ("url=/none", "error", 404, none.clone()),
        ("url=/verify", "error", 404, none.clone()),
        ("url=/../../x", "invalid", 400, none.clone()),
        ("url=/office&from=10.1.2.3", "moved", 301, none.clone()),
        ("url=http://tls.test/x", "moved", 301, json!("https_only")),
        ("url=https://tls.test/x", "answered", 200, none),
    ];
    for (query, outcome, status, rule) in cases {
        let found = tried(&visitor, query);
        assert_eq!(
            (found.0.as_str(), &found.1, &found.2),
            (outcome, &json!(status), &rule),
            "{query}"
        );
    }
    hob.stop();
}

#[test]
fn hosts_that_no_site_has_are_told() {
    let place = Place::new();
    let text = format!(
        "{}[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nnames = [\"a.test\"]\nroot = \"site\"\n",
        admin("")
    );
    let hob = place.serve_text(&text);
    let pages = Pages::of(&hob);
    let found = tried(&pages.operator(), "url=http://b.test/");
    assert_eq!((found.0.as_str(), found.1), ("no-site", json!(421)));
    hob.stop();
}

#[test]
fn who_is_banned_and_what_is_down_is_known_to_a_trial() {
    let place = Place::new();
    let hob = start(&place);
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    visitor.act("/v1/bans/add?client=192.0.2.0/24", &json!({}));
    let banned = tried(&visitor, "url=/hello.txt&from=192.0.2.7");
    assert_eq!(
        (banned.0.as_str(), banned.1, banned.2),
        ("refused", json!(403), json!("ban"))
    );
    let free = tried(&visitor, "url=/hello.txt&from=198.51.100.7");
    assert_eq!((free.0.as_str(), free.1), ("answered", json!(200)));
    // Nobody was refused for it.
    assert_eq!(visitor.look("/v1/bans")["bans"][0]["refused"], 0);
    assert_eq!(place.counter("ban_refused"), 0);
    visitor.act("/v1/maintenance/on?retry_s=60", &json!({}));
    let down = tried(&visitor, "url=/hello.txt&from=198.51.100.7");
    assert_eq!(
        (down.0.as_str(), down.1, down.2),
        ("down", json!(503), json!("maintenance"))
    );
    assert_eq!(visitor.look("/v1/access")["sites"][0]["down"], true);
    hob.stop();
}

#[test]
fn trials_count_nowhere_and_ban_nobody() {
    let place = Place::new();
    let hob = start(&place);
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    for _ in 0..5 {
        let refused = tried(&visitor, "url=/lab/a.txt&user=dan&from=127.0.0.1");
        assert_eq!(refused.1, json!(401));
        let limited = tried(&visitor, "url=/app/a.txt&user=ann&from=127.0.0.1");
        assert_eq!(limited.1, json!(200));
    }
    for counter in [
        "passwords_checked",
        "sign_ins_failed",
        "sign_in_refused",
        "sign_ins_delayed",
        "access_refused",
        "bans_made",
        "limit_rate",
    ] {
        assert_eq!(place.counter(counter), 0, "{counter}");
    }
    assert_eq!(visitor.look("/v1/bans")["total"], 0);
    // The rate has room for three.
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    // What is wrong in a file of accounts was told at the start, and is not with each trial.
    let printed = hob.printed();
    assert_eq!(printed.matches("fast to guess").count(), 3, "{printed}");
    // It changes nothing: the audit log has no word of it.
    let audit = visitor.look("/v1/audit").to_string();
    assert!(!audit.contains("explain"), "{audit}");
    hob.stop();
}

#[test]
fn what_is_no_trial_is_refused() {
    let place = Place::new();
    let hob = start(&place);
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let long = "u".repeat(257);
    let many = vec!["g"; 65].join(",");
    for query in [
        "".to_owned(),
        "url=".to_owned(),
        "url=office/a.txt".to_owned(),
        "url=ftp://a/".to_owned(),
        "url=http://ann@a/".to_owned(),
        "url=/x%0d%0aX:1".to_owned(),
        "url=/x&method=G+T".to_owned(),
        "url=/x&from=here".to_owned(),
        format!("url=/x&user={long}"),
        format!("url=/x&user=ann&groups={long}"),
        format!("url=/x&user=ann&groups={many}"),
        "url=/x&user=a%0ab".to_owned(),
        "url=/x&groups=lab".to_owned(),
    ] {
        let answer = visitor.get(&format!("/v1/explain?{query}"));
        assert_eq!(answer.status, 400, "{query}: {}", answer.text());
        assert!(!json_of(&answer)["text"].as_str().unwrap().is_empty());
    }
    let most = "u".repeat(256);
    let found = tried(&visitor, &format!("url=/lab/a.txt&user={most}"));
    assert_eq!(found.1, json!(401));
    assert_eq!(visitor.get("/v1/access?site=none.test").status, 404);
    let one = visitor.look("/v1/access?site=tls.test");
    assert_eq!(one["sites"].as_array().unwrap().len(), 1);
    let some = visitor.look("/v1/access?limit=2");
    assert_eq!(some["sites"][0]["routes"].as_array().unwrap().len(), 2);
    assert_eq!(some["more"], true);
    // Nobody who has not logged in.
    for target in ["/v1/access", "/v1/explain?url=/lab/a.txt&user=ann"] {
        let answer = pages.raw("GET", target, &pages.own_fields(), "");
        assert_eq!(answer.status, 401, "{target}");
        assert_eq!(visitor.post(target, &json!({})).status, 405, "{target}");
    }
    hob.stop();
}

#[test]
fn a_reload_is_what_is_told_and_tried_next() {
    let place = Place::new();
    let hob = start(&place);
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let query = "url=/office/a.txt&from=192.0.2.1";
    assert_eq!(tried(&visitor, query).1, json!(403));
    let text = std::fs::read_to_string(place.path("hob.toml")).unwrap();
    let text = text.replace(
        "allow = [\"10.0.0.0/8\"], deny",
        "allow = [\"192.0.2.1\"], deny",
    );
    place.write("hob.toml", &text);
    // What is not in force yet says nothing.
    assert_eq!(tried(&visitor, query).1, json!(403));
    visitor.act("/v1/reload", &json!({}));
    assert_eq!(tried(&visitor, query).1, json!(200));
    let told = visitor.look("/v1/access");
    assert_eq!(
        told["sites"][0]["routes"][0]["access"]["allow"],
        json!(["192.0.2.1/32"])
    );
    hob.stop();
}
