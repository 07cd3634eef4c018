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
        match rustix::net::recv(&conn.socket, room, RecvFlags::empty()) {
            Ok((0, _)) => {
                conn.is_half_closed = true;
                conn.is_readable = false;
                SocketReadOutcome::Eof
            }
            Ok((count, _)) => {
                // Fewer bytes than there was room for: what comes later gives a new event. FIN is
                // known by its own flag, so it need not be looked for.
                if count < len_max && !conn.is_half_closed {
                    conn.is_readable = false;
                }
                SocketReadOutcome::Bytes(count)
            }
            Err(Errno::AGAIN) => {
                conn.is_readable = false;
                SocketReadOutcome::Nothing
            }
            Err(Errno::INTR) => SocketReadOutcome::Nothing,
            Err(_) => SocketReadOutcome::Broken,
        }
    }
}
