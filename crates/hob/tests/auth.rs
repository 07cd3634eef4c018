//! `[[auth]]` and `require`: who has to sign in for what a route answers, whichever way leads to
//! it, what programs are told of them, and what guessing costs.
#![allow(clippy::unwrap_used)]

mod harness;
#[path = "auth/when.rs"]
mod when;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use harness::client::{Answer, Connection, ask};
use harness::site::{SPELLINGS, TOP, record};
use harness::{DEADLINE, Hob, Place, text_of};

/// Accounts that are in two files.
const AUTH: &str = "[[auth]]\nname = \"staff\"\nhtpasswd = \"users\"\ngroups = \"groups\"\n\
    realm = \"Staff only\"\n";

const INNER: &str = "for us alone\n";

/// The line of an account, as Apache's tool writes it.
fn htpasswd(flags: &[&str], name: &str, password: &str) -> String {
    let mut command = Command::new("htpasswd");
    command.arg("-nb").args(flags).args([name, password]);
    let output = command.output().expect("apt-get install apache2-utils");
    let line = String::from_utf8(output.stdout).unwrap();
    format!("{}\n", line.trim())
}

/// One that is quick to check.
fn account(name: &str, password: &str) -> String {
    htpasswd(&["-B", "-C", "4"], name, password)
}

/// A site with files for those who sign in below `/inner/`, whose accounts are ann, bob and cid,
/// with `sesame`.
fn prepare(place: &Place, site: &str) {
    std::fs::create_dir_all(place.path("site/inner")).unwrap();
    place.write("site/inner/a.txt", INNER);
    place.write("site/inner/index.html", INNER);
    let users = ["ann", "bob", "cid"].map(|name| account(name, "sesame"));
    place.write("users", &users.concat());
    place.write("groups", "lab: bob\nall: ann bob cid\n");
    place.write("hob.toml", &config(site));
}

fn config(site: &str) -> String {
    format!("{TOP}{site}{AUTH}")
}

fn serve(place: &Place, site: &str) -> Hob {
    prepare(place, site);
    place.serve_text(&config(site))
}

fn inner(require: &str) -> String {
    format!("[[site.route]]\npath = \"/inner/*\"\nfiles = {{}}\nrequire = {require}\n")
}

/// The field of a name and a password.
fn basic(name: &str, password: &str) -> String {
    let both = BASE64_STANDARD.encode(format!("{name}:{password}"));
    format!("Authorization: Basic {both}\r\n")
}

fn get(hob: &Hob, path: &str, fields: &str) -> Answer {
    ask(hob.port(), "GET", path, fields)
}

fn status(hob: &Hob, name: &str, password: &str) -> u16 {
    get(hob, "/inner/a.txt", &basic(name, password)).status
}

/// Asks until this is the answer.
fn wait_for_status(hob: &Hob, name: &str, password: &str, wanted: u16) {
    let until = Instant::now() + DEADLINE;
    while status(hob, name, password) != wanted {
        assert!(Instant::now() < until, "never {wanted}");
        std::thread::yield_now();
    }
}

#[test]
fn who_signs_in_gets_it_and_nobody_else() {
    let place = Place::new();
    let hob = serve(&place, &inner("\"staff\""));
    let refused = get(&hob, "/inner/a.txt?nobody", "");
    assert_eq!(refused.status, 401);
    let challenge = "Basic realm=\"Staff only\", charset=\"UTF-8\"";
    assert_eq!(refused.header("www-authenticate"), Some(challenge));
    assert!(!refused.text().contains(INNER));
    let record_of = |target: &str| record(&place, target);
    let reason = "require: nobody has signed in";
    assert_eq!(record_of("/inner/a.txt?nobody")["reason"], reason);
    let wrong = "require: the name or the password is wrong";
    for (case, name, password) in [("wrong", "ann", "sesam"), ("unknown", "dan", "sesame")] {
        let path = format!("/inner/a.txt?{case}");
        let answer = get(&hob, &path, &basic(name, password));
        assert_eq!(answer.status, 401, "{case}");
        assert!(answer.header("www-authenticate").is_some(), "{case}");
        let record = record_of(&path);
        assert_eq!(
            (record["reason"].as_str(), record["user"].as_str()),
            (Some(wrong), Some(""))
        );
    }
    for name in ["ann", "bob", "ann"] {
        let answer = get(
            &hob,
            &format!("/inner/a.txt?{name}"),
            &basic(name, "sesame"),
        );
        assert_eq!((answer.status, answer.text()), (200, INNER.to_owned()));
        assert_eq!(record_of(&format!("/inner/a.txt?{name}"))["user"], name);
    }
    let head = ask(hob.port(), "HEAD", "/inner/a.txt", &basic("ann", "sesame"));
    assert_eq!(head.status, 200);
    assert_eq!(ask(hob.port(), "HEAD", "/inner/a.txt", "").status, 401);
    assert_eq!(get(&hob, "/hello.txt", "").status, 200);
    // Twice wrong, and ann and bob once each: the others were remembered.
    assert_eq!(place.counter("passwords_checked"), 4);
    assert_eq!(place.counter("sign_ins_failed"), 2);
    hob.stop();
}

#[test]
fn fields_that_are_no_name_and_password_sign_nobody_in() {
    let place = Place::new();
    let hob = serve(&place, &inner("\"staff\""));
    let good = basic("ann", "sesame");
    let value = good
        .trim_end()
        .strip_prefix("Authorization: Basic ")
        .unwrap();
    for field in [
        "Authorization: Basic\r\n".to_owned(),
        "Authorization: Basic !!!\r\n".to_owned(),
        format!("Authorization: Bearer {value}\r\n"),
        format!("Authorization: {value}\r\n"),
        format!("Proxy-Authorization: Basic {value}\r\n"),
        format!("X-Authorization: Basic {value}\r\n"),
        format!("Authorization: Basic {}\r\n", BASE64_STANDARD.encode("ann")),
        format!(
            "Authorization: Basic {}\r\n",
            BASE64_STANDARD.encode(":sesame")
        ),
        format!(
            "Authorization: Basic {}\r\n",
            BASE64_STANDARD.encode("ann:sesame\0")
        ),
        "Remote-User: ann\r\n".to_owned(),
        "REMOTE_USER: ann\r\n".to_owned(),
    ] {
        assert_eq!(get(&hob, "/inner/a.txt", &field).status, 401, "{field}");
    }
    let lower = good.replace("Basic", "bAsIc");
    assert_eq!(get(&hob, "/inner/a.txt", &lower).status, 200);
    hob.stop();
}

#[test]
fn passwords_of_apaches_tool_and_of_this_one_are_taken() {
    let place = Place::new();
    let hob = serve(&place, &inner("\"staff\""));
    let kinds: [(&str, &[&str]); 5] = [
        ("bcrypt", &["-B"]),
        ("sha256", &["-2"]),
        ("sha512", &["-5", "-r", "2000"]),
        ("apr1", &["-m"]),
        ("sha1", &["-s"]),
    ];
    let password = "ö: \"both\" $HOME";
    let mut users = htpasswd(&["-d"], "des", "sesame") + "clear:sesame\n";
    for (name, flags) in kinds {
        users += &htpasswd(flags, name, password);
    }
    place.write("users", &users);
    let set = |arguments: &[&str], password: &str| {
        let mut command = place.command();
        command.args(["password", "users"]).args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        let mut stdin = running.stdin.take().unwrap();
        stdin.write_all(format!("{password}\n").as_bytes()).unwrap();
        drop(stdin);
        let output = running.wait_with_output().unwrap();
        (output.status.code(), text_of(&output))
    };
    assert_eq!(
        set(&["argon2"], password),
        (Some(0), "the account is added\n".to_owned())
    );
    wait_for_status(&hob, "argon2", password, 200);
    for (name, _) in kinds {
        assert_eq!(status(&hob, name, password), 200, "{name}");
        assert_eq!(status(&hob, name, "sesame"), 401, "{name}");
    }
    assert_eq!(status(&hob, "des", "sesame"), 401);
    assert_eq!(status(&hob, "clear", "sesame"), 401);
    for told in [
        "users:1: des cannot sign in",
        "users:2: clear cannot sign in",
        "users:6: apr1: its password is hashed in a way that is fast to guess",
        "users:7: sha1: its password",
    ] {
        hob.wait_for(told);
    }
    let changed = (Some(0), "the password is changed\n".to_owned());
    assert_eq!(set(&["sha1"], "another"), changed);
    wait_for_status(&hob, "sha1", "another", 200);
    assert_eq!(status(&hob, "sha1", password), 401);
    let deleted = (Some(0), "the account is deleted\n".to_owned());
    assert_eq!(set(&["sha1", "--delete"], ""), deleted);
    wait_for_status(&hob, "sha1", "another", 401);
    let (code, text) = set(&["sha1", "--delete"], "");
    assert!(
        code == Some(2) && text.contains("sha1 has no account there"),
        "{text}"
    );
    let (code, text) = set(&["a:b"], "x");
    assert!(
        code == Some(2) && text.contains("cannot be the name of an account"),
        "{text}"
    );
    hob.stop();
}

#[test]
fn users_and_groups_say_who_may() {
    let place = Place::new();
    let hob = serve(
        &place,
        &inner("{ auth = \"staff\", users = [\"ann\"], groups = [\"lab\"] }"),
    );
    let sesame = |name: &str| status(&hob, name, "sesame");
    assert_eq!(
        (sesame("ann"), sesame("bob"), sesame("cid")),
        (200, 200, 403)
    );
    let answer = get(&hob, "/inner/a.txt?cid", &basic("cid", "sesame"));
    assert_eq!(
        (answer.status, answer.header("www-authenticate")),
        (403, None)
    );
    let record = record(&place, "/inner/a.txt?cid");
    let reason = "require: the account is none that `users`, `groups` and `all_groups` let in";
    assert_eq!(
        (record["reason"].as_str(), record["user"].as_str()),
        (Some(reason), Some("cid"))
    );
    assert_eq!(place.counter("sign_in_refused"), 2);
    // The file of groups counts as soon as that of accounts.
    place.write("groups", "lab: cid\n");
    wait_for_status(&hob, "cid", "sesame", 200);
    assert_eq!(sesame("bob"), 403);
    hob.stop();
}

#[test]
fn who_may_has_to_be_in_all_groups_that_are_said() {
    let place = Place::new();
    let rule =
        "{ auth = \"staff\", groups = [\"lab\", \"it\"], all_groups = [\"night\", \"trained\"] }";
    prepare(&place, &inner(rule));
    place.write(
        "groups",
        "lab: bob cid\nnight: ann bob cid\ntrained: ann bob\n",
    );
    let hob = place.serve_text(&config(&inner(rule)));
    let sesame = |name: &str| status(&hob, name, "sesame");
    assert_eq!(
        (sesame("ann"), sesame("bob"), sesame("cid")),
        (403, 200, 403)
    );
    let told =
        |user: &str| text_of(&place.run(&["explain", "--user", user, "GET", "/inner/a.txt"]));
    assert!(
        told("bob").contains("in lab, night, trained, may"),
        "{}",
        told("bob")
    );
    assert!(
        told("cid").contains("in lab, night, may not"),
        "{}",
        told("cid")
    );
    hob.stop();
}

#[test]
fn changed_file_and_reload_end_what_is_remembered() {
    let place = Place::new();
    let hob = serve(&place, &inner("\"staff\""));
    assert_eq!(status(&hob, "ann", "sesame"), 200);
    place.write("users", &account("ann", "other"));
    wait_for_status(&hob, "ann", "other", 200);
    assert_eq!(status(&hob, "ann", "sesame"), 401);
    let reload = |generation: &str| {
        let reload = place.run(&["reload"]);
        assert!(reload.status.success(), "{}", text_of(&reload));
        hob.wait_for(&format!("reloaded, generation {generation}"));
    };
    let before = place.counter("passwords_checked");
    assert_eq!(status(&hob, "ann", "other"), 200);
    assert_eq!(place.counter("passwords_checked"), before);
    reload("2");
    assert_eq!(status(&hob, "ann", "other"), 200);
    assert_eq!(place.counter("passwords_checked"), before + 1);
    // Without the file nobody gets in, and with it everybody does again.
    std::fs::rename(place.path("users"), place.path("gone")).unwrap();
    wait_for_status(&hob, "ann", "other", 503);
    assert_eq!(status(&hob, "nobody", ""), 503);
    hob.wait_for("nobody can sign in");
    std::fs::rename(place.path("gone"), place.path("users")).unwrap();
    wait_for_status(&hob, "ann", "other", 200);
    hob.stop();
}

#[test]
fn server_does_not_start_without_its_accounts() {
    let place = Place::new();
    prepare(&place, &inner("\"staff\""));
    std::fs::remove_file(place.path("groups")).unwrap();
    let output = place.run(&["serve"]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let missing = format!("there is no file {}", place.path("groups").display());
    assert!(text.contains(&missing), "{text}");
    let check = text_of(&place.run(&["check"]));
    assert!(check.contains("groups"), "{check}");
}

#[test]
fn programs_are_told_who_signed_in_and_by_nobody_else() {
    let place = Place::new();
    place.folder("cgi");
    let echo = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
        echo \"$REMOTE_USER|$AUTH_TYPE|$HTTP_REMOTE_USER|$HTTP_X_FORWARDED_USER|\
        $HTTP_AUTHORIZATION\"\n";
    place.script("cgi/echo", echo);
    place.write(
        "cgi/app.py",
        "def application(environ, start):\n    start('200 OK', [('Content-Type', 'text/plain')])\n\
         \x20   names = ['REMOTE_USER', 'AUTH_TYPE', 'HTTP_REMOTE_USER', 'HTTP_X_FORWARDED_USER', \
         'HTTP_AUTHORIZATION']\n    told = '|'.join(environ.get(name, '') for name in names)\n\
         \x20   return [told.encode() + b'\\n']\n",
    );
    let hob = serve(
        &place,
        "require = \"staff\"\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
         [[site.route]]\npath = \"/app/*\"\nresident = { wsgi = \"app:application\", dir = \"cgi\" }\n\
         [[site.route]]\npath = \"/near/*\"\ncgi = { script = \"cgi/echo\" }\n\
         require = { auth = \"staff\", satisfy = \"any\" }\n\
         access = { allow = [\"10.0.0.0/8\"] }\n\
         [[site.route]]\npath = \"/open/*\"\nrequire = \"none\"\ncgi = { script = \"cgi/echo\" }\n",
    );
    let forged = "Remote-User: root\r\nREMOTE_USER: root\r\nRemote_User: root\r\n\
        X-Forwarded-User: root\r\nX-Forwarded_User: root\r\nAuth-Type: none\r\n";
    for path in ["/cgi/echo", "/app/x"] {
        // One connection may have requests of several people.
        let mut connection = Connection::open(hob.port()).unwrap();
        for name in ["ann", "bob", "ann"] {
            let fields = format!("{}{forged}", basic(name, "sesame"));
            let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
            connection.send(head.as_bytes()).unwrap();
            let answer = connection.read().unwrap();
            assert_eq!(answer.text(), format!("{name}|Basic|||\n"), "{path}");
        }
    }
    // Nor where one need not sign in.
    let near = get(
        &hob,
        "/near/",
        &format!("X-Forwarded-For: 10.1.2.3\r\n{forged}"),
    );
    assert_eq!(near.text(), "||||\n");
    // Where nobody is asked, nobody has signed in; what a client writes is the client's word.
    let answer = get(
        &hob,
        "/open/",
        &format!("{}{forged}", basic("ann", "sesame")),
    );
    assert_eq!(answer.text(), "||root|root|\n");
    hob.stop();
}

#[test]
fn proxied_server_is_told_who_signed_in() {
    let behind = Place::new();
    behind.folder("cgi");
    let echo = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
                echo \"$HTTP_REMOTE_USER|$HTTP_X_REMOTE_USER\"\n";
    behind.script("cgi/echo", echo);
    let back = behind.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n[[site.route]]\npath = \"/*\"\n\
         cgi = { script = \"cgi/echo\" }\n",
    );
    let place = Place::new();
    let to = format!("proxy = {{ to = \"http://127.0.0.1:{}\" }}\n", back.port());
    let hob = serve(
        &place,
        &format!(
            "[[site.route]]\npath = \"/asked/*\"\nrequire = \"staff\"\n{to}\
             [[site.route]]\npath = \"/open/*\"\n{to}"
        ),
    );
    let forged = "Remote-User: root\r\nX-Remote-User: root\r\n";
    let fields = format!("{}{forged}", basic("ann", "sesame"));
    assert_eq!(get(&hob, "/asked/x", &fields).text(), "ann|\n");
    assert_eq!(get(&hob, "/open/x", &fields).text(), "root|root\n");
    hob.stop();
    back.stop();
}

#[test]
fn route_that_answers_in_the_end_asks_who_it_is() {
    let place = Place::new();
    place.folder("cgi");
    let go = "#!/bin/sh\nprintf 'Location: %s\\n\\n' \"$QUERY_STRING\"\n";
    place.script("cgi/go", go);
    let asked = "{ auth = \"staff\", users = [\"ann\"] }";
    let hob = serve(
        &place,
        &format!(
            "files = {{ fallback = \"inner/a.txt\" }}\n\
             [[site.route]]\npath = \"/cgi/*\"\ncgi = {{ dir = \"cgi\" }}\n\
             [[site.route]]\npath = \"/renamed\"\nrewrite = \"/inner/a.txt\"\nfiles = {{}}\n\
             [[site.route]]\npath = \"/inner/index.html\"\nfiles = {{}}\nrequire = {asked}\n\
             [[site.route]]\npath = \"/inner/a.txt\"\nfiles = {{}}\nrequire = {asked}\n"
        ),
    );
    for path in [
        "/inner/a.txt",
        "/inner/",
        "/renamed",
        "/cgi/go?/inner/a.txt",
        "/cgi/go?/inner/",
        "/cgi/go?/renamed",
        "/nothing",
    ] {
        let answer = get(&hob, path, "");
        assert_eq!(answer.status, 401, "{path}");
        assert!(!answer.text().contains(INNER), "{path}");
        assert_eq!(
            get(&hob, path, &basic("ann", "sesam")).status,
            401,
            "{path}"
        );
        assert_eq!(
            get(&hob, path, &basic("bob", "sesame")).status,
            403,
            "{path}"
        );
        let answer = get(&hob, path, &basic("ann", "sesame"));
        assert_eq!(
            (answer.status, answer.text()),
            (200, INNER.to_owned()),
            "{path}"
        );
    }
    hob.stop();
}

#[test]
fn no_spelling_of_a_path_leads_around_signing_in() {
    let place = Place::new();
    let hob = serve(&place, &inner("\"staff\""));
    for path in SPELLINGS {
        let answer = get(&hob, path, "");
        assert!(answer.status >= 400, "{path}: {}", answer.status);
        assert!(!answer.text().contains(INNER), "{path}");
    }
    for (method, field) in [
        ("GET", "Range: bytes=0-3\r\n"),
        ("OPTIONS", ""),
        ("DELETE", ""),
    ] {
        let answer = ask(hob.port(), method, "/inner/a.txt", field);
        assert_eq!(answer.status, 401, "{method}");
    }
    hob.stop();
}

#[test]
fn one_of_address_and_name_is_enough_where_any_is() {
    let place = Place::new();
    let any = inner("{ auth = \"staff\", satisfy = \"any\" }");
    let access = "access = { allow = [\"10.0.0.0/8\"], methods = [\"GET\"] }\n";
    let hob = serve(&place, &format!("{any}{access}"));
    let from = |client: &str, fields: &str| {
        let fields = format!("X-Forwarded-For: {client}\r\n{fields}");
        get(&hob, "/inner/a.txt", &fields).status
    };
    let (ann, wrong) = (basic("ann", "sesame"), basic("ann", "sesam"));
    assert_eq!(from("10.1.2.3", ""), 200);
    assert_eq!(from("10.1.2.3", &wrong), 200);
    assert_eq!(from("192.0.2.1", ""), 401);
    assert_eq!(from("192.0.2.1", &wrong), 401);
    assert_eq!(from("192.0.2.1", &ann), 200);
    // A method that is not taken is taken from nobody.
    assert_eq!(ask(hob.port(), "DELETE", "/inner/a.txt", &ann).status, 405);
    place.write(
        "hob.toml",
        &config(&format!("{}{access}", inner("\"staff\""))),
    );
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation 2");
    let both = [
        from("10.1.2.3", ""),
        from("10.1.2.3", &ann),
        from("192.0.2.1", &ann),
    ];
    assert_eq!(both, [401, 200, 403]);
    hob.stop();
}

#[test]
fn password_that_many_requests_bring_at_once_is_checked_once() {
    let place = Place::new();
    let hob = serve(&place, &inner("\"staff\""));
    // Dear enough that all are there before it is checked.
    place.write("users", &htpasswd(&["-B", "-C", "11"], "ann", "sesame"));
    wait_for_status(&hob, "bob", "sesame", 401);
    let before = place.counter("passwords_checked");
    let mut all: Vec<Connection> = Vec::new();
    for _ in 0..24 {
        let mut connection = Connection::open(hob.port()).unwrap();
        connection.send_ask("GET", "/inner/a.txt", &basic("ann", "sesame"));
        all.push(connection);
    }
    for mut connection in all {
        assert_eq!(connection.read().unwrap().status, 200);
    }
    assert_eq!(place.counter("passwords_checked"), before + 1);
    assert_eq!(place.counter("limit_sign_ins"), 0);
    hob.stop();
}

#[test]
fn guesses_wait_and_who_is_remembered_does_not() {
    let place = Place::new();
    let hob = serve(&place, &inner("\"staff\""));
    assert_eq!(status(&hob, "ann", "sesame"), 200);
    for guess in 0..6 {
        assert_eq!(status(&hob, "ann", &format!("guess{guess}")), 401);
    }
    assert_eq!(place.counter("sign_ins_delayed"), 0);
    assert_eq!(status(&hob, "ann", "guess6"), 401);
    assert_eq!(place.counter("sign_ins_delayed"), 1);
    assert_eq!(status(&hob, "ann", "sesame"), 200);
    assert_eq!(status(&hob, "bob", "sesame"), 200);
    assert_eq!(place.counter("sign_ins_delayed"), 1);
    hob.stop();
}

#[test]
fn so_many_guesses_of_a_network_are_waited_for_and_no_more() {
    let place = Place::new();
    let hob = serve(&place, &inner("\"staff\""));
    place.write("users", &htpasswd(&["-B", "-C", "12"], "ann", "sesame"));
    wait_for_status(&hob, "bob", "sesame", 401);
    let guess = |client: &str, password: &str| {
        let mut connection = Connection::open(hob.port()).unwrap();
        let fields = format!("X-Forwarded-For: {client}\r\n{}", basic("ann", password));
        connection.send_ask("GET", "/inner/a.txt", &fields);
        connection
    };
    let guesses: Vec<_> = (0..12)
        .map(|at| guess("192.0.2.1", &format!("guess{at}")))
        .collect();
    place.wait_for_counter("limit_sign_ins", 4);
    // Who comes from elsewhere stands in line with the eight.
    let owner = guess("198.51.100.1", "sesame");
    let mut all: Vec<Answer> = Vec::new();
    for mut connection in guesses {
        all.push(connection.read().unwrap());
    }
    let count = |status: u16| all.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(401), count(429)), (8, 4));
    let refused = all.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.header("retry-after"), Some("10"));
    let mut owner = owner;
    assert_eq!(owner.read().unwrap().status, 200);
    hob.stop();
}

#[test]
fn explain_says_who_may() {
    let place = Place::new();
    prepare(
        &place,
        &inner("{ auth = \"staff\", users = [\"ann\"], groups = [\"lab\"] }"),
    );
    let explain = |arguments: &[&str]| text_of(&place.run(&[&["explain"], arguments].concat()));
    let nobody = explain(&["/inner/a.txt"]);
    for told in ["401", "WWW-Authenticate: Basic", "--user NAME"] {
        assert!(nobody.contains(told), "{nobody}");
    }
    for (user, told) in [
        ("ann", ["200 OK", "\"ann\", in all, may"]),
        ("bob", ["200 OK", "\"bob\", in lab, all, may"]),
        ("cid", ["403", "\"cid\", in all, may not"]),
        ("dan", ["401", "\"dan\" is no account of \"staff\""]),
    ] {
        let text = explain(&["/inner/a.txt", "--user", user]);
        assert!(told.iter().all(|told| text.contains(told)), "{text}");
    }
    // As if they were in other groups.
    let with =
        |user: &str, group: &str| explain(&["/inner/a.txt", "--user", user, "--group", group]);
    assert!(with("cid", "lab").contains("200 OK"));
    let without = with("bob", "tea");
    for told in [
        "rules     require (hob.toml:",
        ") refuses: \"bob\", in tea as is said here (in lab, all in the files)",
        "verdict   refused: 403 Forbidden",
    ] {
        assert!(without.contains(told), "{without}");
    }
    let open = explain(&["/hello.txt"]);
    assert!(
        open.contains("200 OK") && !open.contains("verdict"),
        "{open}"
    );
}

#[test]
fn signed_link_is_let_in_until_it_is_over() {
    let place = Place::new();
    let key = "0123456789abcdef0123456789abcdef\n";
    place.write("links.keys", key);
    prepare(&place, "");
    let links = "[[auth]]\nname = \"links\"\nsigned_urls = \"links.keys\"\n";
    let text = format!("{}{links}", config(&inner("\"links\"")));
    let hob = place.serve_text(&text);
    let sign = |arguments: &[&str]| {
        let output = place.run(&[&["sign", "--key", "links.keys"], arguments].concat());
        (output.status.code(), text_of(&output).trim().to_owned())
    };
    let (code, link) = sign(&["/inner/a.txt?page=2"]);
    assert_eq!(code, Some(0), "{link}");
    let answer = get(&hob, &link, "");
    assert_eq!((answer.status, answer.text()), (200, INNER.to_owned()));
    let (_, over) = sign(&["--for", "0s", "/inner/a.txt"]);
    assert_eq!(get(&hob, &over, "").status, 403);
    assert_eq!(
        record(&place, &over)["reason"],
        "require: the signed link is over"
    );
    let other = link.replace("a.txt", "index.html");
    let unsigned = "require: the link is not signed with a key of `signed_urls`";
    for path in [
        "/inner/a.txt",
        &other,
        &link.replace("page=2", "page=3"),
        &format!("{link}&a"),
    ] {
        assert_eq!(get(&hob, path, "").status, 403, "{path}");
        assert_eq!(record(&place, path)["reason"], unsigned, "{path}");
    }
    let (_, whole) = sign(&["https://example.org/inner/a.txt"]);
    let path = whole.strip_prefix("https://example.org").unwrap();
    assert_eq!(get(&hob, path, "").status, 200);
    let explained = text_of(&place.run(&["explain", path]));
    assert!(explained.contains("200 OK"), "{explained}");
    for wrong in ["inner/a.txt", "/a b", "https://example.org", "/a#b"] {
        let (code, text) = sign(&[wrong]);
        assert!(
            code == Some(2) && text.contains("write it as it is sent"),
            "{text}"
        );
    }
    // A key that is taken out of the file opens nothing after a reload.
    place.write("links.keys", &key.to_uppercase());
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation 2");
    assert_eq!(get(&hob, &link, "").status, 403);
    hob.stop();
}

#[test]
fn guesses_whose_clients_leave_count_and_take_no_more_threads() {
    let place = Place::new();
    let site = inner("\"staff\"");
    prepare(&place, &site);
    // With one thread that serves one password is checked at a time.
    let hob = place.serve_text(&format!("threads = 1\n{}", config(&site)));
    place.write("users", &htpasswd(&["-B", "-C", "11"], "ann", "sesame"));
    wait_for_status(&hob, "bob", "sesame", 401);
    let before = place.counter("passwords_checked");
    // One after the other: each leaves once its password is being checked.
    for guess in 0..7 {
        let mut connection = Connection::open(hob.port()).unwrap();
        connection.send_ask(
            "GET",
            "/inner/a.txt",
            &basic("ann", &format!("guess{guess}")),
        );
        place.wait_for_counter("passwords_checked", before + 1 + guess);
        connection.leave();
    }
    // They count as if somebody had waited for their answers.
    assert_eq!(status(&hob, "ann", "guess7"), 401);
    assert!(place.counter("sign_ins_delayed") >= 1);
    hob.stop();
}
