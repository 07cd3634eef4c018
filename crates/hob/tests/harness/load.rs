//! Clients that ask one request after the other while something else happens.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use super::client::{Answer, Connection, get};

const CLIENT_COUNT: usize = 4;

/// How clients use their connections.
#[derive(Clone, Copy)]
pub enum Clients {
    /// A new connection for every request.
    OneRequestEach,
    /// A connection as long as the server keeps it.
    KeepAlive,
}

/// Running clients.
pub struct Load {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    pub fn begin(port: u16, kind: Clients) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let client = || {
            let (is_over, answered) = (is_over.clone(), answered.clone());
            std::thread::spawn(move || {
                let mut failures = Vec::new();
                let mut kept = None;
                while !is_over.load(Ordering::SeqCst) {
                    let answer = match kind {
                        Clients::OneRequestEach => get(port, "/hello.txt"),
                        Clients::KeepAlive => get_kept(port, &mut kept),
                    };
                    match answer {
                        Ok(answer) if answer.text() == "hello\n" => {
                            answered.fetch_add(1, Ordering::SeqCst);
                        }
                        other => failures.push(format!("{other:?}")),
                    }
                }
                failures
            })
        };
        let clients = (0..CLIENT_COUNT).map(|_| client()).collect();
        Load {
            is_over,
            answered,
            clients,
        }
    }

    /// Waits until so many more were answered.
    pub fn go_on(&self, count: usize) {
        let target = self.answered.load(Ordering::SeqCst) + count;
        while self.answered.load(Ordering::SeqCst) < target
            && !self.clients.iter().any(JoinHandle::is_finished)
        {
            std::thread::yield_now();
        }
    }

    /// Ends the clients; what failed comes back.
    pub fn end(self) -> Vec<String> {
        self.is_over.store(true, Ordering::SeqCst);
        self.clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    }
}

fn get_kept(port: u16, kept: &mut Option<Connection>) -> io::Result<Answer> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => Connection::open(port)?,
    };
    connection.send(b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let answer = connection.read()?;
    if answer.header("connection") != Some("close") {
        *kept = Some(connection);
    }
    Ok(answer)
}
