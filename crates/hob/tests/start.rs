//! How it starts, and how it says that it cannot.

mod harness;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use harness::client::get;
use harness::{Hob, Place, status_line, text_of};
use rustix::process::Signal;

#[test]
fn folder_is_served_without_a_config_and_status_shows_it() {
    let place = Place::new();
    let hob = place.serve(&["site", "--listen", "0"]);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
    let output = place.run(&["status", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["keeper"]["pid"], hob.pid());
    assert_eq!(status["server"]["pid"], hob.server());
    assert_eq!(status_line(hob.server(), "Name"), "hob-server");
    let human = text_of(&place.run(&["status"]));
    assert!(
        human.contains(&format!("\nkeeper       process {},", hob.pid())),
        "{human}"
    );
    hob.stop();
}

#[test]
fn folder_with_a_name_that_means_something_in_a_config_is_served() {
    let place = Place::new();
    for name in ["${HOME}", "it's \"so\"\\n", "two\nlines"] {
        place.folder(name);
        place.write(&format!("{name}/file.txt"), "here\n");
        let hob = place.serve(&[name, "--listen", "0"]);
        let answer = get(hob.port(), "/file.txt").unwrap();
        assert_eq!(answer.text(), "here\n", "{name}");
        hob.stop();
    }
}

#[test]
fn hob_toml_in_the_folder_is_used_when_nothing_is_said() {
    let place = Place::new();
    place.write_config("", "site");
    let hob = place.serve(&[]);
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
    hob.stop();
}

#[test]
fn wrong_config_exits_2_and_wrong_arguments_too() {
    let place = Place::new();
    place.write("hob.toml", "drian = \"10s\"");
    for arguments in [
        &["serve"][..],
        &["check"],
        &["serve", "--lisen", "80"],
        &["dance"],
    ] {
        let output = place.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            text_of(&output)
        );
    }
    assert!(text_of(&place.run(&["serve"])).contains("drian"));
    assert!(text_of(&place.run(&["check"])).contains("drian"));
}

#[test]
fn address_in_use_exits_1_and_says_what_to_do() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = place.run(&["serve", "site", "--listen", &address]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains(&address) && text.contains("another process listens there"),
        "{text}"
    );
}

#[test]
fn server_that_cannot_start_ends_the_keeper_with_its_reason() {
    let place = Place::new();
    place.write_config("nice = -5", "site");
    let output = place.run(&["serve"]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot set nice = -5"), "{text}");
    assert!(!place.path("run/hob/control.sock").exists());
}

#[test]
fn server_whose_config_says_nothing_stays_as_nice_as_it_was_started() {
    let place = Place::new();
    place.write_config("", "site");
    let mut command = place.command_of(Path::new("nice"));
    let hob = place.path("hob");
    command
        .args(["-n", "5"])
        .arg(hob)
        .args(["serve", "--config", "hob.toml"]);
    let hob = Hob::start(command);
    hob.wait_for("listening on ");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", hob.server())).unwrap();
    // Field 19, of which 17 follow the name in parentheses.
    let nice = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16);
    let own = rustix::process::getpriority_process(None).unwrap();
    assert_eq!(nice.unwrap().parse::<i32>().unwrap(), own + 5);
    hob.stop();
}

#[test]
fn socket_that_is_named_must_be_free_and_a_link_of_that_name_gives_way() {
    let place = Place::new();
    let named = place.path("run/hob/named.sock");
    let named = named.to_str().unwrap();
    let first = place.serve(&["site", "--listen", "0", "--control", named]);
    let output = place.run(&["serve", "site", "--listen", "0", "--control", named]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("another hob answers there"), "{text}");
    first.stop();

    let first = place.serve(&["site", "--listen", "0"]);
    let usual = place.path("run/hob/control.sock");
    assert!(usual.is_symlink());
    let second = place.serve(&[
        "site",
        "--listen",
        "0",
        "--control",
        usual.to_str().unwrap(),
    ]);
    assert!(!usual.is_symlink());
    first.stop();
    assert_eq!(place.status()["keeper"]["pid"], second.pid());
    second.stop();
    assert!(!usual.exists());
}

#[test]
fn control_socket_is_private_and_can_be_off() {
    let place = Place::new();
    let hob = place.serve(&["site", "--listen", "0"]);
    let mode = |name: &str| place.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode("run/hob"), mode("run/hob/control.sock")),
        (0o700, 0o600)
    );
    hob.stop();
    let hob = place.serve(&["site", "--listen", "0", "--control", "off"]);
    assert_eq!(place.run(&["status"]).status.code(), Some(3));
    hob.stop();
}

#[test]
fn no_running_hob_exits_3() {
    let place = Place::new();
    for command in ["status", "reload", "upgrade", "stop"] {
        let output = place.run(&[command]);
        assert_eq!(output.status.code(), Some(3), "{}", text_of(&output));
        assert!(
            text_of(&output).contains("no hob of yours runs"),
            "{}",
            text_of(&output)
        );
    }
}

#[test]
fn server_is_not_started_by_hand() {
    let place = Place::new();
    let output = place.run(&["server"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn systemd_hands_down_sockets_and_hears_of_every_state() {
    let place = Place::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let notified = UnixDatagram::bind(place.path("notify")).unwrap();
    notified.set_read_timeout(Some(harness::DEADLINE)).unwrap();
    std::fs::set_permissions(place.path("notify"), PermissionsExt::from_mode(0o666)).unwrap();
    place.write(
        "hob.toml",
        "[[listen]]\naddress = \"systemd:web\"\n\n[[site]]\nroot = \"site\"\n",
    );
    // What systemd does: the socket is descriptor 3, and the variables name the process.
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web \
                  exec ./hob serve";
    let mut command = place.command_of("/bin/sh".as_ref());
    command.args(["-c", script]).stdin(OwnedFd::from(socket));
    command.env("NOTIFY_SOCKET", place.path("notify"));
    let mut hob = Hob::start(command);
    let next = || {
        let mut buffer = [0; 200];
        let len = notified.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..len]).into_owned()
    };
    assert_eq!(next(), format!("READY=1\nMAINPID={}", hob.pid()));
    hob.wait_for(&format!("listening on http://{address}"));
    assert_eq!(get(address.port(), "/hello.txt").unwrap().text(), "hello\n");

    hob.signal(Signal::HUP);
    assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert!(next().starts_with("READY=1"));
    hob.signal(Signal::USR2);
    assert!(next().starts_with("READY=1"));
    assert_eq!(get(address.port(), "/hello.txt").unwrap().text(), "hello\n");
    hob.signal(Signal::TERM);
    assert_eq!(next(), "STOPPING=1");
    assert_eq!(hob.exit_code(), Some(0));
}
