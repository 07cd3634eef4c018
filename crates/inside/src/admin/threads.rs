//! Questions to all server threads: each answers between its events, by its mailbox.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

use hob_http::thread::{Handle, Thread};
use hob_trace::Mutex;

use super::Admin;
use super::ask::AdminRequest;
use hob_server::answer::Answers;

/// How long threads are waited for; what one that is busy for longer has is left out.
const PATIENCE: Duration = Duration::from_secs(2);

struct ThreadAnswers<T> {
    found: Vec<T>,
    missing: usize,
    waker: Option<Waker>,
}

/// What `look` finds on each thread; and whether one of them did not answer.
pub(super) async fn look_at_all<T: Send + 'static>(
    ask: &AdminRequest,
    look: impl Fn(&Thread<Answers>) -> T + Clone + Send + 'static,
) -> (Vec<T>, bool) {
    let gathered = send_out(&ask.admin, look);
    let timer = ask.request.reactor().timer();
    timer.set(PATIENCE);
    poll_fn(|cx| {
        let mut gathered = gathered.lock();
        if gathered.missing == 0 || timer.poll_elapsed(cx).is_ready() {
            return Poll::Ready((std::mem::take(&mut gathered.found), gathered.missing > 0));
        }
        gathered.waker = Some(cx.waker().clone());
        Poll::Pending
    })
    .await
}

/// The same for a thread that serves nobody and may wait.
pub(super) fn wait_for_all<T: Send + 'static>(
    admin: &Admin,
    look: impl Fn(&Thread<Answers>) -> T + Clone + Send + 'static,
) -> (Vec<T>, bool) {
    let gathered = send_out(admin, look);
    let until = Instant::now() + PATIENCE;
    let waker = Waker::from(Arc::new(Parked(std::thread::current())));
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut state = gathered.lock();
        if state.missing == 0 || left.is_zero() {
            return (std::mem::take(&mut state.found), state.missing > 0);
        }
        state.waker = Some(waker.clone());
        drop(state);
        std::thread::park_timeout(left);
    }
}

/// A thread that waits.
struct Parked(std::thread::Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Asks every thread; what they find comes together in what is returned.
fn send_out<T: Send + 'static>(
    admin: &Admin,
    look: impl Fn(&Thread<Answers>) -> T + Clone + Send + 'static,
) -> Arc<Mutex<ThreadAnswers<T>>> {
    let crew = &admin.crew;
    let gathered = Arc::new(Mutex::new(ThreadAnswers {
        found: Vec::new(),
        missing: crew.thread_count(),
        waker: None,
    }));
    for index in 0..crew.thread_count() {
        let (look, place) = (look.clone(), Arc::clone(&gathered));
        let job = move |thread: &mut Thread<Answers>| put(&place, Some(look(thread)));
        if !Handle::new(crew, index).run(job) {
            put(&gathered, None);
        }
    }
    gathered
}

fn put<T>(gathered: &Mutex<ThreadAnswers<T>>, found: Option<T>) {
    let mut gathered = gathered.lock();
    gathered.found.extend(found);
    gathered.missing -= 1;
    let waker = match gathered.missing {
        0 => gathered.waker.take(),
        _ => None,
    };
    drop(gathered);
    if let Some(waker) = waker {
        waker.wake();
    }
}
