//! The same as `relay` for what goes over UDP: datagrams between the load generator and a server,
//! counted, and held up on their way to the server so that round trips show as time. Each client
//! socket has a socket of its own to the server, so that answers find their way back.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::CostError;
use crate::relay::Passed;

/// Larger than any datagram.
const DATAGRAM_BYTES_MAX: usize = 64 * 1024;
/// Clients whose answers still find their way; an older one is forgotten for a new one.
const CLIENT_COUNT_MAX: usize = 64;
/// Datagrams of one socket before the others are looked at.
const TURN_COUNT_MAX: usize = 64;

/// A running relay; it ends when it is dropped.
pub(crate) struct Datagrams {
    address: SocketAddr,
    is_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Passed>>,
}

impl Datagrams {
    /// Takes datagrams on an address of its own, and holds up what goes to the server.
    pub(crate) fn start(server: SocketAddr, delay: Duration) -> Result<Datagrams, CostError> {
        let failed = || CostError::system("cannot listen on a socket to count datagrams");
        let own = match server {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        let listener = UdpSocket::bind((own, 0)).map_err(failed())?;
        listener.set_nonblocking(true).map_err(failed())?;
        let address = listener.local_addr().map_err(failed())?;
        let is_ended = Arc::new(AtomicBool::new(false));
        let between = Between {
            listener,
            server,
            delay,
            clients: VecDeque::new(),
            client_count: 0,
            late: VecDeque::new(),
            passed: Passed {
                is_counted: true,
                ..Passed::default()
            },
        };
        let ended = is_ended.clone();
        let thread = std::thread::Builder::new().spawn(move || between.carry(&ended));
        Ok(Datagrams {
            address,
            is_ended,
            thread: Some(thread.map_err(failed())?),
        })
    }

    /// Where clients send to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it and says what went through.
    pub(crate) fn end(mut self) -> Passed {
        self.stop().unwrap_or_default()
    }

    fn stop(&mut self) -> Option<Passed> {
        let thread = self.thread.take()?;
        self.is_ended.store(true, Ordering::Release);
        // An empty datagram wakes the thread, behind all that its clients have sent before.
        let waker = UdpSocket::bind((self.address.ip(), 0));
        while !thread.is_finished() {
            match &waker {
                Ok(waker) if waker.send_to(&[], self.address).is_ok() => break,
                // Nothing to wake it with: the next datagram does, or the end of a delay.
                _ => std::thread::sleep(crate::limits::LOOK_PERIOD),
            }
        }
        thread.join().ok()
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A client, by the address it sends from.
struct RelayClient {
    number: u64,
    address: SocketAddr,
    /// Connected to the server.
    socket: UdpSocket,
}

/// What is held up.
struct Late {
    due: Instant,
    client: u64,
    bytes: Vec<u8>,
}

/// What stands between clients and a server.
struct Between {
    listener: UdpSocket,
    server: SocketAddr,
    delay: Duration,
    /// The oldest first.
    clients: VecDeque<RelayClient>,
    client_count: u64,
    /// In the order they came, and so in that they are due.
    late: VecDeque<Late>,
    passed: Passed,
}

impl Between {
    fn carry(mut self, is_ended: &AtomicBool) -> Passed {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while let Ok(()) | Err(Errno::INTR) = self.wait() {
            let is_over = self.take_from_clients(&mut buffer, is_ended);
            self.take_from_server(&mut buffer);
            self.send_late();
            if is_over {
                break;
            }
        }
        self.passed
    }

    /// Until something comes, or what is held up is due.
    fn wait(&self) -> Result<(), Errno> {
        let sockets = self.clients.iter().map(|client| &client.socket);
        let sockets = std::iter::once(&self.listener).chain(sockets);
        let mut fds: Vec<PollFd<'_>> = sockets
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        let left = self
            .late
            .front()
            .map(|late| late.due.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        });
        poll(&mut fds, left.as_ref()).map(|_| ())
    }

    /// Says whether the relay is to end, and everything before that was taken.
    fn take_from_clients(&mut self, buffer: &mut [u8], is_ended: &AtomicBool) -> bool {
        for _ in 0..TURN_COUNT_MAX {
            let Ok((count, address)) = self.listener.recv_from(buffer) else {
                break;
            };
            if count == 0 && is_ended.load(Ordering::Acquire) {
                return true;
            }
            // Where no socket can be had the datagram is lost, as datagrams may be.
            let Ok(client) = self.client(address) else {
                continue;
            };
            self.passed.packets_out += 1;
            self.passed.bytes_out += count as u64;
            if self.delay.is_zero() {
                self.send(client, &buffer[..count]);
                continue;
            }
            self.late.push_back(Late {
                due: Instant::now() + self.delay,
                client,
                bytes: buffer[..count].to_vec(),
            });
        }
        false
    }

    /// The number of the client at an address, which may be a new one.
    fn client(&mut self, address: SocketAddr) -> io::Result<u64> {
        // The one that came last is mostly the one that sends.
        let mut clients = self.clients.iter().rev();
        if let Some(known) = clients.find(|client| client.address == address) {
            return Ok(known.number);
        }
        let unspecified = match self.server {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((unspecified, 0))?;
        socket.connect(self.server)?;
        socket.set_nonblocking(true)?;
        if self.clients.len() == CLIENT_COUNT_MAX {
            self.clients.pop_front();
        }
        self.client_count += 1;
        self.passed.connections += 1;
        self.clients.push_back(RelayClient {
            number: self.client_count,
            address,
            socket,
        });
        Ok(self.client_count)
    }

    fn take_from_server(&mut self, buffer: &mut [u8]) {
        for client in &self.clients {
            for _ in 0..TURN_COUNT_MAX {
                // A server that refuses has been seen by the client without a relay before.
                let Ok(count) = client.socket.recv(buffer) else {
                    break;
                };
                self.passed.packets_in += 1;
                self.passed.bytes_in += count as u64;
                // What finds no room is lost, and sent again by the server.
                let _ = self.listener.send_to(&buffer[..count], client.address);
            }
        }
    }

    fn send_late(&mut self) {
        let now = Instant::now();
        while self.late.front().is_some_and(|late| late.due <= now)
            && let Some(late) = self.late.pop_front()
        {
            self.send(late.client, &late.bytes);
        }
    }

    fn send(&self, number: u64, bytes: &[u8]) {
        let mut clients = self.clients.iter().rev();
        if let Some(client) = clients.find(|client| client.number == number) {
            // What finds no room is lost, and sent again by the client.
            let _ = client.socket.send(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each datagram with one that is longer by a byte, and ends with an empty one.
    fn server() -> (SocketAddr, JoinHandle<()>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let answer = move || {
            let mut buffer = [0; 100];
            loop {
                let (count, from) = socket.recv_from(&mut buffer).unwrap();
                if count == 0 {
                    return;
                }
                socket.send_to(&buffer[..count + 1], from).unwrap();
            }
        };
        (address, std::thread::spawn(answer))
    }

    fn end(server: (SocketAddr, JoinHandle<()>)) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[], server.0).unwrap();
        server.1.join().unwrap();
    }

    fn asked(address: SocketAddr, client: &UdpSocket, bytes: usize) -> usize {
        client.send_to(&vec![1; bytes], address).unwrap();
        let mut buffer = [0; 100];
        client.recv_from(&mut buffer).unwrap().0
    }

    #[test]
    fn datagrams_of_many_clients_are_counted_and_find_their_way_back() {
        let server = server();
        let relay = Datagrams::start(server.0, Duration::ZERO).unwrap();
        let first = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(asked(relay.address(), &first, 5), 6);
        // More than are remembered at once: those before are forgotten, and begin anew.
        // All stay open, or two might get the same port.
        let mut clients = Vec::new();
        for bytes in 1..=CLIENT_COUNT_MAX {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            assert_eq!(asked(relay.address(), &client, bytes), bytes + 1);
            clients.push(client);
        }
        assert_eq!(asked(relay.address(), &first, 7), 8);
        let passed = relay.end();
        let count = CLIENT_COUNT_MAX as u64;
        let bytes = count * (count + 1) / 2 + 5 + 7;
        let wanted = Passed {
            connections: count + 2,
            packets_out: count + 2,
            packets_in: count + 2,
            bytes_out: bytes,
            bytes_in: bytes + count + 2,
            is_counted: true,
        };
        assert_eq!(passed, wanted);
        end(server);
    }

    #[test]
    fn what_goes_to_the_server_is_held_up() {
        let server = server();
        let delay = Duration::from_millis(20);
        let relay = Datagrams::start(server.0, delay).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let begun = Instant::now();
        assert_eq!(asked(relay.address(), &client, 1), 2);
        assert!(begun.elapsed() >= delay);
        end(server);
        // What is dropped ends too.
        drop(relay);
    }
}
