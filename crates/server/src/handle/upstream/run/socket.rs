//! A socket at which a program listens that hob runs, and that nobody but this server reaches: it
//! has no name in any folder. It stays while the program starts again. Processes that are to take
//! the places of others get one of their own; once they are ready, the program's socket leads
//! there, and who is still connected to the one before holds a seat at it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use arc_swap::ArcSwap;
use hob_http::listen::nameless::{NamelessSocket, path_of};
use hob_trace::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketFlags, accept_with};

/// The socket of a program, wherever it leads.
#[derive(Debug)]
pub struct RunSocket {
    /// The program's name, for people.
    name: String,
    current: ArcSwap<RunListener>,
}

/// Where processes listen that were started together.
#[derive(Debug)]
pub(crate) struct RunListener {
    listener: OwnedFd,
    /// Its file, by which it is connected to. It is in no folder any more.
    _file: OwnedFd,
    path: PathBuf,
    /// Nobody connects to it any more.
    is_left: AtomicBool,
    /// Connections to it, and those that are to be.
    seats: AtomicUsize,
    /// Who waits until there is none.
    waiting: Mutex<Vec<Waker>>,
}

/// A connection's place at a listener.
#[derive(Debug)]
pub(crate) struct RunSeat(Arc<RunListener>);

impl RunSeat {
    /// Others have taken the places of those who listen there.
    pub(crate) fn is_left(&self) -> bool {
        self.0.is_left()
    }
}

impl Clone for RunSeat {
    fn clone(&self) -> RunSeat {
        RunSeat::at(&self.0)
    }
}

impl RunSeat {
    fn at(listener: &Arc<RunListener>) -> RunSeat {
        listener.seats.fetch_add(1, Ordering::SeqCst);
        RunSeat(Arc::clone(listener))
    }
}

impl Drop for RunSeat {
    fn drop(&mut self) {
        if self.0.seats.fetch_sub(1, Ordering::SeqCst) == 1 && self.is_left() {
            self.0.wake();
        }
    }
}

/// Each is another one.
impl PartialEq for RunSocket {
    fn eq(&self, other: &RunSocket) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for RunSocket {}

impl RunSocket {
    /// A new one for the program of this name.
    ///
    /// # Errors
    /// There is no folder for it, or no descriptor.
    pub fn new(name: &str) -> io::Result<RunSocket> {
        Ok(RunSocket {
            name: name.to_owned(),
            current: ArcSwap::from(RunListener::new()?),
        })
    }

    /// Where this process finds it now.
    pub(crate) fn path(&self) -> PathBuf {
        self.current.load().path.clone()
    }

    /// What it is called for people.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A place for a connection that is to be made: taken before, it may be where the socket led a
    /// moment ago, but never where it leads only later.
    pub(crate) fn seat(&self) -> RunSeat {
        RunSeat::at(&self.current.load())
    }

    /// Where it leads.
    pub(super) fn current(&self) -> Arc<RunListener> {
        self.current.load_full()
    }

    /// It leads there from now on.
    pub(super) fn lead_to(&self, next: Arc<RunListener>) {
        self.current.swap(next).leave();
    }
}

impl RunListener {
    /// A new one.
    ///
    /// # Errors
    /// There is no folder for it, or no descriptor.
    pub(super) fn new() -> io::Result<Arc<RunListener>> {
        // What runs takes connections from it as it would from one of its own: it waits for them.
        let socket = NamelessSocket::open(SocketFlags::empty())?;
        Ok(Arc::new(RunListener {
            path: path_of(&socket.file),
            listener: socket.listener,
            _file: socket.file,
            is_left: AtomicBool::new(false),
            seats: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }))
    }

    /// Where this process finds it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Nobody connects to it any more.
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst)
    }

    /// Nobody connects to it from now on.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ready when it is left, and no connection to it is there.
    pub(super) fn poll_deserted(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Before it is looked: what changes then wakes this.
        let mut waiting = self.waiting.lock();
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        drop(waiting);
        match self.is_left() && self.seats.load(Ordering::SeqCst) == 0 {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// The end that takes connections.
    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Ends connections that nobody has taken, while no program is there that would.
    pub(super) fn refuse_waiting(&self) {
        // It may not be told to wait for nothing: that would hold for the program too.
        let has_some = || {
            let mut looked = [PollFd::new(&self.listener, PollFlags::IN)];
            poll(&mut looked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        };
        while has_some() && accept_with(&self.listener, SocketFlags::CLOEXEC).is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn nameless_socket_is_reached_and_what_waits_there_can_be_refused() {
        let socket = RunSocket::new("php").unwrap();
        assert_eq!(socket, socket);
        assert_ne!(socket, RunSocket::new("php").unwrap());
        let mut waiting = UnixStream::connect(socket.path()).unwrap();
        socket.current().refuse_waiting();
        assert_eq!(waiting.read(&mut [0; 1]).unwrap(), 0);
    }

    #[test]
    fn listener_is_deserted_when_it_is_left_and_its_last_connection_is_gone() {
        let mut cx = Context::from_waker(Waker::noop());
        let socket = RunSocket::new("php").unwrap();
        let first = socket.current();
        assert!(first.poll_deserted(&mut cx).is_pending());
        let (seat, other) = (socket.seat(), socket.seat().clone());
        socket.lead_to(RunListener::new().unwrap());
        assert!(seat.is_left() && !socket.seat().is_left());
        assert_ne!(socket.path(), first.path());
        drop(seat);
        assert!(first.poll_deserted(&mut cx).is_pending());
        drop(other);
        assert!(first.poll_deserted(&mut cx).is_ready());
        assert!(socket.current().poll_deserted(&mut cx).is_pending());
    }
}
