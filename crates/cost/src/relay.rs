//! A relay between the load generator and a server: what goes through it is counted as the kernel
//! of this machine counts it, packets and bytes, and can be held up, so that round trips show as
//! time. It listens on a Unix socket in our folder and connects to the server by TCP.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::CostError;
use crate::kernel::segments::segments;

const PIECE_BYTES: usize = 64 * 1024;

/// What went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) connections: u64,
    /// Packets and bytes of TCP's payload, to the server and from it.
    pub(crate) packets_out: u64,
    pub(crate) packets_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    /// The kernel told of packets.
    pub(crate) is_counted: bool,
}

/// A running relay; it ends when it is dropped.
pub(crate) struct Relay {
    path: PathBuf,
    is_ended: Arc<AtomicBool>,
    passed: Arc<Mutex<Passed>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Listens at a path; what goes to the server is held up by a delay.
    pub(crate) fn start(
        path: PathBuf,
        server: SocketAddr,
        delay: Duration,
    ) -> Result<Relay, CostError> {
        let failed = || CostError::system("cannot listen on a socket to count packets");
        let listener = UnixListener::bind(&path).map_err(failed())?;
        let is_ended = Arc::new(AtomicBool::new(false));
        let passed = Arc::new(Mutex::new(Passed::default()));
        let (ended, counted) = (is_ended.clone(), passed.clone());
        let accept = move || {
            let mut connections: Vec<JoinHandle<()>> = Vec::new();
            for client in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(client) = client else { continue };
                connections.retain(|thread| !thread.is_finished());
                let counted = counted.clone();
                let carry = move || {
                    // A server that does not take the connection closes it: the client sees that.
                    if let Ok(passed) = carry(client, server, delay) {
                        add(&counted, passed);
                    }
                };
                connections.extend(std::thread::Builder::new().spawn(carry).ok());
            }
            for thread in connections {
                let _ = thread.join();
            }
        };
        let thread = std::thread::Builder::new()
            .spawn(accept)
            .map_err(failed())?;
        Ok(Relay {
            path,
            is_ended,
            passed,
            thread: Some(thread),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends it and says what went through; its clients must have closed their connections.
    pub(crate) fn end(mut self) -> Passed {
        self.stop();
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = UnixStream::connect(&self.path);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop();
    }
}

fn add(counted: &Mutex<Passed>, more: Passed) {
    let mut all = counted.lock().unwrap_or_else(PoisonError::into_inner);
    all.connections += more.connections;
    all.packets_out += more.packets_out;
    all.packets_in += more.packets_in;
    all.bytes_out += more.bytes_out;
    all.bytes_in += more.bytes_in;
    all.is_counted |= more.is_counted;
}

/// Carries one connection to its end.
fn carry(client: UnixStream, server: SocketAddr, delay: Duration) -> io::Result<Passed> {
    let mut probe = client.try_clone()?;
    // Who only looks whether somebody listens, and goes, is no connection to count.
    let mut first = [0; PIECE_BYTES];
    let count = probe.read(&mut first)?;
    if count == 0 {
        return Ok(Passed::default());
    }
    let server = TcpStream::connect(server)?;
    server.set_nodelay(true)?;
    let first = first[..count].to_vec();
    let out = {
        let (client, server) = (client.try_clone()?, server.try_clone()?);
        std::thread::Builder::new().spawn(move || forward(first, client, server, delay))?
    };
    let mut bytes_in = 0;
    let (mut from, mut to) = (&server, &client);
    let mut piece = [0; PIECE_BYTES];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        bytes_in += count as u64;
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Write);
    let bytes_out = out.join().unwrap_or_default();
    let segments = segments(&server);
    let counted = segments.unwrap_or_default();
    Ok(Passed {
        connections: 1,
        packets_out: counted.sent,
        packets_in: counted.received,
        bytes_out,
        bytes_in,
        is_counted: segments.is_some(),
    })
}

/// Carries what the client sends, each piece so long after it came; says how many bytes it was.
fn forward(first: Vec<u8>, mut client: UnixStream, mut server: TcpStream, delay: Duration) -> u64 {
    let (pieces, due) = channel::<(Instant, Vec<u8>)>();
    let send = move || {
        for (at, piece) in due {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if server.write_all(&piece).is_err() {
                return;
            }
        }
        let _ = server.shutdown(Shutdown::Write);
    };
    let Ok(sender) = std::thread::Builder::new().spawn(send) else {
        return 0;
    };
    let mut bytes = 0;
    let mut next = first;
    loop {
        bytes += next.len() as u64;
        if pieces.send((Instant::now() + delay, next)).is_err() {
            break;
        }
        let mut piece = vec![0; PIECE_BYTES];
        match client.read(&mut piece) {
            Ok(count @ 1..) => {
                piece.truncate(count);
                next = piece;
            }
            _ => break,
        }
    }
    drop(pieces);
    let _ = sender.join();
    bytes
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_passes_is_counted_and_held_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 5];
            stream.read_exact(&mut bytes).unwrap();
            stream.write_all(b"answer!").unwrap();
            bytes
        });
        let folder = tempfile::tempdir().unwrap();
        let delay = Duration::from_millis(20);
        let relay = Relay::start(folder.path().join("relay"), address, delay).unwrap();
        // Who only looks is not counted.
        drop(UnixStream::connect(relay.path()).unwrap());
        let begun = Instant::now();
        let mut client = UnixStream::connect(relay.path()).unwrap();
        client.write_all(b"hello").unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert!(begun.elapsed() >= delay);
        assert_eq!(
            (answer, &server.join().unwrap()),
            (b"answer!".to_vec(), b"hello")
        );
        drop(client);
        let passed = relay.end();
        assert_eq!(
            (passed.connections, passed.bytes_out, passed.bytes_in),
            (1, 5, 7)
        );
        assert!(passed.is_counted);
        // SYN, its acknowledgement and the request at least; SYN of the server and the answer.
        assert!(
            passed.packets_out >= 3 && passed.packets_in >= 2,
            "{passed:?}"
        );
        assert!(!folder.path().join("relay").exists());
    }
}
