//! How messages travel between a driver and its worker: over a socket, through shared memory, or as
//! lines (`lines`).

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use hob_http::{Reactor, Watched};
use hob_ipc::file;
use hob_ipc::message::{MessageHead, MessageSender};
use hob_ipc::shm::Gifts;
use hob_ipc::shm::region::Sizes;
use hob_ipc::stream::{self, MessageDecoder};

use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::{BODY_WINDOW_BYTES, FILES_AHEAD_MAX};
use crate::handle::resident::lines::Lines;
use crate::handle::resident::shared::SharedMemoryWire;

/// The way to one worker, and what is on it.
pub(super) enum WorkerWire {
    Messages(Messages),
    Lines(Lines),
}

/// A socket, and perhaps shared memory beside it.
pub(super) struct Messages {
    socket: Watched,
    decoder: MessageDecoder,
    out: Vec<u8>,
    out_from: usize,
    /// The worker did not take what was sent last.
    is_broken: bool,
    /// Leaves with the first bytes.
    gifts: Option<Gifts>,
    /// Offered, or in use.
    shared: Option<SharedMemoryWire>,
    is_shared: bool,
    /// Descriptors that came over the socket, if any may come.
    files: Option<VecDeque<OwnedFd>>,
}

/// What a worker is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    Stream,
    SharedMemory,
    /// Nothing else: it is asked nothing.
    Lines,
}

/// What reading gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerReadOutcome {
    /// So many bytes.
    Bytes(usize),
    /// None for now.
    Nothing,
    /// Descriptors came that there is no place for: which are which is not known any more.
    Lost,
    /// The worker has closed it.
    Closed {
        /// What was sent last was not read.
        is_unread: bool,
    },
}

impl WorkerWire {
    /// What is offered, until the worker has chosen.
    pub(super) fn offer(&self) -> Offer {
        match self {
            WorkerWire::Messages(messages) => messages.offer(),
            WorkerWire::Lines(_) => Offer::Lines,
        }
    }

    /// The shared memory that messages travel through.
    pub(super) fn shared(&mut self) -> Option<&mut SharedMemoryWire> {
        match self {
            WorkerWire::Messages(messages) => messages.shared(),
            WorkerWire::Lines(_) => None,
        }
    }

    /// Puts a request on its way.
    ///
    /// # Errors
    /// It cannot be told in lines.
    pub(super) fn hand(&mut self, head: MessageHead, block: &[u8]) -> Result<(), ResidentFailure> {
        match self {
            WorkerWire::Messages(messages) => messages.push(head, block),
            WorkerWire::Lines(lines) => lines.hand(block)?,
        }
        Ok(())
    }

    /// Puts another message on its way; it leaves with the next [`WorkerWire::flush`].
    pub(super) fn push(&mut self, head: MessageHead, payload: &[u8]) {
        match self {
            WorkerWire::Messages(messages) => messages.push(head, payload),
            WorkerWire::Lines(lines) => lines.push(head.kind, payload),
        }
    }

    /// Bytes of a request's body that may be sent before the worker has said that it wants more.
    pub(super) fn body_window_bytes(&self) -> usize {
        match self {
            WorkerWire::Messages(_) => BODY_WINDOW_BYTES as usize,
            // Its pipe says when it is full.
            WorkerWire::Lines(_) => usize::MAX,
        }
    }

    /// Bytes that have not left.
    pub(super) fn waiting_bytes(&self) -> usize {
        match self {
            WorkerWire::Messages(messages) => messages.waiting_bytes(),
            WorkerWire::Lines(lines) => lines.waiting_bytes(),
        }
    }

    /// Sends what there is room for.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        match self {
            WorkerWire::Messages(messages) => messages.flush(cx),
            WorkerWire::Lines(lines) => lines.flush(cx),
        }
    }

    /// The descriptor of a file whose turn it is.
    ///
    /// # Errors
    /// What the worker did wrong: there is none.
    pub(super) fn take_file(&mut self) -> Result<OwnedFd, &'static str> {
        match self {
            WorkerWire::Messages(messages) => messages.take_file(),
            WorkerWire::Lines(_) => Err("lines have no descriptors"),
        }
    }

    /// The worker's process has ended: what it wrote is there, whether or not that was told.
    pub(super) fn look_again(&mut self) {
        match self {
            WorkerWire::Messages(messages) => messages.look_again(),
            WorkerWire::Lines(lines) => lines.look_again(),
        }
    }

    /// Whether what was sent last was not read, as far as that can still be told.
    pub(super) fn is_unread(&self) -> bool {
        match self {
            WorkerWire::Messages(_) => false,
            WorkerWire::Lines(lines) => lines.is_unread(),
        }
    }

    /// Nothing more will be said: the worker is to see an end.
    pub(super) fn hang_up(&mut self) {
        match self {
            // It sees the end of the socket with that of its driver.
            WorkerWire::Messages(_) => {}
            WorkerWire::Lines(lines) => lines.hang_up(),
        }
    }
}

impl Messages {
    /// # Errors
    /// No descriptors, or no memory to share.
    pub(super) fn new(
        reactor: &Reactor,
        socket: OwnedFd,
        offer: Offer,
        sizes: Sizes,
    ) -> io::Result<Messages> {
        let socket = reactor.watch(socket)?;
        // Nobody has written yet: the first look would be in vain.
        socket.clear_readable();
        let (shared, gifts) = match offer {
            Offer::Stream | Offer::Lines => (None, None),
            Offer::SharedMemory => {
                let (shared, gifts) = SharedMemoryWire::new(reactor, sizes)?;
                (Some(shared), Some(gifts))
            }
        };
        Ok(Messages {
            socket,
            decoder: MessageDecoder::new(MessageSender::Worker),
            out: Vec::new(),
            out_from: 0,
            is_broken: false,
            gifts,
            shared,
            is_shared: false,
            files: None,
        })
    }

    pub(super) fn offer(&self) -> Offer {
        match self.shared {
            Some(_) => Offer::SharedMemory,
            None => Offer::Stream,
        }
    }

    /// The worker has chosen.
    pub(super) fn choose(&mut self, offer: Offer) {
        match offer {
            Offer::Stream | Offer::Lines => self.shared = None,
            Offer::SharedMemory => self.is_shared = true,
        }
    }

    /// The shared memory that messages travel through.
    pub(super) fn shared(&mut self) -> Option<&mut SharedMemoryWire> {
        self.shared.as_mut().filter(|_| self.is_shared)
    }

    fn push(&mut self, head: MessageHead, payload: &[u8]) {
        match self.shared() {
            Some(shared) => shared.push(head, payload),
            None => stream::append(&mut self.out, head, &[payload]),
        }
    }

    fn waiting_bytes(&self) -> usize {
        let shared = self
            .shared
            .as_ref()
            .map_or(0, SharedMemoryWire::waiting_bytes);
        self.out.len() - self.out_from + shared
    }

    /// Sends what the socket takes. A socket that is gone shows when it is read.
    fn flush(&mut self, cx: &mut Context<'_>) {
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
    pub(super) fn fill(&mut self, cx: &mut Context<'_>) -> WorkerReadOutcome {
        if self.socket.poll_readable(cx).is_pending() {
            return WorkerReadOutcome::Nothing;
        }
        let room = self.decoder.space().len();
        let files_before = self.files_ahead();
        match self.poll_read(cx) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::QuotaExceeded => {
                WorkerReadOutcome::Lost
            }
            // In shared memory the slots say what was not started.
            Poll::Ready(Ok(0)) => WorkerReadOutcome::Closed {
                is_unread: !self.is_shared && (self.is_broken || self.waiting_bytes() > 0),
            },
            Poll::Ready(Ok(count)) => {
                self.decoder.filled(count);
                // Fewer bytes than there was room for: what comes later gives a new event. A read
                // that brings descriptors ends with their bytes, though more be there (unix(7)).
                let is_short = count < room && self.files_ahead() == files_before;
                if is_short && !self.socket.is_hung_up() {
                    self.socket.clear_readable();
                }
                WorkerReadOutcome::Bytes(count)
            }
            // Whoever closes with something unread resets.
            Poll::Ready(Err(error)) => WorkerReadOutcome::Closed {
                is_unread: !self.is_shared && error.kind() == io::ErrorKind::ConnectionReset,
            },
            Poll::Pending => WorkerReadOutcome::Nothing,
        }
    }

    /// Descriptors that came and were not taken.
    fn files_ahead(&self) -> usize {
        self.files.as_ref().map_or(0, VecDeque::len)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.files.is_none() {
            return self.socket.poll_read(cx, self.decoder.space());
        }
        while self.socket.poll_readable(cx).is_ready() {
            match self.receive() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.clear_readable();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Poll::Ready(result),
            }
        }
        Poll::Pending
    }

    /// Reads once, descriptors too.
    fn receive(&mut self) -> io::Result<usize> {
        let received = file::receive(self.socket.fd(), self.decoder.space())?;
        if let Some(files) = &mut self.files {
            files.extend(received.files);
            if received.is_cut || files.len() > FILES_AHEAD_MAX {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
        }
        Ok(received.count)
    }

    /// The worker has said that it passes descriptors.
    pub(super) fn expect_files(&mut self) {
        self.files.get_or_insert_default();
    }

    fn take_file(&mut self) -> Result<OwnedFd, &'static str> {
        if self.is_shared && self.files.as_ref().is_some_and(VecDeque::is_empty) {
            // It was sent before the message in the ring, so it is there.
            let count = match self.receive() {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(_) => return Err(FILES_LOST),
            };
            self.decoder.filled(count);
            while let Ok(Some(_)) = self.decoder.next_message() {}
        }
        let next = self.files.as_mut().and_then(VecDeque::pop_front);
        next.ok_or("it named a file without its descriptor")
    }

    fn look_again(&self) {
        self.socket.mark_readable();
    }

    /// What was read.
    pub(super) fn decoder(&mut self) -> &mut MessageDecoder {
        &mut self.decoder
    }
}

/// Why descriptors are no longer believed.
pub(super) const FILES_LOST: &str =
    "descriptors it passed were lost: more than may be, or than the server may have open";

/// Memory that is kept for what is sent next.
const KEPT_BYTES_MAX: usize = 64 * 1024;
