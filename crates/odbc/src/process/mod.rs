//! The process that has a driver in it: it does what it is asked, one thing after the other, until
//! the socket ends.
//!
//! `unixodbc` calls the driver manager, `session` is the connection with its statements and
//! results. A thread listens meanwhile: a statement that runs is cancelled from there, and when the
//! other side is gone, the process ends whatever the driver does.

mod session;
mod unixodbc;

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use crate::message::{DriverReply, DriverRequest, MESSAGE_BYTES_MAX};

use session::OdbcSession;
use unixodbc::{Canceller, DriverManager};

/// How long a driver may take to leave its database when nobody asks any more.
const LEAVE_PATIENCE: Duration = Duration::from_millis(800);

/// Serves the other end of the socket until it is closed.
///
/// # Errors
/// The socket breaks, or the other end sends what makes no sense.
pub fn run(stream: UnixStream) -> io::Result<()> {
    let canceller = Canceller::default();
    let (requests, asked) = mpsc::channel();
    let (done, ended) = mpsc::channel();
    let listener = stream.try_clone()?;
    let listened = canceller.clone();
    let worker = std::thread::Builder::new().name("hob-odbc-work".into());
    worker.spawn(move || {
        let worked = work(stream, asked, canceller);
        // Whoever listens may be gone already.
        let _ = done.send(worked);
    })?;
    let heard = listen(listener, &requests, &listened);
    drop(requests);
    match ended.recv_timeout(LEAVE_PATIENCE) {
        Ok(worked) => heard.and(worked),
        Err(_) => heard,
    }
}

/// Hands requests on, and cancels by itself.
fn listen(
    mut stream: UnixStream,
    requests: &Sender<DriverRequest>,
    canceller: &Canceller,
) -> io::Result<()> {
    loop {
        let mut head = [0; 4];
        match stream.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let bytes = u32::from_le_bytes(head) as usize;
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "no message");
        if bytes > MESSAGE_BYTES_MAX {
            return Err(wrong());
        }
        let mut message = vec![0; bytes];
        stream.read_exact(&mut message)?;
        match DriverRequest::decode(&message).map_err(|_| wrong())? {
            DriverRequest::Cancel => canceller.cancel(),
            request => {
                canceller.reset();
                if requests.send(request).is_err() {
                    return Ok(());
                }
            }
        }
    }
}

/// Does what is asked.
fn work(
    mut stream: UnixStream,
    asked: Receiver<DriverRequest>,
    canceller: Canceller,
) -> io::Result<()> {
    let mut session = None;
    for request in asked {
        let reply = match (request, &mut session) {
            (
                DriverRequest::Open {
                    connection,
                    is_read_only,
                },
                session,
            ) => {
                let opened = DriverManager::load()
                    .and_then(|manager| manager.connect(&connection, is_read_only));
                match opened {
                    Ok(opened) => {
                        *session = Some(OdbcSession::new(opened, canceller.clone()));
                        DriverReply::Done
                    }
                    Err(fault) => DriverReply::Failed(fault),
                }
            }
            (_, None) => DriverReply::Failed(session::unasked("nothing is open")),
            (request, Some(session)) => session.answer(request),
        };
        stream.write_all(&reply.encode())?;
    }
    Ok(())
}
