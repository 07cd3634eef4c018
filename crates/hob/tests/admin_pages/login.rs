//! Logging in and out, by URL and by password.

use serde_json::json;

use crate::harness::{Place, text_of};
use crate::place::{KETTLE, Pages, json_of, serve};

fn users() -> String {
    format!(
        "login_tries = 3\n[[admin.user]]\nname = \"anna\"\npassword = \"{KETTLE}\"\n\
         role = \"operate\"\n[[admin.user]]\nname = \"ben\"\npassword = \"{KETTLE}\"\n"
    )
}

#[test]
fn a_printed_url_is_good_for_one_login() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    for wrong in ["", "x", &pages.token[..63], &format!("{}0", pages.token)] {
        assert_eq!(
            pages.log_in(&json!({ "token": wrong })).status,
            401,
            "{wrong}"
        );
    }
    let answer = pages.log_in(&json!({ "token": pages.token }));
    assert_eq!(answer.status, 200);
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["SameSite=Strict", "HttpOnly", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(
        json_of(&answer),
        json!({ "user": "operator", "role": "operate", "csrf_header": "X-Hob-Admin" })
    );
    let again = pages.log_in(&json!({ "token": pages.token }));
    assert_eq!(again.status, 401);
    assert!(
        again.text().contains("hob status --admin-url"),
        "{}",
        again.text()
    );
    // The operator of the machine gets another.
    let output = place.run(&["status", "--admin-url"]);
    let url = text_of(&output);
    let (_, token) = url.trim().split_once("/#token=").unwrap();
    let visitor = pages.visitor(&json!({ "token": token }));
    visitor.look("/v1/status");
    // Who came over the network does not.
    assert_eq!(visitor.post("/v1/admin-url", &json!({})).status, 403);
    hob.stop();
}

#[test]
fn a_url_that_is_too_old_is_refused() {
    let place = Place::new();
    let hob = serve(&place, "", "token_time = \"1s\"");
    let pages = Pages::of(&hob);
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    while place.status()["server"]["uptime_s"].as_u64().unwrap() < 3 {
        assert!(std::time::Instant::now() < until, "time does not pass");
    }
    assert_eq!(pages.log_in(&json!({ "token": pages.token })).status, 401);
    hob.stop();
}

#[test]
fn a_password_gives_the_users_role_and_a_wrong_one_nothing() {
    let place = Place::new();
    let hob = serve(&place, "", &users());
    let pages = Pages::of(&hob);
    let ben = pages.visitor(&json!({ "user": "ben", "password": "kettle" }));
    assert_eq!(ben.look("/v1/session")["role"], "look");
    assert_eq!(ben.post("/v1/reload", &json!({})).status, 403);
    assert_eq!(place.status()["generation"], 1);
    let anna = pages.visitor(&json!({ "user": "anna", "password": "kettle" }));
    anna.act("/v1/reload", &json!({}));
    assert_eq!(anna.last_action()["who"], "anna");
    for (user, password) in [("anna", "kettles"), ("nobody", "kettle")] {
        let answer = pages.log_in(&json!({ "user": user, "password": password }));
        assert_eq!(answer.status, 401);
        assert!(
            answer
                .text()
                .contains("there is no such user, or the password is another")
        );
        assert_eq!(answer.header("set-cookie"), None);
    }
    assert_eq!(pages.log_in(&json!({})).status, 400);
    assert_eq!(pages.log_in(&json!([])).status, 400);
    let huge = "x".repeat(9000);
    let answer = pages.log_in(&json!({ "user": "anna", "password": huge }));
    assert_eq!(answer.status, 413);
    assert_eq!(place.status()["counters"]["limit_admin_bodies"], 1);
    let long = "x".repeat(2000);
    let answer = pages.log_in(&json!({ "user": "anna", "password": long }));
    assert_eq!(answer.status, 401);
    hob.stop();
}

#[test]
fn guessing_is_limited_and_a_url_works_all_the_same() {
    let place = Place::new();
    let hob = serve(&place, "", &users());
    let pages = Pages::of(&hob);
    let guess = || pages.log_in(&json!({ "user": "anna", "password": "pot" }));
    for _ in 0..3 {
        assert_eq!(guess().status, 401);
    }
    let answer = guess();
    assert_eq!(answer.status, 429);
    let wait_s: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait_s));
    let right = json!({ "user": "anna", "password": "kettle" });
    assert_eq!(pages.log_in(&right).status, 429);
    let admin = place.status()["admin"].clone();
    assert_eq!(
        (&admin["logins_failed"], &admin["limit_logins"]),
        (&json!(3), &json!(2))
    );
    pages.operator().look("/v1/status");
    hob.stop();
}

#[test]
fn a_cookie_is_worth_nothing_after_its_session() {
    let place = Place::new();
    let hob = serve(&place, "", "");
    let pages = Pages::of(&hob);
    let visitor = pages.operator();
    let answer = visitor.post("/v1/logout", &json!({}));
    assert_eq!(answer.status, 200);
    assert!(answer.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(visitor.get("/v1/status").status, 401);
    assert_eq!(visitor.post("/v1/reload", &json!({})).status, 401);
    hob.stop();
}

#[test]
fn at_the_limit_of_sessions_the_oldest_ends() {
    let place = Place::new();
    let hob = serve(&place, "", &format!("sessions = 2\n{}", users()));
    let pages = Pages::of(&hob);
    let first = pages.operator();
    let ben = json!({ "user": "ben", "password": "kettle" });
    let second = pages.visitor(&ben);
    let third = pages.visitor(&ben);
    assert_eq!(first.get("/v1/session").status, 401);
    second.look("/v1/session");
    third.look("/v1/session");
    let admin = place.status()["admin"].clone();
    assert_eq!(
        (&admin["sessions"], &admin["limit_sessions"]),
        (&json!(2), &json!(1))
    );
    hob.stop();
}

#[test]
fn who_is_taken_out_of_the_config_is_out() {
    let place = Place::new();
    let hob = serve(&place, "", &users());
    let pages = Pages::of(&hob);
    let operator = pages.operator();
    let ben = pages.visitor(&json!({ "user": "ben", "password": "kettle" }));
    let anna = pages.visitor(&json!({ "user": "anna", "password": "kettle" }));
    let text = format!(
        "{}\n{}",
        crate::harness::config("", "site"),
        crate::place::admin(&users().replace("\"ben\"", "\"bob\""))
    );
    place.write("hob.toml", &text);
    operator.act("/v1/reload", &json!({}));
    assert_eq!(ben.get("/v1/session").status, 401);
    anna.look("/v1/session");
    hob.stop();
}

#[test]
fn over_tls_the_cookie_is_for_tls_and_this_host_alone() {
    let curl = |arguments: &[&str]| {
        let mut command = std::process::Command::new("curl");
        command
            .args(["-k", "-s", "-i", "--max-time", "30"])
            .args(arguments)
            .output()
    };
    if curl(&["--version"]).is_err() {
        println!("skipped: curl is not installed");
        return;
    }
    let place = Place::new();
    let hob = serve(&place, "", "tls = true");
    let line = hob.wait_for("admin pages on https://127.0.0.1:");
    let (_, url) = line.split_once(" on ").unwrap();
    let (base, token) = url.split_once("/#token=").unwrap();
    let origin = format!("Origin: {base}");
    let body = json!({ "token": token }).to_string();
    let login = format!("{base}/v1/login");
    let clear = format!("Origin: {}", base.replace("https:", "http:"));
    let log_in = |origin: &str| {
        let output = curl(&["-H", origin, "-H", "X-Hob-Admin: 1", "-d", &body, &login]);
        text_of(&output.unwrap())
    };
    let refused = log_in(&clear);
    assert!(refused.contains(" 403"), "{refused}");
    let answer = log_in(&origin).to_lowercase();
    assert!(answer.contains("set-cookie: __host-hob-admin-"), "{answer}");
    assert!(answer.contains("; secure"), "{answer}");
    hob.stop();
}

#[test]
fn the_hash_of_a_password_is_made_by_a_command() {
    use std::io::Write;
    use std::process::Stdio;
    let place = Place::new();
    let mut command = place.command();
    command
        .arg("password")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"tea pot\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let hash = text_of(&output);
    let user = format!(
        "[[admin.user]]\nname = \"anna\"\npassword = \"{}\"\n",
        hash.trim()
    );
    let hob = serve(&place, "", &user);
    let pages = Pages::of(&hob);
    let anna = pages.visitor(&json!({ "user": "anna", "password": "tea pot" }));
    assert_eq!(anna.look("/v1/session")["user"], "anna");
    hob.stop();
}

#[test]
fn few_passwords_are_checked_at_a_time_and_who_is_sent_away_is_counted() {
    let place = Place::new();
    let hob = serve(
        &place,
        "",
        &users().replace("login_tries = 3", "login_tries = 100"),
    );
    let pages = Pages::of(&hob);
    let wrong = json!({ "user": "anna", "password": "pot" });
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| pages.log_in(&wrong).status))
            .collect();
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| [401, 503].contains(status)));
    let busy = statuses.iter().filter(|status| **status == 503).count();
    assert_eq!(place.status()["counters"]["limit_admin_checks"], busy);
    let right = pages.log_in(&json!({ "user": "anna", "password": "kettle" }));
    assert_eq!(right.status, 200);
    hob.stop();
}
