//! A connection to the server: who waits for what, and the messages between.
//!
//! Any number of threads call at the same time. Messages are taken in under one lock, by whichever
//! thread needs one; see `wait` for how threads sleep.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, OnceLock};

use hob_ipc::hello::Hello;
use hob_ipc::limits::PAYLOAD_BYTES_MAX;
use hob_ipc::message::{Carrier, MessageHead, MessageKind};
use hob_ipc::request::OwnedBlock;
use hob_ipc::shm::{Room, WorkerEnd};

use crate::failure::CallFailure;
use crate::link::CarrierLink;
use crate::wait::Locked;

/// Buffers kept for the next requests, three each.
const SPARE_MAX: usize = 24;

/// A connection.
#[derive(Debug)]
pub(crate) struct HobConnection {
    pub(crate) hello: Hello,
    pub(crate) carrier: Carrier,
    /// Bytes of an answer that one message carries.
    pub(crate) piece_bytes_max: usize,
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) inner: Mutex<HobConnectionState>,
    /// Threads that wait for a request.
    pub(crate) arrivals: Condvar,
    /// Threads that wait for anything else.
    pub(crate) changes: Condvar,
    /// For event loops, made when first asked for.
    pub(crate) readiness: OnceLock<OwnedFd>,
}

/// What the lock protects.
#[derive(Debug)]
pub(crate) struct HobConnectionState {
    pub(crate) link: CarrierLink,
    /// In the order of their numbers.
    active: Vec<Active>,
    pub(crate) pending: VecDeque<Pending>,
    spare: Vec<Vec<u8>>,
    replies: Vec<(u16, Option<Vec<u8>>)>,
    serial: u16,
    pub(crate) is_draining: bool,
    pub(crate) failure: Option<CallFailure>,
    /// A thread sleeps for all, in the kernel.
    pub(crate) is_pumped: bool,
    /// The bell was left on for a program's own `poll`.
    pub(crate) is_armed: bool,
    /// How often in a row a call did not wait and found that nobody had rung.
    pub(crate) in_vain: u32,
    /// How many messages were taken in, and how many of them a look has told of.
    pub(crate) taken_in: u64,
    pub(crate) looked_at: u64,
    /// Requests to which something has come since the program was told so, each once.
    changed: Vec<u32>,
    /// Since then a request has come, or the word that none will.
    has_arrivals: bool,
    /// Room that a write that did not wait has not found.
    pub(crate) wanted: Option<Room>,
    pub(crate) arrivals_waiting: usize,
    pub(crate) changes_waiting: usize,
    /// Room that sleeping threads want.
    pub(crate) rooms: Vec<Room>,
}

/// A request that was begun.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) id: u32,
    pub(crate) body: VecDeque<Vec<u8>>,
    pub(crate) is_body_over: bool,
    /// So many bytes of data may be sent.
    pub(crate) credit: u64,
    pub(crate) is_cancelled: bool,
    /// It is among those that have changed.
    is_changed: bool,
}

/// A request that has come and was not begun.
#[derive(Debug)]
pub(crate) struct Pending {
    head: MessageHead,
    block: Vec<u8>,
    body: VecDeque<Vec<u8>>,
    is_body_over: bool,
    is_cancelled: bool,
}

/// What accepting gives.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// Its number and variables, and whether it came with nothing to follow.
    Request(u32, OwnedBlock, bool),
    NoMore,
}

impl HobConnection {
    pub(crate) fn new(hello: Hello, link: CarrierLink) -> HobConnection {
        HobConnection {
            piece_bytes_max: piece_bytes_max(&hello, &link),
            hello,
            carrier: link.carrier(),
            socket: link.socket.clone(),
            inner: Mutex::new(HobConnectionState {
                link,
                active: Vec::new(),
                pending: VecDeque::new(),
                spare: Vec::new(),
                replies: Vec::new(),
                serial: 0,
                is_draining: false,
                failure: None,
                is_pumped: false,
                is_armed: false,
                in_vain: 0,
                taken_in: 0,
                looked_at: 0,
                changed: Vec::new(),
                has_arrivals: false,
                wanted: None,
                arrivals_waiting: 0,
                changes_waiting: 0,
                rooms: Vec::new(),
            }),
            arrivals: Condvar::new(),
            changes: Condvar::new(),
            readiness: OnceLock::new(),
        }
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) -> Locked<'_> {
        Locked::new(self)
    }
}

/// No longer than the window, or it could never leave, and than what it travels in.
fn piece_bytes_max(hello: &Hello, link: &CarrierLink) -> usize {
    let chunk_bytes = link.shm.as_ref().map(WorkerEnd::chunk_bytes);
    PAYLOAD_BYTES_MAX
        .min(hello.data_window_bytes as usize)
        .min(chunk_bytes.unwrap_or(PAYLOAD_BYTES_MAX))
}

impl HobConnectionState {
    /// Takes one message that is here in; false when there is none.
    pub(crate) fn take_in(&mut self) -> Result<bool, CallFailure> {
        let Some(head) = self.link.take()? else {
            return Ok(false);
        };
        self.taken_in += 1;
        match head.kind {
            MessageKind::Request => self.arrive(head),
            MessageKind::Body => self.take_body(head),
            MessageKind::Cancel => self.cancel(head.request)?,
            MessageKind::Window => {
                if let Some(active) = self.changed_request(head.request) {
                    active.credit = active.credit.saturating_add(head.large.into());
                }
            }
            MessageKind::Reply => self.take_reply(head.small),
            MessageKind::Drain => {
                self.is_draining = true;
                self.has_arrivals = true;
            }
            _ => return Err(CallFailure::Broken),
        }
        Ok(true)
    }

    /// The numbers of requests to which something has come since the last call, as many as there
    /// is room for; 0 stands for requests to be begun, and for the end of them. How many.
    pub(crate) fn take_changed(&mut self, numbers: &mut [u32]) -> usize {
        let mut count = 0;
        for place in numbers.iter_mut() {
            *place = if std::mem::take(&mut self.has_arrivals) {
                0
            } else if let Some(id) = self.changed.pop() {
                if let Some(active) = self.request(id) {
                    active.is_changed = false;
                }
                id
            } else {
                break;
            };
            count += 1;
        }
        count
    }

    /// The request of that number, if it is still going on, to which something has come.
    fn changed_request(&mut self, id: u32) -> Option<&mut Active> {
        let index = self.index_of(id)?;
        let active = &mut self.active[index];
        if !std::mem::replace(&mut active.is_changed, true) {
            self.changed.push(id);
        }
        Some(active)
    }

    fn arrive(&mut self, head: MessageHead) {
        let empty = self.buffer();
        let block = std::mem::replace(&mut self.link.payload, empty);
        self.pending.push_back(Pending {
            head,
            block,
            body: VecDeque::new(),
            is_body_over: head.is_last(),
            is_cancelled: false,
        });
        self.has_arrivals = true;
    }

    fn take_body(&mut self, head: MessageHead) {
        let request = head.request;
        let payload = std::mem::take(&mut self.link.payload);
        if let Some(active) = self.changed_request(request) {
            active.is_body_over |= head.is_last();
            if !payload.is_empty() {
                active.body.push_back(payload);
            }
            return;
        }
        // Else it is of a request that is over.
        if let Some(pending) = self.pending.iter_mut().find(|p| p.head.request == request) {
            pending.is_body_over |= head.is_last();
            if !payload.is_empty() {
                pending.body.push_back(payload);
            }
        }
    }

    fn cancel(&mut self, request: u32) -> Result<(), CallFailure> {
        if let Some(active) = self.changed_request(request) {
            active.is_cancelled = true;
            return Ok(());
        }
        let Some(place) = self.pending.iter().position(|p| p.head.request == request) else {
            return Ok(());
        };
        let end = Room {
            payload_bytes: 0,
            chunk: false,
        };
        if !self.link.has_room(end) {
            // The program is told when it comes to it.
            self.pending[place].is_cancelled = true;
            return Ok(());
        }
        // Not begun: over at once. In shared memory the server may have taken it back.
        if let Some(pending) = self.pending.remove(place)
            && self.link.start(&pending.head)
        {
            let _ = self
                .link
                .push(MessageHead::new(MessageKind::End, request), &[])?;
            self.link.flush()?;
        }
        Ok(())
    }

    fn take_reply(&mut self, serial: u16) {
        if let Some(reply) = self.replies.iter_mut().find(|reply| reply.0 == serial) {
            reply.1 = Some(std::mem::take(&mut self.link.payload));
        }
    }

    /// Begins the next request, if one is here.
    pub(crate) fn begin(&mut self, credit: u32) -> Option<Result<Accepted, CallFailure>> {
        while let Some(pending) = self.pending.pop_front() {
            if !self.link.start(&pending.head) {
                self.keep(pending.block);
                continue;
            }
            let (id, is_without_body) = (pending.head.request, pending.head.is_last());
            let active = Active {
                id,
                body: pending.body,
                is_body_over: pending.is_body_over,
                credit: credit.into(),
                is_cancelled: pending.is_cancelled,
                is_changed: false,
            };
            // Numbers rise, until they begin anew.
            let place = self.active.partition_point(|other| other.id < id);
            self.active.insert(place, active);
            let block = OwnedBlock::check(pending.block).map_err(CallFailure::from);
            let accepted = |block| Accepted::Request(id, block, is_without_body);
            return Some(block.map(accepted));
        }
        self.is_draining.then_some(Ok(Accepted::NoMore))
    }

    /// The request of that number, if it is still going on.
    pub(crate) fn request(&mut self, id: u32) -> Option<&mut Active> {
        self.index_of(id).map(|index| &mut self.active[index])
    }

    fn index_of(&self, id: u32) -> Option<usize> {
        self.active
            .binary_search_by_key(&id, |active| active.id)
            .ok()
    }

    /// How many bytes of an answer could leave now, besides those that have been collected, in
    /// messages that take that room.
    pub(crate) fn may_send(
        &mut self,
        id: u32,
        unsent: usize,
        room: Room,
    ) -> Result<usize, CallFailure> {
        let active = self.request(id).ok_or(CallFailure::Misuse)?;
        if active.is_cancelled {
            return Err(CallFailure::Cancelled);
        }
        let credit = active.credit.saturating_sub(unsent as u64);
        if credit > 0 && !self.link.has_room(room) {
            self.wanted = Some(room);
            return Ok(0);
        }
        Ok(usize::try_from(credit).unwrap_or(usize::MAX))
    }

    /// The request is over for this side.
    pub(crate) fn end(&mut self, id: u32) {
        if let Some(index) = self.index_of(id)
            && self.active.remove(index).is_changed
        {
            self.changed.retain(|changed| *changed != id);
        }
    }

    /// An empty buffer, one that was used before if there is one.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(crate) fn keep(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && buffer.capacity() > 0 {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// A number for a callout whose reply is waited for.
    pub(crate) fn expect_reply(&mut self) -> u16 {
        self.serial = self.next_serial();
        self.replies.push((self.serial, None));
        self.serial
    }

    /// The reply, if it has come.
    pub(crate) fn reply(&mut self, serial: u16) -> Option<Vec<u8>> {
        let place = self.replies.iter().position(|reply| reply.0 == serial)?;
        let reply = self.replies[place].1.take()?;
        self.replies.swap_remove(place);
        Some(reply)
    }

    /// Nobody waits for that reply any more.
    pub(crate) fn forget_reply(&mut self, serial: u16) {
        self.replies.retain(|reply| reply.0 != serial);
    }

    fn next_serial(&self) -> u16 {
        let mut serial = self.serial;
        loop {
            serial = serial.wrapping_add(1);
            if self.replies.iter().all(|reply| reply.0 != serial) {
                return serial;
            }
        }
    }
}
