//! Real threads on real loopback sockets, with a dummy that uses every part of the face.

mod answers;
mod bodies;
mod chunks;
mod client;
mod crew;
mod dummy;
mod framed;
mod leaving;
mod limits;
mod pipes;
mod programs;
mod reactor;
mod sealed_streams;
mod sources;
mod standby;
mod streams;
mod streams_ending;
mod tls;
mod tls13;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hob_trace::metric::ThreadCounters;
use hob_trace::{Fault, Outcome};

use crate::limits::HttpLimits;
use crate::request::Request;
use crate::thread::{Crew, Drain, Handle, Listening, Thread};
use crate::tls::TlsHosts;
use client::Client;
use dummy::{Dummy, Gate, Probe};

/// How long an event may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server of one or more threads, serving the dummy.
struct Running {
    address: SocketAddr,
    crew: Arc<Crew>,
    counters: Vec<Arc<ThreadCounters>>,
    probe: Arc<Probe>,
    notes: Receiver<String>,
    finished: Receiver<Finished>,
    threads: Vec<JoinHandle<()>>,
}

/// What a record said when its exchange was over.
#[derive(Debug, PartialEq, Eq)]
struct Finished {
    target: String,
    status: u16,
    outcome: Outcome,
    fault: Fault,
    reason: Option<&'static str>,
    bytes_in: u64,
    body_bytes_out: u64,
    first_byte_us: u64,
    total_us: u64,
}

impl Finished {
    fn of(request: &Request) -> Finished {
        let record = request.record();
        Finished {
            target: request.head().target().escape_ascii().to_string(),
            status: record.status,
            outcome: record.outcome,
            fault: record.fault,
            reason: record.reason,
            bytes_in: record.bytes_in,
            body_bytes_out: record.body_bytes_out,
            first_byte_us: record.first_byte_us,
            total_us: record.total_us,
        }
    }
}

fn serve(limits: HttpLimits) -> Running {
    serve_on(1, limits)
}

fn serve_on(thread_count: usize, limits: HttpLimits) -> Running {
    serve_as(thread_count, limits, None)
}

/// A server that speaks TLS.
fn serve_terms(thread_count: usize, limits: HttpLimits, terms: TlsHosts) -> Running {
    serve_as(thread_count, limits, Some(Arc::new(terms)))
}

fn serve_as(thread_count: usize, limits: HttpLimits, tls: Option<Arc<TlsHosts>>) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    rustix::net::sockopt::set_tcp_nodelay(&listener, true).unwrap();
    let address = listener.local_addr().unwrap();
    let listener: Arc<OwnedFd> = Arc::new(listener.into());
    let crew = Crew::new(thread_count).unwrap();
    let (note_sender, notes) = mpsc::channel();
    let (finished_sender, finished) = mpsc::channel();
    let probe = Arc::new(Probe::new(note_sender));
    let counters: Vec<Arc<ThreadCounters>> = (0..thread_count).map(|_| Arc::default()).collect();
    let threads = (0..thread_count).map(|index| {
        let dummy = Dummy::new(Arc::clone(&probe), finished_sender.clone());
        let (crew, limits) = (Arc::clone(&crew), limits.clone());
        let (counters, listener) = (Arc::clone(&counters[index]), Arc::clone(&listener));
        let tls = tls.clone();
        std::thread::spawn(move || {
            let mut thread = Thread::new(&crew, index, limits, counters, dummy).unwrap();
            let listening = Listening {
                tls,
                ..Listening::new(7, listener)
            };
            thread.set_listeners(vec![listening]).unwrap();
            thread.run().unwrap();
        })
    });
    let threads = threads.collect();
    Running {
        address,
        crew,
        counters,
        probe,
        notes,
        finished,
        threads,
    }
}

impl Running {
    fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// The next thing the dummy noted.
    fn note(&self) -> String {
        self.notes.recv_timeout(PATIENCE).expect("a note is made")
    }

    /// The next exchange that is over.
    fn finished(&self) -> Finished {
        let finished = self.finished.recv_timeout(PATIENCE);
        finished.expect("an exchange ends")
    }

    fn gate(&self) -> &Gate {
        &self.probe.gate
    }

    /// Asks the first thread, between its events.
    fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Thread<Dummy>) -> R + Send + 'static,
    ) -> R {
        let (sender, receiver) = mpsc::channel();
        let is_sent = Handle::new(&self.crew, 0).run::<Dummy>(move |thread| {
            let _ = sender.send(question(thread));
        });
        assert!(is_sent, "the thread runs");
        receiver.recv_timeout(PATIENCE).expect("the thread answers")
    }

    /// Asks the first thread until it says yes.
    fn ask_until(&self, question: impl Fn(&mut Thread<Dummy>) -> bool + Send + Clone + 'static) {
        let begin = Instant::now();
        while !self.ask(question.clone()) {
            assert!(begin.elapsed() < PATIENCE, "it comes true in time");
            std::thread::yield_now();
        }
    }

    /// Waits until so many connections are open.
    fn wait_for_open(&self, count: usize) {
        let begin = Instant::now();
        while self.crew.open_connections() != count {
            assert!(begin.elapsed() < PATIENCE, "{count} connections are open");
            std::thread::yield_now();
        }
    }

    /// Tells every thread to drain, and waits until it has heard.
    fn drain(&self, deadline: Duration, grace: Duration) {
        let (sender, receiver) = mpsc::channel();
        for index in 0..self.crew.thread_count() {
            let sender = sender.clone();
            Handle::new(&self.crew, index).run::<Dummy>(move |thread| {
                thread.drain(Drain { deadline, grace });
                let _ = sender.send(());
            });
        }
        drop(sender);
        // Threads that have ended before drop the job with its sender.
        while receiver.recv_timeout(PATIENCE).is_ok() {}
    }

    /// Waits until every thread has ended by itself.
    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            thread.join().expect("a thread ends in order");
        }
    }
}

impl Drop for Running {
    /// A thread that panicked must not pass unseen, and none is left behind.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.drain(Duration::ZERO, Duration::ZERO);
        self.join();
        let open = self.crew.open.load(Ordering::Relaxed);
        assert_eq!(open, 0, "every connection was counted out");
        let aside = self.crew.open_aside_tcp.load(Ordering::Relaxed);
        assert_eq!(aside, 0, "those that stood aside too");
        for count in self.crew.connections_by_thread() {
            assert_eq!(count, 0, "every thread's connections were counted out");
        }
        let regions = self.probe.regions.load(Ordering::Relaxed);
        assert_eq!(regions, 0, "every region was given back");
    }
}
