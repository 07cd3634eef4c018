//! The process that talks to PAM: it reads one request, asks, says what came of it, and ends.
//!
//! `libpam` has the calls of the library, `groups` those of the system about accounts. Modules get
//! nothing to read or write: standard streams are `/dev/null`, and what the process itself reads
//! and writes is closed in whatever they start.

mod groups;
mod libpam;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::set_no_new_privs;

use crate::message::{PamReply, PamRequest, PamVerdict, REQUEST_BYTES_MAX};
use libpam::{Conversation, PamLibrary, Refusal};

/// Takes the place of such a process, and does what it is for.
///
/// # Errors
/// It was started otherwise, or the system refuses a step.
pub fn run() -> io::Result<()> {
    let _ = rustix::thread::set_name(c"hob-pam");
    close_the_door()?;
    let request = read_request()?;
    let output = take_output()?;
    // The server ends it earlier, unless that is not there any more.
    libpam::end_after(u32::from(request.seconds) + 1);
    let reply = answer(request);
    File::from(output).write_all(&reply.encode())
}

/// A password is in this memory: nobody else's process reads it, and neither does a core file have
/// it. Nothing that modules start gains rights.
fn close_the_door() -> io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_no_new_privs(true)?;
    Ok(())
}

/// What is asked, up to the end of standard input.
fn read_request() -> io::Result<PamRequest> {
    let mut bytes = Vec::with_capacity(REQUEST_BYTES_MAX + 1);
    // Not by what the standard library would keep of it.
    let input = File::from(fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?);
    input
        .take(REQUEST_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    let request = PamRequest::decode(&bytes);
    libpam::wipe(&mut bytes);
    request.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Standard output, in whose place, as in those of the others, there is nothing from then on.
fn take_output() -> io::Result<OwnedFd> {
    let output = fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?;
    let open = |flags| rustix::fs::open("/dev/null", flags | OFlags::CLOEXEC, Mode::empty());
    let nothing = open(OFlags::RDONLY)?;
    rustix::stdio::dup2_stdin(&nothing)?;
    // Where nobody but root may write to it, writing fails.
    let nowhere = open(OFlags::WRONLY).unwrap_or(nothing);
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(output)
}

/// Has the conversation.
fn answer(request: PamRequest) -> PamReply {
    let library = match PamLibrary::load() {
        Ok(library) => library,
        Err(text) => return PamReply::no(PamVerdict::Failed, &text),
    };
    let conversation = match Conversation::begin(&library, request) {
        Ok(conversation) => conversation,
        Err(text) => return PamReply::no(PamVerdict::Failed, &text),
    };
    match conversation.ask() {
        Ok(name) => PamReply {
            verdict: PamVerdict::Yes,
            groups: groups::of(&name),
            text: name,
        },
        Err(Refusal { verdict, text }) => PamReply::no(verdict, &text),
    }
}
