//! Pages that last over several requests of a visitor.

use std::thread;

use crate::harness::client::{Answer, call};
use crate::harness::site::Site;
use crate::place::{database, post, serve_at};
use crate::visit_place::{serve, serve_postgres, serve_with};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// An order of two lines is there for nobody else until it is done, and then at once.
pub(crate) fn assert_order_is_one_transaction(site: &Site) {
    let handle = site.begin();
    for (item, told) in [("bolt", "1 lines."), ("nut", "2 lines.")] {
        let added = site.add(&handle, item).answer;
        assert!(added.text().contains(told), "{}", added.text());
        let link = format!("href=\"/app/{handle}/shop.d2w/done\"");
        assert!(added.text().contains(&link), "{}", added.text());
    }
    assert_eq!(site.said(&handle, "cart"), "2 lines: bolt;nut;");
    assert_eq!(site.line_count(), "0");
    assert_eq!(site.said(&handle, "done"), "Thanks for 2 lines.");
    assert_eq!(site.line_count(), "2");
    // The same form once more: nothing is ordered twice.
    assert_eq!(site.add(&handle, "bolt").answer.status, 410);
    assert_eq!(site.line_count(), "2");
    site.place.wait_for_counter("session_ends", 1);
    site.place.wait_for_counter("session_stale", 1);
    assert_eq!(site.place.counter("session_starts"), 1);
}

#[test]
fn order_over_several_pages_is_one_transaction() {
    let site = serve("true");
    assert_order_is_one_transaction(&site);
    site.stop();
}

#[test]
fn order_over_several_pages_is_one_transaction_of_postgresql() {
    let Some((_server, site)) = serve_postgres("true") else {
        return;
    };
    assert_order_is_one_transaction(&site);
    // Two visitors have transactions of their own, and see nothing of each other.
    let (one, other) = (site.begin(), site.begin());
    site.add(&one, "one");
    site.add(&other, "other");
    assert_eq!(site.said(&one, "cart"), "1 lines: bolt;nut;one;");
    assert_eq!(site.said(&other, "cart"), "1 lines: bolt;nut;other;");
    site.said(&one, "done");
    assert_eq!(site.said(&other, "drop"), "dropped");
    assert_eq!(site.said(&other, "cart"), "0 lines: bolt;nut;one;");
    site.stop();
}

fn assert_runs_out(site: &Site) {
    let handle = site.begin();
    site.add_and_leave(&handle, "bolt");
    site.place.wait_for_counter("limit_session_wait", 1);
    assert_eq!(site.line_count(), "0");
    assert_eq!(site.add(&handle, "bolt").answer.status, 410);
    assert_eq!(site.line_count(), "0");
    assert_eq!(site.visits()["count"], 0);
    // What is committed stays.
    let handle = site.begin();
    site.add(&handle, "nut");
    assert_eq!(site.said(&handle, "keep"), "kept");
    site.add_and_leave(&handle, "bolt");
    site.place.wait_for_counter("limit_session_wait", 2);
    assert_eq!(site.line_count(), "1");
}

#[test]
fn visitor_who_does_not_come_back_has_ordered_nothing() {
    let site = serve("true");
    assert_runs_out(&site);
    site.stop();
}

#[test]
fn visitor_who_does_not_come_back_has_ordered_nothing_in_postgresql() {
    let Some((_server, site)) = serve_postgres("true") else {
        return;
    };
    assert_runs_out(&site);
    site.stop();
}

#[test]
fn next_request_is_waited_for_as_the_page_says_and_no_longer_than_may_be() {
    let site = serve("{ wait = \"3m\", wait_max = \"200s\" }");
    let waits = || site.visits()["visits"][0]["wait_s"].clone();
    let handle = site.begin();
    assert_eq!(waits(), 120, "DTW_STATIC");
    site.said(&handle, "name");
    assert_eq!(waits(), 60, "DTW_ACCEPT");
    site.said(&handle, "long");
    assert_eq!(waits(), 200, "wait_max");
    site.stop();
}

#[test]
fn page_that_asks_for_a_handle_again_has_a_new_one() {
    let site = serve("{ overlap = \"1m\" }");
    let first = site.begin();
    site.said(&first, "name?who=Ann");
    let second = site.said(&first, "turn");
    assert_ne!(first, second);
    // Who is on the way with the last one is let in.
    for handle in [&first, &second] {
        assert_eq!(site.said(handle, "hello"), "Still Ann");
    }
    let third = site.said(&second, "turn");
    assert_eq!(site.ask(&first, "hello").status, 410);
    assert_eq!(site.said(&third, "done"), "Thanks for 0 lines.");
    assert_eq!(site.ask(&third, "hello").status, 410);
    site.stop();
    let site = serve("{ overlap = \"0s\" }");
    let first = site.begin();
    let second = site.said(&first, "turn");
    assert_eq!(site.ask(&first, "hello").status, 410);
    assert_eq!(site.said(&second, "hello"), "Still");
    site.stop();
}

#[test]
fn visitors_have_variables_of_their_own() {
    let site = serve("true");
    let (one, other) = (site.begin(), site.begin());
    assert_eq!(site.said(&one, "name?who=Ann"), "Hello Ann");
    assert_eq!(site.said(&other, "name?who=Ben"), "Hello Ben");
    assert_eq!(site.said(&one, "hello"), "Still Ann");
    assert_eq!(site.said(&other, "hello"), "Still Ben");
    let told = site.visits();
    assert_eq!((&told["count"], &told["peak"]), (&2.into(), &2.into()));
    let shown = format!("{}...", &one[1..5]);
    assert_eq!(told["visits"][0]["handle"], shown);
    assert_eq!(told["visits"][0]["state"], "idle");
    assert_eq!(told["visits"][0]["answers"], 3);
    assert!(told["visits"][0]["memory_bytes"].as_u64() > Some(0));
    // Whoever has no handle begins anew.
    assert_eq!(
        site.get("/app/shop.d2w/hello").answer.text().trim(),
        "Still"
    );
    site.stop();
}

#[test]
fn requests_of_a_visit_have_their_turns() {
    let site = serve("{ queue = { max = 8 } }");
    let handle = site.begin();
    let statuses: Vec<u16> = thread::scope(|scope| {
        let all: Vec<_> = (0..10)
            .map(|_| scope.spawn(|| site.add(&handle, "bolt").answer.status))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(
        statuses.iter().all(|status| [200, 429].contains(status)),
        "{statuses:?}"
    );
    let added = statuses.iter().filter(|status| **status == 200).count();
    assert!(added >= 9, "{statuses:?}");
    let cart = site.said(&handle, "cart");
    assert!(cart.starts_with(&format!("{added} lines: ")), "{cart}");
    assert_eq!(cart.matches("bolt;").count(), added);
    site.said(&handle, "done");
    assert_eq!(site.line_count(), added.to_string());
    site.stop();
}

#[test]
fn requests_beyond_the_queue_are_refused() {
    // Who has written keeps others from writing: they wait for as long as it takes.
    let site = serve_with("{ queue = { max = 0 } }", "time = \"1m\"", "busy = \"1m\"");
    let (one, other) = (site.begin(), site.begin());
    site.add(&one, "bolt");
    let before = site.place.counter("page_waiting");
    thread::scope(|scope| {
        let waits = scope.spawn(|| site.add(&other, "nut").answer.status);
        site.place.wait_for_counter("page_waiting", before + 1);
        assert_eq!(site.ask(&other, "cart").status, 429);
        assert_eq!(site.said(&one, "done"), "Thanks for 1 lines.");
        assert_eq!(waits.join().unwrap(), 200);
    });
    assert_eq!(site.place.counter("limit_session_queue"), 1);
    assert_eq!(site.said(&other, "cart"), "1 lines: bolt;nut;");
    site.stop();
}

#[test]
fn same_form_again_gets_the_answer_of_the_first_and_is_written_once() {
    let session = "{ duplicate = \"repeat\" }";
    let site = serve_with(session, "time = \"1m\"", "busy = \"1m\"");
    let (one, other) = (site.begin(), site.begin());
    site.add(&one, "bolt");
    let before = site.place.counter("page_waiting");
    thread::scope(|scope| {
        let first = scope.spawn(|| site.add(&other, "nut").answer);
        site.place.wait_for_counter("page_waiting", before + 1);
        let again = scope.spawn(|| site.add(&other, "nut").answer);
        site.place.wait_for_counter("session_repeats", 1);
        assert_eq!(site.said(&one, "done"), "Thanks for 1 lines.");
        let (first, again) = (first.join().unwrap(), again.join().unwrap());
        assert_eq!((first.status, again.status), (200, 200));
        assert_eq!(first.body, again.body);
    });
    assert_eq!(site.said(&other, "cart"), "1 lines: bolt;nut;");
    site.stop();
}

#[test]
fn same_form_again_is_refused_where_it_is_to_be() {
    let session = "{ duplicate = \"refuse\" }";
    let site = serve_with(session, "time = \"1m\"", "busy = \"1m\"");
    let (one, other) = (site.begin(), site.begin());
    site.add(&one, "bolt");
    let before = site.place.counter("page_waiting");
    thread::scope(|scope| {
        let first = scope.spawn(|| site.add(&other, "nut").answer.status);
        site.place.wait_for_counter("page_waiting", before + 1);
        assert_eq!(site.add(&other, "nut").answer.status, 409);
        assert_eq!(site.said(&one, "done"), "Thanks for 1 lines.");
        assert_eq!(first.join().unwrap(), 200);
    });
    assert_eq!(site.place.counter("session_duplicates"), 1);
    assert_eq!(site.said(&other, "cart"), "1 lines: bolt;nut;");
    site.stop();
}

#[test]
fn run_that_takes_too_long_ends_the_visit() {
    let site = serve_with("true", "time = \"3s\"", "");
    let handle = site.begin();
    site.add(&handle, "bolt");
    assert_eq!(site.ask(&handle, "endless").status, 504);
    site.place.wait_for_counter("session_deaths", 1);
    assert_eq!(site.ask(&handle, "cart").status, 410);
    assert_eq!(site.line_count(), "0");
    site.stop();
}

fn assert_commit_that_fails_is_no_success(site: &Site) {
    let handle = site.begin();
    site.add(&handle, "bolt");
    assert_eq!(site.said(&handle, "pin"), "pinned");
    let done = site.ask(&handle, "done");
    assert_eq!(done.status, 500);
    assert!(!done.text().contains("Thanks"), "{}", done.text());
    assert_eq!(site.ask(&handle, "done").status, 410);
    assert_eq!(site.line_count(), "0");
}

#[test]
fn order_that_cannot_be_kept_is_no_success() {
    let site = serve("true");
    assert_commit_that_fails_is_no_success(&site);
    site.stop();
}

#[test]
fn order_that_cannot_be_kept_by_postgresql_is_no_success() {
    let Some((_server, site)) = serve_postgres("true") else {
        return;
    };
    assert_commit_that_fails_is_no_success(&site);
    site.stop();
}

#[test]
fn handle_that_names_no_visit_is_never_a_new_one_and_all_are_told_alike() {
    let site = serve("true");
    let handle = site.begin();
    let over = site.begin();
    site.said(&over, "done");
    let mut targets: Vec<String> = [
        "~00000000000000000000000000000000",
        &over,
        &handle[..20],
        "~",
        &handle.to_ascii_uppercase(),
        &format!("{handle}a"),
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    ]
    .iter()
    .map(|stale| format!("/app/{stale}/shop.d2w/add"))
    .collect();
    // Of another page, and of one that does not last.
    targets.push(format!("/app/{handle}/other.d2w/add"));
    targets.push(format!("/app/{handle}/tables.page/count"));
    let mut replies = Vec::new();
    for target in &targets {
        let answer = post(&site, target, "item=bolt&qty=1").answer;
        replies.push((answer.status, answer.body));
    }
    assert!(
        replies.iter().all(|reply| *reply == replies[0]),
        "{replies:?}"
    );
    assert_eq!(replies[0].0, 410);
    assert_eq!(site.place.counter("session_stale"), targets.len() as u64);
    assert_eq!(site.place.counter("session_starts"), 2);
    assert_eq!(site.line_count(), "0");
    assert_eq!(site.said(&handle, "cart"), "0 lines: none");
    // An encoded one is the same, and an unknown block leaves the visit as it is.
    let encoded = handle.replace('~', "%7E");
    assert_eq!(site.said(&encoded, "name?who=Ann"), "Hello Ann");
    assert_eq!(site.ask(&handle, "nothing").status, 404);
    assert_eq!(site.said(&handle, "hello"), "Still Ann");
    let Site { place, hob } = site;
    let log = place.path("run/access.log");
    let printed = hob.stop_and_print() + &std::fs::read_to_string(log).unwrap();
    assert!(!printed.contains(&handle[1..]), "{printed}");
    assert!(printed.contains(&format!("/app/{}.../shop.d2w/hello", &handle[1..5])));
}

#[test]
fn unknown_block_leaves_the_transaction_open() {
    let site = serve("true");
    let handle = site.begin();
    site.add(&handle, "bolt");
    assert_eq!(site.ask(&handle, "nothing").status, 404);
    site.said(&handle, "done");
    assert_eq!(site.line_count(), "1");
    site.stop();
}

#[test]
fn block_that_says_nothing_of_the_visit_is_an_error_and_undoes_the_order() {
    let site = serve("true");
    for wrong in ["silent", "other"] {
        let handle = site.begin();
        site.add(&handle, "bolt");
        assert_eq!(site.ask(&handle, wrong).status, 500, "{wrong}");
        assert_eq!(site.ask(&handle, "cart").status, 410, "{wrong}");
        assert_eq!(site.line_count(), "0", "{wrong}");
    }
    // The first request, too.
    assert_eq!(site.get("/app/shop.d2w/silent").answer.status, 500);
    site.place.wait_for_counter("session_deaths", 2);
    assert_eq!(site.visits()["count"], 0);
    site.stop();
}

#[test]
fn without_the_key_nothing_lasts() {
    let site = serve("");
    for _ in 0..2 {
        let added = post(&site, "/app/shop.d2w/add", "item=bolt&qty=1").answer;
        assert!(added.text().contains("1 lines."), "{}", added.text());
    }
    assert_eq!(site.line_count(), "2");
    let handle = "~9b74c9897bac770ffc029102a200c5de";
    assert_eq!(site.ask(handle, "cart").status, 404);
    assert_eq!(site.place.counter("session_starts"), 0);
    site.stop();
}

#[test]
fn cookie_carries_the_handle() {
    let site = serve("{ handle = \"cookie\", cookie = \"shop\" }");
    let reply = site.get("/app/shop.d2w/name?who=Ann").answer;
    let cookie = reply.header("set-cookie").unwrap().to_owned();
    let (pair, rest) = cookie.split_once(';').unwrap();
    assert!(pair.starts_with("__Host-shop-shopd2w=~"), "{cookie}");
    assert_eq!(rest, " Path=/; Secure; HttpOnly; SameSite=Lax");
    let with = |target: &str, cookie: &str| {
        call(
            site.port(),
            "GET",
            target,
            &format!("Cookie: {cookie}\r\n"),
            b"",
        )
        .answer
    };
    let again = with("/app/shop.d2w/hello", pair);
    assert_eq!(again.text().trim(), "Still Ann");
    assert_eq!(again.header("set-cookie"), None, "it has it");
    // Other pages have visits of their own.
    let other = with("/app/other.d2w/hello", pair);
    assert_eq!(other.text().trim(), "Still");
    assert_eq!(with("/app/tables.page/count", pair).status, 200);
    let done = with("/app/shop.d2w/done", pair);
    let cleared = "__Host-shop-shopd2w=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax";
    assert_eq!(done.header("set-cookie"), Some(cleared));
    let late = with("/app/shop.d2w/done", pair);
    assert_eq!(
        (late.status, late.header("set-cookie")),
        (410, Some(cleared))
    );
    let target = "/app/shop.d2w/add";
    let fields = format!("{FORM}Cookie: {pair}\r\n");
    let posted = call(site.port(), "POST", target, &fields, b"item=bolt&qty=1").answer;
    assert_eq!(posted.status, 410);
    assert_eq!(site.line_count(), "0");
    site.stop();
}

#[test]
fn handles_in_path_and_cookie_are_one() {
    let site = serve("{ handle = \"both\", cookie = \"shop\" }");
    let begin = || {
        let answer = site.get("/app/shop.d2w/start").answer;
        let cookie = answer.header("set-cookie").unwrap().to_owned();
        let pair = cookie.split(';').next().unwrap().to_owned();
        (answer.text().trim().to_owned(), pair)
    };
    let ((one, own), (_, other)) = (begin(), begin());
    let status = |target: &str, cookie: &str| {
        let fields = format!("Cookie: {cookie}\r\n");
        call(site.port(), "GET", target, &fields, b"").answer.status
    };
    let in_path = format!("/app/{one}/shop.d2w/hello");
    assert_eq!(status(&in_path, "a=b"), 200);
    assert_eq!(status(&in_path, &own), 200);
    assert_eq!(status("/app/shop.d2w/hello", &own), 200);
    assert_eq!(status(&in_path, &other), 410);
    assert_eq!(status(&in_path, &format!("{own}; {other}")), 410);
    assert_eq!(site.place.counter("session_starts"), 2);
    site.stop();
}

#[test]
fn who_comes_too_late_is_led_elsewhere() {
    let site = serve("{ stale = \"/app/shop.d2w/start\" }");
    let handle = site.begin();
    site.said(&handle, "done");
    let late = site.add(&handle, "bolt").answer;
    assert_eq!(late.status, 303);
    assert_eq!(late.header("location"), Some("/app/shop.d2w/start"));
    assert_eq!(site.line_count(), "0");
    site.stop();
}

/// The words of an answer, and of a form of it where it leads to.
fn words(answer: &Answer) -> (String, Vec<String>) {
    let text = answer.text();
    let actions = text.split("action=\"").skip(1);
    let actions = actions.filter_map(|rest| rest.split('"').next().map(str::to_owned));
    let words: Vec<_> = text.split_whitespace().collect();
    (words.join(" "), actions.collect())
}

#[test]
fn shop_of_the_example_sells_and_takes_back() {
    let place = crate::place::place();
    let shop = include_str!("../../../../examples/welcome/stock/shop.d2w");
    place.write("macros/shop.d2w", &shop.replace("/stock/", "/app/"));
    place.write("macros/shelf.page", include_str!("shelf.page"));
    let keys = "database = \"stock\", session = true";
    let site = serve_at(place, keys, &database(""));
    assert_eq!(
        site.get("/app/shelf.page/make").answer.text().trim(),
        "made"
    );
    let sold = || words(&site.get("/app/shelf.page/sold").answer).0;
    let (text, actions) = words(&site.get("/app/shop.d2w/start").answer);
    assert!(text.contains("The basket is empty."), "{text}");
    assert!(
        text.contains("<option value=\"1\">oolong, 95 g left"),
        "{text}"
    );
    let [add] = &actions[..] else {
        panic!("{actions:?}");
    };
    let put = |form: &str| words(&post(&site, add, form).answer);
    let (text, _) = put("tea=1&grams=96");
    assert!(text.contains("There is not so much of it."), "{text}");
    let (text, actions) = put("tea=1&grams=40");
    assert!(text.contains("<li>oolong, 40 g"), "{text}");
    assert!(text.contains("oolong, 55 g left"), "{text}");
    // All but the shop itself is a client's to say, and says nothing.
    let (text, _) = put("tea=2&grams=5&number=77&h=x");
    assert!(text.contains("<li>oolong, 40 g <li>sencha, 5 g"), "{text}");
    let [buy, drop, _] = &actions[..] else {
        panic!("{actions:?}");
    };
    assert_eq!(sold(), "g are sold");
    let (text, _) = words(&post(&site, drop, "").answer);
    assert!(text.contains("oolong, 95 g left"), "{text}");
    put("tea=1&grams=15");
    let (text, _) = words(&post(&site, buy, "").answer);
    assert!(
        text.contains("This is order 1:</p> <ul> <li>oolong, 15 g"),
        "{text}"
    );
    assert_eq!(post(&site, buy, "").answer.status, 410);
    assert_eq!(sold(), "15 g are sold");
    site.stop();
}
