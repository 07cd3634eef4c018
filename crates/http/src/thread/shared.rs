//! What other threads may touch of a server thread: its mailbox and its counts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use hob_trace::Mutex;
use rustix::event::EventfdFlags;

use crate::acme::Challenges;
use crate::h3::ResetSecret;
use crate::reactor::FilesBeside;
use crate::reactor::wake::Bell;
use crate::thread::accept::Accepted;
use crate::thread::h3::Forwarded;
use crate::thread::run::Thread;

/// All threads of a server, as each of them sees the others.
pub struct Crew {
    /// One for each thread, by its number.
    mailboxes: Vec<Arc<ThreadMailbox>>,
    /// Connections that count towards the limits.
    pub(crate) open: AtomicUsize,
    /// Open files that those need besides.
    pub(crate) files_beside: FilesBeside,
    /// Connections that do not count towards the limits.
    pub(crate) open_aside: AtomicUsize,
    /// The same of clients over TCP.
    pub(crate) open_aside_tcp: AtomicUsize,
    /// TLS handshakes under way.
    pub(crate) handshakes: AtomicUsize,
    /// For the next connection: records name theirs by it.
    pub(crate) next_number: AtomicU64,
    /// Tells this server from the one before it, in the ids of connections over QUIC.
    pub(crate) generation: AtomicU8,
    /// The other servers that live, by their generations: a bit for each.
    living: [AtomicU64; 4],
    /// Of which tokens are made that end connections over QUIC of a server that died.
    reset_secret: OnceLock<ResetSecret>,
    /// Bytes of bodies over HTTP/3 that nobody has read, at most.
    pub(crate) h3_unread_bytes: AtomicUsize,
    /// Connections of each address, where a client may have so many only.
    pub(crate) per_client: Mutex<HashMap<IpAddr, usize>>,
    /// There are challenges: without any, nobody looks behind the lock.
    has_challenges: AtomicBool,
    /// Proofs for a certificate authority.
    challenges: RwLock<Arc<Challenges>>,
}

/// Generations come again after 256; those further back than this are taken for later ones.
const GENERATIONS_BACK_MAX: u8 = 127;

/// One thread's letter box.
pub(crate) struct ThreadMailbox {
    /// `None` once the thread has ended.
    letters: Mutex<Option<Vec<Letter>>>,
    has_mail: AtomicBool,
    is_asleep: AtomicBool,
    bell: OwnedFd,
    /// Connections this thread has, and those on their way to it.
    pub(crate) conn_count: AtomicUsize,
    /// The thread drains and has nothing under way, or has ended.
    is_quiet: AtomicBool,
}

/// What can be sent to a thread. The job's answer type is erased: see [`Handle::run`].
pub(crate) enum Letter {
    Connection(Accepted),
    Datagram(Box<Forwarded>),
    Wake(u64),
    Job(Job),
}

type Job = Box<dyn FnOnce(&mut dyn std::any::Any) + Send>;

/// How a thread drains.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How long running answers may take.
    pub deadline: Duration,
    /// How long idle connections stay open, so that a request on its way still gets its answer.
    pub grace: Duration,
}

impl Crew {
    /// A crew of so many threads.
    pub fn new(thread_count: usize) -> std::io::Result<Arc<Crew>> {
        let mailbox = || {
            Ok(Arc::new(ThreadMailbox {
                letters: Mutex::new(Some(Vec::new())),
                has_mail: AtomicBool::new(false),
                is_asleep: AtomicBool::new(false),
                bell: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
                conn_count: AtomicUsize::new(0),
                is_quiet: AtomicBool::new(false),
            }))
        };
        Ok(Arc::new(Crew {
            mailboxes: (0..thread_count.max(1))
                .map(|_| mailbox())
                .collect::<std::io::Result<_>>()?,
            open: AtomicUsize::new(0),
            files_beside: FilesBeside::default(),
            open_aside: AtomicUsize::new(0),
            open_aside_tcp: AtomicUsize::new(0),
            handshakes: AtomicUsize::new(0),
            next_number: AtomicU64::new(1),
            generation: AtomicU8::new(0),
            living: Default::default(),
            reset_secret: OnceLock::new(),
            h3_unread_bytes: AtomicUsize::new(0),
            per_client: Mutex::default(),
            has_challenges: AtomicBool::new(false),
            challenges: RwLock::default(),
        }))
    }

    /// Tells this server from those before it that may still drain. Set before its threads begin.
    pub fn set_generation(&self, servers_started: u64) {
        self.generation
            .store((servers_started & 0xff) as u8, Ordering::Relaxed);
    }

    /// What ends connections over QUIC that an earlier server had. Set before its threads begin;
    /// else it is one of our own, and ends none.
    pub fn set_resets(&self, secret: ResetSecret, living: &[u8]) {
        let _ = self.reset_secret.set(secret);
        self.set_living(living);
    }

    pub(crate) fn reset_secret(&self) -> &ResetSecret {
        self.reset_secret.get_or_init(ResetSecret::new)
    }

    /// These other servers live: datagrams of their connections are passed on to them.
    pub fn set_living(&self, generations: &[u8]) {
        let mut bits = [0u64; 4];
        for generation in generations {
            bits[usize::from(generation / 64)] |= 1 << (generation % 64);
        }
        for (words, bits) in self.living.iter().zip(bits) {
            words.store(bits, Ordering::Relaxed);
        }
    }

    /// A server before this one that lives no more. One that follows is not known here yet when
    /// its first datagrams come.
    pub(crate) fn has_ended(&self, generation: u8) -> bool {
        let ago = self
            .generation
            .load(Ordering::Relaxed)
            .wrapping_sub(generation);
        let living = self.living[usize::from(generation / 64)].load(Ordering::Relaxed);
        (1..=GENERATIONS_BACK_MAX).contains(&ago) && living >> (generation % 64) & 1 == 0
    }

    /// How many threads.
    pub fn thread_count(&self) -> usize {
        self.mailboxes.len()
    }

    /// Open connections of all threads, without those of listeners that stand aside.
    pub fn open_connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections of each thread.
    pub fn connections_by_thread(&self) -> Vec<usize> {
        self.mailboxes
            .iter()
            .map(|m| m.conn_count.load(Ordering::Relaxed))
            .collect()
    }

    /// Answers these challenges of certificate authorities from now on, on every thread.
    pub fn set_challenges(&self, challenges: Challenges) {
        let is_any = !challenges.is_empty();
        let mut current = self
            .challenges
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(challenges);
        self.has_challenges.store(is_any, Ordering::Release);
    }

    /// The challenges being answered; `None` most of the time.
    pub fn challenges(&self) -> Option<Arc<Challenges>> {
        if !self.has_challenges.load(Ordering::Acquire) {
            return None;
        }
        let current = self.challenges.read();
        Some(Arc::clone(&current.unwrap_or_else(PoisonError::into_inner)))
    }

    /// True when all threads drain and none has anything under way.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut mailboxes = self.mailboxes.iter();
        mailboxes.all(|one| {
            one.is_quiet.load(Ordering::SeqCst) && one.conn_count.load(Ordering::SeqCst) == 0
        })
    }

    /// A draining thread has nothing under way any more, or has again. The last one tells all.
    pub(crate) fn set_quiet(&self, index: usize, is_quiet: bool) {
        let was_quiet = self.mailboxes[index]
            .is_quiet
            .swap(is_quiet, Ordering::SeqCst);
        if is_quiet && !was_quiet && self.is_quiet() {
            for mailbox in &self.mailboxes {
                // Who has mail looks again whether it is done.
                let _ = mailbox.send(Letter::Job(Box::new(|_| {})));
            }
        }
    }

    pub(crate) fn mailbox(&self, index: usize) -> &Arc<ThreadMailbox> {
        &self.mailboxes[index]
    }

    /// The thread with the fewest connections; `own` when it is among them.
    pub(crate) fn least_loaded(&self, own: usize) -> usize {
        let count = |index: usize| self.mailboxes[index].conn_count.load(Ordering::Relaxed);
        let mut best = own;
        for index in 0..self.mailboxes.len() {
            if count(index) < count(best) {
                best = index;
            }
        }
        best
    }
}

/// A way to reach a thread from others.
#[derive(Clone)]
pub struct Handle {
    crew: Arc<Crew>,
    index: usize,
}

impl Handle {
    /// The handle of one thread of a crew.
    pub fn new(crew: &Arc<Crew>, index: usize) -> Handle {
        assert!(
            index < crew.thread_count(),
            "a crew has a mailbox for each thread"
        );
        Handle {
            crew: Arc::clone(crew),
            index,
        }
    }

    /// Runs a job on the thread, between events. `A` must be the thread's answer type, or the job
    /// is not run. Returns false when the thread has ended.
    pub fn run<A: crate::Responder + 'static>(
        &self,
        job: impl FnOnce(&mut Thread<A>) + Send + 'static,
    ) -> bool {
        let job: Job = Box::new(move |thread| match thread.downcast_mut::<Thread<A>>() {
            Some(thread) => job(thread),
            None => debug_assert!(false, "a job for another kind of thread"),
        });
        self.crew.mailbox(self.index).send(Letter::Job(job)).is_ok()
    }
}

impl Bell for ThreadMailbox {
    fn wake(&self, key: u64) {
        // A thread that has ended has nothing to wake.
        let _ = self.send(Letter::Wake(key));
    }
}

impl ThreadMailbox {
    /// Puts a letter in and wakes the thread if it sleeps. A thread that has ended takes none: the
    /// letter comes back.
    pub(crate) fn send(&self, letter: Letter) -> Result<(), Letter> {
        match &mut *self.letters.lock() {
            Some(letters) => letters.push(letter),
            None => return Err(letter),
        }
        self.has_mail.store(true, Ordering::SeqCst);
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // A full counter is as good as a ring: the thread will wake.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
        Ok(())
    }

    /// Takes no more letters, unless there are some to be read first.
    pub(crate) fn close(&self) -> bool {
        let mut letters = self.letters.lock();
        if letters.as_ref().is_some_and(|letters| !letters.is_empty()) {
            return false;
        }
        *letters = None;
        true
    }

    /// Takes no more letters; those that were not read are lost with their connections.
    pub(crate) fn shut(&self) {
        self.is_quiet.store(true, Ordering::SeqCst);
        let unread = self.letters.lock().take();
        drop(unread);
    }

    /// About to sleep: true when there is mail, so sleep must not be.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.is_asleep.store(true, Ordering::SeqCst);
        self.has_mail.load(Ordering::SeqCst)
    }

    pub(crate) fn wake_up(&self) {
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Relaxed)
    }

    pub(crate) fn take(&self, into: &mut Vec<Letter>) {
        self.has_mail.store(false, Ordering::SeqCst);
        let mut letters = self.letters.lock();
        if let Some(letters) = &mut *letters {
            into.append(letters);
        }
    }

    pub(crate) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_servers_have_ended_unless_they_live_and_later_ones_never() {
        let crew = Crew::new(1).unwrap();
        crew.set_generation(256 + 3);
        crew.set_living(&[1, 255]);
        let ended = |generation: u8| crew.has_ended(generation);
        assert!(ended(2) && ended(0) && ended(254));
        assert!(!ended(1) && !ended(255), "they live");
        assert!(!ended(3) && !ended(4), "this one, and the next");
        crew.set_living(&[]);
        assert!(ended(1) && ended(255));
    }
}
