//! What goes wrong says so, with what to do; the rest is served meanwhile.

use std::process::Command;

use crate::authority::{Authority, EXTERNAL_KEY};
use crate::harness::client::ask;
use crate::harness::{Place, text_of};
use crate::{
    CLEAR_TEXT, TLS, config, error_of, reload, serve, shown, site, wait_for_state,
    wait_until_trusted,
};

const HOST: &str = "one.example.test";

/// Who signed the certificate that is shown.
fn issuer(certificate: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate).unwrap();
    let output = Command::new("openssl")
        .args(["x509", "-noout", "-issuer", "-in"])
        .arg(file.path())
        .output()
        .unwrap();
    text_of(&output)
}

#[test]
fn authority_that_is_not_there_is_told_and_tried_again() {
    let place = Place::new();
    let Some(mut authority) = Authority::start(&place) else {
        return;
    };
    authority.leave();
    let hob = serve(&place, &authority, &config(&authority, ""));
    hob.wait_for("no certificate: the authority at https://127.0.0.1:");
    let error = error_of(&place);
    assert!(error.contains("is `acme.directory` right"), "{error}");
    let signed = issuer(&shown(&hob, HOST));
    assert!(signed.contains("hob self-signed"), "{signed}");
    let host = format!("Host: {HOST}\r\n");
    let answer = ask(hob.port(), "GET", "/hello.txt", &host);
    assert_eq!(answer.text(), "hello\n");
    authority.resume();
    reload(&place);
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    let state = wait_for_state(&place, |state| state["state"] == "served");
    assert!(state["error"].is_null(), "{state}");
    hob.stop();
}

#[test]
fn authority_whose_certificate_nobody_knows_is_not_spoken_to() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "").replace("ca = \"authority/cert.pem\"\n", "");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("no certificate: the authority at https://127.0.0.1:");
    let error = error_of(&place);
    // A machine without any authorities says that first.
    assert!(error.contains("`acme.ca`"), "{error}");
    hob.stop();
}

#[test]
fn file_of_authorities_that_is_no_use_is_refused() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("a certificate was got");
    for content in ["", "no certificate\n"] {
        place.write("other.pem", content);
        place.write("hob.toml", &text.replace("authority/cert.pem", "other.pem"));
        let output = place.run(&["reload"]);
        assert!(!output.status.success());
        let said = text_of(&output);
        assert!(
            said.contains("`acme.ca` holds no certificate in PEM: "),
            "{said}"
        );
        let checked = place.run(&["check", "--config", "hob.toml"]);
        assert_eq!(checked.status.code(), Some(2));
    }
    hob.stop();
}

#[test]
fn directory_that_is_none_is_told() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "").replace("/dir\"", "/roots\"");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("no certificate: the authority at https://127.0.0.1:");
    let error = error_of(&place);
    assert!(error.contains("/roots cannot be asked"), "{error}");
    hob.stop();
}

#[test]
fn authority_that_forgot_the_account_gets_another() {
    let place = Place::new();
    let Some(mut authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("a certificate was got");
    authority.leave();
    authority.resume();
    place.write("hob.toml", &text.replace(HOST, "two.example.test"));
    reload(&place);
    hob.wait_for("the authority does not know the account");
    hob.wait_for_count("a certificate was got", 2);
    wait_until_trusted(&hob, &authority, "two.example.test");
    hob.stop();
}

#[test]
fn name_that_the_authority_refuses_is_told_in_its_words() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "").replace(HOST, "blocked.test");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("no certificate: the authority refuses an order for these names");
    let error = error_of(&place);
    assert!(error.contains("rejectedIdentifier"), "{error}");
    hob.stop();
}

#[test]
fn program_that_fails_is_told_with_what_it_printed() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let before = "if [ -e run/broken ]; then echo 'no zone here' >&2; exit 3; fi";
    authority.write_hook(&place, "records", before);
    place.write("run/broken", "");
    let keys = "challenge = \"dns-01\"\ndns = \"records\"\n";
    let hob = serve(&place, &authority, &config(&authority, keys));
    hob.wait_for("no certificate: the program of `acme.dns` ended with exit status: 3");
    let error = error_of(&place);
    let end = "records add _acme-challenge.one.example.test: no zone here";
    assert!(error.ends_with(end), "{error}");
    std::fs::remove_file(place.path("run/broken")).unwrap();
    reload(&place);
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    hob.stop();
}

#[test]
fn program_that_hangs_is_killed_and_told() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    authority.write_hook(&place, "records", "exec tail -f /dev/null");
    let keys = "challenge = \"dns-01\"\ndns = { run = \"records\", timeout = \"1s\" }\n";
    let hob = serve(&place, &authority, &config(&authority, keys));
    hob.wait_for("no certificate: the program of `acme.dns` did not end within 1 s");
    hob.stop();
}

#[test]
fn account_that_was_agreed_on_elsewhere_is_shown() {
    let place = Place::new();
    let Some(authority) = Authority::start_with_external_accounts(&place) else {
        return;
    };
    let acme = authority.keys("");
    let site = site("[\"one.example.test\"]");
    let text = format!("{CLEAR_TEXT}{TLS}{acme}\n{site}");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("no certificate: the authority gives no account");
    let error = error_of(&place);
    assert!(error.contains("`acme.external_account`"), "{error}");
    place.write("eab.key", &format!("{EXTERNAL_KEY}\n"));
    let acme = authority.keys("external_account = { id = \"kid-1\", key = \"eab.key\" }\n");
    place.write("hob.toml", &format!("{CLEAR_TEXT}{TLS}{acme}\n{site}"));
    reload(&place);
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    hob.stop();
}
