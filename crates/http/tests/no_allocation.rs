//! The fast path: a ready answer with a prepared head, over a connection that is kept, allocates
//! nothing, over HTTP/1, over TLS and over HTTP/2.

#![allow(clippy::unwrap_used)]
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hob_http::limits::HttpLimits;
use hob_http::thread::{Crew, Drain, Handle, Listening, Thread};
use hob_http::tls::{Certificate, HostOffer, Offer, SelfSigned, TicketKeys, TlsHosts, Version};
use hob_http::{Answered, Body, Bytes, Fields, PreparedHead, Request, Responder, Response};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is the system's allocator's; the count needs no allocation and no drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Answers `/count` with the thread's allocations so far, anything else with a prepared answer.
struct Site {
    prepared: Rc<PreparedHead>,
    body: Bytes,
}

impl Responder for Site {
    fn answer(&self, request: &Request) -> Answered {
        if request.head().path() == b"/count" {
            let count = COUNT.with(Cell::get);
            return Answered::Ready(Response::text(200, &format!("{count:020}")));
        }
        let body = Body::Bytes(self.body.clone());
        Answered::Ready(Response::prepared(Rc::clone(&self.prepared), body))
    }

    fn finished(&self, request: &Request) {
        assert_eq!(request.record().status, 200);
    }
}

/// Sends a request and reads all of its answer, which is `len` bytes long.
fn ask(stream: &mut (impl Read + Write), path: &str, len: usize) -> String {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\nAccept: */*\r\n\
         Accept-Encoding: gzip\r\nCookie: a=b\r\nX-Other: c\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = vec![0; len];
    stream.read_exact(&mut answer).expect("it is answered");
    String::from_utf8(answer).expect("it is text")
}

fn ask_fast(stream: &mut (impl Read + Write)) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4096\r\n";
    let answer = ask(stream, "/fast", head.len() + DATE_LEN + 4096);
    assert!(answer.starts_with(head), "{answer}");
}

fn count(stream: &mut (impl Read + Write)) -> u64 {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n";
    let answer = ask(stream, "/count", head.len() + DATE_LEN + 21);
    let digits = answer.lines().last().expect("a last line");
    digits.parse().expect("a number")
}

const DATE_LEN: usize = "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n".len();

#[test]
fn the_fast_path_allocates_nothing() {
    let (address, server) = serve(None);
    let mut stream = connect(address);
    assert_eq!(allocations_of_1000(&mut stream), 0);
    server.stop();
}

#[test]
fn the_fast_path_over_tls_allocates_nothing() {
    let names = ["localhost".to_owned()];
    let made = SelfSigned::new(&names, &[], 1_790_000_000).unwrap();
    let (chain, key) = (made.certificate.as_bytes(), made.key.as_bytes());
    let offer = Offer {
        minimum: Version::Tls12,
        suites: Vec::new(),
        hosts: vec![HostOffer {
            names: Vec::new(),
            certificate: Certificate::from_pem(chain, key).unwrap(),
            client: None,
        }],
        default: 0,
    };
    let terms = TlsHosts::new(&offer, &TicketKeys::new()).unwrap();
    let (address, server) = serve(Some(Arc::new(terms)));
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(chain).unwrap())
        .unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = connect(address);
    assert_eq!(
        allocations_of_1000(&mut Stream::new(&mut session, &mut stream)),
        0
    );
    drop(stream);
    server.stop();
}

#[test]
fn the_fast_path_of_http_2_allocates_nothing() {
    let (address, server) = serve(None);
    let mut client = Framed::connect(address);
    for _ in 0..10 {
        assert_eq!(client.ask("/fast", 10), [b'x'; 4096]);
        client.count();
    }
    let begin = client.count();
    let own = client.count() - begin;
    let begin = client.count();
    for _ in 0..100 {
        client.ask("/fast", 10);
        client.ask("/fast", 1);
    }
    let end = client.count();
    assert_eq!(end - begin - own, 0, "allocations of 1100 requests");
    drop(client);
    server.stop();
}

/// A client of HTTP/2: every request after the first is the same few bytes.
struct Framed {
    stream: TcpStream,
    next: u32,
}

impl Framed {
    fn connect(address: SocketAddr) -> Framed {
        let mut stream = connect(address);
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        stream.write_all(preface).unwrap();
        // A connection's window that lasts.
        let window = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0];
        stream.write_all(&window).unwrap();
        Framed { stream, next: 1 }
    }

    /// Sends `many` requests in one write and reads their answers; returns the last one's body.
    fn ask(&mut self, path: &str, many: u32) -> Vec<u8> {
        let mut requests = Vec::new();
        for _ in 0..many {
            // GET, http, and path, authority and agent as text at first, as indices later.
            let mut block = vec![0x82, 0x86, 0x04, path.len() as u8];
            block.extend_from_slice(path.as_bytes());
            match self.next {
                1 => block.extend_from_slice(b"\x41\x09localhost\x7a\x04test"),
                _ => block.extend_from_slice(&[0xbf, 0xbe]),
            }
            requests.extend_from_slice(&[0, 0, block.len() as u8, 1, 5]);
            requests.extend_from_slice(&self.next.to_be_bytes());
            requests.extend_from_slice(&block);
            self.next += 2;
        }
        self.stream.write_all(&requests).unwrap();
        let mut body = Vec::new();
        let mut ended = 0;
        while ended < many {
            let mut header = [0; 9];
            self.stream.read_exact(&mut header).unwrap();
            let len = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            body.resize(len, 0);
            self.stream.read_exact(&mut body).unwrap();
            ended += u32::from(header[3] == 0 && header[4] & 1 == 1);
        }
        body
    }

    fn count(&mut self) -> u64 {
        let body = String::from_utf8(self.ask("/count", 1)).unwrap();
        body.trim_end().parse().expect("a number")
    }
}

/// A server thread that is running.
struct Running {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Running {
    fn stop(self) {
        let drain = Drain {
            deadline: Duration::ZERO,
            grace: Duration::ZERO,
        };
        assert!(self.handle.run::<Site>(move |thread| thread.drain(drain)));
        self.thread.join().unwrap();
    }
}

fn serve(tls: Option<Arc<TlsHosts>>) -> (SocketAddr, Running) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let crew = Crew::new(1).unwrap();
    let handle = Handle::new(&crew, 0);
    let thread = std::thread::spawn(move || {
        let mut fields = Fields::new();
        fields.add(b"Content-Type", b"text/plain");
        let body = Bytes::from(vec![b'x'; 4096]);
        let prepared = Rc::new(PreparedHead::new(200, fields, 4096));
        let site = Site { prepared, body };
        let limits = HttpLimits::default();
        let mut thread = Thread::new(&crew, 0, limits, Arc::default(), site).unwrap();
        let listening = Listening {
            tls,
            ..Listening::new(0, Arc::new(listener.into()))
        };
        thread.set_listeners(vec![listening]).unwrap();
        thread.run().unwrap();
    });
    (address, Running { handle, thread })
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// How often the server's thread allocates for 1000 requests.
fn allocations_of_1000(stream: &mut (impl Read + Write)) -> u64 {
    for _ in 0..10 {
        ask_fast(stream);
        count(stream);
    }
    let begin = count(stream);
    let own = count(stream) - begin;
    let begin = count(stream);
    for _ in 0..1000 {
        ask_fast(stream);
    }
    let end = count(stream);
    end - begin - own
}
