//! Where threads wait between the warm-up and what is measured, so that whoever counts what a
//! server uses can look while nothing is on its way.

use std::sync::mpsc::{Receiver, Sender, channel};

/// One thread's side.
pub(crate) struct Gate {
    calm: Sender<()>,
    open: Receiver<()>,
}

impl Gate {
    /// Tells that this thread has nothing on its way, and waits until the gate is opened.
    pub(crate) fn pass(self) {
        // Whoever opens it may have failed: then it is open.
        let _ = self.calm.send(());
        drop(self.calm);
        let _ = self.open.recv();
    }
}

/// The side of whoever waits for the threads.
pub(crate) struct Gates {
    calm: Receiver<()>,
    /// Dropped to open the gates.
    shut: Vec<Sender<()>>,
}

impl Gates {
    /// A gate for each of so many threads.
    pub(crate) fn new(count: usize) -> (Gates, Vec<Gate>) {
        let (calm, calms) = channel();
        let (shut, gates) = (0..count)
            .map(|_| {
                let (shut, open) = channel();
                let calm = calm.clone();
                (shut, Gate { calm, open })
            })
            .unzip();
        (Gates { calm: calms, shut }, gates)
    }

    /// Waits until every thread stands there or has failed.
    pub(crate) fn wait(&self) {
        for _ in &self.shut {
            if self.calm.recv().is_err() {
                return;
            }
        }
    }

    /// Lets the threads go on.
    pub(crate) fn open(self) {}
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::{
        BenchPlan, ClientActs, ClientTlsOffer, LoadModel, Protocol, Reuse, Url, Visit, run_rested,
    };

    #[test]
    fn a_thread_that_failed_is_not_waited_for() {
        let (gates, mut all) = Gates::new(2);
        drop(all.pop());
        let gate = all.pop().unwrap();
        let passing = std::thread::spawn(move || gate.pass());
        gates.wait();
        gates.open();
        passing.join().unwrap();
    }

    /// What a server saw: connections and requests.
    #[derive(Default)]
    struct Seen([AtomicUsize; 2]);

    impl Seen {
        fn now(&self) -> [usize; 2] {
            [0, 1].map(|index| self.0[index].load(Ordering::SeqCst))
        }

        fn add(&self, index: usize) {
            self.0[index].fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A server that keeps connections and answers whatever it is asked.
    fn server() -> (u16, Arc<Seen>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let counted = seen.clone();
        std::thread::spawn(move || {
            for peer in listener.incoming() {
                let (mut peer, seen) = (peer.unwrap(), counted.clone());
                seen.add(0);
                std::thread::spawn(move || {
                    let lines = BufReader::new(peer.try_clone().unwrap()).lines();
                    for _ in lines.map_while(Result::ok).filter(String::is_empty) {
                        seen.add(1);
                        let _ = peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                    }
                });
            }
        });
        (port, seen)
    }

    fn plan(port: u16) -> BenchPlan {
        let url: Url = format!("http://127.0.0.1:{port}/").parse().unwrap();
        BenchPlan {
            page: None,
            entries: vec![url.into()],
            seed: 1,
            acts: ClientActs::default(),
            unix: None,
            protocol: Protocol::H1,
            streams: 1,
            pace: LoadModel::Closed {
                think: Duration::ZERO,
            },
            connections: 5,
            sources: 1,
            reuse: Reuse::KeepAlive,
            is_insecure: false,
            terms: ClientTlsOffer::default(),
            is_resumption_off: true,
            threads: 2,
            cpus: vec![],
            warm_up: Duration::from_millis(5),
            duration: None,
            count: Some(100),
            timeout: Duration::from_secs(60),
            method: "GET".to_owned(),
            fields: vec![],
            body: None,
            expectations: vec![],
            thresholds: vec![],
            pid: None,
        }
    }

    #[test]
    fn at_rest_every_connection_is_open_and_every_request_answered() {
        let (port, seen) = server();
        let mut at_rest = None;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let report = run_rested(plan(port), is_stopped, &mut || at_rest = Some(seen.now()));
        let report = report.unwrap().json();
        let [connections, requests] = at_rest.unwrap();
        assert_eq!(connections, 5);
        assert!(requests >= 5, "{requests}");
        // What is measured comes after it and nothing else does, over the same connections.
        assert_eq!(report["requests"]["good"], 100);
        assert_eq!(seen.now(), [5, requests + 100]);
    }

    #[test]
    fn pages_do_not_rest() {
        let mut plan = plan(1);
        plan.page = Some(Visit::Cold);
        let failed = run_rested(plan, Arc::default(), &mut || ()).err().unwrap();
        assert!(failed.to_string().contains("only single requests rest"));
    }

    #[test]
    fn server_that_answers_nothing_is_told_and_not_waited_for_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut plan = plan(listener.local_addr().unwrap().port());
        drop(listener);
        plan.duration = Some(Duration::from_millis(20));
        let is_stopped = Arc::new(AtomicBool::new(false));
        let failed = run_rested(plan, is_stopped, &mut || ()).err();
        assert!(
            failed
                .unwrap()
                .to_string()
                .contains("no request was answered")
        );
    }
}
