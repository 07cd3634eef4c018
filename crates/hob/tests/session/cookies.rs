//! Handles in cookies.

use crate::harness::client::Reply;
use crate::place::serve;

fn cookie_of(reply: &Reply) -> Option<&str> {
    reply.answer.header("set-cookie")
}

#[test]
fn cookie_carries_the_handle() {
    let shop = serve("handle = \"cookie\", cookie = \"shop\"");
    let reply = shop.get("/shop/tell/HTSession,SCRIPT_NAME");
    let text = reply.answer.text();
    let (handle, name) = text.split_once('\n').unwrap();
    assert_eq!(name, "/shop");
    let cookie = format!("__Host-shop={handle}; Path=/; Secure; HttpOnly; SameSite=Lax");
    assert_eq!(cookie_of(&reply), Some(&*cookie));
    let own = format!("Cookie: a=b; __Host-shop={handle}\r\n");
    let reply = shop.ask_with("/shop/add/tea", &own);
    assert_eq!(reply.answer.text(), "tea");
    assert_eq!(cookie_of(&reply), None, "it has it");
    // In the path it says nothing.
    assert_eq!(shop.text("/shop/tell/HTSession").len(), 33);
    // A new one is told.
    let reply = shop.ask_with("/shop/rotate", &own);
    let new = reply.answer.text();
    assert!(
        cookie_of(&reply)
            .unwrap()
            .starts_with(&format!("__Host-shop={new};"))
    );
    let own = format!("Cookie: __Host-shop={new}\r\n");
    assert_eq!(
        shop.ask_with("/shop/add/cup", &own).answer.text(),
        "tea,cup"
    );
    let reply = shop.ask_with("/shop/leave", &own);
    let cleared = "__Host-shop=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax";
    assert_eq!(cookie_of(&reply), Some(cleared));
    let reply = shop.ask_with("/shop/pid", &own);
    assert_eq!(reply.answer.status, 410);
    assert_eq!(
        cookie_of(&reply),
        Some(cleared),
        "its next request may begin anew"
    );
}

#[test]
fn handles_in_path_and_cookie_that_differ_are_refused() {
    let shop = serve("handle = \"both\"");
    let (one, other) = (shop.begin(), shop.begin());
    let cookie = |handle: &str| format!("Cookie: __Host-htsshop={handle}\r\n");
    let path = format!("/shop/{one}/add/tea");
    assert_eq!(shop.ask_with(&path, &cookie(&one)).answer.status, 200);
    assert_eq!(shop.ask_with(&path, &cookie(&other)).answer.status, 410);
    let two = format!("{}{}", cookie(&one), cookie(&other));
    assert_eq!(shop.ask_with("/shop/pid", &two).answer.status, 410);
    assert_eq!(
        shop.ask_with("/shop/add/cup", &cookie(&one)).answer.text(),
        "tea,cup"
    );
    assert_eq!(shop.said(&one, "add/pot"), "tea,cup,pot");
    shop.counts("session_stale", 2);
}
