//! `pam` of `[[auth]]`: accounts of the system, asked in a process of their own. PAM is the real
//! one, with stacks of services of the tests' own.
//!
//! Those with `by_system_` in their names have a machine with accounts of its own, and need root.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "pam/services.rs"]
mod services;
#[path = "pam/system.rs"]
mod system;

use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use harness::client::{Answer, Connection, ask};
use harness::site::{TOP, record};
use harness::{DEADLINE, Hob, Place};

const INNER: &str = "for us alone\n";

/// Ann and bob have accounts, with `sesame`. Others have none.
const CHECK: &str = "#!/bin/sh\n\
    read -r given || [ -n \"$given\" ] || exit 1\n\
    case \"$PAM_USER:$given\" in ann:sesame | bob:sesame) exit 0;; esac\n\
    exit 1\n";

/// What the password is checked by.
fn checked_by(place: &Place, script: &str) -> String {
    let script = place.path(script).display().to_string();
    format!(
        "auth [success=1 default=ignore] pam_exec.so quiet expose_authtok stdout {script}\n\
         auth requisite pam_deny.so\nauth required pam_permit.so\n"
    )
}

const ANY_ACCOUNT: &str = "account required pam_permit.so\n";

/// A place whose PAM has the service `hob`, with ann and bob.
fn place() -> Place {
    let place = Place::new();
    place.folder("site/inner");
    place.folder("pam.d");
    place.write("site/inner/a.txt", INNER);
    place.script("check", CHECK);
    service(
        &place,
        &format!("{}{ANY_ACCOUNT}", checked_by(&place, "check")),
    );
    place
}

/// What PAM does from now on.
fn service(place: &Place, text: &str) {
    place.write("pam.d/hob", text);
}

fn config(keys: &str, require: &str) -> String {
    format!(
        "{TOP}[[site.route]]\npath = \"/inner/*\"\nfiles = {{}}\nrequire = {require}\n\
         [[auth]]\nname = \"system\"\nrealm = \"This machine\"\n\
         pam = {{ service = \"hob\", services = \"pam.d\"{keys} }}\n"
    )
}

fn serve(place: &Place, keys: &str) -> Hob {
    place.serve_text(&config(keys, "\"system\""))
}

/// The field of a name and a password.
fn basic(name: &str, password: &[u8]) -> String {
    let both = [name.as_bytes(), b":", password].concat();
    format!("Authorization: Basic {}\r\n", BASE64_STANDARD.encode(both))
}

fn get(hob: &Hob, path: &str, name: &str, password: &str) -> Answer {
    ask(hob.port(), "GET", path, &basic(name, password.as_bytes()))
}

fn status(hob: &Hob, name: &str, password: &str) -> u16 {
    get(hob, "/inner/a.txt", name, password).status
}

/// A request that is on its way.
fn begin(hob: &Hob, name: &str, password: &str) -> Connection {
    let mut connection = Connection::open(hob.port()).unwrap();
    connection.send_ask("GET", "/inner/a.txt", &basic(name, password.as_bytes()));
    connection
}

/// Asks until this is the answer.
fn wait_for_status(hob: &Hob, name: &str, password: &str, wanted: u16) {
    let until = Instant::now() + DEADLINE;
    while status(hob, name, password) != wanted {
        assert!(Instant::now() < until, "never {wanted}");
        std::thread::yield_now();
    }
}

/// Why a request was refused, and what PAM said.
fn reason(place: &Place, path: &str) -> (String, String) {
    let record = record(place, path);
    let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("detail"))
}

#[test]
fn whom_pam_lets_in_gets_it_and_nobody_else() {
    let place = place();
    let hob = serve(&place, "");
    let refused = ask(hob.port(), "GET", "/inner/a.txt", "");
    assert_eq!(refused.status, 401);
    let challenge = "Basic realm=\"This machine\", charset=\"UTF-8\"";
    assert_eq!(refused.header("www-authenticate"), Some(challenge));
    for name in ["ann", "bob", "ann"] {
        let path = format!("/inner/a.txt?{name}");
        let answer = get(&hob, &path, name, "sesame");
        assert_eq!((answer.status, answer.text()), (200, INNER.to_owned()));
        assert_eq!(record(&place, &path)["user"], name);
    }
    assert_eq!(place.counter("passwords_checked"), 2);
    for (case, name, password) in [("wrong", "ann", "sesam"), ("unknown", "dan", "sesame")] {
        let path = format!("/inner/a.txt?{case}");
        let answer = get(&hob, &path, name, password);
        assert_eq!(answer.status, 401, "{case}");
        assert!(!answer.text().contains(INNER) && answer.header("www-authenticate").is_some());
        let (reason, said) = reason(&place, &path);
        assert_eq!(reason, "require: the name or the password is wrong");
        assert_eq!(said, "pam_authenticate: Authentication failure");
    }
    assert_eq!(place.counter("sign_ins_failed"), 2);
    assert_eq!(ask(hob.port(), "GET", "/hello.txt", "").status, 200);
    hob.stop();
}

#[test]
fn names_and_passwords_that_nobody_can_have_are_not_asked_about() {
    let place = place();
    // Whoever is asked about gets in.
    service(
        &place,
        &format!("auth required pam_permit.so\n{ANY_ACCOUNT}"),
    );
    let hob = serve(&place, "");
    let long = "x".repeat(10 * 1024);
    let cases: [(&str, &[u8]); 9] = [
        ("ann", b""),
        ("ann", b"ses\0ame"),
        ("ann", &long.as_bytes()[..512]),
        ("ann", long.as_bytes()),
        ("../ann", b"sesame"),
        ("-ann", b"sesame"),
        ("ann\n", b"sesame"),
        ("ann\0", b"sesame"),
        (&long[..257], b"sesame"),
    ];
    for (name, password) in cases {
        let field = basic(name, password);
        let answer = ask(hob.port(), "GET", "/inner/a.txt", &field);
        assert_eq!(answer.status, 401, "{name:?} {password:?}");
        place_counts_no_guess(&place);
    }
    for (name, password) in [
        ("ann", &b"\xff\xfe\n:"[..]),
        ("a.n-n@ö", &long.as_bytes()[..511]),
    ] {
        let answer = ask(hob.port(), "GET", "/inner/a.txt", &basic(name, password));
        assert_eq!(answer.status, 200, "{name:?}");
    }
    assert_eq!(place.counter("passwords_checked"), 2);
    hob.stop();
}

fn place_counts_no_guess(place: &Place) {
    assert_eq!(place.counter("passwords_checked"), 0);
}

#[test]
fn pam_is_told_who_comes_from_where_and_nothing_else_has_the_password() {
    let place = place();
    let told = place.path("run/told").display().to_string();
    place.script(
        "check",
        &format!(
            "#!/bin/sh\nread -r given\n\
             {{ echo \"$PAM_USER $PAM_RHOST $PAM_SERVICE $PAM_TYPE $given\"; \
             tr '\\0' ' ' < /proc/$PPID/cmdline; echo; \
             for fd in /proc/self/fd/*; do readlink \"$fd\"; done; }} > {told}\n\
             cat /proc/$PPID/environ >> {told} 2>&1\nexit 0\n"
        ),
    );
    let hob = serve(&place, "");
    assert_eq!(status(&hob, "ann", "sesame"), 200);
    let text = std::fs::read_to_string(place.path("run/told")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("ann 127.0.0.1 hob auth sesame"));
    assert_eq!(text.matches("sesame").count(), 1, "{text}");
    // Nobody reads its memory or its environment.
    assert!(text.contains("Permission denied"), "{text}");
    hob.stop();
}

#[test]
fn accounts_that_are_locked_or_expired_or_need_a_new_password_are_refused() {
    for (value, said) in [
        ("acct_expired", "User account has expired"),
        (
            "new_authtok_reqd",
            "Authentication token is no longer valid",
        ),
        ("perm_denied", "Permission denied"),
        ("auth_err", "Authentication failure"),
        ("user_unknown", "User not known"),
    ] {
        let place = place();
        let account = format!("account required pam_debug.so acct={value}\n");
        service(&place, &format!("{}{account}", checked_by(&place, "check")));
        let hob = serve(&place, "");
        let answer = get(&hob, "/inner/a.txt", "ann", "sesame");
        assert_eq!(answer.status, 401, "{value}");
        assert!(!answer.text().contains(INNER));
        let (reason, detail) = reason(&place, "/inner/a.txt");
        assert!(
            reason.starts_with("require: PAM refuses the account"),
            "{reason}"
        );
        assert!(
            detail.starts_with(&format!("pam_acct_mgmt: {said}")),
            "{detail}"
        );
        // It is a guess as any other, and nobody is remembered.
        assert_eq!(status(&hob, "ann", "sesame"), 401);
        assert_eq!(place.counter("passwords_checked"), 2);
        hob.stop();
    }
}

#[test]
fn pam_that_cannot_say_is_the_servers_fault() {
    for (stack, said) in [
        (
            "auth required pam_debug.so auth=authinfo_unavail\n",
            "pam_authenticate: ",
        ),
        ("auth required no_such_module.so\n", "pam_authenticate: "),
        (
            "auth required pam_debug.so auth=conv_err\n",
            "pam_authenticate: ",
        ),
    ] {
        let place = place();
        service(&place, &format!("{stack}{ANY_ACCOUNT}"));
        let hob = serve(&place, "");
        assert_eq!(status(&hob, "ann", "sesame"), 503, "{stack}");
        let record = record(&place, "/inner/a.txt");
        assert_eq!(record["fault"], "server", "{stack}");
        let (reason, detail) = reason(&place, "/inner/a.txt");
        assert_eq!(
            reason,
            "require: PAM cannot say whether the password is right"
        );
        assert!(detail.starts_with(said), "{detail}");
        // Nobody has guessed.
        assert_eq!(place.counter("sign_ins_failed"), 0);
        hob.stop();
    }
}
