//! Shared memory beside a worker's socket: how a driver reads, writes, wakes and is woken.
//!
//! ```text
//!  offered with hello --> chosen by the worker: messages travel through the region
//!        '--> not chosen: given up
//!  busy (requests under way): the thread looks into the ring in each turn, and asks to be woken
//!                             only before it waits
//!  idle: to be woken by the bell, and not looked into
//! ```
//!
//! The socket stays: its end is the end of the worker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Waker};

use hob_http::{Reactor, Standby, StandbyGuard, Watched};
use hob_ipc::limits::HEAD_BYTES;
use hob_ipc::message::{MessageHead, MessageKind};
use hob_ipc::shm::region::Sizes;
use hob_ipc::shm::{Counters, Gifts, RingFull, ServerEnd, SlotRef};
use hob_trace::metric::ThreadCounters;

/// Messages and requests through shared memory.
pub(super) struct SharedMemoryWire {
    reactor: Reactor,
    queue: Rc<Queue>,
    bell: Watched,
    standby: Option<StandbyGuard>,
    /// It was said whether requests are under way; until then the worker takes it that they are,
    /// and rings for nothing.
    is_settled: bool,
    /// Requests in the worker's hands, by their numbers, in the order they were handed over.
    slots: Vec<(u32, SlotRef)>,
    /// What the ring had no room for, in order.
    waiting: VecDeque<(MessageHead, Vec<u8>)>,
    waiting_bytes: usize,
    counted: Counters,
}

/// The ring as its thread looks into it.
struct Queue {
    end: RefCell<ServerEnd>,
    driver: RefCell<Option<Waker>>,
    /// How often the worker had been woken when that was last looked at.
    wakes_seen: Cell<u64>,
}

impl Queue {
    fn wake(&self) {
        let driver = self.driver.borrow().clone();
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

impl Standby for Queue {
    fn look(&self) {
        if self.end.borrow().has_news() {
            self.wake();
        }
    }

    fn flush(&self) -> bool {
        let mut end = self.end.borrow_mut();
        end.flush();
        let wakes = end.counters().wakes_sent;
        self.wakes_seen.replace(wakes) != wakes
    }

    fn fall_asleep(&self) -> bool {
        self.end.borrow_mut().fall_asleep()
    }

    fn wake_up(&self) {
        self.end.borrow_mut().wake_up();
    }
}

impl SharedMemoryWire {
    /// A region, and what the worker is to get of it.
    ///
    /// # Errors
    /// No memory, or no descriptors.
    pub(super) fn new(reactor: &Reactor, sizes: Sizes) -> io::Result<(SharedMemoryWire, Gifts)> {
        let (end, gifts) = ServerEnd::create(sizes)?;
        let bell: OwnedFd = end.bell().try_clone_to_owned()?;
        let bell = reactor.watch(bell)?;
        // Nobody has rung.
        bell.clear_readable();
        let shared = SharedMemoryWire {
            reactor: reactor.clone(),
            queue: Rc::new(Queue {
                end: RefCell::new(end),
                driver: RefCell::default(),
                wakes_seen: Cell::default(),
            }),
            bell,
            standby: None,
            is_settled: false,
            slots: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            counted: Counters::default(),
        };
        Ok((shared, gifts))
    }

    /// The driver is woken by the bell from now on. It is never read: each ringing is an event.
    pub(super) fn listen(&self, cx: &mut Context<'_>) {
        while self.bell.poll_readable(cx).is_ready() {
            self.bell.clear_readable();
        }
        let mut driver = self.queue.driver.borrow_mut();
        if !driver
            .as_ref()
            .is_some_and(|driver| driver.will_wake(cx.waker()))
        {
            *driver = Some(cx.waker().clone());
        }
    }

    /// Whether requests are under way. True when the driver has to look once more.
    pub(super) fn set_busy(&mut self, is_busy: bool) -> bool {
        if self.is_settled && is_busy == self.standby.is_some() {
            return false;
        }
        self.is_settled = true;
        if is_busy {
            self.queue.wake_up();
            let queue = Rc::clone(&self.queue);
            self.standby = Some(self.reactor.stand_by(queue));
            return false;
        }
        if self.queue.fall_asleep() {
            self.queue.wake_up();
            return true;
        }
        self.standby = None;
        false
    }

    /// Puts a message on its way.
    pub(super) fn push(&mut self, head: MessageHead, payload: &[u8]) {
        if self.waiting.is_empty() && self.try_push(head, payload).is_ok() {
            return;
        }
        self.waiting_bytes += HEAD_BYTES + payload.len();
        self.waiting.push_back((head, payload.to_vec()));
    }

    fn try_push(&mut self, head: MessageHead, payload: &[u8]) -> Result<(), RingFull> {
        let mut end = self.queue.end.borrow_mut();
        if head.kind != MessageKind::Request {
            return end.push(head, &[payload]);
        }
        let slot = end.hand(head.request, head.flags, payload)?;
        self.slots.push((head.request, slot));
        Ok(())
    }

    /// Bytes the ring had no room for.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Shows the worker what was written, and what waited for room.
    pub(super) fn flush(&mut self) {
        while let Some((head, payload)) = self.waiting.pop_front() {
            if self.try_push(head, &payload).is_err() {
                self.waiting.push_front((head, payload));
                break;
            }
            self.waiting_bytes -= HEAD_BYTES + payload.len();
        }
        self.queue.end.borrow_mut().flush();
    }

    /// Adds what happened since the last time.
    pub(super) fn count(&mut self, counters: &ThreadCounters) {
        let now = self.queue.end.borrow().counters();
        let last = std::mem::replace(&mut self.counted, now);
        for (counter, count) in [
            (&counters.worker_wakes, now.wakes_sent - last.wakes_sent),
            (
                &counters.worker_bells,
                now.wakes_received - last.wakes_received,
            ),
            (&counters.worker_full, now.full - last.full),
        ] {
            if count > 0 {
                counter.add(count);
            }
        }
    }

    /// The worker's messages.
    pub(super) fn end(&self) -> &RefCell<ServerEnd> {
        &self.queue.end
    }

    /// Takes a request back. True: the worker never starts it.
    pub(super) fn take_back(&mut self, number: u32) -> bool {
        let Some(index) = self.slot(number) else {
            let of_it = |(head, _): &(MessageHead, Vec<u8>)| head.request == number;
            let is_there = self
                .waiting
                .iter()
                .any(|one| of_it(one) && one.0.kind == MessageKind::Request);
            if is_there {
                self.waiting.retain(|one| !of_it(one));
                let bytes = self.waiting.iter().map(|one| HEAD_BYTES + one.1.len());
                self.waiting_bytes = bytes.sum();
            }
            return is_there;
        };
        let is_back = self.queue.end.borrow_mut().take_back(self.slots[index].1);
        if is_back {
            self.slots.remove(index);
        }
        is_back
    }

    /// A request is over.
    pub(super) fn release(&mut self, number: u32) {
        if let Some(index) = self.slot(number) {
            let (_, slot) = self.slots.remove(index);
            self.queue.end.borrow_mut().release(slot);
        }
    }

    fn slot(&self, number: u32) -> Option<usize> {
        self.slots.iter().position(|(of, _)| *of == number)
    }
}
