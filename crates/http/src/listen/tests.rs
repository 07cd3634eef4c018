//! Real sockets on loopback and in a temporary folder.

use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;

use super::*;

fn plain() -> SocketOptions {
    SocketOptions {
        backlog: 64,
        send_buffer: None,
        receive_buffer: None,
        notsent_lowat: None,
        user_timeout: None,
        defer_accept: Duration::ZERO,
        v6only: true,
    }
}

fn any_port() -> BindAddress {
    BindAddress::Tcp("127.0.0.1:0".parse().unwrap())
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn port_0_shows_the_real_port_and_takes_connections() {
    let opened = open(&any_port(), &plain()).unwrap();
    assert!(opened.shown.starts_with("127.0.0.1:") && !opened.shown.ends_with(":0"));
    TcpStream::connect(&opened.shown).unwrap();
    assert_eq!(opened.warnings, Vec::<String>::new());
}

#[test]
fn accepted_connections_inherit_the_options() {
    let options = SocketOptions {
        send_buffer: Some(64 * 1024),
        receive_buffer: Some(32 * 1024),
        notsent_lowat: Some(16 * 1024),
        user_timeout: Some(Duration::from_secs(7)),
        ..plain()
    };
    let opened = open(&any_port(), &options).unwrap();
    let _client = TcpStream::connect(&opened.shown).unwrap();
    let accepted = rustix::net::accept(&opened.socket).unwrap();
    assert!(sockopt::tcp_nodelay(&accepted).unwrap());
    assert_eq!(
        sockopt::socket_send_buffer_size(&accepted).unwrap(),
        2 * 64 * 1024
    );
    assert_eq!(sockopt::tcp_user_timeout(&accepted).unwrap(), 7000);
    assert_eq!(
        socket2::SockRef::from(&accepted)
            .tcp_notsent_lowat()
            .unwrap(),
        16 * 1024
    );
}

#[test]
fn clamped_values_are_warned_about_with_the_address() {
    let options = SocketOptions {
        send_buffer: Some(1 << 29),
        receive_buffer: Some(1 << 29),
        backlog: u32::MAX,
        ..plain()
    };
    let opened = open(&any_port(), &options).unwrap();
    let text = opened.warnings.join("\n");
    for (key, limit) in [
        ("send_buffer", "net.core.wmem_max"),
        ("receive_buffer", "net.core.rmem_max"),
        ("backlog", "net.core.somaxconn"),
    ] {
        assert!(
            text.contains(&format!("{}: {key}: ", opened.shown)),
            "{text}"
        );
        assert!(text.contains(limit), "{text}");
    }
}

#[test]
fn options_change_on_a_socket_that_listens() {
    let opened = open(&any_port(), &plain()).unwrap();
    let options = SocketOptions {
        user_timeout: Some(Duration::from_secs(3)),
        ..plain()
    };
    assert_eq!(tune(&opened.socket, &options), Vec::<String>::new());
    let _client = TcpStream::connect(&opened.shown).unwrap();
    let accepted = rustix::net::accept(&opened.socket).unwrap();
    assert_eq!(sockopt::tcp_user_timeout(&accepted).unwrap(), 3000);
}

#[test]
fn address_in_use_says_where_and_what_to_do() {
    let first = open(&any_port(), &plain()).unwrap();
    let second = open(&BindAddress::Tcp(first.shown.parse().unwrap()), &plain());
    let text = second.unwrap_err().to_string();
    assert!(
        text.starts_with(&format!("cannot bind to {}: ", first.shown)),
        "{text}"
    );
    assert!(text.contains("another process listens there"), "{text}");
}

#[test]
fn v6only_is_what_was_asked_for() {
    for v6only in [true, false] {
        let address = BindAddress::Tcp("[::]:0".parse().unwrap());
        match open(&address, &SocketOptions { v6only, ..plain() }) {
            Ok(opened) => assert_eq!(sockopt::ipv6_v6only(&opened.socket).unwrap(), v6only),
            Err(error) => println!("skipped: no IPv6 here: {error}"),
        }
    }
}

#[test]
fn unix_socket_is_open_to_all_and_removed_only_while_it_is_ours() {
    let folder = folder();
    let path = folder.path().join("web.sock");
    let opened = open(&BindAddress::Unix(path.clone()), &plain()).unwrap();
    assert_eq!(opened.shown, format!("unix:{}", path.display()));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666);
    UnixStream::connect(&path).unwrap();

    let file = opened.file.unwrap();
    let other = BoundFile {
        inode: file.inode + 1,
        ..file.clone()
    };
    other.remove();
    assert!(path.exists());
    file.remove();
    assert!(!path.exists());
}

#[test]
fn stale_unix_socket_is_replaced_and_a_live_one_is_not() {
    let folder = folder();
    let path = folder.path().join("web.sock");
    let live = UnixListener::bind(&path).unwrap();
    let refused = open(&BindAddress::Unix(path.clone()), &plain()).unwrap_err();
    assert_eq!(refused.source.kind(), io::ErrorKind::AddrInUse);
    drop(live);
    open(&BindAddress::Unix(path.clone()), &plain()).unwrap();
    UnixStream::connect(&path).unwrap_err();
}

#[test]
fn file_that_is_no_socket_is_never_removed() {
    let folder = folder();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "mine").unwrap();
    let error = open(&BindAddress::Unix(path.clone()), &plain()).unwrap_err();
    assert!(error.to_string().contains("not a socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn path_too_long_for_a_unix_socket_is_explained() {
    let path = PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
    let error = open(&BindAddress::Unix(path), &plain()).unwrap_err();
    assert!(error.to_string().contains("at most 107 bytes"), "{error}");
}

#[test]
fn inherited_socket_must_be_a_listening_stream() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let adopted = adopt(listener.into(), "web", &plain()).unwrap();
    assert_eq!(adopted.shown, address);
    assert!(
        rustix::fs::fcntl_getfl(&adopted.socket)
            .unwrap()
            .contains(rustix::fs::OFlags::NONBLOCK)
    );

    let datagram = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = adopt(datagram.into(), "dns", &plain()).unwrap_err();
    assert!(error.to_string().contains("`dns`") && error.to_string().contains("ListenStream="));

    let (pair, _other) = UnixStream::pair().unwrap();
    let error = adopt(pair.into(), "web", &plain()).unwrap_err();
    assert!(error.to_string().contains("Accept=no"), "{error}");
}

/// The sockets for HTTP/3 at one port of this machine, as threads have them.
fn four_sockets() -> (Vec<UdpSocket>, u16) {
    let opened = open(&any_port(), &plain()).unwrap();
    let sockets = open_datagrams(&opened.socket, 4, &plain()).unwrap();
    let sockets: Vec<_> = sockets.into_iter().skip(2).map(UdpSocket::from).collect();
    let port = sockets[0].local_addr().unwrap().port();
    (sockets, port)
}

/// Which of the sockets a datagram has come to.
fn place_of(sockets: &[UdpSocket]) -> usize {
    let mut polled: Vec<_> = sockets
        .iter()
        .map(|socket| PollFd::new(socket, PollFlags::IN))
        .collect();
    poll(&mut polled, None).unwrap();
    let place = polled
        .iter()
        .position(|polled| !polled.revents().is_empty());
    sockets[place.unwrap()].recv(&mut [0; 100]).unwrap();
    place.unwrap()
}

#[test]
fn datagram_comes_to_the_socket_of_the_thread_that_its_id_names() {
    let (sockets, port) = four_sockets();
    for thread in 0..8 {
        let id = [9, thread, 1, 2, 3, 4, 5, 6, 7, 8];
        let short = [&[0x40][..], &id, b"more"].concat();
        let long = [&[0xe0, 0, 0, 0, 1, 10][..], &id, b"more"].concat();
        for datagram in [short, long] {
            // Wherever its client is.
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.send_to(&datagram, ("127.0.0.1", port)).unwrap();
            assert_eq!(place_of(&sockets), usize::from(thread) % 4);
        }
    }
}

#[test]
fn datagrams_of_no_connection_are_spread() {
    let (sockets, port) = four_sockets();
    // With an id of another length it is its client's own, and one that ends early is nobody's.
    let first = [&[0xc0, 0, 0, 0, 1, 8][..], &[2; 30]].concat();
    let mut counts = [0; 4];
    for _ in 0..64 {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(&first, ("127.0.0.1", port)).unwrap();
        counts[place_of(&sockets)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for short in [&b"\x40"[..], b"", b"\xc0\0\0\0\x01\x0a"] {
        client.send_to(short, ("127.0.0.1", port)).unwrap();
        assert_eq!(place_of(&sockets), 0);
    }
}

#[test]
fn inherited_udp_socket_is_shared_unless_others_may_bind_beside_it() {
    let alone = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = alone.local_addr().unwrap();
    let sockets = adopt_datagrams(alone.into(), "web", 4, &plain()).unwrap();
    assert_eq!(sockets.len(), 2 + 1);
    drop(sockets);
    let shared = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    shared.set_reuse_port(true).unwrap();
    shared.bind(&address.into()).unwrap();
    let sockets = adopt_datagrams(shared.into(), "web", 4, &plain()).unwrap();
    assert_eq!(sockets.len(), 2 + 4);
    for socket in &sockets[2..] {
        assert_eq!(shown(socket), address.to_string());
    }
}

#[test]
fn inherited_socket_that_is_not_udp_says_what_the_unit_needs() {
    let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
    let error = adopt_datagrams(socket.into(), "web", 1, &plain()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot use the inherited socket `web` for HTTP/3: Address family not supported by \
         protocol (os error 97); it must be a UDP socket: a port in ListenDatagram= of the socket \
         unit"
    );
}
