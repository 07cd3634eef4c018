//! Listeners and the process that serves them: each key has the effect it promises.
#![allow(clippy::unwrap_used)]

mod harness;

use std::net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use harness::client::{Connection, ask, get};
use harness::{Hob, Place, send_signal, status_line, text_of};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::process::Signal;

const SITE: &str = "[[site]]\nroot = \"site\"\n";

#[test]
fn options_of_a_listener_are_set_on_its_socket() {
    let place = Place::new();
    // A socket handed down stays ours to look at.
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    place.write(
        "hob.toml",
        &format!(
            "[[listen]]\naddress = \"systemd:web\"\nbacklog = 7\nsend_buffer = \"64KiB\"\n\
             receive_buffer = \"32KiB\"\nnotsent_lowat = \"16KiB\"\nuser_timeout = \"7s\"\n\n{SITE}"
        ),
    );
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web \
                  exec ./hob serve";
    let mut command = place.command_of("/bin/sh".as_ref());
    command.args(["-c", script]);
    command.stdin(OwnedFd::from(socket.try_clone().unwrap()));
    let hob = Hob::start(command);
    hob.wait_for("listening on ");
    // The kernel keeps twice the size, for its own bookkeeping.
    assert_eq!(sockopt::socket_send_buffer_size(&socket), Ok(2 * 64 * 1024));
    assert_eq!(sockopt::socket_recv_buffer_size(&socket), Ok(2 * 32 * 1024));
    let lowat = socket2::SockRef::from(&socket).tcp_notsent_lowat();
    assert_eq!(lowat.unwrap(), 16 * 1024);
    assert_eq!(sockopt::tcp_user_timeout(&socket), Ok(7000));
    assert_eq!(sockopt::tcp_nodelay(&socket), Ok(true));
    assert_eq!(get(port, "/hello.txt").unwrap().text(), "hello\n");
    assert_eq!(place.status()["warnings"], serde_json::json!([]));
    hob.stop();
}

#[test]
fn values_the_kernel_clamps_are_warned_about() {
    let place = Place::new();
    let hob = place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nbacklog = 1000000\nsend_buffer = \"1GiB\"\n\
         receive_buffer = \"1GiB\"\n\n{SITE}"
    ));
    let warnings = place.status()["warnings"].to_string();
    for (key, advice) in [
        ("backlog: 1000000 asked for", "raise net.core.somaxconn"),
        ("send_buffer: 1073741824 bytes", "raise net.core.wmem_max"),
        (
            "receive_buffer: 1073741824 bytes",
            "raise net.core.rmem_max",
        ),
    ] {
        assert!(warnings.contains(key), "{key} in {warnings}");
        assert!(warnings.contains(advice), "{advice} in {warnings}");
    }
    hob.wait_for("raise net.core.wmem_max");
    hob.stop();
}

#[test]
fn backlog_is_how_many_connections_wait() {
    let place = Place::new();
    let hob = place.serve_text(&format!(
        "[[listen]]\naddress = \"unix:run/web.sock\"\nbacklog = 3\n\n{SITE}"
    ));
    let server = hob.server();
    send_signal(server, Signal::STOP);
    while status_line(server, "State") != "T (stopped)" {
        std::thread::yield_now();
    }
    let address = SocketAddrUnix::new(place.path("run/web.sock")).unwrap();
    let mut waiting = Vec::new();
    let full = loop {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        match rustix::net::connect(&socket, &address) {
            Ok(()) => waiting.push(socket),
            Err(error) => break error,
        }
    };
    // The kernel takes one more than the backlog.
    assert_eq!((full, waiting.len()), (Errno::AGAIN, 4));
    send_signal(server, Signal::CONT);
    for socket in waiting {
        rustix::io::ioctl_fionbio(&socket, false).unwrap();
        let mut connection = Connection::of(socket);
        connection.send_get("/hello.txt").unwrap();
        assert_eq!(connection.read().unwrap().text(), "hello\n");
    }
    hob.stop();
}

#[test]
fn wildcard_takes_both_families_unless_v6only() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        println!("skipped: this machine has no IPv6");
        return;
    }
    let place = Place::new();
    for is_v6only in [false, true] {
        let hob = place.serve_text(&format!(
            "[[listen]]\naddress = \"[::]:0\"\nv6only = {is_v6only}\n\n{SITE}"
        ));
        TcpStream::connect((Ipv6Addr::LOCALHOST, hob.port())).unwrap();
        let answer = get(hob.port(), "/hello.txt");
        assert_eq!(answer.is_err(), is_v6only, "{answer:?}");
        hob.stop();
    }
}

/// The ports that hob said it listens on at `::1` and at `127.0.0.1`.
fn localhost_ports(hob: &Hob) -> [String; 2] {
    let of = |address: &str| {
        let line = hob.wait_for(&format!("listening on https://{address}:"));
        line.rsplit(':').next().unwrap().to_owned()
    };
    [of("[::1]"), of("127.0.0.1")]
}

/// What curl gets over TLS from this machine's address of one family.
fn curl_at(family: &str, port: &str) -> String {
    let mut command = Command::new("curl");
    command.args(["-q", "-sSk", "--max-time", "60", "--noproxy", "*", family]);
    command.arg(format!("https://localhost:{port}/hello.txt"));
    text_of(&command.output().unwrap())
}

#[test]
fn localhost_is_both_families_on_one_port_through_reloads_and_upgrades() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        println!("skipped: this machine has no IPv6");
        return;
    }
    let place = Place::new();
    let hob = place.serve_text(&format!(
        "[[listen]]\naddress = \"localhost:0\"\ntls = true\n\n{SITE}"
    ));
    let [port, of_v4] = localhost_ports(&hob);
    assert_eq!(port, of_v4);
    let is_served = || {
        for family in ["-4", "-6"] {
            assert_eq!(curl_at(family, &port), "hello\n", "{family}");
        }
        for address in ["127.0.0.1", "[::1]"] {
            let taken = UdpSocket::bind(format!("{address}:{port}"));
            assert!(taken.is_err(), "HTTP/3 is spoken at {address}");
        }
    };
    is_served();
    hob.signal(Signal::HUP);
    hob.wait_for("reloaded, generation");
    is_served();
    place.replace_program(|path| {
        std::fs::copy(harness::program(), path).unwrap();
    });
    hob.signal(Signal::USR2);
    let upgraded = hob.wait_for("upgraded, the new server is process");
    is_served();
    // The old one may still be there.
    let server = upgraded.rsplit("process ").next().unwrap();
    let server = server.split(' ').next().unwrap().parse().unwrap();
    send_signal(server, Signal::KILL);
    hob.wait_for_count("server ready", 3);
    is_served();
    hob.stop();
}

#[test]
fn localhost_is_one_address_where_there_is_no_other() {
    let place = Place::new();
    place.write(
        "hob.toml",
        &format!("[[listen]]\naddress = \"localhost:0\"\n[[listen]]\naddress = \"unix:run/web.sock\"\n\n{SITE}"),
    );
    // A network without IPv6, for this server alone; it is not root in there.
    let without = "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && \
                   PATH=$PATH:/sbin:/usr/sbin ip link set lo up && \
                   exec unshare --user --map-user=1000 --map-group=1000";
    let trial = Command::new("unshare")
        .args(["-rn", "sh", "-c", &format!("{without} true")])
        .output();
    if !trial.is_ok_and(|tried| tried.status.success()) {
        println!("skipped: no network of its own can be made here");
        return;
    }
    let mut command = place.command_of("unshare".as_ref());
    command.args(["-rn", "sh", "-c", &format!("{without} ./hob serve")]);
    let hob = Hob::start(command);
    hob.wait_for("listening on unix:");
    hob.wait_for("listening on http://127.0.0.1:");
    assert!(!hob.printed().contains("[::1]"), "{}", hob.printed());
    let mut connection = Connection::open_unix(&place.path("run/web.sock")).unwrap();
    connection.send_ask("GET", "/hello.txt", "");
    assert_eq!(connection.read_last("GET").text(), "hello\n");
    hob.stop();
}

#[test]
fn several_listeners_of_both_kinds_serve_one_site() {
    let place = Place::new();
    let hob = place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[listen]]\naddress = \"unix:run/web.sock\"\n\n{SITE}"
    ));
    hob.wait_for("listening on unix:");
    let second = hob.wait_for_count("listening on http://", 2);
    let second: u16 = second.rsplit(':').next().unwrap().parse().unwrap();
    assert_ne!(second, hob.port());
    for port in [hob.port(), second] {
        assert_eq!(get(port, "/hello.txt").unwrap().text(), "hello\n");
    }
    let mut connection = Connection::open_unix(&place.path("run/web.sock")).unwrap();
    connection.send_ask("GET", "/hello.txt", "");
    assert_eq!(connection.read_last("GET").text(), "hello\n");
    hob.stop();
    assert!(!place.path("run/web.sock").exists());
}

#[test]
fn ten_connections_on_four_threads_are_spread() {
    let place = Place::new();
    let hob = place.serve_config("threads = 4");
    let mut held = Vec::new();
    for _ in 0..10 {
        let mut connection = Connection::open(hob.port()).unwrap();
        let request = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
        connection.send(request).unwrap();
        assert_eq!(connection.read().unwrap().status, 200);
        held.push(connection);
    }
    let status = place.status();
    let counts = status["server"]["connections_by_thread"].as_array();
    let counts: Vec<u64> = counts.unwrap().iter().flat_map(|n| n.as_u64()).collect();
    // The one that asks is one of them.
    assert_eq!((counts.len(), counts.iter().sum()), (4, 11), "{counts:?}");
    assert!(counts.iter().all(|&count| count <= 4), "{counts:?}");
    hob.stop();
}

#[test]
fn server_runs_on_its_cpus_with_its_nice_level() {
    let place = Place::new();
    let allowed = status_line(std::process::id(), "Cpus_allowed_list");
    let cpu = allowed.split([',', '-']).next().unwrap();
    let hob = place.serve_config(&format!("cpus = [\"{cpu}\"]\nnice = 5"));
    let server = hob.server();
    assert_eq!(place.status()["server"]["threads"], 1, "one for each CPU");
    let tasks = std::fs::read_dir(format!("/proc/{server}/task")).unwrap();
    let mut task_count = 0;
    for task in tasks.flatten() {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
        assert_eq!(fields[17], "5", "nice of {stat}");
        let status = std::fs::read_to_string(task.path().join("status")).unwrap();
        let line = format!("Cpus_allowed_list:\t{cpu}\n");
        assert!(status.contains(&line), "{status}");
        task_count += 1;
    }
    assert!(task_count >= 2);
    assert_eq!(status_line(hob.pid(), "Cpus_allowed_list"), allowed);
    hob.stop();
}

/// Who owns its folder may put a link in the place of a socket that was just made: root must not
/// give another file its mode.
#[test]
fn unix_listener_has_its_mode_from_the_begin_and_no_path_is_followed() {
    let place = Place::new();
    place.write(
        "hob.toml",
        &format!("[[listen]]\naddress = \"unix:run/web.sock\"\n\n{SITE}"),
    );
    let mut command = place.command_of(Path::new("strace"));
    command.args([
        "-D",
        "-f",
        "-o",
        "run/calls",
        "-e",
        "trace=chmod,fchmodat,bind",
    ]);
    command.arg(place.path("hob"));
    command.args(["serve", "--config", "hob.toml"]);
    let hob = Hob::start(command);
    hob.wait_for("listening on unix:");
    let mode = std::fs::metadata(place.path("run/web.sock")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o666);
    hob.stop();
    let calls = std::fs::read_to_string(place.path("run/calls")).unwrap();
    // The listener, the control socket, and where the next server asks for visits; their names are
    // in memory that nobody may look into.
    assert_eq!(calls.matches(" bind(").count(), 3, "{calls}");
    assert!(!calls.contains("chmod"), "{calls}");
}

/// A site behind a balancer, whose programs say what they are told of their client.
fn behind(listen: &str, site_keys: &str) -> (Place, Hob) {
    let place = Place::new();
    place.folder("cgi");
    place.script(
        "cgi/who.sh",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
         echo \"$REMOTE_ADDR $REQUEST_SCHEME ${HTTP_X_FORWARDED_FOR-} ${HTTP_FORWARDED-} ${HTTP_X_REAL_IP-}\"\n",
    );
    let hob = place.serve_text(&format!(
        "default_log = \"access\"\n[[log]]\nname = \"access\"\nfile = \"run/access.log\"\n\
         format = \"combined\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n{listen}\n\
         [[site]]\n{site_keys}[[site.route]]\npath = \"/*\"\ncgi = \"cgi\"\n"
    ));
    (place, hob)
}

fn who(hob: &Hob, fields: &str) -> String {
    let answer = ask(hob.port(), "GET", "/who.sh", fields);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().trim_end().to_owned()
}

#[test]
fn who_is_trusted_says_who_the_client_is() {
    let (place, hob) = behind("trusted = [\"127.0.0.0/8\"]\n", "");
    let said = "X-Forwarded-For: 6.6.6.6, 192.0.2.7\r\nX-Forwarded-Proto: https\r\n\
                Forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n";
    assert_eq!(who(&hob, said), "192.0.2.7 https 6.6.6.6, 192.0.2.7");
    // Nothing is left of one request for the next of its connection.
    let mut connection = Connection::open(hob.port()).unwrap();
    for (fields, told) in [
        (said, "192.0.2.7 https 6.6.6.6, 192.0.2.7"),
        ("", "127.0.0.1 http"),
        ("X-Forwarded-For: rubbish\r\n", "127.0.0.1 http rubbish"),
    ] {
        let head = format!("GET /who.sh HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        connection.send(head.as_bytes()).unwrap();
        assert_eq!(connection.read().unwrap().text().trim_end(), told);
    }
    let log = std::fs::read_to_string(place.path("run/access.log"));
    hob.stop();
    let log = log.map(|_| std::fs::read_to_string(place.path("run/access.log")).unwrap());
    let log = log.unwrap();
    assert_eq!(
        log.lines()
            .filter(|line| line.starts_with("192.0.2.7 "))
            .count(),
        2,
        "{log}"
    );
}

#[test]
fn who_is_not_trusted_says_nothing_and_programs_see_none_of_it() {
    let (_place, hob) = behind(
        "trusted = [\"10.0.0.0/8\"]\nclient_from = \"Forwarded\"\n",
        "",
    );
    let said = "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=192.0.2.7;proto=https\r\n";
    assert_eq!(who(&hob, said), "127.0.0.1 http  for=192.0.2.7;proto=https");
    hob.stop();
    // Where nobody is trusted, fields are the client's own, and programs know that.
    let (_place, hob) = behind("", "");
    let said = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n";
    assert_eq!(who(&hob, said), "127.0.0.1 http 6.6.6.6");
    hob.stop();
}

#[test]
fn https_only_does_not_send_away_who_came_by_https() {
    let place = Place::new();
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntrusted = [\"127.0.0.1\"]\nclient_from = \"Forwarded\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\
         [[site]]\nroot = \"site\"\nhttps_only = true\n",
    );
    let status = |fields: &str| ask(hob.clear_port(), "GET", "/hello.txt", fields).status;
    assert_eq!(status("Forwarded: for=192.0.2.7;proto=https\r\n"), 200);
    assert_eq!(status("Forwarded: for=192.0.2.7;proto=http\r\n"), 301);
    assert_eq!(status(""), 301);
    hob.stop();
}

#[test]
fn who_connects_over_a_unix_socket_may_be_trusted() {
    let place = Place::new();
    place.folder("cgi");
    place.script(
        "cgi/who.sh",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'; echo $REMOTE_ADDR\n",
    );
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[listen]]\naddress = \"unix:run/front.sock\"\ntrusted = [\"unix\"]\n\
         [[site]]\n[[site.route]]\npath = \"/*\"\ncgi = \"cgi\"\n",
    );
    hob.wait_for("listening on http://");
    let mut connection = Connection::open_unix(&place.path("run/front.sock")).unwrap();
    connection.send_ask("GET", "/who.sh", "X-Forwarded-For: 2001:db8::7\r\n");
    assert_eq!(connection.read().unwrap().text(), "2001:db8::7\n");
    hob.stop();
}
