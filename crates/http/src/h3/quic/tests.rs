//! An endpoint and a client of the library, at a time of our own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectionHandle, ConnectionIdGenerator, DatagramEvent, EndpointConfig, VarInt,
};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::id::{ConnectionHome, ConnectionIds};
use super::{Arrival, Datagram, Endpoint, Offered, QuicConnection, ResetSecret, RetryKey, Socket};
use crate::limits::{H3_ENDED_US_MAX, H3_STATELESS_RESETS};
use crate::tls::{Certificate, HostOffer, Offer, SelfSigned, TicketKeys, TlsHosts, Version};

/// A server and a client with one connection, whose datagrams take as long as a test wants.
struct Pair {
    begin: Instant,
    now_us: u64,
    server: Endpoint,
    conn: Option<QuicConnection>,
    client: quinn_proto::Endpoint,
    handle: ConnectionHandle,
    client_conn: quinn_proto::Connection,
    /// Where what the server sends arrives.
    socket: UdpSocket,
    /// The server's.
    address: SocketAddr,
    is_over: bool,
}

fn offer() -> (Arc<TlsHosts>, ClientConfig) {
    let made = SelfSigned::new(&["localhost".to_owned()], &[], 1_790_000_000).unwrap();
    let certificate =
        Certificate::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
    let offer = Offer {
        minimum: Version::Tls13,
        suites: Vec::new(),
        hosts: vec![HostOffer {
            names: Vec::new(),
            certificate,
            client: None,
        }],
        default: 0,
    };
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicClientConfig::try_from(config).unwrap();
    let terms = TlsHosts::new(&offer, &TicketKeys::new()).unwrap();
    (Arc::new(terms), ClientConfig::new(Arc::new(crypto)))
}

impl Pair {
    /// Shakes hands; each round trip takes this long.
    fn connect(trip: Duration) -> Pair {
        let (terms, config) = offer();
        let bound = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = bound.local_addr().unwrap();
        let begin = Instant::now();
        let home = ConnectionHome {
            generation: 1,
            thread: 0,
        };
        let socket = Socket::new(Arc::new(bound.into())).unwrap();
        let mut server = Endpoint::new(socket, Some(address), home, &ResetSecret::new(), begin, 0);
        let offered = Offered::new(&terms).unwrap();
        let idle = Duration::from_secs(3600);
        let retry = RetryKey::of(terms.tickets().address_secret());
        server.offer(Some((offered, retry)), idle);
        let mut client =
            quinn_proto::Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
        let (handle, client_conn) = client.connect(begin, config, address, "localhost").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut pair = Pair {
            begin,
            now_us: 0,
            server,
            conn: None,
            client,
            handle,
            client_conn,
            socket,
            address,
            is_over: false,
        };
        for _ in 0..8 {
            pair.exchange();
            pair.now_us += trip.as_micros() as u64;
        }
        assert!(!pair.client_conn.is_handshaking() && !pair.client_conn.is_closed());
        pair
    }

    fn now(&self) -> Instant {
        self.begin + Duration::from_micros(self.now_us)
    }

    /// The client says what it has to say, then the server.
    fn exchange(&mut self) {
        let now = self.now();
        self.receive();
        while self.client_conn.poll().is_some() {}
        while let Some(event) = self.client_conn.poll_endpoint_events() {
            if let Some(event) = self.client.handle_event(self.handle, event) {
                self.client_conn.handle_event(event);
            }
        }
        let mut out = Vec::new();
        while self.client_conn.poll_transmit(now, 1, &mut out).is_some() {
            let datagram = Datagram {
                remote: self.socket.local_addr().unwrap(),
                local: None,
                ecn: None,
                bytes: BytesMut::from(&out[..]),
            };
            out.clear();
            match self.server.handle(datagram, self.now_us) {
                Arrival::For(_, event) => self.conn.as_mut().unwrap().take(event),
                Arrival::New(new) => self.conn = self.server.accept(new, self.now_us).ok(),
                Arrival::Stray(_) | Arrival::Nothing => {}
            }
        }
        self.drive();
    }

    /// What the server has sent comes to the client.
    fn receive(&mut self) {
        let (now, remote) = (self.now(), self.address);
        let mut buffer = [0; 2000];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            let bytes = BytesMut::from(&buffer[..len]);
            let mut response = Vec::new();
            let event = self
                .client
                .handle(now, remote, None, None, bytes, &mut response);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.client_conn.handle_event(event);
            }
        }
    }

    /// A turn of the server.
    fn drive(&mut self) {
        let conn = self.conn.as_mut().unwrap();
        self.server.pass_time(conn, self.now_us);
        while conn.next().is_some() {}
        let mut buffer = Vec::new();
        self.is_over |= self.server.settle(conn);
        self.server.send(conn, &mut buffer, usize::MAX, self.now_us);
        self.is_over |= self.server.settle(conn);
    }

    /// How long the server keeps the connection when the client has closed it.
    fn kept_us(mut self) -> u64 {
        let now = self.now();
        self.client_conn
            .close(now, VarInt::from_u32(0x100), bytes::Bytes::new());
        let ended_us = self.now_us;
        self.exchange();
        for _ in 0..100 {
            if self.is_over {
                return self.now_us - ended_us;
            }
            let conn = self.conn.as_mut().unwrap();
            self.now_us = self.server.next_ms(conn) * 1000;
            self.drive();
        }
        panic!("it is kept for ever");
    }
}

#[test]
fn connection_that_has_ended_is_kept_by_its_round_trips_and_not_for_long() {
    let near_us = Pair::connect(Duration::from_millis(10)).kept_us();
    assert!((30_000..1_000_000).contains(&near_us), "{near_us}");
    let far_us = Pair::connect(Duration::from_secs(10)).kept_us();
    assert_eq!(far_us, H3_ENDED_US_MAX);
}

/// A datagram for a connection that is not here.
fn stray(home: ConnectionHome, remote: SocketAddr) -> Datagram {
    let id = ConnectionIds(home).generate_cid();
    Datagram {
        remote,
        local: None,
        ecn: None,
        bytes: BytesMut::from(&[&[0x40][..], &id, &[7; 40]].concat()[..]),
    }
}

fn endpoint(secret: &ResetSecret, bound: UdpSocket) -> Endpoint {
    let address = bound.local_addr().ok();
    let socket = Socket::new(Arc::new(bound.into())).unwrap();
    let home = ConnectionHome {
        generation: 2,
        thread: 0,
    };
    Endpoint::new(socket, address, home, secret, Instant::now(), 0)
}

/// The last bytes of what says that a connection is not here.
fn told(endpoint: &mut Endpoint, datagram: Datagram, client: &UdpSocket) -> Vec<u8> {
    let Arrival::Stray(stray) = endpoint.handle(datagram, 0) else {
        panic!("nobody knows the connection");
    };
    assert!(endpoint.reset(&stray, 0));
    let mut buffer = [0; 100];
    let len = client.recv(&mut buffer).unwrap();
    buffer[len - 16..len].to_vec()
}

#[test]
fn next_server_makes_the_same_reset_and_another_address_another_one() {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let remote = client.local_addr().unwrap();
    let datagram = stray(
        ConnectionHome {
            generation: 1,
            thread: 0,
        },
        remote,
    );
    let again = || Datagram {
        bytes: datagram.bytes.clone(),
        ..datagram
    };
    let secret = ResetSecret::new();
    let bound = UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut first = endpoint(&secret, bound.try_clone().unwrap());
    let mut next = endpoint(
        &ResetSecret::from_bytes(secret.bytes()).unwrap(),
        bound.try_clone().unwrap(),
    );
    let mut elsewhere = endpoint(&secret, other);
    let mut stranger = endpoint(&ResetSecret::new(), bound);
    let token = told(&mut first, again(), &client);
    assert_eq!(told(&mut next, again(), &client), token);
    assert_ne!(told(&mut elsewhere, again(), &client), token);
    assert_ne!(told(&mut stranger, again(), &client), token);
}

#[test]
fn resets_are_as_many_a_second_as_their_limit_and_answer_nothing_short() {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let remote = client.local_addr().unwrap();
    let home = ConnectionHome {
        generation: 1,
        thread: 0,
    };
    let bound = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut server = endpoint(&ResetSecret::new(), bound);
    let mut short = stray(home, remote);
    short.bytes.truncate(21);
    assert!(matches!(server.handle(short, 0), Arrival::Nothing));
    for round in 0..=H3_STATELESS_RESETS.most {
        let Arrival::Stray(stray) = server.handle(stray(home, remote), 0) else {
            panic!("nobody knows the connection");
        };
        assert_eq!(server.reset(&stray, 0), round < H3_STATELESS_RESETS.most);
    }
    let Arrival::Stray(stray) = server.handle(stray(home, remote), 1_000_000) else {
        panic!("nobody knows the connection");
    };
    assert!(server.reset(&stray, 1_000_000));
}
