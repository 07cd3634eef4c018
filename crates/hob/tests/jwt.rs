//! `jwt` of `[[auth]]`: tokens that another implementation has signed let in, and what is not one
//! of them does not, however near it comes.
#![allow(clippy::unwrap_used)]

#[path = "jwt/forged.rs"]
mod forged;
mod harness;
#[path = "jwt/keys_url_h1_only.rs"]
mod keys_url_h1_only;

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use harness::client::{Answer, ask};
use harness::site::{SPELLINGS, TOP, record};
use harness::{DEADLINE, Hob, Place, text_of};
use serde_json::{Value, json};

const INNER: &str = "for us alone\n";
const ISSUER: &str = "https://id.test";

/// The end of a config whose tokens are of one issuer, with these further keys.
fn auth(more: &str) -> String {
    format!(
        "[[auth]]\nname = \"tokens\"\nrealm = \"Shop\"\njwt = {{ keys = \"jwks.json\", \
         issuer = \"{ISSUER}\", audience = [\"shop\", \"api\"]{more} }}\n"
    )
}

/// Whoever signs tokens: a process with keys of its own.
struct Issuer {
    process: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Issuer {
    /// Nothing, with a line that says why, where it cannot be had.
    fn start() -> Option<Issuer> {
        static REASON: OnceLock<Option<String>> = OnceLock::new();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/jwt/issuer.py");
        let reason = REASON.get_or_init(|| {
            let install = Command::new("python3").args([script, "install"]).output();
            match install {
                Ok(output) if output.status.success() => None,
                Ok(output) => Some(text_of(&output)),
                Err(error) => Some(error.to_string()),
            }
        });
        if let Some(reason) = reason {
            println!("skipped: PyJWT cannot be installed: {reason}");
            return None;
        }
        let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/pyjwt/bin/python");
        let mut command = Command::new(python);
        command.args([script, "serve"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let stdin = process.stdin.take().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let pipes = RefCell::new((stdin, stdout));
        Some(Issuer { process, pipes })
    }

    fn ask(&self, asked: &Value) -> String {
        let (stdin, stdout) = &mut *self.pipes.borrow_mut();
        writeln!(stdin, "{asked}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "the issuer has ended: {asked}");
        line.trim_end().to_owned()
    }

    /// Its keys of these names, as a file.
    fn keys(&self, names: &[&str]) -> String {
        let keys: Vec<Value> = serde_json::from_str(&self.ask(&json!({"do": "keys"}))).unwrap();
        let is_named = |key: &&Value| names.contains(&key["kid"].as_str().unwrap());
        let keys: Vec<&Value> = keys.iter().filter(is_named).collect();
        assert_eq!(keys.len(), names.len());
        json!({"keys": keys}).to_string()
    }

    fn sign(&self, alg: &str, kid: &str, claims: &Value) -> String {
        self.sign_with(alg, kid, claims, json!({}))
    }

    fn sign_with(&self, alg: &str, kid: &str, claims: &Value, header: Value) -> String {
        let mut asked = json!({"do": "sign", "alg": alg, "kid": kid, "claims": claims});
        asked["header"] = header;
        self.ask(&asked)
    }

    fn confuse(&self, kid: &str, form: &str) -> String {
        self.ask(&json!({"do": "confuse", "kid": kid, "form": form, "claims": claims()}))
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs()
}

/// What lets ann in, for an hour.
fn claims() -> Value {
    json!({"iss": ISSUER, "aud": "shop", "sub": "ann", "exp": now_s() + 3600})
}

/// The same with others in their place; `null` is none.
fn claims_with(others: &Value) -> Value {
    let mut all = claims();
    for (name, value) in others.as_object().unwrap() {
        all[name] = value.clone();
    }
    all.as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    all
}

const PAIRS: [&str; 4] = ["es", "es384", "rs", "ed"];

/// A site with files below `/inner/` for those whose tokens are good, with further keys of `jwt`,
/// and a site's or a route's.
fn serve(place: &Place, keys: &str, jwt: &str, site: &str) -> Hob {
    place.folder("site/inner");
    place.write("site/inner/a.txt", INNER);
    place.write("site/inner/index.html", INNER);
    place.write("jwks.json", keys);
    place.serve_text(&format!("{TOP}{site}{}", auth(jwt)))
}

fn inner(require: &str) -> String {
    format!("[[site.route]]\npath = \"/inner/*\"\nfiles = {{}}\nrequire = {require}\n")
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn get(hob: &Hob, path: &str, fields: &str) -> Answer {
    ask(hob.port(), "GET", path, fields)
}

fn status(hob: &Hob, token: &str) -> u16 {
    get(hob, "/inner/a.txt", &bearer(token)).status
}

/// Asks until this is the answer.
fn wait_for_status(hob: &Hob, token: &str, wanted: u16) {
    let until = Instant::now() + DEADLINE;
    while status(hob, token) != wanted {
        assert!(Instant::now() < until, "never {wanted}");
        std::thread::yield_now();
    }
}

/// The field by which a refused client is told why.
fn challenge(answer: &Answer) -> &str {
    answer.header("www-authenticate").unwrap_or_default()
}

#[test]
fn tokens_of_the_issuer_let_in_and_are_remembered() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let hob = serve(&place, &issuer.keys(&PAIRS), "", &inner("\"tokens\""));
    let refused = get(&hob, "/inner/a.txt?nobody", "");
    assert_eq!(
        (refused.status, challenge(&refused)),
        (401, "Bearer realm=\"Shop\"")
    );
    assert!(!refused.text().contains(INNER));
    let reason = "require: nobody has signed in";
    assert_eq!(record(&place, "/inner/a.txt?nobody")["reason"], reason);
    let pairs = [
        ("ES256", "es"),
        ("ES384", "es384"),
        ("EdDSA", "ed"),
        ("RS256", "rs"),
        ("RS384", "rs"),
        ("RS512", "rs"),
        ("PS256", "rs"),
        ("PS384", "rs"),
        ("PS512", "rs"),
    ];
    for (alg, kid) in pairs {
        let token = issuer.sign(alg, kid, &claims_with(&json!({"sub": alg})));
        for _ in 0..2 {
            let path = format!("/inner/a.txt?{alg}");
            let answer = get(&hob, &path, &bearer(&token));
            assert_eq!(
                (answer.status, answer.text()),
                (200, INNER.to_owned()),
                "{alg}"
            );
            assert_eq!(record(&place, &path)["user"], alg);
        }
    }
    assert_eq!(place.counter("tokens_checked"), pairs.len() as u64);
    // The scheme's case says nothing, and one of several audiences is enough.
    let aud = json!({"aud": ["else", "api"], "nbf": now_s(), "groups": 7});
    let token = issuer.sign_with("ES256", "es", &claims_with(&aud), json!({"typ": "at+jwt"}));
    let field = format!("authorization: bEARER {token}\r\n");
    assert_eq!(get(&hob, "/inner/a.txt", &field).status, 200);
    assert_eq!(ask(hob.port(), "HEAD", "/inner/a.txt", &field).status, 200);
    // One key signs so: it need not be named.
    let token = issuer.sign_with("EdDSA", "ed", &claims(), json!({"kid": null}));
    assert_eq!(status(&hob, &token), 200);
    assert_eq!(get(&hob, "/hello.txt", "").status, 200);
    assert_eq!(place.counter("tokens_refused"), 0);
    hob.stop();
}

#[test]
fn secrets_count_where_they_are_named_alone() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let keys = issuer.keys(&["es", "secret"]);
    let hob = serve(
        &place,
        &keys,
        ", algorithms = [\"HS256\"]",
        &inner("\"tokens\""),
    );
    let token = issuer.sign("HS256", "secret", &claims());
    assert_eq!(status(&hob, &token), 200);
    assert_eq!(
        status(&hob, &issuer.sign("HS512", "secret", &claims())),
        401
    );
    assert_eq!(status(&hob, &issuer.sign("ES256", "es", &claims())), 401);
    hob.stop();
    let place = Place::new();
    let hob = serve(&place, &keys, "", &inner("\"tokens\""));
    assert_eq!(status(&hob, &token), 401);
    assert_eq!(status(&hob, &issuer.sign("ES256", "es", &claims())), 200);
    hob.stop();
}

#[test]
fn claims_say_when_for_whom_and_by_whom() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let hob = serve(
        &place,
        &issuer.keys(&PAIRS),
        ", leeway = \"5s\"",
        &inner("\"tokens\""),
    );
    let now = now_s();
    for (claims, why) in [
        (json!({"exp": now - 10}), "the token is over"),
        (json!({"exp": null}), "the token has no `exp`"),
        (json!({"nbf": now + 300}), "the token is not good yet"),
        (
            json!({"iss": "https://id.test.evil"}),
            "the token is another issuer's",
        ),
        (json!({"iss": null}), "the token is another issuer's"),
        (json!({"aud": "shops"}), "the token is for another audience"),
        (json!({"aud": null}), "the token is for another audience"),
        (json!({"sub": null}), "the token does not say whose it is"),
    ] {
        let token = issuer.sign("ES256", "es", &claims_with(&claims));
        let answer = get(&hob, "/inner/a.txt", &bearer(&token));
        let told = format!("error_description=\"{why}\"");
        assert_eq!(answer.status, 401, "{claims}");
        assert!(challenge(&answer).contains(&told), "{}", challenge(&answer));
    }
    // Clocks may be apart.
    for claims in [json!({"nbf": now + 3}), json!({"iat": now + 3})] {
        let token = issuer.sign("ES256", "es", &claims_with(&claims));
        assert_eq!(status(&hob, &token), 200, "{claims}");
    }
    hob.stop();
}

#[test]
fn token_stands_in_one_field_and_nowhere_else() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let hob = serve(&place, &issuer.keys(&PAIRS), "", &inner("\"tokens\""));
    let token = issuer.sign("ES256", "es", &claims());
    let field = bearer(&token);
    for (path, fields) in [
        (format!("/inner/a.txt?access_token={token}"), String::new()),
        (
            "/inner/a.txt".to_owned(),
            format!("Cookie: session={token}\r\n"),
        ),
        (
            "/inner/a.txt".to_owned(),
            format!("X-Authorization: Bearer {token}\r\n"),
        ),
        (
            "/inner/a.txt".to_owned(),
            format!("Authorization: {token}\r\n"),
        ),
        (
            "/inner/a.txt".to_owned(),
            format!("Authorization: Basic {token}\r\n"),
        ),
        ("/inner/a.txt".to_owned(), "Remote-User: ann\r\n".to_owned()),
    ] {
        let answer = get(&hob, &path, &fields);
        assert_eq!(
            challenge(&answer),
            "Bearer realm=\"Shop\"",
            "{path} {fields}"
        );
        assert_eq!(answer.status, 401);
    }
    for other in [&field, "Authorization: Basic YTpi\r\n"] {
        let answer = get(&hob, "/inner/a.txt", &format!("{field}{other}"));
        assert_eq!(answer.status, 400, "{other}");
        assert!(challenge(&answer).contains("error=\"invalid_request\""));
    }
    // A good one, but for its length.
    let long = claims_with(&json!({"more": "x".repeat(8 << 10)}));
    let answer = get(
        &hob,
        "/inner/a.txt",
        &bearer(&issuer.sign("ES256", "es", &long)),
    );
    assert_eq!(answer.status, 401);
    assert!(challenge(&answer).contains("the token is longer than 8 KiB"));
    assert_eq!(place.counter("limit_token"), 1);
    // And no spelling of the path leads around it.
    for path in SPELLINGS {
        let answer = get(&hob, path, "");
        assert!(!answer.text().contains(INNER), "{path}: {}", answer.status);
    }
    assert_eq!(status(&hob, &token), 200);
    hob.stop();
}

#[test]
fn cookie_has_the_token_where_the_config_names_one() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let keys = issuer.keys(&PAIRS);
    let hob = serve(
        &place,
        &keys,
        ", cookie = \"session\"",
        &inner("\"tokens\""),
    );
    let token = issuer.sign("ES256", "es", &claims());
    let bob = issuer.sign("ES256", "es", &claims_with(&json!({"sub": "bob"})));
    let with = |case: &str, fields: String| {
        let path = format!("/inner/a.txt?{case}");
        let status = get(&hob, &path, &fields).status;
        (
            status,
            record(&place, &path)["user"].as_str().unwrap().to_owned(),
        )
    };
    let ann = (200, "ann".to_owned());
    assert_eq!(
        with("one", format!("Cookie: a=b; session={token}\r\n")),
        ann
    );
    let both = format!("{}Cookie: session={bob}\r\n", bearer(&token));
    assert_eq!(with("both", both), ann);
    let other = format!("Cookie: session={token}\r\nAuthorization: Basic YTpi\r\n");
    assert_eq!(with("other", other), ann);
    let nobody = |status: u16| (status, String::new());
    let wrong = format!("Cookie: session={token}\r\n{}", bearer("x"));
    assert_eq!(with("wrong", wrong), nobody(401));
    let two = format!("Cookie: session={token}; session={bob}\r\n");
    assert_eq!(with("two", two), nobody(400));
    assert_eq!(
        with("near", format!("Cookie: Session={token}\r\n")),
        nobody(401)
    );
    hob.stop();
}

#[test]
fn users_and_groups_of_the_claims_count() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let jwt = ", user = \"/who/name\", groups = \"scope\"";
    let require = "{ auth = \"tokens\", users = [\"ann\"], groups = [\"lab\"] }";
    let some = "[[site.route]]\npath = \"/inner/*\"\nrequire = \"tokens\"\n\
                respond = { status = 203 }\nwhen = { user = [\"dan\"] }\n";
    let site = format!("{some}{}", inner(require));
    let hob = serve(&place, &issuer.keys(&PAIRS), jwt, &site);
    let with = |case: &str, claims: Value| {
        let token = issuer.sign("ES256", "es", &claims_with(&claims));
        let path = format!("/inner/a.txt?{case}");
        let answer = get(&hob, &path, &bearer(&token));
        let user = record(&place, &path)["user"].as_str().unwrap().to_owned();
        (answer.status, user, challenge(&answer).to_owned())
    };
    let good = |user: &str| (200, user.to_owned(), String::new());
    assert_eq!(with("dan", json!({"who": {"name": "dan"}})).0, 203);
    assert_eq!(with("ann", json!({"who": {"name": "ann"}})), good("ann"));
    let lab = json!({"who": {"name": "bob"}, "scope": "read lab"});
    assert_eq!(with("lab", lab), good("bob"));
    let neither = json!({"who": {"name": "cid"}, "scope": "labs read"});
    let (status, user, told) = with("neither", neither);
    assert_eq!((status, user.as_str()), (403, "cid"));
    assert!(told.contains("error=\"insufficient_scope\""), "{told}");
    assert_eq!(place.counter("sign_in_refused"), 1);
    assert_eq!(with("nameless", json!({})).0, 401);
    hob.stop();
}

#[test]
fn programs_and_proxied_servers_are_told_the_claims_and_nothing_of_a_clients() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let shown = "$HTTP_REMOTE_USER|$HTTP_X_EMAIL|$HTTP_X_ROLES";
    let echo = |own: &str| {
        format!("#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\necho \"{own}{shown}\"\n")
    };
    let behind = Place::new();
    behind.folder("cgi");
    behind.script("cgi/echo", &echo(""));
    let back = behind.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n[[site.route]]\npath = \"/*\"\n\
         cgi = { script = \"cgi/echo\" }\n",
    );
    let place = Place::new();
    place.folder("cgi");
    place.script(
        "cgi/echo",
        &echo("$REMOTE_USER|$AUTH_TYPE|$HTTP_AUTHORIZATION|"),
    );
    let site = format!(
        "require = \"tokens\"\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = {{ script = \"cgi/echo\" }}\n\
         [[site.route]]\npath = \"/near/*\"\ncgi = {{ script = \"cgi/echo\" }}\n\
         require = {{ auth = \"tokens\", satisfy = \"any\" }}\n\
         access = {{ allow = [\"10.0.0.0/8\"] }}\n\
         [[site.route]]\npath = \"/proxy/*\"\nproxy = {{ to = \"http://127.0.0.1:{}\" }}\n",
        back.port()
    );
    let jwt = ", fields = { X-Email = \"email\", X-Roles = \"roles\" }";
    let hob = serve(&place, &issuer.keys(&PAIRS), jwt, &site);
    let all = json!({"email": "ann@id.test", "roles": ["a", "b"]});
    let all = issuer.sign("RS256", "rs", &claims_with(&all));
    let few = json!({"email": "ann\r\nX-Roles: root", "sub": "bob"});
    let few = issuer.sign("RS256", "rs", &claims_with(&few));
    let forged = "X-Email: root\r\nX_Email: root\r\nx-roles: root\r\nX_Roles: root\r\n\
                  Remote-User: root\r\nRemote_User: root\r\n";
    let told =
        |path: &str, token: &str| get(&hob, path, &format!("{}{forged}", bearer(token))).text();
    // Twice: the second is remembered.
    for _ in 0..2 {
        assert_eq!(told("/cgi/x", &all), "ann|Bearer|||ann@id.test|a,b\n");
        assert_eq!(told("/proxy/x", &all), "ann|ann@id.test|a,b\n");
        assert_eq!(told("/cgi/x", &few), "bob|Bearer||||\n");
        assert_eq!(told("/proxy/x", &few), "bob||\n");
    }
    // Nor where one need not sign in.
    let near = format!("X-Forwarded-For: 10.1.2.3\r\n{forged}");
    assert_eq!(get(&hob, "/near/", &near).text(), "|||||\n");
    back.stop();
    hob.stop();
}

#[test]
fn changed_keys_and_reload_end_what_is_remembered_and_wrong_ones_do_not() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let hob = serve(
        &place,
        &issuer.keys(&["es", "ed"]),
        "",
        &inner("\"tokens\""),
    );
    let es = issuer.sign("ES256", "es", &claims());
    let ed = issuer.sign("EdDSA", "ed", &claims());
    assert_eq!((status(&hob, &es), status(&hob, &ed)), (200, 200));
    assert_eq!(
        (status(&hob, &es), place.counter("tokens_checked")),
        (200, 2)
    );
    place.write("jwks.json", &issuer.keys(&["ed"]));
    wait_for_status(&hob, &es, 401);
    assert_eq!(
        (status(&hob, &ed), place.counter("tokens_checked")),
        (200, 3)
    );
    // A file that is cut off, or without a key, changes nothing; it is told once.
    for (count, text) in [(1, "{\"keys\": ["), (2, "{\"keys\": []}")] {
        place.write("jwks.json", text);
        let until = Instant::now() + DEADLINE;
        while place.counter("token_keys_kept") != count {
            assert_eq!(status(&hob, &ed), 200);
            assert!(Instant::now() < until, "{text} is not seen");
        }
        hob.wait_for_count("the keys stay as they were", count as usize);
        assert_eq!((status(&hob, &es), status(&hob, &ed)), (401, 200));
    }
    assert_eq!(place.counter("tokens_checked"), 3);
    place.write("jwks.json", &issuer.keys(&["es"]));
    wait_for_status(&hob, &es, 200);
    assert_eq!(
        (status(&hob, &ed), place.counter("tokens_checked")),
        (401, 4)
    );
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation 2");
    assert_eq!(
        (status(&hob, &es), place.counter("tokens_checked")),
        (200, 5)
    );
    hob.stop();
}

#[test]
fn token_that_is_remembered_ends_when_it_is_over() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let hob = serve(
        &place,
        &issuer.keys(&PAIRS),
        ", leeway = \"0s\"",
        &inner("\"tokens\""),
    );
    let over = now_s() + 4;
    let token = issuer.sign("ES256", "es", &claims_with(&json!({"exp": over})));
    // It is good until the clock says so, and not an answer longer.
    let mut good_count = 0;
    loop {
        let (before, status, after) = (now_s(), status(&hob, &token), now_s());
        match status {
            200 => assert!(before < over),
            401 => {
                assert!(after >= over);
                break;
            }
            other => panic!("{other}"),
        }
        good_count += 1;
    }
    assert_eq!(place.counter("tokens_checked"), good_count.min(1));
    let answer = get(&hob, "/inner/a.txt", &bearer(&token));
    assert!(challenge(&answer).contains("the token is over"));
    hob.stop();
}

#[test]
fn check_and_start_tell_of_keys_that_are_missing_or_wrong() {
    let place = Place::new();
    let config = format!("{TOP}{}{}", inner("\"tokens\""), auth(""));
    place.folder("site/inner");
    place.write("hob.toml", &config);
    let missing = format!("there is no file {}", place.path("jwks.json").display());
    let short = json!({"keys": [{"kty": "oct", "kid": "a", "k": "c2VjcmV0"}]}).to_string();
    let point = BASE64_URL_SAFE_NO_PAD.encode([7; 32]);
    let point = json!({"keys": [{"kty": "EC", "crv": "P-256", "x": point, "y": point}]});
    for (text, told) in [
        (None, missing.as_str()),
        (Some("{}"), "this is no JSON Web Key Set"),
        (
            Some("-----BEGIN PUBLIC KEY-----\n"),
            "this is no JSON Web Key Set",
        ),
        (
            Some("{\"keys\": []}"),
            "no key in it checks what `algorithms` allows",
        ),
        (
            Some(&short),
            "(key 1: a secret has 32 bytes at least, else it can be guessed)",
        ),
        (
            Some(&point.to_string()),
            "(key 1: it is no point of its curve)",
        ),
    ] {
        if let Some(text) = text {
            place.write("jwks.json", text);
        }
        for command in ["check", "serve"] {
            let output = place.run(&[command]);
            let said = text_of(&output);
            assert_eq!(output.status.code(), Some(2), "{command}: {said}");
            // Where it is named.
            let spot = "jwt = { keys = \"jwks.json\"";
            assert!(
                said.contains(told) && said.contains(spot),
                "{command}: {said}"
            );
        }
    }
}

#[test]
fn explain_says_whose_token_may() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    place.folder("site/inner");
    place.write("site/inner/a.txt", INNER);
    place.write("jwks.json", &issuer.keys(&PAIRS));
    let require = "{ auth = \"tokens\", users = [\"ann\"], groups = [\"lab\"] }";
    place.write("hob.toml", &format!("{TOP}{}{}", inner(require), auth("")));
    let explain = |more: &[&str]| {
        let output = place.run(&[&["explain"], more, &["GET", "/inner/a.txt"]].concat());
        text_of(&output)
    };
    for (more, told) in [
        (&[][..], "a token of \"https://id.test\" is asked for"),
        (
            &["--user", "ann"],
            "\"ann\" may, with a token of \"https://id.test\"",
        ),
        (&["--user", "bob"], ", and its \"groups\" has one of lab"),
    ] {
        let said = explain(more);
        assert!(said.contains(told), "{said}");
    }
    let with = |claims: Value| {
        let token = issuer.sign("ES256", "es", &claims_with(&claims));
        explain(&["--header", &format!("Authorization: Bearer {token}")])
    };
    assert!(with(json!({})).contains("200"), "{}", with(json!({})));
    assert!(with(json!({"sub": "bob"})).contains("403"));
    let over = with(json!({"exp": 1}));
    assert!(
        over.contains("401") && over.contains("the token is over"),
        "{over}"
    );
}

#[test]
fn forged_tokens_are_guesses_that_ban_and_those_that_are_over_are_none() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    place.write("jwks.json", &issuer.keys(&["es"]));
    let ban = "[[ban]]\nname = \"guessers\"\nrefused = [\"sign_in\"]\ncount = \"3/1h\"\n";
    let keys = "require = \"tokens\"\n";
    let hob = place.serve_text(&format!("{TOP}{keys}{}{ban}", auth("")));
    let asked = |token: &str| {
        let fields = format!("X-Forwarded-For: 192.0.2.7\r\nAuthorization: Bearer {token}\r\n");
        ask(hob.port(), "GET", "/hello.txt", &fields).status
    };
    let over = issuer.sign("ES256", "es", &claims_with(&json!({"exp": now_s() - 3600})));
    assert_eq!([0; 4].map(|_| asked(&over)), [401; 4]);
    let good = issuer.sign("ES256", "es", &claims());
    assert_eq!(asked(&good), 200);
    let (signed, _) = good.rsplit_once('.').unwrap();
    let forged = format!("{signed}.{}", "A".repeat(86));
    assert_eq!([0; 3].map(|_| asked(&forged)), [401; 3]);
    assert_eq!(asked(&good), 403);
    assert_eq!(place.counter("bans_made"), 1);
    hob.stop();
}
