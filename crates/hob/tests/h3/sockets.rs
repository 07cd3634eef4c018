//! UDP sockets: which thread a datagram comes to, both families of addresses, and sockets that a
//! service manager has bound.

use std::process::Command;

use rustix::process::Signal;

use super::changes::write_long;
use super::harness::{Hob, Place, program, text_of, wait_for_end};
use super::{begin_from, client, config, has_client, run, site};

#[test]
fn client_that_changes_its_port_is_followed_and_no_thread_passes_datagrams_on() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.write("site/page.txt", &"a page of text\n".repeat(7000));
    let hob = place.serve_text(&config("threads = 2", "true", ""));
    // For each new port the kernel would pick one of two sockets: that all twenty came to the
    // right one by chance is as good as impossible.
    run(&hob, &["migrate", &site(&place), "page.txt", "20"]);
    for _ in 0..4 {
        run(&hob, &["sixty", &site(&place), "hello.txt", "page.txt"]);
    }
    assert_eq!(place.counter("h3_forwarded"), 0);
    hob.stop();
}

/// What a client at this address of ours gets.
fn fetch_from(hob: &Hob, address: &str) -> String {
    let mut fetch = client(hob, &["fetch", "/hello.txt"]);
    let output = fetch.env("ADDRESS", address).output().unwrap();
    let printed = hob.printed();
    assert!(output.status.success(), "{}\n{printed}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn one_listener_serves_both_families_through_an_upgrade_too() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    write_long(&place);
    place.replace_program(|path| {
        std::fs::copy(program(), path).unwrap();
    });
    let keys = "threads = 2\ndefault_log = \"a\"\n[[log]]\nname = \"a\"\n\
        file = \"access.log\"\nformat = \"{client} {target}\"\n";
    let both = config(keys, "\"self-signed\"", "").replace("127.0.0.1:0", "[::]:0");
    let hob = place.serve_text(&both);
    let old = hob.server();
    let addresses = ["127.0.0.1", "::1"];
    for address in addresses {
        assert!(fetch_from(&hob, address).contains("\"size\": 6"));
    }
    let slow = ["slow", &site(&place), "long.txt"];
    let downloads = addresses.map(|address| begin_from(&hob, address, &slow));
    hob.signal(Signal::USR2);
    hob.wait_for("upgraded, the new server is process");
    for download in downloads {
        assert_eq!(download.finish(), "goaway\n");
    }
    wait_for_end(old);
    hob.stop();
    let log = std::fs::read_to_string(place.path("access.log")).unwrap();
    let mut lines: Vec<_> = log.lines().collect();
    lines.sort_unstable();
    let expected = [
        "127.0.0.1 /hello.txt",
        "127.0.0.1 /long.txt",
        "::1 /hello.txt",
        "::1 /long.txt",
    ];
    assert_eq!(lines, expected);
}

/// Binds a TCP and a UDP socket as a service manager does and becomes the program.
const MANAGER: &str = r#"
import fcntl, os, socket, sys
shared = sys.argv[1] == "shared"
tcp = socket.create_server(("127.0.0.1", 0))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if shared:
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
udp.bind(("127.0.0.1", 0))
high = [fcntl.fcntl(kept, fcntl.F_DUPFD, 10) for kept in (udp, tcp)]
for number, kept in enumerate(high, 3):
    os.dup2(kept, number)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2", "LISTEN_FDNAMES": "web:web"}
os.execv("./hob", ["hob", "serve", "--config", "hob.toml"])
"#;

/// The port that answers over TCP say HTTP/3 is spoken on.
fn told_port(hob: &Hob) -> String {
    let url = format!("https://127.0.0.1:{}/hello.txt", hob.tls_port());
    let fetch = ["-q", "-sSik", "--noproxy", "*", "--max-time", "60"];
    let output = Command::new("curl").args(fetch).arg(url).output().unwrap();
    let text = text_of(&output);
    let told = text.split_once("h3=\":").expect(&text).1;
    told.split_once('"').unwrap().0.to_owned()
}

fn serve_inherited(place: &Place, how: &str) -> Hob {
    let text = config("threads = 2", "\"self-signed\"", "");
    place.write("hob.toml", &text.replace("127.0.0.1:0", "systemd:web"));
    let mut command = place.command_of("python3".as_ref());
    command.args(["-c", MANAGER, how]);
    let hob = Hob::start(command);
    hob.wait_for("listening on ");
    hob
}

#[test]
fn udp_socket_of_systemd_serves_http3_on_its_own_port() {
    if !has_client() {
        return;
    }
    for how in ["shared", "alone"] {
        let place = Place::new();
        place.write("site/page.txt", &"a page of text\n".repeat(7000));
        let hob = serve_inherited(&place, how);
        let port = told_port(&hob);
        assert_ne!(port, hob.tls_port().to_string());
        // It stays over reloads.
        hob.signal(Signal::HUP);
        hob.wait_for("reloaded, generation 2");
        let site = site(&place);
        for case in [
            ["sixty", &site, "hello.txt", "page.txt"],
            ["migrate", &site, "page.txt", "6"],
        ] {
            let mut client = client(&hob, &case);
            let output = client.env("PORT", &port).output().unwrap();
            assert!(output.status.success(), "{}", text_of(&output));
        }
        if how == "shared" {
            assert_eq!(place.counter("h3_forwarded"), 0);
        }
        hob.stop();
    }
}
