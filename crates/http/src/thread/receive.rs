//! Bytes from a socket into the thread's input, in clear text or opened.

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::response::Answer;
use crate::thread::conn::Conn;
use crate::thread::run::Thread;

/// What reading a socket gave.
pub(crate) enum Read {
    /// So many bytes stand in `input`.
    Bytes(usize),
    /// None for now.
    Nothing,
    /// The client has sent FIN.
    Eof,
    /// The connection is broken.
    Broken,
}

impl<A: Answer + 'static> Thread<A> {
    /// Reads what there is into `input`, at most `len_max` bytes.
    pub(crate) fn receive(&mut self, conn: &mut Conn, len_max: usize) -> Read {
        if conn.opens_input() {
            return self.receive_sealed(conn, len_max);
        }
        let room = &mut self.input[..len_max];
        match rustix::net::recv(&conn.socket, room, RecvFlags::empty()) {
            Ok((0, _)) => {
                conn.is_half_closed = true;
                conn.is_readable = false;
                Read::Eof
            }
            Ok((count, _)) => {
                // Fewer bytes than there was room for: what comes later gives a new event. FIN is
                // known by its own flag, so it need not be looked for.
                if count < len_max && !conn.is_half_closed {
                    conn.is_readable = false;
                }
                Read::Bytes(count)
            }
            Err(Errno::AGAIN) => {
                conn.is_readable = false;
                Read::Nothing
            }
            Err(Errno::INTR) => Read::Nothing,
            Err(_) => Read::Broken,
        }
    }
}
