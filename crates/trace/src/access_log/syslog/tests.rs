//! Lines of a running writer as collectors get them: the exact bytes, and collectors that are gone
//! and come back.

use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::access_log::{AccessLog, DestinationSettings, LogId, Target};
use crate::format::AccessLogFormat;
use crate::metric::{Counters, Snapshot};
use crate::record::Texts;
use crate::ring::{Producer, ring};

/// Long enough to never pass in a test that goes well.
const LONG: Duration = Duration::from_secs(30);

/// A log with a collector, and the ring of the one thread that it reads.
struct Sender {
    counters: Counters,
    log: AccessLog,
    id: LogId,
    ring: Producer,
}

fn not_told(_: BorrowedFd<'_>) -> Option<u64> {
    None
}

/// A kernel whose other side never acknowledges anything.
fn never(_: BorrowedFd<'_>) -> Option<u64> {
    Some(1)
}

impl Sender {
    fn new(address: SyslogAddress) -> Sender {
        Sender::with("{request}", address, not_told)
    }

    fn with(format: &str, address: SyslogAddress, acknowledged: AcknowledgedBytes) -> Sender {
        let counters = Counters::new();
        let log = AccessLog::start(counters.new_thread(), Box::new(|_| {})).unwrap();
        let (ring, consumer) = ring(1 << 22);
        log.add_ring(consumer);
        let settings = DestinationSettings {
            name: "syslog".into(),
            format: AccessLogFormat::parse(format).unwrap(),
            names: Arc::default(),
            rotate_bytes: 0,
            rotate_daily: false,
        };
        let syslog = SyslogSettings {
            address,
            facility: 16,
            severity: 6,
            app_name: "shop".into(),
            hostname: Some("web1".into()),
        };
        let target = Target::Syslog(Box::new(syslog), acknowledged);
        let id = log.register(settings, target).unwrap();
        Sender {
            counters,
            log,
            id,
            ring,
        }
    }

    fn push(&mut self, request: u32) {
        self.push_target(request, b"");
    }

    fn push_target(&mut self, request: u32, target: &[u8]) {
        let record = Record {
            log: self.id.number(),
            request,
            started_unix_ms: 1_795_295_587_250,
            total_us: 1_999,
            ..Record::empty()
        };
        let texts = Texts {
            target,
            ..Texts::default()
        };
        assert!(self.ring.push(&record, &texts), "the ring has room");
    }

    /// Waits until it is so of what was counted.
    fn wait_for(&self, what: &str, is_so: impl Fn(&Snapshot) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.counters.merged()) {
            assert!(begun.elapsed() < LONG, "{what}: {:?}", self.counted());
            thread::yield_now();
        }
    }

    fn counted(&self) -> (u64, u64, u64) {
        let counted = self.counters.merged();
        let (dropped, errors) = (counted.log_dropped, counted.log_write_errors);
        (dropped, errors, counted.limit_syslog_message)
    }
}

/// The message of this line.
fn message(line: &str) -> String {
    let pid = std::process::id();
    format!("<134>1 2026-11-21T21:13:07.251Z web1 shop {pid} access - {line}")
}

/// The number that is the line of a message.
fn number(message: &str) -> u32 {
    message.rsplit(' ').next().unwrap().parse().unwrap()
}

fn receive(socket: &UdpSocket) -> String {
    let mut room = [0; 65_536];
    let count = socket.recv(&mut room).unwrap();
    String::from_utf8(room[..count].to_vec()).unwrap()
}

fn receive_unix(socket: &UnixDatagram) -> String {
    let mut room = [0; 65_536];
    let count = socket.recv(&mut room).unwrap();
    String::from_utf8(room[..count].to_vec()).unwrap()
}

fn udp() -> (UdpSocket, SyslogAddress) {
    // A port that was asked for stays when a connection is given up again.
    let bound = (10_000..32_000).find_map(|port| UdpSocket::bind(("127.0.0.1", port)).ok());
    let socket = bound.unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, SyslogAddress::Udp("localhost".into(), port))
}

fn tcp() -> (TcpListener, SyslogAddress) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, SyslogAddress::Tcp("127.0.0.1".into(), port))
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// The next message of a connection.
fn read(mut stream: &TcpStream) -> String {
    let mut one = [0];
    let mut length = String::new();
    loop {
        stream.read_exact(&mut one).unwrap();
        match one[0] {
            b' ' => break,
            digit => length.push(char::from(digit)),
        }
    }
    let mut message = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut message).unwrap();
    String::from_utf8(message).unwrap()
}

#[test]
fn line_is_a_message_of_rfc_5424_in_a_datagram() {
    let (socket, address) = udp();
    let mut sender = Sender::with("{request} \"{target}\"", address, not_told);
    sender.push_target(7, "/\n\u{fc}".as_bytes());
    sender.push_target(8, b"/b");
    assert_eq!(receive(&socket), message("7 \"/\\x0Aü\""));
    assert_eq!(receive(&socket), message("8 \"/b\""));
    assert_eq!(sender.counted(), (0, 0, 0));
}

#[test]
fn messages_stand_behind_their_lengths_on_one_connection() {
    let (listener, address) = tcp();
    let mut sender = Sender::new(address);
    (0..3).for_each(|request| sender.push(request));
    let mut stream = accept(&listener);
    assert!(sender.log.close(LONG));
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    let frame = |request: u32| {
        let message = message(&request.to_string());
        format!("{} {message}", message.len())
    };
    assert_eq!(all, (0..3).map(frame).collect::<String>());
}

#[test]
fn many_lines_arrive_in_their_order_over_each_way() {
    const COUNT: u32 = 20_000;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log");
    let unix = UnixDatagram::bind(&path).unwrap();
    unix.set_read_timeout(Some(LONG)).unwrap();
    let (listener, address) = tcp();
    let mut by_stream = Sender::new(address);
    let mut by_unix = Sender::new(SyslogAddress::Unix(path));
    thread::scope(|scope| {
        scope.spawn(|| {
            let stream = accept(&listener);
            for request in 0..COUNT {
                assert_eq!(number(&read(&stream)), request);
            }
        });
        scope.spawn(|| {
            for request in 0..COUNT {
                assert_eq!(number(&receive_unix(&unix)), request);
            }
        });
        // As many as may wait, and the next when those have gone.
        for begin in (0..COUNT).step_by(1000) {
            for request in begin..begin + 1000 {
                by_stream.push(request);
                by_unix.push(request);
            }
            assert!(by_stream.log.flush(LONG) && by_unix.log.flush(LONG));
        }
    });
    assert_eq!(
        (by_stream.counted(), by_unix.counted()),
        ((0, 0, 0), (0, 0, 0))
    );
}

#[test]
fn collector_that_comes_later_gets_what_has_waited() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log");
    let mut sender = Sender::new(SyslogAddress::Unix(path.clone()));
    (0..3).for_each(|request| sender.push(request));
    sender.wait_for("told that it is not there", |counted| {
        counted.log_write_errors > 0
    });
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    for request in 0..3 {
        assert_eq!(receive_unix(&socket), message(&request.to_string()));
    }
    // It goes, and another one takes its place.
    let errors = sender.counters.merged().log_write_errors;
    drop(socket);
    std::fs::remove_file(&path).unwrap();
    sender.push(3);
    sender.wait_for("told that it is gone", |counted| {
        counted.log_write_errors > errors
    });
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    assert_eq!(receive_unix(&socket), message("3"));
    assert_eq!(sender.counters.merged().log_dropped, 0);
}

#[test]
fn lines_wait_up_to_their_limit_and_those_beyond_are_counted() {
    const COUNT: u32 = 400;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log");
    let address = SyslogAddress::Unix(path.clone());
    let mut sender = Sender::with("{target} {request}", address, not_told);
    let long = [b'x'; 1000];
    (0..COUNT).for_each(|request| sender.push_target(request, &long));
    sender.wait_for("lines are dropped", |counted| counted.log_dropped > 0);
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let first = number(&receive_unix(&socket));
    assert_eq!(first, 0, "the oldest are kept");
    sender.push_target(COUNT, b"/last");
    let mut received = 1;
    while number(&receive_unix(&socket)) != COUNT {
        received += 1;
    }
    let dropped = sender.counters.merged().log_dropped;
    assert_eq!(received + dropped, u64::from(COUNT));
}

#[test]
fn connection_that_is_half_closed_is_made_anew_and_no_line_is_lost() {
    let (listener, address) = tcp();
    let mut sender = Sender::new(address);
    sender.push(0);
    let first = accept(&listener);
    assert_eq!(number(&read(&first)), 0);
    assert!(sender.log.flush(LONG));
    first.shutdown(Shutdown::Write).unwrap();
    sender.push(1);
    let second = accept(&listener);
    assert_eq!(number(&read(&second)), 1);
    let mut rest = Vec::new();
    (&first).read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"", "nothing went to the first any more");
    let (dropped, errors, _) = sender.counted();
    assert_eq!((dropped, errors), (0, 1));
}

#[test]
fn lines_that_were_not_acknowledged_are_sent_again_on_the_next_connection() {
    let (listener, address) = tcp();
    let mut sender = Sender::with("{request}", address, never);
    (0..5).for_each(|request| sender.push(request));
    let first = accept(&listener);
    let all = |stream: &TcpStream, count: u32| -> Vec<u32> {
        (0..count).map(|_| number(&read(stream))).collect()
    };
    assert_eq!(all(&first, 5), [0, 1, 2, 3, 4]);
    drop(first);
    sender.push(5);
    let second = accept(&listener);
    assert_eq!(all(&second, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(sender.counters.merged().log_dropped, 0);
    assert!(
        !sender.log.close(Duration::ZERO),
        "they may not have arrived"
    );
    assert_eq!(sender.counters.merged().log_dropped, 6);
}

#[test]
fn datagrams_to_nobody_are_counted_and_the_next_ones_wait() {
    let (socket, address) = udp();
    // A socket that is connected elsewhere takes nothing from here: its port is as good as closed.
    let (other, _) = udp();
    socket.connect(other.local_addr().unwrap()).unwrap();
    let mut sender = Sender::new(address);
    sender.push(0);
    sender.push(1);
    sender.wait_for("the first is lost", |counted| counted.log_dropped == 1);
    rustix::net::connect_unspec(&socket).unwrap();
    assert_eq!(number(&receive(&socket)), 1);
    assert_eq!(sender.counters.merged().log_dropped, 1);
}

#[test]
fn message_longer_than_its_limit_is_cut_and_counted() {
    let (socket, address) = udp();
    let mut sender = Sender::with(
        "{target}{target}{target}{target}{target} end",
        address,
        not_told,
    );
    sender.push_target(0, "ü".repeat(1000).as_bytes());
    let text = receive(&socket);
    assert!(text.ends_with("ü…") && text.starts_with(&message("ü")));
    let bytes = text.len();
    assert!((SYSLOG_MESSAGE_BYTES_MAX - 1..=SYSLOG_MESSAGE_BYTES_MAX).contains(&bytes));
    sender.push_target(0, b"");
    assert_eq!(receive(&socket), message("----- end"));
    assert_eq!(sender.counted(), (0, 0, 1));
}

#[test]
fn names_of_collectors_are_told_as_they_are_written() {
    for (address, text) in [
        (SyslogAddress::Unix("/dev/log".into()), "unix:/dev/log"),
        (SyslogAddress::Udp("::1".into(), 514), "udp:[::1]:514"),
        (
            SyslogAddress::Tcp("logs.example".into(), 601),
            "tcp:logs.example:601",
        ),
    ] {
        assert_eq!(address.to_string(), text);
    }
    assert!(host_name().bytes().all(|byte| byte.is_ascii_graphic()));
}
