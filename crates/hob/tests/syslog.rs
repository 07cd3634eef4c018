//! Access logs that go to a collector of syslog: what rsyslog understands of them, and what becomes
//! of lines when it goes and comes back.
#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

mod harness;

use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use harness::client::get;
use harness::{DEADLINE, Hob, Place, datagram_port, text_of};

/// A real rsyslog, which writes down what it understands of each message.
struct Collector {
    child: Child,
    config: PathBuf,
    received: PathBuf,
}

/// What stands of a message in its file.
const TEMPLATE: &str = "%syslogfacility-text%.%syslogseverity-text%|%hostname%|%app-name%|%msgid%|\
                        %structured-data%|%msg%\\n";

impl Collector {
    /// One that takes messages where these inputs say, or `None`, with a word why, where there is
    /// no rsyslog.
    fn start(place: &Place, inputs: &str) -> Option<Collector> {
        let found = Command::new("/usr/sbin/rsyslogd").arg("-v").output();
        if !found.is_ok_and(|output| output.status.success()) {
            println!("skipped: there is no rsyslogd; `make setup` installs it");
            return None;
        }
        let received = place.path("received");
        let text = format!(
            "global(workDirectory=\"{}\" maxMessageSize=\"16k\")\n{inputs}\n\
             template(name=\"told\" type=\"string\" string=\"{TEMPLATE}\")\n\
             action(type=\"omfile\" file=\"{}\" template=\"told\" flushInterval=\"1\" asyncWriting=\"off\")\n",
            place.path("").display(),
            received.display()
        );
        let config = place.path("rsyslog.conf");
        std::fs::write(&config, text).unwrap();
        let child = run(&config);
        Some(Collector {
            child,
            config,
            received,
        })
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.received).unwrap_or_default()
    }

    /// Waits until it has received so many messages, and gives them.
    fn wait_for_lines(&self, count: usize) -> Vec<String> {
        let until = Instant::now() + DEADLINE;
        loop {
            let text = self.text();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            if lines.len() >= count && text.ends_with('\n') {
                return lines;
            }
            assert!(Instant::now() < until, "{count} messages, but: {text}");
            std::thread::yield_now();
        }
    }

    fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.child = run(&self.config);
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(config: &std::path::Path) -> Child {
    let checked = Command::new("/usr/sbin/rsyslogd")
        .arg("-N1")
        .arg("-f")
        .arg(config)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", text_of(&checked));
    Command::new("/usr/sbin/rsyslogd")
        .args(["-n", "-i", "NONE", "-f"])
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Serves with a log of targets that goes there.
fn serve(place: &Place, syslog: &str) -> Hob {
    place.serve_config(&format!(
        "threads = 1\ndefault_log = \"far\"\n[[log]]\nname = \"far\"\nsyslog = {syslog}\n\
         format = \"{{target}} {{status}} \\\"{{user_agent}}\\\"\"\n"
    ))
}

fn ask(hob: &Hob, number: usize) {
    assert_eq!(
        get(hob.port(), &format!("/hello.txt?{number}"))
            .unwrap()
            .status,
        200
    );
}

/// What rsyslog makes of the line of a request.
fn told(number: usize) -> String {
    format!("local3.notice|web1|shop|access|-|/hello.txt?{number} 200 \"-\"")
}

const NAMES: &str =
    "facility = \"local3\", severity = \"notice\", app_name = \"shop\", host_name = \"web1\"";

#[test]
fn rsyslog_understands_datagrams_of_udp() {
    let place = Place::new();
    let (socket, address) = datagram_port();
    drop(socket);
    let port = address.rsplit(':').next().unwrap();
    let inputs = format!(
        "module(load=\"imudp\")\ninput(type=\"imudp\" address=\"127.0.0.1\" port=\"{port}\")\n"
    );
    let Some(collector) = Collector::start(&place, &inputs) else {
        return;
    };
    wait_for_port(&format!("{address} "));
    let hob = serve(&place, &format!("{{ to = \"udp:{address}\", {NAMES} }}"));
    (0..3).for_each(|number| ask(&hob, number));
    assert_eq!(collector.wait_for_lines(3), [0, 1, 2].map(told));
    hob.stop();
}

/// Waits until somebody listens for datagrams at this address, as `ss` writes it.
fn wait_for_port(address: &str) {
    let until = Instant::now() + DEADLINE;
    loop {
        let output = Command::new("ss").arg("-Hlun").output().unwrap();
        if text_of(&output).contains(address) {
            return;
        }
        assert!(Instant::now() < until, "{}", text_of(&output));
    }
}

#[test]
fn rsyslog_gets_every_line_over_tcp_though_it_is_started_anew() {
    let place = Place::new();
    let port_file = place.path("port");
    // The port stays taken while nobody listens: two sockets may share it.
    let inputs = |port: &str| {
        format!(
            "module(load=\"imtcp\")\ninput(type=\"imtcp\" address=\"127.0.0.1\" port=\"{port}\" \
             listenPortFileName=\"{}\")\n",
            port_file.display()
        )
    };
    let Some(mut collector) = Collector::start(&place, &inputs("0")) else {
        return;
    };
    let until = Instant::now() + DEADLINE;
    let port = loop {
        let text = std::fs::read_to_string(&port_file).unwrap_or_default();
        if let Ok(port) = text.trim().parse::<u16>() {
            break port;
        }
        assert!(Instant::now() < until, "rsyslogd tells its port");
    };
    let hob = serve(
        &place,
        &format!("{{ to = \"tcp:127.0.0.1:{port}\", {NAMES} }}"),
    );
    (0..50).for_each(|number| ask(&hob, number));
    collector.wait_for_lines(50);
    collector.stop();
    (50..100).for_each(|number| ask(&hob, number));
    place.wait_for_counter("log_write_errors", 1);
    let text = std::fs::read_to_string(&collector.config).unwrap();
    let text = text.replace("port=\"0\"", &format!("port=\"{port}\""));
    std::fs::write(&collector.config, text).unwrap();
    collector.start_again();
    let mut lines = collector.wait_for_lines(100);
    // A line may come twice when a connection breaks.
    lines.sort_by_key(|line| number_of(line));
    lines.dedup();
    assert_eq!(lines, (0..100).map(told).collect::<Vec<_>>());
    assert_eq!(place.counter("log_dropped"), 0);
    hob.stop();
}

fn number_of(line: &str) -> usize {
    let (_, rest) = line.split_once('?').unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn rsyslog_understands_datagrams_of_a_unix_socket() {
    let place = Place::new();
    let socket = place.path("log.sock");
    let inputs = format!(
        "module(load=\"imuxsock\" SysSock.Use=\"off\")\n\
         input(type=\"imuxsock\" Socket=\"{}\" UseSpecialParser=\"off\" ParseHostname=\"on\" \
         RateLimit.Interval=\"0\")\n",
        socket.display()
    );
    let Some(collector) = Collector::start(&place, &inputs) else {
        return;
    };
    // Whether or not it listens yet: lines wait.
    let hob = serve(&place, &format!("{{ to = \"unix:log.sock\", {NAMES} }}"));
    (0..200).for_each(|number| ask(&hob, number));
    assert_eq!(
        collector.wait_for_lines(200),
        (0..200).map(told).collect::<Vec<_>>()
    );
    assert_eq!(place.counter("log_dropped"), 0);
    hob.stop();
}

#[test]
fn lines_that_nobody_acknowledged_are_sent_again_when_the_connection_breaks() {
    const COUNT: usize = 300;
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // So little is taken of what is not read that the rest has to wait.
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 1024).unwrap();
    let port = listener.local_addr().unwrap().port();
    let hob = serve(&place, &format!("\"tcp:127.0.0.1:{port}\""));
    ask(&hob, 0);
    let (first, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 1 << 20).unwrap();
    let long = "x".repeat(400);
    for number in 1..=COUNT {
        let target = format!("/hello.txt?{number}&{long}");
        assert_eq!(get(hob.port(), &target).unwrap().status, 200);
    }
    // They are on their way: what has come of them is more than the first line.
    let mut room = [0; 1024];
    let peeked = || rustix::net::recv(&first, &mut { room }[..], rustix::net::RecvFlags::PEEK);
    let until = Instant::now() + DEADLINE;
    while peeked().unwrap().0 < room.len() {
        assert!(Instant::now() < until, "lines come");
    }
    room.fill(0);
    // Unread bytes turn its end into a reset.
    drop(first);
    let (mut second, _) = listener.accept().unwrap();
    ask(&hob, COUNT + 1);
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        second.read_to_string(&mut text).unwrap();
        text
    });
    hob.stop();
    let text = reader.join().unwrap();
    let numbers: Vec<usize> = text
        .split("/hello.txt?")
        .skip(1)
        .map(first_number)
        .collect();
    let begin = numbers[0];
    assert!(
        begin < COUNT / 2,
        "nothing was sent again, but from {begin} on"
    );
    assert_eq!(numbers, (begin..=COUNT + 1).collect::<Vec<_>>());
}

fn first_number(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap();
    text[..end].parse().unwrap()
}
