//! A process of ours that does for one thread what might crash or hang, and both ends of its start.
//!
//! The thread starts it itself: it needs nobody's rights but those of the process it is started
//! from, so the spawner, which has more, knows nothing of it. It gains none, is no program's to
//! look into, and the kernel ends it with the thread that started it.

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::net::{SocketType, sockopt};
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, prlimit, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::set_no_new_privs;

use crate::exec::OWN_PROGRAM;
use crate::{KeeperFailure, exec};

/// Starts `hob COMMAND`, with a socket as its standard input, and with so much memory at most: its
/// data and stacks, not what it maps of files. It is alone in its process group: a terminal's
/// Ctrl-C is for who started it.
///
/// # Errors
/// The system gives no process or no descriptors, or does not take the limit.
pub fn start(command: &str, memory_bytes: u64) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut child = Command::new(OWN_PROGRAM)
        .arg0("hob")
        .arg(command)
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    // It does nothing before it is asked, over that socket.
    let bound = Rlimit {
        current: Some(memory_bytes),
        maximum: Some(memory_bytes),
    };
    match prlimit(Some(Pid::from_child(&child)), Resource::Data, bound) {
        Ok(_) => Ok((child, ours)),
        Err(error) => {
            // It has done nothing, and its end is seen at once.
            let _ = child.kill();
            let _ = child.wait();
            Err(error.into())
        }
    }
}

/// Takes the place of such a process, with a name for lists of processes.
///
/// # Errors
/// It was started otherwise, or the system refuses a step.
pub fn take_place(name: &CStr) -> Result<UnixStream, KeeperFailure> {
    let stdin = io::stdin();
    let is_socket = sockopt::socket_type(&stdin) == Ok(SocketType::STREAM)
        && sockopt::socket_domain(&stdin) == Ok(rustix::net::AddressFamily::UNIX);
    if !is_socket {
        let text = "this process is started by `hob`, not by hand";
        return Err(KeeperFailure::System(text.to_owned()));
    }
    let _ = rustix::thread::set_name(name);
    let taken = || {
        set_no_new_privs(true)?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        // A thread that ended before is seen by the end of the socket.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        exec::take_stdin().map(UnixStream::from)
    };
    taken().map_err(|error: io::Error| {
        KeeperFailure::System(format!("cannot take its place: {error}"))
    })
}
