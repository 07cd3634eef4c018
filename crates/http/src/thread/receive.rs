//! Bytes from a socket into the thread's input, in clear text or opened.

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::response::Responder;
use crate::thread::conn::SocketConnection;
use crate::thread::run::Thread;

/// What reading a socket gave.
pub(crate) enum SocketReadOutcome {
    /// So many bytes stand in `input`.
    Bytes(usize),
    /// None for now.
    Nothing,
    /// The client has sent FIN.
    Eof,
    /// The connection is broken.
    Broken,
}

impl<A: Responder + 'static> Thread<A> {
    /// Reads what there is into `input`, at most `len_max` bytes.
    pub(crate) fn receive(
        &mut self,
        conn: &mut SocketConnection,
        len_max: usize,
    ) -> SocketReadOutcome {
        if conn.opens_input() {
            return self.receive_sealed(conn, len_max);
        }
        let room = &mut self.input[..len_max];
        let received = rustix::net::recv(&conn.socket, room, RecvFlags::empty());
        let received = received.map(|(count, _)| count);
        // Fewer bytes than there was room for: what comes later gives a new event. FIN is known by
        // its own flag, so it need not be looked for.
        if received.is_ok_and(|count| count < len_max) && !conn.is_half_closed {
            conn.is_readable = false;
        }
        conn.read_outcome(received)
    }
}

impl SocketConnection {
    /// What a read of the socket came to, which is noted.
    pub(super) fn read_outcome(&mut self, read: Result<usize, Errno>) -> SocketReadOutcome {
        match read {
            Ok(0) => {
                self.is_half_closed = true;
                self.is_readable = false;
                SocketReadOutcome::Eof
            }
            Ok(count) => SocketReadOutcome::Bytes(count),
            Err(Errno::AGAIN) => {
                self.is_readable = false;
                SocketReadOutcome::Nothing
            }
            Err(Errno::INTR) => SocketReadOutcome::Nothing,
            Err(_) => SocketReadOutcome::Broken,
        }
    }
}
