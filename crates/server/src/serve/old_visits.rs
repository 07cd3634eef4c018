//! Visits that servers before this one keep, for people: they are listed and ended, one by one,
//! wherever they are.
//!
//! ```text
//! hob-visits: list        200, and the visits of that server and of those before it, as JSON
//! hob-visits: end NUMBER  200; 404 where neither it nor one before it has the visit
//! ```
//!
//! This is asked over the socket of `predecessor`. Whoever asks waits: no serving thread does.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use hob_http::listen::nameless::path_of;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::handle::script::visits::told::ProgramVisits;
use crate::serve::ServerState;
use crate::serve::predecessor::Predecessor;

/// The field that says what is asked.
pub(crate) const VISITS: &[u8] = b"hob-visits";
/// How long each step may take: a server before this one has little to do.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// What a server is asked of its visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitsAsked {
    /// Which there are.
    List,
    /// The end of the one of this number.
    End(u64),
}

impl VisitsAsked {
    /// What the field says; `None` where it cannot be understood.
    pub fn parse(field: &[u8]) -> Option<VisitsAsked> {
        match std::str::from_utf8(field).ok()?.split_once(' ') {
            None if field == b"list" => Some(VisitsAsked::List),
            Some(("end", number)) => number.parse().ok().map(VisitsAsked::End),
            _ => None,
        }
    }

    /// As the field says it.
    pub fn field(self) -> String {
        match self {
            VisitsAsked::List => "list".to_owned(),
            VisitsAsked::End(number) => format!("end {number}"),
        }
    }
}

impl ServerState {
    /// Visits here, and with servers before this one. May wait for those.
    pub fn all_visits(&self) -> Vec<ProgramVisits> {
        let mut all = self.fleet.told_visits();
        all.extend(self.old_visits());
        all
    }

    /// There is a server before this one, whose visits are told too.
    pub fn has_old_server(&self) -> bool {
        self.predecessor.get().is_some_and(Predecessor::is_there)
    }

    /// Those of servers before this one.
    fn old_visits(&self) -> Vec<ProgramVisits> {
        let there = self.predecessor.get().filter(|one| one.is_there());
        let told = there.map(|predecessor| predecessor.visits());
        match told.transpose() {
            Ok(told) => told.unwrap_or_default(),
            Err(error) => {
                hob_trace::warn_seldom!(%error, "the server before does not tell of its visits");
                Vec::new()
            }
        }
    }

    /// The same as a server before another one tells them: whose they are is said.
    pub(crate) fn visits_for_successor(&self) -> Vec<ProgramVisits> {
        let mut all = self.all_visits();
        for visits in &mut all {
            visits.server_pid.get_or_insert(std::process::id());
        }
        // A program that nobody visits is the new server's to tell.
        all.retain(|visits| visits.count > 0);
        all
    }

    /// Ends the visit of this number, here or with a server before this one, for which it may
    /// wait. False where there is none.
    pub fn end_any_visit(&self, number: u64) -> bool {
        if self.fleet.end_visit(number) {
            return true;
        }
        let there = self.predecessor.get().filter(|one| one.is_there());
        there.is_some_and(|predecessor| {
            predecessor.end_visit(number).unwrap_or_else(|error| {
                hob_trace::warn_seldom!(%error, "the server before does not end a visit");
                false
            })
        })
    }
}

impl Predecessor {
    fn visits(&self) -> io::Result<Vec<ProgramVisits>> {
        match ask(self.socket(), VisitsAsked::List)? {
            (200, body) => Ok(serde_json::from_slice(&body)?),
            // It is of a time when servers did not tell.
            _ => Ok(Vec::new()),
        }
    }

    fn end_visit(&self, number: u64) -> io::Result<bool> {
        let (status, _) = ask(self.socket(), VisitsAsked::End(number))?;
        Ok(status == 200)
    }
}

/// Asks, and waits for status and body.
fn ask(socket: &OwnedFd, asked: VisitsAsked) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = open(socket)?;
    let (name, said) = (String::from_utf8_lossy(VISITS), asked.field());
    let request =
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{name}: {said}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no answer"))
}

fn open(socket: &OwnedFd) -> io::Result<UnixStream> {
    let kind = (AddressFamily::UNIX, SocketType::STREAM);
    let stream = socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, None)?;
    for way in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&stream, way, Some(PATIENCE))?;
    }
    connect(&stream, &SocketAddrUnix::new(path_of(socket))?)?;
    Ok(UnixStream::from(stream))
}

/// Status and body of an answer that ends with its connection.
fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = memchr::memmem::find(answer, b"\r\n\r\n")?;
    let line = std::str::from_utf8(answer.get(..12)?).ok()?;
    let status = line.strip_prefix("HTTP/1.1 ")?.parse().ok()?;
    Some((status, answer[end + 4..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_understood_and_nothing_else() {
        for asked in [VisitsAsked::List, VisitsAsked::End(7)] {
            assert_eq!(VisitsAsked::parse(asked.field().as_bytes()), Some(asked));
        }
        for wrong in [
            "", "LIST", "list 1", "end", "end x", "end -1", "end 1 2", "\u{ff}",
        ] {
            assert_eq!(VisitsAsked::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(VisitsAsked::parse(b"\xff"), None);
    }

    #[test]
    fn answers_are_read_to_their_end() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]";
        assert_eq!(parse(answer), Some((200, b"[]".to_vec())));
        for wrong in [
            "",
            "HTTP/1.1 200",
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "HTTP/2 200 OK\r\n\r\n",
        ] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
