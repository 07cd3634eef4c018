//! The threads that answer: how they start, and what a thread that fails takes along.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, mpsc};
use std::thread::JoinHandle;

use hob_http::limits::HttpLimits;
use hob_http::thread::{Listening, Thread};

use super::process::{ServingProcess, ThreadNotices};
use hob_server::answer::Answers;

/// Bytes of each thread's ring of finished requests.
const RING_BYTES: usize = 512 * 1024;

impl ServingProcess {
    /// Starts the threads. None takes connections before all have the descriptors that they need
    /// for themselves.
    pub(super) fn start_threads(
        &mut self,
        count: usize,
        limits: &HttpLimits,
        listeners: &[Listening],
    ) -> Result<(), String> {
        let text = |error: io::Error| format!("a server thread cannot be started: {error}");
        let gate = Arc::new(Barrier::new(count + 1));
        let (made, hears) = mpsc::channel();
        for index in 0..count {
            let ready = Ready {
                made: made.clone(),
                gate: Arc::clone(&gate),
            };
            let thread = self.start_thread(index, limits.clone(), listeners.to_vec(), ready);
            self.threads.push(thread.map_err(text)?);
        }
        drop(made);
        for _ in 0..count {
            // One that panicked has taken the process with it.
            hears.recv().unwrap_or(Ok(())).map_err(text)?;
        }
        gate.wait();
        Ok(())
    }

    fn start_thread(
        &mut self,
        index: usize,
        limits: HttpLimits,
        listeners: Vec<Listening>,
        ready: Ready,
    ) -> io::Result<JoinHandle<()>> {
        let (shared, admin) = (Arc::clone(&self.shared), Arc::clone(&self.admin));
        let (crew, counters) = (
            Arc::clone(&self.crew),
            self.shared.counts.counters.new_thread(),
        );
        let signals = Arc::clone(&self.signals);
        let (producer, consumer) = hob_trace::ring::ring(RING_BYTES);
        match &self.log {
            Some(log) => log.add_ring(consumer),
            None => self.rings.push(consumer),
        }
        signals.running.fetch_add(1, Ordering::SeqCst);
        std::thread::Builder::new()
            .name(format!("hob-{index}"))
            .spawn(move || {
                let _presence = Presence(signals);
                let books = admin.thread_books(index, Arc::clone(&counters), producer);
                let servers_started = admin.report.lock().servers_started;
                let answers = Answers::new(&shared, &crew, servers_started, admin, books);
                let mut thread = match Thread::new(&crew, index, limits, counters, answers) {
                    Ok(thread) => thread,
                    Err(error) => return drop(ready.made.send(Err(error))),
                };
                drop(ready.made.send(Ok(())));
                ready.gate.wait();
                let ran = thread.set_listeners(listeners).and_then(|()| thread.run());
                if let Err(error) = ran {
                    tracing::error!(%error, "a server thread ended");
                }
            })
    }
}

/// How a thread tells that it has what it needs, and hears that all have.
struct Ready {
    made: mpsc::Sender<io::Result<()>>,
    gate: Arc<Barrier>,
}

/// A running server thread. A thread that panics takes the process with it: its connections are
/// lost anyway, and the keeper starts a whole server at once.
struct Presence(Arc<ThreadNotices>);

/// Exit code of a server one of whose threads panicked (`EX_SOFTWARE` of `sysexits.h`).
const PANICKED: i32 = 70;

impl Drop for Presence {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("a server thread panicked; the keeper starts a new server");
            std::process::exit(PANICKED);
        }
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.ring();
    }
}
