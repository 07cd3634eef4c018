//! Links to servers and their threads, and what waits to be sent over them.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::process::message::{EXITED_BYTES, TO_SERVER_BYTES_MAX, ToServer};
use crate::process::packet::{self, PacketSendOutcome};

/// Whose end a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// A server's: brings the ends of its threads.
    Server,
    /// A server thread's: brings starts.
    Thread,
}

/// A link.
pub(super) struct ServerLink {
    pub(super) socket: OwnedFd,
    pub(super) whose: Whose,
    /// What the socket did not take yet. It is bounded by what runs: a start has one answer.
    waiting: VecDeque<Vec<u8>>,
    /// What leaves together at the next [`ServerLink::post`].
    gathered: Vec<u8>,
    /// We are told when the socket takes more.
    pub(super) is_watching_output: bool,
}

impl ServerLink {
    pub(super) fn new(socket: OwnedFd, whose: Whose) -> ServerLink {
        ServerLink {
            socket,
            whose,
            waiting: VecDeque::new(),
            gathered: Vec::new(),
            is_watching_output: false,
        }
    }

    /// Takes a message that is to leave with the next [`ServerLink::post`]; true when it is the
    /// first.
    pub(super) fn gather(&mut self, message: &ToServer) -> bool {
        if self.gathered.len() + EXITED_BYTES > TO_SERVER_BYTES_MAX {
            self.post();
        }
        let is_first = self.gathered.is_empty();
        message.encode(&mut self.gathered);
        is_first
    }

    /// Sends what was gathered, or keeps it until the socket takes it. An end that is gone shows
    /// when it is read.
    pub(super) fn post(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        if !self.waiting.is_empty()
            || packet::send(self.fd(), &self.gathered, &[]) == PacketSendOutcome::Full
        {
            self.waiting.push_back(self.gathered.clone());
        }
        self.gathered.clear();
    }

    /// Sends what waits, as far as the socket takes it.
    pub(super) fn flush(&mut self) {
        while let Some(packet) = self.waiting.front() {
            if packet::send(self.fd(), packet, &[]) == PacketSendOutcome::Full {
                return;
            }
            self.waiting.pop_front();
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// All links, by a number that epoll reports and that is never used twice.
#[derive(Default)]
pub(super) struct ServerLinks {
    by_number: HashMap<u64, ServerLink>,
    last: u64,
}

impl ServerLinks {
    pub(super) fn add(&mut self, link: ServerLink) -> u64 {
        self.last += 1;
        self.by_number.insert(self.last, link);
        self.last
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut ServerLink> {
        self.by_number.get_mut(&number)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<ServerLink> {
        self.by_number.remove(&number)
    }

    pub(super) fn count(&self) -> usize {
        self.by_number.len()
    }
}
