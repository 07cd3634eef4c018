//! Links to servers and their threads, and what waits to be sent over them.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::process::message::ToServer;
use crate::process::packet::{self, Sent};

/// Whose end a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// A server's: brings the ends of its threads.
    Server,
    /// A server thread's: brings starts.
    Thread,
}

/// A link.
pub(super) struct Link {
    pub(super) socket: OwnedFd,
    pub(super) whose: Whose,
    /// What the socket did not take yet. It is bounded by what runs: a start has one answer.
    waiting: VecDeque<Vec<u8>>,
    /// We are told when the socket takes more.
    pub(super) is_watching_output: bool,
}

impl Link {
    pub(super) fn new(socket: OwnedFd, whose: Whose) -> Link {
        Link {
            socket,
            whose,
            waiting: VecDeque::new(),
            is_watching_output: false,
        }
    }

    /// Sends a message, or keeps it until the socket takes it. An end that is gone shows when it is
    /// read.
    pub(super) fn send(&mut self, message: &ToServer, scratch: &mut Vec<u8>) {
        message.encode(scratch);
        if !self.waiting.is_empty() || packet::send(self.fd(), scratch, &[]) == Sent::Full {
            self.waiting.push_back(scratch.clone());
        }
    }

    /// Sends what waits, as far as the socket takes it.
    pub(super) fn flush(&mut self) {
        while let Some(packet) = self.waiting.front() {
            if packet::send(self.fd(), packet, &[]) == Sent::Full {
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
pub(super) struct Links {
    by_number: HashMap<u64, Link>,
    last: u64,
}

impl Links {
    pub(super) fn add(&mut self, link: Link) -> u64 {
        self.last += 1;
        self.by_number.insert(self.last, link);
        self.last
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Link> {
        self.by_number.get_mut(&number)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Link> {
        self.by_number.remove(&number)
    }

    pub(super) fn count(&self) -> usize {
        self.by_number.len()
    }
}
