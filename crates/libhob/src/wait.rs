//! Waiting for the server, with any number of threads.
//!
//! One thread at a time sleeps in the kernel for all (`is_pumped`); the others wait on condition
//! variables. Whoever takes a message in tells those it may concern, and a thread that stops
//! sleeping for all passes that on. In shared memory a thread first sleeps on a word, which is the
//! cheapest to wake; if nothing came for a while it sleeps in `poll`, where it also sees the
//! server's end.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hob_ipc::file::FileRange;
use hob_ipc::limits::FILE_BYTES;
use hob_ipc::message::MessageHead;
use hob_ipc::shm::{How, RingFull, Room, Sleeper, WorkerChunk};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::RecvFlags;

use crate::connection::{HobConnection, HobConnectionState};
use crate::failure::CallFailure;
use crate::link::{self, ReadAmount};

/// How long a thread sleeps on a word before it sleeps in `poll`.
const ON_WORD_MAX: Duration = Duration::from_millis(100);

/// A polling program calls once or twice before it polls; more calls in vain are one too many.
const IN_VAIN_MAX: u32 = 2;

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// For ever.
    Ever,
    /// Not at all.
    Now,
    /// Until then.
    At(Instant),
}

impl Until {
    /// So many milliseconds from now; below zero is for ever.
    pub(crate) fn after_ms(ms: i64) -> Until {
        match u64::try_from(ms) {
            Err(_) => Until::Ever,
            Ok(0) => Until::Now,
            Ok(ms) => Instant::now()
                .checked_add(Duration::from_millis(ms))
                .map_or(Until::Ever, Until::At),
        }
    }

    fn left(self) -> Option<Duration> {
        match self {
            Until::Ever => None,
            Until::Now => Some(Duration::ZERO),
            Until::At(end) => Some(end.saturating_duration_since(Instant::now())),
        }
    }
}

/// The connection's lock, held, except while its thread sleeps.
pub(crate) struct Locked<'a> {
    connection: &'a HobConnection,
    guard: Option<MutexGuard<'a, HobConnectionState>>,
}

impl<'a> Locked<'a> {
    pub(crate) fn new(connection: &'a HobConnection) -> Locked<'a> {
        let guard = connection.inner.lock();
        Locked {
            connection,
            guard: Some(guard.unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// What the lock protects.
    pub(crate) fn inner(&mut self) -> &mut HobConnectionState {
        self.guard
            .as_mut()
            .expect("only `sleep` gives the lock away, and takes it again")
    }

    /// Writes a message, waiting for room if it must.
    pub(crate) fn push(&mut self, head: MessageHead, payload: &[&[u8]]) -> Result<(), CallFailure> {
        loop {
            if let Some(failure) = self.inner().failure {
                return Err(failure);
            }
            match self.inner().link.push(head, payload)? {
                Ok(()) => return Ok(()),
                Err(RingFull) => {
                    let payload_bytes = payload.iter().map(|piece| piece.len()).sum();
                    let room = Room {
                        payload_bytes,
                        chunk: false,
                    };
                    self.wait_for_room(room)?;
                }
            }
        }
    }

    /// Sends a chunk, waiting for room if it must.
    pub(crate) fn push_chunk(
        &mut self,
        request: u32,
        flags: u8,
        mut taken: WorkerChunk,
        bytes: usize,
    ) -> Result<(), CallFailure> {
        loop {
            match self.inner().link.push_chunk(request, flags, taken, bytes) {
                Ok(()) => return Ok(()),
                Err(None) => return Err(CallFailure::Misuse),
                Err(Some(back)) => taken = back,
            }
            let room = Room {
                payload_bytes: 8,
                chunk: false,
            };
            self.wait_for_room(room)?;
        }
    }

    /// Sends bytes of a file by its descriptor, waiting for room if it must.
    pub(crate) fn push_file(
        &mut self,
        head: MessageHead,
        range: FileRange,
        file: BorrowedFd<'_>,
    ) -> Result<(), CallFailure> {
        let room = Room {
            payload_bytes: FILE_BYTES,
            chunk: false,
        };
        while !self.inner().link.has_room(room) {
            self.wait_for_room(room)?;
        }
        // The lock is held from here on: descriptors keep the order of their messages.
        self.inner().link.push_file(head, range, file)
    }

    /// Waits until there is such room.
    pub(crate) fn wait_for_room(&mut self, room: Room) -> Result<(), CallFailure> {
        self.wait(Until::Ever, Some(room), WaitKind::Change, |inner| {
            inner.link.has_room(room).then_some(())
        })
    }

    /// Shows the server everything that was written.
    pub(crate) fn flush(&mut self) -> Result<(), CallFailure> {
        self.inner().link.flush()
    }

    /// Waits until `ready` finds what it looks for, taking messages in meanwhile.
    pub(crate) fn wait<T>(
        &mut self,
        until: Until,
        room: Option<Room>,
        kind: WaitKind,
        mut ready: impl FnMut(&mut HobConnectionState) -> Option<T>,
    ) -> Result<T, CallFailure> {
        self.disarm();
        let mut how = How::OnWord;
        loop {
            if let Some(found) = self.look(kind, &mut ready)? {
                return Ok(found);
            }
            self.flush()?;
            let left = until.left();
            if left == Some(Duration::ZERO) {
                if matches!(until, Until::Now) && self.look_once_more(None)? {
                    continue;
                }
                self.tell_others(kind);
                return Err(self.why_nothing_came());
            }
            if self.inner().is_pumped {
                self.wait_for_others(kind, room, left);
                continue;
            }
            let was_woken = self.sleep(how, room, left)?;
            how = match how {
                How::OnWord if !was_woken => How::OnBell,
                how => how,
            };
        }
    }

    /// Takes in all that has come, for requests that wait for something. [`CallFailure::Again`]
    /// when nothing has; then the bell is on, and rings too when there is room that was wanted.
    pub(crate) fn take_news(&mut self) -> Result<(), CallFailure> {
        self.disarm();
        self.flush()?;
        for _ in 0..2 {
            while self.take_one_in()? {
                self.tell_of_message(WaitKind::Change);
            }
            // Also what another call has taken in meanwhile.
            let inner = self.inner();
            if std::mem::replace(&mut inner.looked_at, inner.taken_in) != inner.taken_in {
                return Ok(());
            }
            let wanted = inner.wanted;
            if !self.look_once_more(wanted)? {
                return Err(self.why_nothing_came());
            }
        }
        // It was room, or a part of a message.
        self.inner().wanted = None;
        Ok(())
    }

    fn take_one_in(&mut self) -> Result<bool, CallFailure> {
        let inner = self.inner();
        if let Some(failure) = inner.failure {
            return Err(failure);
        }
        let taken = inner.take_in();
        if let Err(failure) = taken {
            inner.failure = Some(failure);
            self.tell_all();
        }
        taken
    }

    /// Takes in all that is here, without waiting.
    pub(crate) fn take_in_all(&mut self) -> Result<(), CallFailure> {
        let inner = self.inner();
        // Not from a stream that the program polls: it would not see what was taken in.
        if inner.link.shm.is_none() && !inner.is_armed && !inner.is_pumped {
            inner.link.fill()?;
        }
        while self.inner().take_in()? {
            self.tell_of_message(WaitKind::Change);
        }
        Ok(())
    }

    /// Takes in what is here, until `ready` finds what it looks for.
    fn look<T>(
        &mut self,
        kind: WaitKind,
        ready: &mut impl FnMut(&mut HobConnectionState) -> Option<T>,
    ) -> Result<Option<T>, CallFailure> {
        loop {
            if let Some(found) = ready(self.inner()) {
                self.tell_others(kind);
                return Ok(Some(found));
            }
            if let Some(failure) = self.inner().failure {
                self.tell_all();
                return Err(failure);
            }
            match self.inner().take_in() {
                Ok(true) => self.tell_of_message(kind),
                Ok(false) => return Ok(None),
                Err(failure) => self.inner().failure = Some(failure),
            }
        }
    }

    /// For a call that does not wait: reads the stream, or leaves the bell on. True when something
    /// is there after all.
    fn look_once_more(&mut self, room: Option<Room>) -> Result<bool, CallFailure> {
        let inner = self.inner();
        if inner.is_pumped {
            return Ok(false);
        }
        if let Some(end) = &mut inner.link.shm {
            let may_sleep = end.fall_asleep(How::OnBell, room.as_slice());
            inner.is_armed = may_sleep;
            if !may_sleep {
                end.sleeper().wake_up();
            }
            return Ok(!may_sleep);
        }
        inner.is_armed = true;
        inner.link.fill()
    }

    /// Nothing came in the time given: perhaps nothing ever will. A program that polls asks again
    /// and again: the socket is looked at when that was in vain.
    fn why_nothing_came(&mut self) -> CallFailure {
        let inner = self.inner();
        let may_have_ended = !inner.is_armed || inner.in_vain >= IN_VAIN_MAX;
        if inner.link.shm.is_some() && may_have_ended && has_ended(&self.connection.socket) {
            self.inner().failure = Some(CallFailure::Gone);
            self.tell_all();
            return CallFailure::Gone;
        }
        CallFailure::Again
    }

    /// Takes the bell off again that a call that did not wait has left on.
    fn disarm(&mut self) {
        let inner = self.inner();
        if !std::mem::take(&mut inner.is_armed) {
            return;
        }
        inner.in_vain += 1;
        if let Some(end) = &inner.link.shm {
            let sleeper = end.sleeper();
            // Who was not woken has no bell to quiet.
            if sleeper.wake_up() {
                inner.in_vain = 0;
                sleeper.quiet_bell();
            }
        }
    }

    /// Another thread sleeps in the kernel: waits until it tells.
    fn wait_for_others(&mut self, kind: WaitKind, room: Option<Room>, left: Option<Duration>) {
        if let Some(room) = room {
            let inner = self.inner();
            if let Some(end) = &mut inner.link.shm
                && !end.want_room(room)
            {
                return;
            }
            inner.rooms.push(room);
        }
        *kind.waiting(self.inner()) += 1;
        let condvar = kind.condvar(self.connection);
        let guard = self.guard.take().expect("held outside of `sleep`");
        let guard = match left {
            None => condvar.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Some(left) => {
                let woken = condvar.wait_timeout(guard, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        self.guard = Some(guard);
        *kind.waiting(self.inner()) -= 1;
        if let Some(room) = room {
            let rooms = &mut self.inner().rooms;
            if let Some(place) = rooms.iter().position(|wanted| *wanted == room) {
                rooms.swap_remove(place);
            }
        }
    }

    /// Sleeps in the kernel for all; false when nothing woke it.
    fn sleep(
        &mut self,
        how: How,
        room: Option<Room>,
        left: Option<Duration>,
    ) -> Result<bool, CallFailure> {
        let mut rooms = self.inner().rooms.clone();
        rooms.extend(room);
        let socket = self.connection.socket.clone();
        let inner = self.inner();
        let result = if let Some(end) = &mut inner.link.shm {
            if !end.fall_asleep(how, &rooms) {
                // Perhaps it is room for another thread, which needs the lock to use it.
                self.yield_lock();
                return Ok(true);
            }
            let sleeper = end.sleeper();
            inner.is_pumped = true;
            self.guard = None;
            let result = match how {
                How::OnWord => {
                    sleeper.wait(&rooms, left.unwrap_or(ON_WORD_MAX).min(ON_WORD_MAX));
                    Ok(())
                }
                How::OnBell => poll(&socket, Some(&sleeper), left),
            };
            self.lock_again();
            let was_woken = sleeper.wake_up();
            if how == How::OnBell {
                sleeper.quiet_bell();
            }
            result.map(|()| was_woken)
        } else {
            let mut decoder = std::mem::replace(&mut inner.link.decoder, link::decoder());
            let is_flowing = inner.link.is_flowing;
            inner.is_pumped = true;
            self.guard = None;
            // Who sleeps in `recv` is also woken when the server has read what was sent to it; who
            // polls for input is not.
            let polled = match is_flowing {
                true => Ok(()),
                false => poll(&socket, None, left),
            };
            let flags = RecvFlags::DONTWAIT;
            let result = polled.and_then(|()| link::receive(&socket, &mut decoder, flags));
            self.lock_again();
            let link = &mut self.inner().link;
            link.decoder = decoder;
            link.is_flowing = result == Ok(ReadAmount::Full);
            result.map(|filled| filled != ReadAmount::Nothing)
        };
        if let Err(failure) = result {
            self.inner().failure.get_or_insert(failure);
        }
        Ok(result.unwrap_or(true))
    }

    fn lock_again(&mut self) {
        let guard = self.connection.inner.lock();
        self.guard = Some(guard.unwrap_or_else(PoisonError::into_inner));
        self.inner().is_pumped = false;
    }

    fn yield_lock(&mut self) {
        if self.inner().changes_waiting == 0 {
            return;
        }
        self.tell_changes();
        self.guard = None;
        std::thread::yield_now();
        let guard = self.connection.inner.lock();
        self.guard = Some(guard.unwrap_or_else(PoisonError::into_inner));
    }

    fn tell_changes(&mut self) {
        if self.inner().changes_waiting > 0 {
            self.connection.changes.notify_all();
        }
    }

    /// A message was taken in. If it is a request, a thread that waits for one takes it itself.
    fn tell_of_message(&mut self, kind: WaitKind) {
        self.tell_changes();
        let inner = self.inner();
        let has_request = !inner.pending.is_empty() || inner.is_draining;
        if kind != WaitKind::Arrival && has_request && inner.arrivals_waiting > 0 {
            self.connection.arrivals.notify_one();
        }
    }

    /// This thread has what it wanted, or waits no longer: another goes on in its place.
    fn tell_others(&mut self, kind: WaitKind) {
        self.tell_changes();
        let inner = self.inner();
        let has_more = !inner.pending.is_empty() || inner.is_draining;
        let may_rest = kind == WaitKind::Change && !has_more && inner.changes_waiting > 0;
        if inner.arrivals_waiting > 0 && !may_rest {
            if inner.is_draining {
                self.connection.arrivals.notify_all();
            } else {
                self.connection.arrivals.notify_one();
            }
        }
    }

    fn tell_all(&mut self) {
        let inner = self.inner();
        let (arrivals, changes) = (inner.arrivals_waiting, inner.changes_waiting);
        if arrivals > 0 {
            self.connection.arrivals.notify_all();
        }
        if changes > 0 {
            self.connection.changes.notify_all();
        }
    }
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    /// A request.
    Arrival,
    /// Anything else.
    Change,
}

impl WaitKind {
    fn condvar(self, connection: &HobConnection) -> &Condvar {
        match self {
            WaitKind::Arrival => &connection.arrivals,
            WaitKind::Change => &connection.changes,
        }
    }

    fn waiting(self, inner: &mut HobConnectionState) -> &mut usize {
        match self {
            WaitKind::Arrival => &mut inner.arrivals_waiting,
            WaitKind::Change => &mut inner.changes_waiting,
        }
    }
}

/// In shared memory nothing comes over the socket any more but its end.
fn has_ended(socket: &OwnedFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !matches!(
        rustix::net::recv(socket, &mut [0; 1], flags),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)
    )
}

/// Sleeps until the socket or the bell has something.
fn poll(
    socket: &OwnedFd,
    sleeper: Option<&Sleeper>,
    left: Option<Duration>,
) -> Result<(), CallFailure> {
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    let mut fds = vec![PollFd::new(socket, PollFlags::IN)];
    let bell = sleeper.map(Sleeper::bell);
    fds.extend(bell.as_ref().map(|bell| PollFd::new(bell, PollFlags::IN)));
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    if sleeper.is_some() && !fds[0].revents().is_empty() {
        return Err(CallFailure::Gone);
    }
    Ok(())
}
