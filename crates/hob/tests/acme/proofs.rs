//! A certificate by each of the three proofs, obtained and served.

use std::os::unix::fs::PermissionsExt;

use crate::authority::Authority;
use crate::harness::client::ask;
use crate::harness::{Place, is_root};
use crate::{
    CLEAR_TEXT, TLS, config, curl, kept, reload, serve, shown, site, wait_for_state,
    wait_until_trusted,
};

#[test]
fn page_in_clear_text_proves_every_name_before_any_redirect() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let acme = authority.keys("contact = [\"admin@example.test\"]\n");
    let site = site("[\"one.example.test\", \"two.example.test\"]\nhttps_only = true");
    let hob = serve(
        &place,
        &authority,
        &format!("{CLEAR_TEXT}{TLS}{acme}\n{site}"),
    );
    hob.wait_for("a certificate was got");
    for host in ["one.example.test", "two.example.test"] {
        wait_until_trusted(&hob, &authority, host);
    }
    let state = wait_for_state(&place, |state| state["state"] == "served");
    assert_eq!(state["challenge"], "http-01");
    assert_eq!(state["names"][1], "two.example.test");
    let (until, next) = (&state["until_unix"], &state["next_try_unix"]);
    assert!(until.as_i64().unwrap() > next.as_i64().unwrap(), "{state}");
    let mode = |name: &str| {
        let data = std::fs::metadata(kept(&place).join(name)).unwrap();
        data.permissions().mode() & 0o777
    };
    assert_eq!(mode("one.example.test.pem"), 0o600);
    assert_eq!(mode("account.json"), 0o600);
    assert_eq!(mode(""), 0o700);
    // The proof is gone, and the path is the site's again.
    let token = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0";
    let path = format!("/.well-known/acme-challenge/{token}");
    let answer = ask(hob.port(), "GET", &path, "Host: one.example.test\r\n");
    assert_eq!(answer.status, 301);
    hob.stop();
}

#[test]
fn handshake_proves_a_name_where_there_is_no_clear_text() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "").replace(CLEAR_TEXT, "");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, "one.example.test");
    let state = wait_for_state(&place, |state| state["state"] == "served");
    assert_eq!(state["challenge"], "tls-alpn-01");
    // Who asks for a proof that is not shown gets no handshake.
    let output = std::process::Command::new("openssl")
        .args(["s_client", "-alpn", "acme-tls/1", "-servername"])
        .args(["one.example.test", "-connect"])
        .arg(format!("127.0.0.1:{}", hob.tls_port()))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = crate::harness::text_of(&output);
    assert!(said.contains("no application protocol"), "{said}");
    hob.stop();
}

#[test]
fn record_proves_a_wildcard_and_is_removed() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    authority.write_hook(&place, "records", "echo \"$@\" >> run/calls");
    let keys = "dns = { run = \"records\", arguments = [], wait = \"1s\" }\n";
    let acme = authority.keys(keys);
    let site = site("[\"*.example.test\", \"example.test\"]");
    let hob = serve(
        &place,
        &authority,
        &format!("{CLEAR_TEXT}{TLS}{acme}\n{site}"),
    );
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, "example.test");
    wait_until_trusted(&hob, &authority, "any.example.test");
    assert!(!curl(&hob, &authority, "a.b.example.test").status.success());
    let state = wait_for_state(&place, |state| state["state"] == "served");
    assert_eq!(state["challenge"], "dns-01");
    let calls = || {
        let calls = std::fs::read_to_string(place.path("run/calls")).unwrap();
        let count = |word: &str| {
            let begin = format!("{word} _acme-challenge.example.test ");
            calls
                .lines()
                .filter(|call| call.starts_with(&begin))
                .count()
        };
        (count("add"), count("remove"))
    };
    while calls().1 < 2 {
        std::thread::yield_now();
    }
    assert_eq!(calls(), (2, 2));
    hob.stop();
}

#[test]
fn kept_certificate_is_served_from_the_start_without_another_order() {
    let place = Place::new();
    let Some(mut authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, "one.example.test");
    let before = shown(&hob, "one.example.test");
    hob.stop();
    authority.leave();
    let hob = serve(&place, &authority, &text);
    assert_eq!(shown(&hob, "one.example.test"), before);
    let state = wait_for_state(&place, |state| state["state"] == "served");
    assert!(
        state["until"].as_str().unwrap().ends_with(" UTC"),
        "{state}"
    );
    hob.stop();
}

#[test]
fn listener_with_auto_gets_one_for_each_site_and_signs_for_the_rest_itself() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let tls = TLS.replace("true", "\"auto\"");
    let acme = authority.keys("");
    let named = |name: &str| format!("[[site]]\nnames = [\"{name}\"]\nroot = \"site\"\n\n");
    let sites = format!(
        "{}{}{}",
        named("localhost"),
        named("one.example.test"),
        named("two.example.test")
    );
    let hob = serve(
        &place,
        &authority,
        &format!("{CLEAR_TEXT}{tls}{acme}\n{sites}"),
    );
    hob.wait_for_count("a certificate was got", 2);
    for host in ["one.example.test", "two.example.test"] {
        wait_until_trusted(&hob, &authority, host);
    }
    assert!(!curl(&hob, &authority, "localhost").status.success());
    assert_eq!(place.status()["certificates"].as_array().unwrap().len(), 2);
    hob.stop();
}

#[test]
fn name_that_is_added_is_got_by_a_reload() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("a certificate was got");
    let more = "[\"one.example.test\", \"two.example.test\"]";
    place.write("hob.toml", &text.replace("[\"one.example.test\"]", more));
    // Until then nothing is known of the first.
    wait_until_trusted(&hob, &authority, "one.example.test");
    reload(&place);
    hob.wait_for_count("a certificate was got", 2);
    wait_until_trusted(&hob, &authority, "two.example.test");
    wait_until_trusted(&hob, &authority, "one.example.test");
    hob.stop();
}

#[test]
fn started_as_root_the_orders_are_made_by_the_servers_account() {
    if !is_root() {
        return println!("skipped: needs root");
    }
    let place = Place::for_user(crate::harness::User::Same);
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let own = "user = \"nobody\"\ncontrol = \"run/hob/control.sock\"\nstate = \"run/hob\"\n";
    let text = format!("{own}{}", config(&authority, ""));
    let hob = serve(&place, &authority, &text);
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, "one.example.test");
    let process = crate::processes::the_one_that_orders(&hob);
    for line in ["Uid", "Gid"] {
        let ids = crate::harness::status_line(process, line);
        assert_eq!(ids, "65534 65534 65534 65534");
    }
    assert_eq!(crate::harness::status_line(process, "NoNewPrivs"), "1");
    let owner = std::os::unix::fs::MetadataExt::uid(
        &std::fs::metadata(kept(&place).join("one.example.test.pem")).unwrap(),
    );
    assert_eq!(owner, 0);
    hob.stop();
}
