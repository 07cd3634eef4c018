//! A server for tests of the load generator: it answers as it is told to, counts what it saw, and
//! measures how long it kept each request.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// What to do with a request.
pub(crate) enum Reply {
    /// Send this, and keep the connection.
    Bytes(Vec<u8>),
    /// Send this, then end the connection.
    Last(Vec<u8>),
    /// Send this after a time.
    After(Duration, Vec<u8>),
    /// Send nothing, and read on.
    Never,
}

/// What the server saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connections: usize,
    /// Where the client of each was.
    pub(crate) peers: Vec<IpAddr>,
    /// Head and body of each request.
    pub(crate) requests: Vec<(String, Vec<u8>)>,
    /// How long each was kept, from when it was read until its answer was about to be written.
    pub(crate) kept: Vec<Duration>,
}

/// A running server; its threads end with their connections.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

impl Server {
    /// Answers each request by its number, counted from zero over all connections.
    pub(crate) fn start(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Server {
        Server::start_for(move |number, _| reply(number))
    }

    /// Answers each request by its number and by where its client is.
    pub(crate) fn start_for(
        reply: impl Fn(usize, IpAddr) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new((Mutex::new(Seen::default()), Condvar::new()));
        let (of_thread, reply) = (seen.clone(), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let peer = stream.peer_addr().unwrap().ip();
                {
                    let mut seen = of_thread.0.lock().unwrap();
                    seen.connections += 1;
                    seen.peers.push(peer);
                }
                let (seen, reply) = (of_thread.clone(), reply.clone());
                let reply = move |number| reply(number, peer);
                std::thread::spawn(move || serve(stream, &seen, &reply));
            }
        });
        Server { port, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// What was seen so far.
    pub(crate) fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.0.lock().unwrap())
    }

    /// Waits until so many requests have come.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        let seen = self.seen.0.lock().unwrap();
        let is_short = |seen: &mut Seen| seen.requests.len() < count;
        let waited = self
            .seen
            .1
            .wait_timeout_while(seen, super::harness::DEADLINE, is_short)
            .unwrap();
        assert!(!waited.1.timed_out(), "{count} requests did not come");
    }
}

fn serve(mut stream: TcpStream, seen: &(Mutex<Seen>, Condvar), reply: &dyn Fn(usize) -> Reply) {
    // Nobody sends on it: to receive is to wait.
    let (_keep, clock): (Sender<()>, Receiver<()>) = channel();
    let mut ahead = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut ahead) {
        let since = Instant::now();
        let number = {
            let mut seen = seen.0.lock().unwrap();
            seen.requests.push(request);
            seen.requests.len() - 1
        };
        seen.1.notify_all();
        let (bytes, is_last) = match reply(number) {
            Reply::Bytes(bytes) => (bytes, false),
            Reply::Last(bytes) => (bytes, true),
            Reply::After(time, bytes) => {
                let _ = clock.recv_timeout(time);
                (bytes, false)
            }
            Reply::Never => continue,
        };
        seen.0.lock().unwrap().kept.push(since.elapsed());
        if stream.write_all(&bytes).is_err() {
            return;
        }
        if is_last {
            let _ = stream.shutdown(Shutdown::Write);
            return;
        }
    }
}

/// Reads a head and the body its Content-Length tells of; none at the end of the connection.
fn read_request(stream: &mut TcpStream, ahead: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let mut more = |ahead: &mut Vec<u8>| {
        let mut buffer = [0; 16384];
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        ahead.extend_from_slice(&buffer[..count]);
        Some(())
    };
    let end = loop {
        if let Some(end) = ahead.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        more(ahead)?;
    };
    let head = String::from_utf8(ahead.drain(..end).collect()).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    while ahead.len() < length {
        more(ahead)?;
    }
    Some((head, ahead.drain(..length).collect()))
}

/// An answer with this body.
pub(crate) fn answer(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
