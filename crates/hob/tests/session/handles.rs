//! Handles: forged ones, old ones, and who is shown them.

use crate::place::{route, serve, shop};
use crate::site::Programs;

#[test]
fn handle_that_names_no_visit_is_never_a_new_one_and_all_are_told_alike() {
    let shop = shop().serve_route(&format!(
        "{}[[site.route]]\n{}",
        route("/shop/*", ""),
        route("/other/*", "")
    ));
    let handle = shop.begin();
    let over = shop.begin();
    shop.said(&over, "leave");
    let mut replies = Vec::new();
    for stale in [
        "~00000000000000000000000000000000",
        &over,
        // Cut, in capitals, with more behind it.
        &handle[..20],
        "~",
        &handle.to_ascii_uppercase(),
        &format!("{handle}a"),
        // Of a program of its own, such as another server knew.
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    ] {
        let reply = shop.get(&format!("/shop/{stale}/add/tea"));
        replies.push((reply.answer.status, reply.answer.body));
    }
    let foreign = shop.get(&format!("/other/{handle}/add/tea"));
    replies.push((foreign.answer.status, foreign.answer.body));
    assert!(
        replies.iter().all(|reply| *reply == replies[0]),
        "{replies:?}"
    );
    assert_eq!(replies[0].0, 410);
    shop.counts("session_stale", 8);
    shop.counts("session_starts", 2);
    assert_eq!(shop.said(&handle, "add/tea"), "tea");
    assert_eq!(shop.said(&handle, "add/a/path/below"), "tea,a/path/below");
    // An encoded one is the same.
    let encoded = handle.replace('~', "%7E");
    assert_eq!(shop.said(&encoded, "add/cup"), "tea,a/path/below,cup");
}

#[test]
fn ordinary_paths_begin_visits() {
    let shop = serve("");
    for path in [
        "/shop/add/the-quick-brown-fox-jumps-over-the-dog",
        "/shop/add/2024-11-29",
    ] {
        shop.text(path);
    }
    shop.counts("session_starts", 2);
}

#[test]
fn stale_handle_may_lead_elsewhere() {
    let shop = serve("stale = \"/shop/pid\"");
    let reply = shop.ask("~00000000000000000000000000000000", "pid");
    assert_eq!(reply.answer.status, 303);
    assert_eq!(reply.answer.header("location"), Some("/shop/pid"));
    shop.counts("session_starts", 0);
}

#[test]
fn new_handle_replaces_the_last_which_holds_for_a_moment() {
    let shop = serve("overlap = \"1m\"");
    let first = shop.begin();
    shop.said(&first, "add/tea");
    let second = shop.said(&first, "rotate");
    assert_ne!(first, second);
    assert_eq!(shop.said(&second, "tell/HTSession"), second);
    assert_eq!(shop.said(&first, "tell/HTSession"), second, "on its way");
    let third = shop.said(&second, "rotate");
    // Only the last one holds beside it.
    assert_eq!(shop.status_of(&first, "pid"), 410);
    assert_eq!(shop.said(&third, "add/cup"), "tea,cup");
    let strict = serve("overlap = \"0s\"");
    let first = strict.begin();
    let second = strict.said(&first, "rotate");
    assert_eq!(strict.status_of(&first, "pid"), 410);
    assert_eq!(strict.said(&second, "tell/HTSession"), second);
}

/// Begins a visit whose program gives a handle that can be guessed: the cookies beside it.
fn begin_weak(shop: &Programs) -> String {
    let reply = shop.get("/shop/head?Accept-HTSession=42");
    assert_eq!(reply.answer.status, 200);
    let fields = reply.answer.headers.iter();
    let cookies = fields.filter(|(name, _)| name == "set-cookie");
    let pairs = cookies.map(|(_, cookie)| {
        let (pair, rest) = cookie.split_once(';').unwrap();
        assert!(
            rest.starts_with(" Path=/; Secure; HttpOnly; SameSite=Lax"),
            "{cookie}"
        );
        pair
    });
    let pairs: Vec<_> = pairs.collect();
    let beside = pairs.last().unwrap();
    assert!(beside.starts_with("__Host-htsshop-42=~"), "{beside}");
    format!("Cookie: {}\r\n", pairs.join("; "))
}

#[test]
fn handle_that_can_be_guessed_holds_beside_its_cookie_alone() {
    let shop = serve("weak = \"bind\"");
    let (one, other) = (begin_weak(&shop), begin_weak(&shop));
    assert_ne!(one, other);
    let reply = shop.ask_with("/shop/42/add/tea", &one);
    assert_eq!(reply.answer.text(), "tea");
    assert_eq!(reply.answer.header("set-cookie"), None, "it has it");
    let text = |what: &str, fields: &str| {
        let reply = shop.ask_with(&format!("/shop/42/{what}"), fields);
        reply.answer.text()
    };
    // Another visitor has the same.
    assert_eq!(text("add/cup", &other), "cup");
    assert_eq!(text("tell/HTSession", &one), "42");
    let status = |fields: &str| shop.ask_with("/shop/42/add/x", fields).answer.status;
    let forged = "Cookie: __Host-htsshop-42=~00000000000000000000000000000000\r\n";
    assert_eq!(status(forged), 410);
    assert_eq!(status(&format!("{one}{other}")), 410);
    shop.counts("session_starts", 2);
    // Without its cookie it is an ordinary part of a path.
    status("");
    shop.counts("session_starts", 3);
    assert_eq!(text("leave", &one), "bye");
    assert_eq!(status(&one), 410);
    assert_eq!(status(&one), 410, "it never begins a new visit");
    assert_eq!(text("add/pot", &other), "cup,pot");
    shop.counts("session_starts", 3);
}

#[test]
fn handle_in_a_cookie_may_have_one_beside_it() {
    let shop = serve("weak = \"bind\", handle = \"cookie\"");
    let own = begin_weak(&shop);
    let reply = shop.ask_with("/shop/add/tea", &own);
    assert_eq!(reply.answer.text(), "tea");
    let alone = "Cookie: __Host-htsshop=42\r\n";
    assert_eq!(shop.ask_with("/shop/add/cup", alone).answer.status, 410);
}

#[test]
fn people_are_shown_no_whole_handle() {
    let shop = serve("");
    let handle = shop.begin();
    let hidden = format!("{}...", &handle[1..5]);
    shop.said(&handle, "pid");
    let record = shop.record(&format!("/shop/{hidden}/pid"));
    assert_eq!(record["status"], 200);
    // The page's own pictures say where they are from.
    let referer = format!("Referer: http://localhost/shop/{handle}/pid\r\n");
    shop.ask_with("/nothing", &referer);
    let record = shop.record("/nothing");
    assert_eq!(record["status"], 404);
    assert_eq!(
        record["referer"],
        format!("http://localhost/shop/{hidden}/pid")
    );
    let history = shop.place.run(&["history", "--json"]);
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(history.contains(&hidden), "{history}");
    let log = std::fs::read_to_string(shop.place.path("run/access.log")).unwrap();
    for text in [
        history,
        log,
        shop.place.status().to_string(),
        shop.hob().printed(),
    ] {
        assert!(!text.contains(&handle[1..]), "{text}");
    }
}
