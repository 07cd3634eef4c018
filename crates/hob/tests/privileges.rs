//! Started as root: the keeper stays root and the server is nobody special. Needs root.

mod harness;

use std::os::unix::fs::MetadataExt;

use harness::client::get;
use harness::{Place, User, is_root, status_line, text_of};
use rustix::process::Signal;

/// A place of root's own; none when the tests do not run as root.
fn place_of_root() -> Option<Place> {
    if !is_root() {
        println!("skipped: needs root");
        return None;
    }
    Some(Place::for_user(User::Same))
}

fn control(place: &Place) -> String {
    place.path("run/hob/control.sock").display().to_string()
}

#[test]
fn server_has_no_privilege_left_and_the_keeper_keeps_its_own() {
    let Some(place) = place_of_root() else {
        return;
    };
    let hob = place.serve_config(&format!(
        "user = \"nobody\"\ncontrol = {:?}\n",
        control(&place)
    ));
    let server = hob.server();
    assert_eq!(status_line(hob.pid(), "Uid"), "0 0 0 0");
    assert_eq!(status_line(server, "Uid"), "65534 65534 65534 65534");
    assert_eq!(status_line(server, "Gid"), "65534 65534 65534 65534");
    assert_eq!(status_line(server, "Groups"), "65534");
    assert_eq!(status_line(server, "NoNewPrivs"), "1");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(status_line(server, set), "0000000000000000", "{set}");
    }
    // Not dumpable: what the kernel shows of the process belongs to root, whoever it runs as.
    assert_eq!(
        std::fs::metadata(format!("/proc/{server}/environ"))
            .unwrap()
            .uid(),
        0
    );
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
    hob.stop();
}

#[test]
fn usual_user_is_not_root() {
    let Some(place) = place_of_root() else {
        return;
    };
    let hob = place.serve(&["site", "--listen", "0", "--control", &control(&place)]);
    let uid = status_line(hob.server(), "Uid");
    assert!(!uid.split(' ').any(|uid| uid == "0"), "{uid}");
    hob.stop();
}

#[test]
fn nice_and_cpus_are_set_before_the_privileges_go() {
    let Some(place) = place_of_root() else {
        return;
    };
    let keys = format!("nice = -3\ncpus = [0]\ncontrol = {:?}\n", control(&place));
    let hob = place.serve_config(&keys);
    let server = hob.server();
    assert_eq!(status_line(server, "Cpus_allowed_list"), "0");
    let stat = std::fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    let nice = stat.rsplit(')').next().unwrap().split_whitespace().nth(16);
    assert_eq!(nice, Some("-3"));
    hob.stop();
}

#[test]
fn user_that_does_not_exist_or_is_root_exits_2() {
    let Some(place) = place_of_root() else {
        return;
    };
    for (user, reason) in [
        ("no-such-user", "no user `no-such-user`"),
        ("root", "never runs as root"),
    ] {
        place.write_config(
            &format!("user = {user:?}\ncontrol = {:?}\n", control(&place)),
            "site",
        );
        let output = place.run(&["serve"]);
        let text = text_of(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn upgrade_keeps_the_roles() {
    let Some(place) = place_of_root() else {
        return;
    };
    let hob = place.serve(&["site", "--listen", "0", "--control", &control(&place)]);
    hob.signal(Signal::USR2);
    hob.wait_for("upgraded, the new server is process");
    hob.wait_for("old server ended");
    assert_eq!(status_line(hob.pid(), "Uid"), "0 0 0 0");
    let uid = status_line(hob.server(), "Uid");
    assert!(!uid.split(' ').any(|uid| uid == "0"), "{uid}");
    hob.stop();
}

#[test]
fn authorities_that_the_server_may_not_read_refuse_the_reload() {
    let Some(place) = place_of_root() else {
        return;
    };
    place.write(
        "ca.pem",
        include_str!("../../server/tests/config/keys/authority.pem"),
    );
    let keys = |more: &str| {
        let control = control(&place);
        format!(
            "user = \"nobody\"\ncontrol = {control:?}\n[otlp]\n\
             endpoint = \"https://127.0.0.1:1\"\nca = \"ca.pem\"\n{more}"
        )
    };
    let hob = place.serve_config(&keys(""));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(place.path("ca.pem"), mode).unwrap();
    place.write_config(&keys("one_in = 1\n"), "site");
    let output = place.run(&["reload", "--control", &control(&place)]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    let text = text_of(&output);
    assert!(
        text.contains("ca.pem cannot be read: Permission denied"),
        "{text}"
    );
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
    hob.stop();
}
