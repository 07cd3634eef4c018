//! Asking a name server: over UDP, and over TCP where an answer does not fit.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::dns::message::{DnsAnswer, DnsQuestion};

/// Largest answer over UDP that is read, in bytes.
const UDP_BYTES_MAX: usize = 4096;
/// Datagrams that are no answer to the question, before it is given up.
const STRANGERS_MAX: u32 = 64;

/// Who is asked, and how long an answer may take, all servers and tries together.
#[derive(Clone, Debug, PartialEq)]
pub struct NameServers {
    /// One after the other.
    pub addresses: Vec<SocketAddr>,
    /// Of an answer.
    pub time: Duration,
}

impl NameServers {
    /// The first answer that counts. Each server has its share of the time.
    pub fn ask(&self, asked: &DnsQuestion) -> DnsAnswer {
        let end = Instant::now() + self.time;
        let count = self.addresses.len() as u32;
        for (server, left) in self.addresses.iter().zip((1..=count).rev()) {
            let time = end.saturating_duration_since(Instant::now()) / left;
            match exchange(*server, asked, time) {
                Ok(DnsAnswer::Failed) | Err(_) => {}
                Ok(said) => return said,
            }
        }
        DnsAnswer::Failed
    }
}

/// Asks one server, a second time when the first question may have been lost.
fn exchange(server: SocketAddr, asked: &DnsQuestion, time: Duration) -> io::Result<DnsAnswer> {
    let end = Instant::now() + time;
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut tried = Err(io::ErrorKind::TimedOut.into());
    for wait in [time / 2, time] {
        // A socket and a number of its own: who guesses at answers has to guess both.
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(server)?;
        let number = random_number();
        let message = asked.message(number).ok_or(io::ErrorKind::InvalidInput)?;
        socket.send(&message)?;
        let end = end.min(Instant::now() + wait);
        tried = receive(&socket, asked, number, end);
        match tried {
            Ok(DnsAnswer::Truncated) => return over_tcp(server, asked, end),
            Err(ref error) if error.kind() == io::ErrorKind::TimedOut => {}
            _ => return tried,
        }
    }
    tried
}

fn receive(
    socket: &UdpSocket,
    asked: &DnsQuestion,
    number: u16,
    end: Instant,
) -> io::Result<DnsAnswer> {
    let mut room = [0; UDP_BYTES_MAX];
    for _ in 0..STRANGERS_MAX {
        socket.set_read_timeout(Some(left(end)?))?;
        let count = match socket.recv(&mut room) {
            Ok(count) => count,
            Err(error) if is_timeout(&error) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        };
        if let Some(said) = asked.read(number, &room[..count]) {
            return Ok(said);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn over_tcp(server: SocketAddr, asked: &DnsQuestion, end: Instant) -> io::Result<DnsAnswer> {
    let number = random_number();
    let message = asked.message(number).ok_or(io::ErrorKind::InvalidInput)?;
    let mut stream = TcpStream::connect_timeout(&server, left(end)?)?;
    stream.set_write_timeout(Some(left(end)?))?;
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &message].concat())?;
    let mut head = [0; 2];
    read_whole(&mut stream, &mut head, end)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(head))];
    read_whole(&mut stream, &mut answer, end)?;
    match asked.read(number, &answer) {
        None | Some(DnsAnswer::Truncated) => Err(io::ErrorKind::InvalidData.into()),
        Some(said) => Ok(said),
    }
}

/// Reads all of it in time, however slowly it comes.
fn read_whole(stream: &mut TcpStream, mut room: &mut [u8], end: Instant) -> io::Result<()> {
    while !room.is_empty() {
        stream.set_read_timeout(Some(left(end)?))?;
        match stream.read(room)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => room = &mut room[count..],
        }
    }
    Ok(())
}

/// Time that is left; an error when there is none.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// A number that nobody can guess: the standard library's hash has a random key.
fn random_number() -> u16 {
    RandomState::new().hash_one(0_u8) as u16
}
