//! What outlives what.

use rustix::process::Signal;

use crate::harness::send_signal;
use crate::place::{route, serve};

#[test]
fn reload_keeps_visits_of_a_program_that_is_the_same() {
    let shop = serve("");
    let handle = shop.begin();
    let pid = shop.pid_of(&handle);
    shop.said(&handle, "add/tea");
    let config = shop.place.path("hob.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(
        &config,
        format!("{text}\n[[site.route]]\npath = \"/new\"\nrespond = {{ status = 204 }}\n"),
    )
    .unwrap();
    let reloaded = shop.place.run(&["reload"]);
    assert!(reloaded.status.success(), "{reloaded:?}");
    assert_eq!(shop.get("/new").answer.status, 204);
    assert_eq!(shop.said(&handle, "add/cup"), "tea,cup");
    assert_eq!(shop.pid_of(&handle), pid);
    // Another file under its name is for new visits.
    let file = shop.path("shop.py");
    let program = std::fs::read_to_string(&file).unwrap();
    let changed = program.replace("\",\".join", "\"+\".join");
    std::fs::write(shop.path("new.py"), changed).unwrap();
    std::fs::rename(shop.path("new.py"), &file).unwrap();
    let new = shop.begin();
    shop.said(&new, "add/tea");
    assert_eq!(shop.said(&new, "add/cup"), "tea+cup");
    assert_eq!(shop.said(&handle, "add/pot"), "tea,cup,pot");
    // A section that is another ends its visits.
    let text = text.replace(&route("/shop/*", ""), &route("/shop/*", "wait = \"4m\""));
    std::fs::write(&config, text).unwrap();
    assert!(shop.place.run(&["reload"]).status.success());
    shop.gone(pid);
    assert_eq!(shop.status_of(&handle, "pid"), 410);
}

#[test]
fn killed_process_and_server_end_visits_for_good_and_a_killed_spawner_ends_none() {
    let shop = serve("");
    let handles: Vec<String> = (0..3).map(|_| shop.begin()).collect();
    let pids: Vec<u32> = handles.iter().map(|handle| shop.pid_of(handle)).collect();
    send_signal(pids[0], Signal::KILL);
    shop.gone(pids[0]);
    shop.place.wait_for_counter("session_deaths", 1);
    assert_eq!(shop.status_of(&handles[0], "pid"), 410);
    assert_eq!(shop.pid_of(&handles[1]), pids[1]);
    send_signal(shop.hob().server(), Signal::KILL);
    shop.gone(pids[1]);
    shop.gone(pids[2]);
    shop.hob().wait_for("server ended");
    let until = std::time::Instant::now() + crate::harness::DEADLINE;
    while std::time::Instant::now() < until {
        if shop.get("/nothing").answer.status == 404 {
            break;
        }
    }
    for handle in &handles {
        assert_eq!(shop.status_of(handle, "pid"), 410);
    }
    let new = shop.begin();
    let pid = shop.pid_of(&new);
    // Processes outlive the one that started them.
    send_signal(shop.hob().spawner(), Signal::KILL);
    // What is handed to one that dies is a 502; from here on it waits for the next one.
    shop.hob().wait_for("spawner ended");
    shop.begin();
    assert_eq!(shop.pid_of(&new), pid);
}
