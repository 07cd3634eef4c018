//! How messages travel between a driver and its worker.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use hob_http::{Reactor, Watched};
use hob_ipc::message::{Head, Side};
use hob_ipc::shm::Gifts;
use hob_ipc::stream::{self, Decoder};

use crate::handle::resident::shared::Shared;

/// The socket of one worker, and what is on its way over it.
pub(super) struct Wire {
    socket: Watched,
    decoder: Decoder,
    out: Vec<u8>,
    out_from: usize,
    /// The worker did not take what was sent last.
    is_broken: bool,
    /// Leaves with the first bytes.
    gifts: Option<Gifts>,
    /// Offered, or in use.
    shared: Option<Shared>,
    is_shared: bool,
}

/// What a worker is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    Stream,
    SharedMemory,
}

/// What reading gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// So many bytes.
    Bytes(usize),
    /// None for now.
    Nothing,
    /// The worker has closed it.
    Closed {
        /// What was sent last was not read.
        is_unread: bool,
    },
}

impl Wire {
    /// # Errors
    /// No descriptors, or no memory to share.
    pub(super) fn new(reactor: &Reactor, socket: OwnedFd, offer: Offer) -> io::Result<Wire> {
        let socket = reactor.watch(socket)?;
        // Nobody has written yet: the first look would be in vain.
        socket.clear_readable();
        let (shared, gifts) = match offer {
            Offer::Stream => (None, None),
            Offer::SharedMemory => {
                let (shared, gifts) = Shared::new(reactor)?;
                (Some(shared), Some(gifts))
            }
        };
        Ok(Wire {
            socket,
            decoder: Decoder::new(Side::Worker),
            out: Vec::new(),
            out_from: 0,
            is_broken: false,
            gifts,
            shared,
            is_shared: false,
        })
    }

    /// What is offered, until the worker has chosen.
    pub(super) fn offer(&self) -> Offer {
        match self.shared {
            Some(_) => Offer::SharedMemory,
            None => Offer::Stream,
        }
    }

    /// The worker has chosen.
    pub(super) fn choose(&mut self, offer: Offer) {
        match offer {
            Offer::Stream => self.shared = None,
            Offer::SharedMemory => self.is_shared = true,
        }
    }

    /// The shared memory that messages travel through.
    pub(super) fn shared(&mut self) -> Option<&mut Shared> {
        self.shared.as_mut().filter(|_| self.is_shared)
    }

    /// Puts a message on its way; it leaves with the next [`Wire::flush`].
    pub(super) fn push(&mut self, head: Head, payload: &[u8]) {
        match self.shared() {
            Some(shared) => shared.push(head, payload),
            None => stream::append(&mut self.out, head, &[payload]),
        }
    }

    /// Bytes that have not left.
    pub(super) fn waiting_bytes(&self) -> usize {
        let shared = self.shared.as_ref().map_or(0, Shared::waiting_bytes);
        self.out.len() - self.out_from + shared
    }

    /// Sends what the socket takes. A socket that is gone shows when it is read.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        if let Some(shared) = self.shared() {
            shared.flush();
        }
        if self.out.is_empty() {
            return;
        }
        if let Some(gifts) = &self.gifts {
            // A new socket has room for a hello.
            match gifts.send(self.socket.fd(), &self.out) {
                Ok(count) => self.out_from = count,
                Err(_) => self.is_broken = true,
            }
            self.gifts = None;
        }
        while self.out_from < self.out.len() && !self.is_broken {
            match self.socket.poll_write(cx, &self.out[self.out_from..]) {
                Poll::Ready(Ok(count)) => self.out_from += count,
                Poll::Ready(Err(_)) => self.is_broken = true,
                Poll::Pending => return,
            }
        }
        self.out_from = 0;
        if self.out.capacity() > KEPT_BYTES_MAX {
            self.out = Vec::new();
        }
        self.out.clear();
    }

    /// Reads once.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>) -> Filled {
        if self.socket.poll_readable(cx).is_pending() {
            return Filled::Nothing;
        }
        let space = self.decoder.space();
        let room = space.len();
        match self.socket.poll_read(cx, space) {
            // In shared memory the slots say what was not started.
            Poll::Ready(Ok(0)) => Filled::Closed {
                is_unread: !self.is_shared && (self.is_broken || self.waiting_bytes() > 0),
            },
            Poll::Ready(Ok(count)) => {
                self.decoder.filled(count);
                // Fewer bytes than there was room for: what comes later gives a new event.
                if count < room && !self.socket.is_hung_up() {
                    self.socket.clear_readable();
                }
                Filled::Bytes(count)
            }
            // Whoever closes with something unread resets.
            Poll::Ready(Err(error)) => Filled::Closed {
                is_unread: !self.is_shared && error.kind() == io::ErrorKind::ConnectionReset,
            },
            Poll::Pending => Filled::Nothing,
        }
    }

    /// The worker's process has ended: what it wrote is there, whether or not that was told.
    pub(super) fn look_again(&self) {
        self.socket.mark_readable();
    }

    /// What was read.
    pub(super) fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }
}

/// Memory that is kept for what is sent next.
const KEPT_BYTES_MAX: usize = 64 * 1024;
