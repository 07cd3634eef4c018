//! A peer at a port that sends what a test says, and nothing else.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place};

/// Its thread; ends with the connections it was told to take.
pub(crate) struct Peer {
    thread: JoinHandle<Vec<String>>,
    pub(crate) port: u16,
}

/// What it does with a connection after it has read a request with its body.
pub(crate) type Act = Box<dyn FnOnce(&mut Taken) + Send>;

/// A connection it has taken.
pub(crate) struct Taken(BufReader<Box<dyn Wire>>);

/// The bytes of a connection.
pub(crate) trait Wire: Read + Write {
    /// Ends it so that the other side knows that it has all.
    fn end(&mut self) {}

    /// Goes over to other keys, where there are any.
    fn change_keys(&mut self) {}

    /// The socket, of one in the clear.
    fn socket(&self) -> Option<&TcpStream> {
        None
    }
}

impl Wire for TcpStream {
    fn socket(&self) -> Option<&TcpStream> {
        Some(self)
    }
}

/// What is spoken on a connection; `None` where there is no more to it.
type Speaks = Box<dyn Fn(TcpStream) -> Option<Box<dyn Wire>> + Send>;

impl Peer {
    /// Does one thing for each connection.
    pub(crate) fn start(acts: Vec<Act>) -> Peer {
        Peer::start_over(clear(), acts)
    }

    /// The same over something else than clear TCP.
    pub(crate) fn start_over(speaks: Speaks, acts: Vec<Act>) -> Peer {
        Peer::start_after(speaks, acts, Taken::read)
    }

    /// The same where bodies are not read.
    pub(crate) fn start_after_heads(acts: Vec<Act>) -> Peer {
        Peer::start_after(clear(), acts, Taken::read_head)
    }

    /// The same of one that is spoken to in HTTP/2: what comes first is its preface.
    pub(crate) fn start_after_preface(acts: Vec<Act>) -> Peer {
        Peer::start_after(clear(), acts, |taken| {
            let mut preface = [0; 24];
            taken.0.read_exact(&mut preface).unwrap();
            String::from_utf8(preface.to_vec()).unwrap()
        })
    }

    /// The same for acts that know its port.
    pub(crate) fn start_with(acts: impl FnOnce(u16) -> Vec<Act>) -> Peer {
        Peer::start_at(clear(), acts, Taken::read)
    }

    /// The same of both.
    pub(crate) fn start_over_after_heads(speaks: Speaks, acts: Vec<Act>) -> Peer {
        Peer::start_after(speaks, acts, Taken::read_head)
    }

    fn start_after(speaks: Speaks, acts: Vec<Act>, read: fn(&mut Taken) -> String) -> Peer {
        Peer::start_at(speaks, |_| acts, read)
    }

    fn start_at(
        speaks: Speaks,
        acts: impl FnOnce(u16) -> Vec<Act>,
        read: fn(&mut Taken) -> String,
    ) -> Peer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let acts = acts(port);
        let thread = std::thread::spawn(move || {
            let taken = acts.into_iter().map(|act| {
                let stream = listener.accept().unwrap().0;
                set_up(&stream);
                let Some(wire) = speaks(stream) else {
                    return String::new();
                };
                let mut taken = Taken(BufReader::new(wire));
                let request = read(&mut taken);
                act(&mut taken);
                request
            });
            taken.collect()
        });
        Peer { thread, port }
    }

    /// One that does this with each of its connections, on threads of their own, as long as the
    /// test runs; its port.
    pub(crate) fn for_each(act: impl Fn(&mut Taken) + Clone + Send + 'static) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let act = act.clone();
                std::thread::spawn(move || act(&mut Taken::new(stream.unwrap())));
            }
        });
        port
    }

    /// The first request of each connection, as it came.
    pub(crate) fn join(self) -> Vec<String> {
        self.thread.join().unwrap()
    }
}

/// Its bytes as they are.
fn clear() -> Speaks {
    Box::new(|stream| Some(Box::new(stream)))
}

fn set_up(stream: &TcpStream) {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // What is written is on its way then.
    stream.set_nodelay(true).unwrap();
}

impl Taken {
    pub(crate) fn new(stream: TcpStream) -> Taken {
        set_up(&stream);
        Taken(BufReader::new(Box::new(stream)))
    }

    /// The next request; `None` where the other side has closed.
    pub(crate) fn next(&mut self) -> Option<String> {
        let is_more = self.0.fill_buf().is_ok_and(|bytes| !bytes.is_empty());
        is_more.then(|| self.read())
    }

    /// Reads a request: its head, and a body of an announced length or in chunks, which stay.
    pub(crate) fn read(&mut self) -> String {
        let mut all = Vec::new();
        let head_lines = self.head(&mut all);
        let value = |name: &str| {
            let mut lines = head_lines.iter();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        if value("transfer-encoding").is_some() {
            while self.chunk(&mut all) {}
        } else if let Some(bytes) = value("content-length") {
            self.take(bytes.parse().unwrap(), &mut all);
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    fn read_head(&mut self) -> String {
        self.head(&mut Vec::new()).join("\r\n")
    }

    /// The lines of a head, in lower case.
    fn head(&mut self, all: &mut Vec<u8>) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line(all);
            if line.is_empty() {
                return lines;
            }
            lines.push(line.to_lowercase());
        }
    }

    /// True while it was not the last.
    fn chunk(&mut self, all: &mut Vec<u8>) -> bool {
        let bytes = usize::from_str_radix(&self.line(all), 16).unwrap();
        self.take(bytes, all);
        assert_eq!(self.line(all), "");
        bytes > 0
    }

    fn line(&mut self, all: &mut Vec<u8>) -> String {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line).unwrap();
        all.extend_from_slice(&line);
        let text = line.strip_suffix(b"\r\n").expect("a line ends so");
        String::from_utf8(text.to_vec()).unwrap()
    }

    /// So many bytes of what comes next.
    pub(crate) fn take(&mut self, bytes: usize, all: &mut Vec<u8>) {
        let begin = all.len();
        all.resize(begin + bytes, 0);
        self.0.read_exact(&mut all[begin..]).unwrap();
    }

    /// Reads what comes next of a body; how many bytes that is.
    pub(crate) fn some(&mut self) -> usize {
        let count = self.0.fill_buf().unwrap().len();
        assert!(count > 0, "the body ends early");
        self.0.consume(count);
        count
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        // Who is refused does not read to the end.
        let _ = self.0.get_mut().write_all(bytes);
    }

    /// The same; false where the other side has closed.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).is_ok()
    }

    /// Has it closed by a reset.
    pub(crate) fn reset(&self) {
        let at_once = Some(Duration::ZERO);
        let socket = self.0.get_ref().socket().unwrap();
        rustix::net::sockopt::set_socket_linger(socket, at_once).unwrap();
    }

    /// Closes it in order: the other side has its end when this is back.
    pub(crate) fn close(&self) {
        let socket = self.0.get_ref().socket().unwrap();
        socket.shutdown(std::net::Shutdown::Both).unwrap();
    }

    /// Whether the other side closes within this time. Nothing else may come.
    pub(crate) fn is_closed_within(&mut self, time: Duration) -> bool {
        let socket = self.0.get_ref().socket().unwrap();
        socket.set_read_timeout(Some(time)).unwrap();
        let is_waiting = |error: Error| error.kind() == ErrorKind::WouldBlock;
        !self
            .0
            .fill_buf()
            .map(<[u8]>::is_empty)
            .is_err_and(is_waiting)
    }

    /// Stays until the other side closes; false where it does so by a reset.
    pub(crate) fn ends_in_order(&mut self) -> bool {
        self.0.read_to_end(&mut Vec::new()).is_ok()
    }

    /// Stays until the other side closes; what came until then.
    pub(crate) fn stay(&mut self) -> Vec<u8> {
        self.stay_to_the_end().0
    }

    /// The same, and whether that was an end in order.
    pub(crate) fn stay_to_the_end(&mut self) -> (Vec<u8>, bool) {
        let mut rest = Vec::new();
        let end = self.0.read_to_end(&mut rest);
        (rest, end.is_ok())
    }

    /// Ends its own direction, of one in the clear.
    pub(crate) fn shut(&self) {
        let socket = self.0.get_ref().socket().unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Reads frames of HTTP/2 until a request has come.
    pub(crate) fn read_http2_head(&mut self) {
        let mut frame = [0; 9];
        while frame[3] != 1 {
            self.0.read_exact(&mut frame).unwrap();
            let len = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
            self.take(len as usize, &mut Vec::new());
        }
    }

    pub(crate) fn change_keys(&mut self) {
        self.0.get_mut().change_keys();
    }

    /// Ends the connection so that the other side knows that it has all.
    pub(crate) fn end(&mut self) {
        self.0.get_mut().end();
    }
}

/// An answer with this body.
pub(crate) fn answer(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends these bytes and closes.
pub(crate) fn sends(bytes: impl Into<Vec<u8>>) -> Act {
    let bytes = bytes.into();
    Box::new(move |taken| taken.write(&bytes))
}

/// Answers so many requests of its connection.
pub(crate) fn answers(count: usize) -> Act {
    Box::new(move |taken| {
        for at in 0..count {
            if at > 0 {
                taken.read();
            }
            taken.write(&answer(&at.to_string()));
        }
    })
}

/// Sends these bytes, and stays until the other side closes.
pub(crate) fn stays_after(bytes: impl Into<Vec<u8>>) -> Act {
    let bytes = bytes.into();
    Box::new(move |taken| {
        taken.write(&bytes);
        taken.stay();
    })
}

/// A site whose `/app/*` these peers answer, with further keys of `proxy`.
pub(crate) fn serve(peers: &[&Peer], keys: &str) -> Site {
    let to: Vec<_> = peers
        .iter()
        .map(|peer| format!("\"http://127.0.0.1:{}\"", peer.port))
        .collect();
    serve_to(&to.join(", "), keys)
}

/// The same for members as the config has them.
pub(crate) fn serve_to(to: &str, keys: &str) -> Site {
    let handler = format!("proxy = {{ to = [{to}], {keys} }}");
    Site::serve(Place::new(), "", &handler, "")
}
