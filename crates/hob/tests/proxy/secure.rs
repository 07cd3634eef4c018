//! Peers that speak TLS.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::authority::{Authority, Signed};
use crate::harness::Place;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, Wire};

impl Signed {
    /// A peer that shows it.
    pub(crate) fn peer(&self, acts: Vec<Act>) -> Peer {
        Peer::start_over(over(self.config(rustls::ALL_VERSIONS, None)), acts)
    }
}

/// TLS by this config. A handshake that fails is the end of its connection.
pub(crate) fn over(
    config: Arc<ServerConfig>,
) -> Box<dyn Fn(TcpStream) -> Option<Box<dyn Wire>> + Send> {
    Box::new(move |mut stream| {
        let mut conn = ServerConnection::new(Arc::clone(&config)).unwrap();
        while conn.is_handshaking() {
            let step = conn.complete_io(&mut stream);
            if step.is_err() {
                // What it has to say is sent.
                let _ = conn.write_tls(&mut stream);
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
                return None;
            }
        }
        // That a handshake is over is followed by tickets.
        while conn.wants_write() {
            conn.write_tls(&mut stream).unwrap();
        }
        Some(Box::new(StreamOwned::new(conn, stream)))
    })
}

impl Wire for StreamOwned<ServerConnection, TcpStream> {
    fn end(&mut self) {
        self.conn.send_close_notify();
        let _ = self.conn.write_tls(&mut self.sock);
    }

    fn change_keys(&mut self) {
        self.conn.refresh_traffic_keys().unwrap();
        self.conn.write_tls(&mut self.sock).unwrap();
    }
}

/// A site whose `/app/*` these ports of `localhost` answer over TLS, with the keys of `tls` and
/// further ones of `proxy`. `ca.pem` is this authority's.
pub(crate) fn serve(authority: &Authority, peers: &[&Peer], tls: &str, keys: &str) -> Site {
    let ports: Vec<_> = peers.iter().map(|peer| peer.port).collect();
    serve_in(Place::new(), authority, &ports, tls, keys)
}

/// The same in a place where there is something already.
pub(crate) fn serve_in(
    place: Place,
    authority: &Authority,
    ports: &[u16],
    tls: &str,
    keys: &str,
) -> Site {
    authority.write(&place, "ca.pem");
    let to = ports
        .iter()
        .map(|port| format!("\"https://localhost:{port}\""));
    let to = to.collect::<Vec<_>>().join(", ");
    let handler = format!("proxy = {{ to = [{to}], tls = {{ {tls} }}, {keys} }}");
    Site::serve(place, "", &handler, "")
}
