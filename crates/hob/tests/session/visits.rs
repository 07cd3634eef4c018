//! A visit begins, remembers, and ends with an answer.

use crate::place::serve;

#[test]
fn visit_remembers_and_is_one_process() {
    let shop = serve("");
    let handle = shop.begin();
    assert_eq!(shop.said(&handle, "add/tea"), "tea");
    assert_eq!(shop.said(&handle, "add/cup"), "tea,cup");
    let names = "tell/SCRIPT_NAME,PATH_INFO,HTSession";
    let told = shop.said(&handle, names);
    assert_eq!(told, format!("/shop/{handle}\n/{names}\n{handle}"));
    assert_eq!(shop.pid_of(&handle), shop.pid_of(&handle));
    shop.counts("session_starts", 1);
}

#[test]
fn visitors_never_see_what_others_have() {
    let shop = serve("");
    let handles: Vec<String> = (0..4).map(|_| shop.begin()).collect();
    for (index, handle) in handles.iter().enumerate() {
        assert_eq!(
            shop.said(handle, &format!("add/{index}")),
            index.to_string()
        );
    }
    // Others, after some have gone: a process is never given on.
    for handle in &handles[..2] {
        let pid = shop.pid_of(handle);
        assert_eq!(shop.said(handle, "leave"), "bye");
        shop.gone(pid);
    }
    let new = shop.begin();
    assert!(!handles.contains(&new));
    assert_eq!(shop.said(&new, "add/new"), "new");
    assert_eq!(shop.said(&handles[3], "add/more"), "3,more");
}

#[test]
fn answer_without_the_field_ends_the_visit_and_its_process() {
    let shop = serve("");
    let handle = shop.begin();
    let pid = shop.pid_of(&handle);
    assert_eq!(shop.said(&handle, "leave"), "bye");
    shop.gone(pid);
    assert!(
        shop.path("left").exists(),
        "it has come to its end by itself"
    );
    assert_eq!(shop.status_of(&handle, "pid"), 410);
    shop.counts("session_ends", 1);
    shop.counts("session_stale", 1);
    shop.counts("session_starts", 1);
    // One that nobody keeps is over with its first answer.
    assert_eq!(shop.text("/shop/leave"), "bye");
    shop.counts("session_starts", 2);
    shop.counts("session_ends", 2);
    assert_eq!(shop.visits()[0]["count"], 0);
}

#[test]
fn fields_of_a_visit_are_the_servers_own() {
    let shop = serve("");
    let handle = shop.begin();
    let reply = shop.ask(&handle, "minutes/5");
    for name in ["accept-htsession", "httimeout"] {
        assert_eq!(reply.answer.header(name), None);
    }
    assert_eq!(reply.answer.header("referrer-policy"), Some("same-origin"));
    let own = shop.ask(
        &handle,
        "head?Accept-HTSession=H&Referrer-Policy=no-referrer",
    );
    assert_eq!(own.answer.header("referrer-policy"), Some("no-referrer"));
    let last = shop.ask(&handle, "leave");
    assert_eq!(last.answer.header("referrer-policy"), None);
}

#[test]
fn process_that_dies_is_a_502_and_its_visit_is_over() {
    let shop = serve("");
    let handle = shop.begin();
    assert_eq!(shop.status_of(&handle, "kill"), 502);
    assert_eq!(shop.status_of(&handle, "pid"), 410);
    shop.counts("session_deaths", 1);
    // So is one that dies with its first request.
    assert_eq!(shop.get("/shop/exit_now").answer.status, 502);
    assert_eq!(shop.visits()[0]["count"], 0);
}

#[test]
fn operator_sees_visits_and_ends_one() {
    let shop = serve("");
    let (one, other) = (shop.begin(), shop.begin());
    let pid = shop.pid_of(&one);
    let told = shop.visits();
    let visits = told[0]["visits"].as_array().unwrap();
    assert_eq!(told[0]["count"], 2);
    assert_eq!(visits[0]["pid"], pid);
    assert_eq!(visits[0]["handle"], format!("{}...", &one[1..5]));
    assert_eq!(visits[0]["client"], "127.0.0.1");
    assert_eq!(visits[0]["answers"], 2);
    assert!(!told.to_string().contains(&one[1..]), "{told}");
    let number = visits[0]["number"].to_string();
    let ended = shop.place.run(&["visit", "end", &number]);
    assert!(ended.status.success(), "{ended:?}");
    shop.gone(pid);
    assert_eq!(shop.status_of(&one, "pid"), 410);
    assert_eq!(shop.status_of(&other, "pid"), 200);
    let again = shop.place.run(&["visit", "end", &number]);
    assert_eq!(again.status.code(), Some(1));
    let shown = shop.place.run(&["status", "--programs"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("1 of 256 visits, 2 at most so far"),
        "{shown}"
    );
}
