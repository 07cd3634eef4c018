//! Signing in with an account of the system: a process talks to PAM, for one password each.
//!
//! ```text
//!  a password -> begin_attempt -> a place (`processes`) -> process -> PamReply -> 401, or goes on
//!                                   | too long               | too long, crashed, no sense
//!                                   v 503                    v 503
//! ```
//!
//! The conversation is a task of its own: whoever leaves meanwhile has guessed all the same.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use hob_http::{Reactor, Request, Response, Timer, Watched};
use hob_keeper::process::{Child, EndSignal, Exit, Launcher, Start, Strings};
use hob_pam::message::REPLY_BYTES_MAX;
use hob_pam::{PamReply, PamVerdict};
use hob_trace::Fault;
use rustix::pipe::PipeFlags;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::admission::PasswordSource;
use super::{HandlerContext, note_fault};
use crate::handle::plain;
use crate::serve::fleet::now_ms;
use crate::step::auth::accounts::AuthAccount;
use crate::step::auth::failures::SignInAttempt;
use crate::step::auth::pam::{self, PamQuestion, PamSource};
use crate::step::auth::remembered::RememberedPasswords;
use crate::step::auth::{self, GivenPassword, PasswordTurn};

/// Bytes of a reply that are read at once.
const READ_BYTES: usize = 4096;

/// What a password has come to.
enum PamOutcome {
    /// Whose it is.
    Account(Arc<AuthAccount>),
    /// Nobody is let in, with the reason for the record and what PAM says.
    Refused(&'static str, String),
    /// Nobody knows: the same.
    Failed(&'static str, String),
}

/// A conversation that is to be had, and what ends with it.
struct PamTalk {
    source: Arc<PamSource>,
    given: GivenPassword,
    question: PamQuestion,
    attempt: SignInAttempt,
    _place: OwnedSemaphorePermit,
    _turn: PasswordTurn,
}

/// A process that does not outlive the interest in it.
struct PamProcess {
    child: Child,
    /// Its standard error, until it puts nothing in the place of that. Nobody reads it.
    _stderr: OwnedFd,
}

impl Drop for PamProcess {
    fn drop(&mut self) {
        self.child.end(EndSignal::Kill);
    }
}

impl PasswordSource for PamSource {
    fn realm(&self) -> &str {
        &self.realm
    }

    fn passwords(&self) -> &RememberedPasswords {
        &self.passwords
    }

    fn is_due(&self, now_ms: u64) -> bool {
        PamSource::is_due(self, now_ms)
    }

    fn look(&self) {
        PamSource::look(self);
    }

    async fn check(
        this: &Arc<PamSource>,
        desk: &Rc<HandlerContext>,
        given: GivenPassword,
        request: &Request,
    ) -> Result<Arc<AuthAccount>, Response> {
        desk.ask_pam(this, given, request).await
    }
}

impl HandlerContext {
    /// The account that PAM lets in with a name and a password; what its client gets if it does
    /// not.
    async fn ask_pam(
        self: &Rc<HandlerContext>,
        source: &Arc<PamSource>,
        given: GivenPassword,
        request: &Request,
    ) -> Result<Arc<AuthAccount>, Response> {
        let turn = source.passwords.alone(&given).await;
        if let Some(account) = source.passwords.known(&given, now_ms()) {
            return Ok(account);
        }
        let attempt = self.begin_attempt((&source.name, &given.name), request);
        let attempt = attempt.await?;
        let address = request.facts().peer.map(|peer| peer.ip());
        let address = address.map(|address| address.to_canonical().to_string());
        let Some(question) = source.question(&given, address.unwrap_or_default()) else {
            attempt.failed(now_ms());
            return Err(self.refuse_password(&source.realm, auth::WRONG, request));
        };
        let place = self.place_at_pam(source, request).await?;
        self.counters.passwords_checked.add(1);
        let talk = PamTalk {
            source: Arc::clone(source),
            given,
            question,
            attempt,
            _place: place,
            _turn: turn,
        };
        let Some(launcher) = self.launcher.get().cloned() else {
            return Err(plain::error(500));
        };
        let (told, outcome) = oneshot::channel();
        let reactor = request.reactor().clone();
        request.reactor().spawn(async move {
            let outcome = talk.have(&reactor, &launcher).await;
            // Whoever asked may have left.
            let _ = told.send(outcome);
        });
        match outcome.await {
            Ok(PamOutcome::Account(account)) => Ok(account),
            Ok(PamOutcome::Refused(reason, said)) => {
                request.set_detail(said.as_bytes());
                Err(self.refuse_password(&source.realm, reason, request))
            }
            Ok(PamOutcome::Failed(reason, said)) => {
                request.set_detail(said.as_bytes());
                note_fault(request, Fault::Server, reason);
                Err(plain::error(503))
            }
            Err(_) => Err(plain::error(500)),
        }
    }

    /// One of the places for conversations, once there is one.
    async fn place_at_pam(
        &self,
        source: &PamSource,
        request: &Request,
    ) -> Result<OwnedSemaphorePermit, Response> {
        let timer = request.reactor().timer();
        timer.set(source.rules.timeout);
        let mut place = std::pin::pin!(Arc::clone(&source.places).acquire_owned());
        let place = poll_fn(|cx| match place.as_mut().poll(cx) {
            Poll::Ready(place) => Poll::Ready(place.ok()),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
        });
        match place.await {
            Some(place) => Ok(place),
            None => {
                self.counters.limit_pam.add(1);
                note_fault(request, Fault::Server, pam::CROWDED);
                Err(plain::busy())
            }
        }
    }
}

impl PamTalk {
    /// Has it, and notes what that means for the next guess.
    async fn have(self, reactor: &Reactor, launcher: &Launcher) -> PamOutcome {
        let timer = reactor.timer();
        timer.set(self.source.rules.timeout);
        let (process, output) = match self.start(reactor, launcher) {
            Ok(started) => started,
            Err(error) => return PamOutcome::Failed(pam::NOT_STARTED, error.to_string()),
        };
        let Some(bytes) = read(&output, &timer).await else {
            return PamOutcome::Failed(pam::LATE, String::new());
        };
        let Ok(reply) = PamReply::decode(&bytes) else {
            return died(process, &timer).await;
        };
        match reply.verdict {
            PamVerdict::Yes => {
                self.attempt.succeeded();
                let entered = self
                    .source
                    .enter(&self.given, &self.question, &reply, now_ms());
                PamOutcome::Account(entered)
            }
            PamVerdict::Wrong => {
                self.attempt.failed(now_ms());
                PamOutcome::Refused(auth::WRONG, reply.text)
            }
            PamVerdict::Refused => {
                self.attempt.failed(now_ms());
                PamOutcome::Refused(pam::LOCKED, reply.text)
            }
            PamVerdict::Failed => PamOutcome::Failed(pam::FAILED, reply.text),
        }
    }

    /// Has the process started, with the question in its standard input.
    fn start(&self, reactor: &Reactor, launcher: &Launcher) -> io::Result<(PamProcess, Watched)> {
        let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
        let (stdin, ours) = pipe()?;
        // An empty pipe takes it whole, however small it is.
        let written = rustix::io::write(&ours, &self.question.bytes)?;
        if written != self.question.bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        drop(ours);
        let (output, stdout) = pipe()?;
        let output = reactor.watch(output)?;
        output.clear_readable();
        // The server may not open `/dev/null` for writing.
        let (unread, stderr) = pipe()?;
        let child = launcher.start(Start {
            program: self.source.program,
            path: PamSource::path(),
            dir: b"/".to_vec(),
            arguments: PamSource::arguments(),
            environment: Strings::new(),
            stdin: Some(stdin),
            stdout,
            stderr,
            channel: None,
            outlives: false,
            takes_along: false,
        });
        let process = PamProcess {
            child,
            _stderr: unread,
        };
        Ok((process, output))
    }
}

/// What the process says, up to its end; `None` is where that takes too long. More than a reply may
/// have is cut off, and makes none.
async fn read(output: &Watched, timer: &Timer) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; READ_BYTES];
    while bytes.len() <= REPLY_BYTES_MAX {
        let read = poll_fn(|cx| match output.poll_read(cx, &mut buffer) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
        });
        match read.await? {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    Some(bytes)
}

/// How the process ended that has said nothing, or nothing that makes sense.
async fn died(process: PamProcess, timer: &Timer) -> PamOutcome {
    let exit = poll_fn(|cx| match process.child.poll_exit(cx) {
        Poll::Ready(exit) => Poll::Ready(Some(exit)),
        Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
    });
    match exit.await {
        Some(exit @ Exit::Ended { .. }) => PamOutcome::Failed(pam::GONE, exit.to_string()),
        Some(exit) => PamOutcome::Failed(pam::NOT_STARTED, exit.to_string()),
        None => PamOutcome::Failed(pam::LATE, String::new()),
    }
}
