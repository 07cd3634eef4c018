//! Connections and what they need besides have half of the open files, and not one more.

use std::net::TcpStream;
use std::time::Instant;

use crate::harness::client::{Connection, get};
use crate::harness::{DEADLINE, Hob, Place};
use crate::peer::Peer;

/// Half of them are those of connections.
const OPEN_FILES: u64 = 200;
const LONG: usize = 20_000_000;

/// Opens a tunnel where one is asked for, and else answers at length, once on each connection.
fn other_server() -> u16 {
    Peer::for_each(|taken| {
        let asked = taken.next().unwrap();
        if asked.contains("Upgrade: websocket") {
            taken.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n");
            taken.write(b"Upgrade: websocket\r\n\r\n");
            taken.stay();
        } else {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n");
            taken.write(head.as_bytes());
            taken.write(&vec![b'x'; LONG]);
        }
    })
}

fn serve(place: &Place) -> Hob {
    let port = other_server();
    let text = format!(
        "threads = 1\n[limits]\nhead_time = \"10m\"\nconnections = 1000\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n\
         [[site.route]]\npath = \"/kept\"\nrespond = {{ status = 200, body = \"hello\\n\" }}\n\
         [[site.route]]\npath = \"/app\"\nproxy = {{ to = \"http://127.0.0.1:{port}\", keep = 0 }}\n"
    );
    place.serve_text_with_open_files(&text, OPEN_FILES)
}

/// There is no room for one more; and there is once these have left.
fn are_full(place: &Place, hob: Hob, held: Vec<Connection>) {
    for _ in 0..2 {
        assert_eq!(get(hob.port(), "/kept").unwrap().status, 503);
    }
    assert_eq!(place.counter("limit_connections"), 2);
    assert_eq!(place.counter("accept_errors"), 0);
    held.into_iter().for_each(Connection::leave);
    let until = Instant::now() + DEADLINE;
    while get(hob.port(), "/kept").unwrap().status != 200 {
        assert!(Instant::now() < until, "there is no room again");
    }
    hob.stop();
}

#[test]
fn tunnel_is_two_of_them() {
    let place = Place::new();
    let hob = serve(&place);
    let open = |_| {
        let mut client = Connection::open(hob.port()).unwrap();
        let ask =
            b"GET /app HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        client.send(ask).unwrap();
        assert_eq!(client.read_head().unwrap().0, 101);
        client
    };
    let held = (0..OPEN_FILES / 2 / 2).map(open).collect();
    are_full(&place, hob, held);
}

#[test]
fn answer_that_goes_by_a_pipe_is_four_of_them() {
    let place = Place::new();
    let hob = serve(&place);
    let open = || {
        let socket = TcpStream::connect(("127.0.0.1", hob.port())).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 16 * 1024).unwrap();
        let mut client = Connection::of(socket.into());
        client.send_get("/app").unwrap();
        assert_eq!(client.read_head().unwrap().0, 200);
        client
    };
    let held: Vec<_> = (0..OPEN_FILES / 2 / 4).map(|_| open()).collect();
    if place.counter("limit_splice_pipes") > 0 {
        println!("skipped: the system gives this user no more pipes: others have them");
        return hob.stop();
    }
    assert_eq!(place.counter("spliced_answers"), held.len() as u64);
    are_full(&place, hob, held);
}

#[test]
fn connection_without_another_server_is_one_of_them() {
    let place = Place::new();
    let hob = serve(&place);
    let open = |_| {
        let mut client = Connection::open(hob.port()).unwrap();
        client
            .send(b"GET /kept HTTP/1.1\r\nHost: h\r\n\r\n")
            .unwrap();
        assert_eq!(client.read().unwrap().status, 200);
        client
    };
    let held = (0..OPEN_FILES / 2).map(open).collect();
    are_full(&place, hob, held);
}
