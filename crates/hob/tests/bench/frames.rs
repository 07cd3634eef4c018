//! A server of HTTP/2 in clear text that answers each request with whatever bytes it is told to,
//! and counts what it saw. It reads no fields: what matters is when which frame comes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What to do with a request.
pub(crate) enum Reply {
    /// Send this.
    Bytes(Vec<u8>),
    /// Send this, then end the connection.
    Last(Vec<u8>),
}

/// What the server saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connections: usize,
    pub(crate) requests: usize,
    /// Bytes of requests' blocks of fields.
    pub(crate) block_bytes: Vec<usize>,
    /// Bytes of requests' bodies.
    pub(crate) body_bytes: usize,
    /// Acknowledged settings and pings.
    pub(crate) acknowledged: usize,
}

/// A running server; its threads end with their connections.
pub(crate) struct FrameServer {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

impl FrameServer {
    /// Sends these settings, and answers each request by its number, counted from zero over all
    /// connections, and its stream.
    pub(crate) fn start(
        settings: &[u8],
        reply: impl Fn(usize, u32) -> Reply + Send + Sync + 'static,
    ) -> FrameServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (of_thread, reply) = (seen.clone(), Arc::new(reply));
        let first = frame(SETTINGS, 0, 0, settings);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, reply, first) = (of_thread.clone(), reply.clone(), first.clone());
                std::thread::spawn(move || serve(stream, &first, &seen, &*reply));
            }
        });
        FrameServer { port, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// What was seen so far.
    pub(crate) fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap())
    }
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    let head = [&len[1..], &[kind, flags], &stream.to_be_bytes()];
    [head.concat().as_slice(), payload].concat()
}

/// An answer without a body: `:status: 200`.
pub(crate) fn ok(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &[0x88])
}

fn serve(
    mut stream: TcpStream,
    first: &[u8],
    seen: &Mutex<Seen>,
    reply: &dyn Fn(usize, u32) -> Reply,
) -> Option<()> {
    let mut preface = [0; PREFACE.len()];
    // The load generator connects once only to see whether somebody is there.
    stream.read_exact(&mut preface).ok()?;
    assert_eq!(preface, PREFACE);
    seen.lock().unwrap().connections += 1;
    stream.write_all(first).ok()?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; len];
        stream.read_exact(&mut payload).ok()?;
        let is_whole = {
            let mut seen = seen.lock().unwrap();
            match kind {
                SETTINGS | PING if flags & ACK != 0 => seen.acknowledged += 1,
                HEADERS => seen.block_bytes.push(len),
                DATA => seen.body_bytes += len,
                _ => {}
            }
            let is_whole = matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0;
            seen.requests += usize::from(is_whole);
            is_whole.then(|| seen.requests - 1)
        };
        if let Some(number) = is_whole {
            match reply(number, id) {
                Reply::Bytes(bytes) => stream.write_all(&bytes).ok()?,
                Reply::Last(bytes) => {
                    stream.write_all(&bytes).ok()?;
                    // What was sent is to arrive, so nothing of the client's may be left unread.
                    stream.shutdown(Shutdown::Write).ok()?;
                    while stream.read(&mut [0; 4096]).ok()? > 0 {}
                    return None;
                }
            }
        }
    }
}
