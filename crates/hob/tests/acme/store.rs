//! Where certificates are kept: by one at a time, and not at all where nothing can be.

use crate::authority::Authority;
use crate::harness::client::ask;
use crate::harness::{Hob, Place, text_of};
use crate::{
    Failed, config, error_of, fail_an_order, kept, reload, serve, shown, wait_for_state,
    wait_until_shown_differs, wait_until_trusted,
};

const HOST: &str = "one.example.test";

#[test]
fn nothing_is_ordered_where_nothing_can_be_kept() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    place.write("blocked", "a file");
    let text = format!("state = \"blocked\"\n{}", config(&authority, ""));
    let hob = serve(&place, &authority, &text);
    hob.wait_for("no certificates are asked for: ");
    let error = error_of(&place);
    assert!(error.contains("`state` names another folder"), "{error}");
    let host = format!("Host: {HOST}\r\n");
    let answer = ask(hob.port(), "GET", "/hello.txt", &host);
    assert_eq!(answer.text(), "hello\n");
    assert!(!shown(&hob, HOST).is_empty());
    assert!(!authority.printed().contains("POST /sign-me-up"));
    place.write("hob.toml", &config(&authority, ""));
    reload(&place);
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    hob.stop();
}

#[test]
fn certificate_that_cannot_be_kept_is_kept_later_and_not_ordered_again() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    let before = shown(&hob, HOST);
    // What is in the way of the file is a folder that is not empty.
    let file = kept(&place).join("one.example.test.pem");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir_all(file.join("in the way")).unwrap();
    authority.want_renewal_of(&before);
    reload(&place);
    hob.wait_for("one.example.test.pem cannot be written");
    let orders = authority.order_count();
    std::fs::remove_dir_all(&file).unwrap();
    reload(&place);
    hob.wait_for_count("a certificate was got", 2);
    wait_until_shown_differs(&hob, HOST, &before);
    wait_until_trusted(&hob, &authority, HOST);
    assert_eq!(authority.order_count(), orders);
    hob.stop();
}

#[test]
fn of_two_with_one_store_one_orders_and_both_serve() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "");
    let first = serve(&place, &authority, &text);
    first.wait_for("a certificate was got");
    place.write(
        "second.toml",
        &format!("control = \"run/hob/second.sock\"\n{text}"),
    );
    let second = place.serve(&["--config", "second.toml"]);
    second.wait_for("another hob with the same `state` folder");
    for hob in [&first, &second] {
        wait_until_trusted(hob, &authority, HOST);
    }
    let before = shown(&first, HOST);
    assert_eq!(shown(&second, HOST), before);
    let status = place.run(&["status", "--control", "run/hob/second.sock"]);
    assert!(
        text_of(&status).contains("another hob"),
        "{}",
        text_of(&status)
    );
    // What one gets, the other takes over.
    authority.want_renewal_of(&before);
    reload(&place);
    first.wait_for_count("a certificate was got", 2);
    for hob in [&first, &second] {
        wait_until_shown_differs(hob, HOST, &before);
        wait_until_trusted(hob, &authority, HOST);
    }
    assert_eq!(orders_made(&second), 0);
    // And when one is gone, the other gets what is wanted.
    authority.http.lead_to(second.port());
    let before = shown(&second, HOST);
    first.stop();
    second.wait_for("process for certificates started");
    authority.want_renewal_of(&before);
    let reloaded = place.run(&["reload", "--control", "run/hob/second.sock"]);
    assert!(reloaded.status.success(), "{}", text_of(&reloaded));
    second.wait_for("a certificate was got");
    wait_until_shown_differs(&second, HOST, &before);
    second.stop();
}

#[test]
fn file_that_is_removed_is_served_on_and_got_anew_by_a_reload() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let hob = serve(&place, &authority, &config(&authority, ""));
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    let file = kept(&place).join("one.example.test.pem");
    let want = |_: &str| std::fs::remove_file(&file).unwrap();
    let Failed { before, got, .. } = fail_an_order(&place, &hob, &authority, HOST, want);
    assert_eq!(shown(&hob, HOST), before);
    authority.http.lead_to(hob.port());
    reload(&place);
    hob.wait_for_count("a certificate was got", got + 1);
    wait_until_shown_differs(&hob, HOST, &before);
    wait_until_trusted(&hob, &authority, HOST);
    assert!(file.exists());
    hob.stop();
}

fn orders_made(hob: &Hob) -> usize {
    hob.printed().matches("a certificate was got").count()
}

#[test]
fn kept_file_that_is_broken_is_not_served_and_another_is_got() {
    let place = Place::new();
    let Some(authority) = Authority::start(&place) else {
        return;
    };
    let text = config(&authority, "");
    let hob = serve(&place, &authority, &text);
    hob.wait_for("a certificate was got");
    let file = kept(&place).join("one.example.test.pem");
    hob.stop();
    let whole = std::fs::read_to_string(&file).unwrap();
    let without_key = whole.split("-----BEGIN PRIVATE KEY").next().unwrap();
    std::fs::write(&file, without_key).unwrap();
    let hob = serve(&place, &authority, &text);
    hob.wait_for("the certificate kept for one.example.test cannot be served");
    hob.wait_for("a certificate was got");
    wait_until_trusted(&hob, &authority, HOST);
    wait_for_state(&place, |state| state["state"] == "served");
    hob.stop();
}
