//! Visits over an upgrade: they stay with the server that has them, and the new one passes on what
//! belongs to them.

use rustix::process::Signal;

use crate::harness::client::call;
use crate::harness::{send_signal, wait_for_end};
use crate::place::serve;
use crate::site::Programs;

const COUNTER: &str = include_str!("counter.c");
/// More than the connections that may come aside of the limits.
const AT_ONCE: usize = 70;

impl Programs {
    /// Goes over to a new server, which is returned; the others stay.
    fn upgrade(&self) -> u32 {
        let before = self.hob().servers();
        let upgraded = self.place.run(&["upgrade"]);
        assert!(upgraded.status.success(), "{upgraded:?}");
        let servers = self.hob().servers();
        let (old, new): (Vec<u32>, _) = servers.iter().partition(|pid| before.contains(pid));
        assert_eq!(old.len(), before.len(), "{}", self.hob().printed());
        new[0]
    }
}

#[test]
fn visits_go_on_over_upgrades_and_their_server_ends_with_the_last() {
    let shop = serve("");
    let (first, second) = (shop.begin(), shop.begin());
    let pid = shop.pid_of(&first);
    shop.said(&first, "add/tea");
    let names = "tell/SCRIPT_NAME,PATH_INFO,REMOTE_ADDR,SERVER_PORT,HTTPS,SERVER_PROTOCOL";
    let told = shop.said(&first, names);
    let old = shop.hob().server();
    let middle = shop.upgrade();
    assert_eq!(shop.said(&first, names), told);
    assert_eq!(shop.said(&first, "add/cup"), "tea,cup");
    assert_eq!(shop.pid_of(&first), pid);
    // A new one is the new server's.
    let new = shop.begin();
    shop.said(&new, "add/pot");
    // What one of the first has goes through two.
    shop.upgrade();
    assert_eq!(shop.said(&first, "add/spoon"), "tea,cup,spoon");
    assert_eq!(shop.said(&new, "add/lid"), "pot,lid");
    let next = shop.said(&first, "rotate");
    assert_eq!(shop.pid_of(&next), pid);
    assert_eq!(shop.said(&new, "leave"), "bye");
    assert_eq!(shop.said(&next, "leave"), "bye");
    shop.gone(pid);
    assert_eq!(shop.status_of(&next, "pid"), 410);
    assert_eq!(shop.hob().servers().len(), 3);
    shop.said(&second, "leave");
    wait_for_end(old);
    wait_for_end(middle);
    for handle in [&first, &second, &new] {
        assert_eq!(shop.status_of(handle, "pid"), 410);
    }
    shop.stop();
}

/// The number of a visit, as `hob status` tells it, and the server that keeps it.
fn told(shop: &Programs, handle: &str) -> (u64, Option<u64>) {
    let shown = format!("{}...", &handle[1..5]);
    let all = shop.visits();
    let mut found = all.as_array().unwrap().iter().flat_map(|of| {
        let server = of["server_pid"].as_u64();
        let visits = of["visits"].as_array().unwrap().iter();
        visits.map(move |visit| (visit, server))
    });
    let (visit, server) = found.find(|(visit, _)| visit["handle"] == shown).unwrap();
    (visit["number"].as_u64().unwrap(), server)
}

#[test]
fn visits_of_servers_before_are_listed_and_ended_one_by_one() {
    let shop = serve("");
    let (first, second) = (shop.begin(), shop.begin());
    let pids = [shop.pid_of(&first), shop.pid_of(&second)];
    let old = shop.hob().server();
    let middle = shop.upgrade();
    let third = shop.begin();
    shop.upgrade();
    let fourth = shop.begin();
    let (number, server) = told(&shop, &first);
    assert_eq!(server, Some(old.into()));
    assert_eq!(told(&shop, &second).1, Some(old.into()));
    assert_eq!(told(&shop, &third).1, Some(middle.into()));
    assert_eq!(told(&shop, &fourth).1, None);
    let text = shop.place.run(&["status", "--programs"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains(&format!("kept by server {old} of before an upgrade")),
        "{text}"
    );
    let end = |number: u64| shop.place.run(&["visit", "end", &number.to_string()]);
    assert!(end(number).status.success());
    shop.gone(pids[0]);
    assert_eq!(shop.status_of(&first, "add/tea"), 410);
    // Nobody has it any more, and the others go on.
    assert_eq!(end(number).status.code(), Some(1));
    assert_eq!(shop.pid_of(&second), pids[1]);
    for handle in [&second, &third] {
        assert!(end(told(&shop, handle).0).status.success());
        assert_eq!(shop.status_of(handle, "add/tea"), 410);
    }
    wait_for_end(old);
    wait_for_end(middle);
    assert_eq!(shop.said(&fourth, "add/tea"), "tea");
    assert_eq!(shop.visits().as_array().unwrap().len(), 1);
    shop.stop();
}

#[test]
fn client_does_not_ask_an_old_server_for_its_visits() {
    let shop = serve("");
    let handle = shop.begin();
    shop.upgrade();
    let target = format!("/shop/{handle}/add/tea");
    let reply = shop.ask_with(&target, "hob-visits: list\r\n");
    assert_eq!(reply.answer.text(), "tea");
    let number = told(&shop, &handle).0;
    let end = format!("hob-visits: end {number}\r\n");
    shop.ask_with(&target, &end);
    assert_eq!(shop.said(&handle, "add/cup"), "tea,tea,cup");
    shop.stop();
}

#[test]
fn long_bodies_go_through_both_ways_and_a_programs_death_is_told_as_at_home() {
    let shop = serve("");
    let handle = shop.begin();
    shop.upgrade();
    let body = "0123456789abcdef".repeat(128 * 1024);
    let target = format!("/shop/{handle}/echo");
    let reply = call(shop.port(), "POST", &target, "", body.as_bytes());
    assert_eq!(reply.answer.status, 200);
    assert!(
        reply.answer.body == body.as_bytes(),
        "{}",
        reply.answer.body.len()
    );
    assert_eq!(shop.status_of(&handle, "kill"), 502);
    assert_eq!(shop.status_of(&handle, "pid"), 410);
}

#[test]
fn killed_old_server_takes_its_visits_along_and_no_others() {
    let shop = serve("");
    let handle = shop.begin();
    let pid = shop.pid_of(&handle);
    let old = shop.hob().server();
    shop.upgrade();
    let new = shop.begin();
    send_signal(old, Signal::KILL);
    wait_for_end(old);
    shop.gone(pid);
    assert_eq!(shop.status_of(&handle, "add/tea"), 410);
    let record = shop.record(&format!("/shop/{}.../add/tea", &handle[1..5]));
    let told = record["reason"].as_str().unwrap();
    assert!(told.contains("the visit is over"), "{told}");
    shop.said(&new, "pid");
}

#[test]
fn stop_ends_visits_of_all_servers() {
    let shop = serve("");
    let pids = [(); 2].map(|()| {
        let pid = shop.pid_of(&shop.begin());
        shop.upgrade();
        pid
    });
    shop.stop();
    pids.into_iter().for_each(wait_for_end);
}

#[test]
fn as_many_visits_as_there_are_ask_at_once() {
    let mut programs = Programs::new().with_linked("counter", COUNTER);
    programs.serve_whole(&format!(
        "[limits]\nworkers = {}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n\
         [[site.route]]\npath = \"/shop/*\"\nsession = {{ run = [\"cgi/counter\"], \
         visits = {{ max = {AT_ONCE}, per_client = 0, rate = 0 }} }}\n",
        AT_ONCE + 10
    ));
    let begin = || {
        let text = programs.text("/shop/");
        text.split(' ').next().unwrap().to_owned()
    };
    let handles: Vec<String> = (0..AT_ONCE).map(|_| begin()).collect();
    programs.upgrade();
    std::thread::scope(|scope| {
        for handle in &handles {
            let programs = &programs;
            scope.spawn(move || {
                for count in 2..12 {
                    let text = programs.text(&format!("/shop/{handle}/"));
                    assert!(text.ends_with(&format!(" {count}")), "{text}");
                }
            });
        }
    });
}
