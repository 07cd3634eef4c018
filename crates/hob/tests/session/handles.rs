//! Handles: forged ones, old ones, and who is shown them.

use crate::place::{route, serve, shop};

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
