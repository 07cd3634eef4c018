//! The edges of exec: descriptors handed down by whoever started us, and going over to another
//! program in this process.
//!
//! Unsafe because a descriptor that arrives as a number cannot be owned otherwise, and because
//! the usual ways to exec empty the signal mask: a SIGHUP between the exec and the new program's
//! first handler would end the keeper. Blocked signals wait across the exec instead.
#![allow(unsafe_code)]

use std::ffi::{CString, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

use super::wire::os_bytes;

/// Our own program, also when its file was replaced meanwhile: who is started by a process is of
/// its version.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";
/// Where systemd's descriptors begin.
const FIRST_INHERITED: i32 = 3;
const INHERITED_MAX: usize = 1024;

static IS_ADOPTED: AtomicBool = AtomicBool::new(false);

/// Takes the descriptors that systemd handed down, by their names in order.
///
/// Must be the first thing a program does: what it opened before would be taken for these. A
/// second call takes nothing. Closed numbers are an error.
pub fn adopt_inherited(names: &[String]) -> io::Result<Vec<(String, OwnedFd)>> {
    if names.len() > INHERITED_MAX {
        return Err(io::Error::other(format!(
            "more than {INHERITED_MAX} inherited sockets"
        )));
    }
    if IS_ADOPTED.swap(true, Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    let mut adopted = Vec::with_capacity(names.len());
    for (number, name) in (FIRST_INHERITED..).zip(names) {
        // SAFETY: fcntl with F_GETFD takes any number and touches no memory.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
            let reason = io::Error::last_os_error();
            return Err(io::Error::other(format!(
                "LISTEN_FDS: descriptor {number}: {reason}"
            )));
        }
        // SAFETY: open, as just seen; handed down for us to own, and owned once (IS_ADOPTED).
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
        adopted.push((name.clone(), descriptor));
    }
    Ok(adopted)
}

/// What waits on standard input, as a descriptor of ours; standard input is empty from then on.
pub(crate) fn take_stdin() -> io::Result<OwnedFd> {
    let taken = fcntl_dupfd_cloexec(std::io::stdin().as_fd(), 0)?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(taken)
}

/// Another program in place of this one: same process, `stdin` as its standard input.
///
/// Signals stay blocked until it calls [`unblock_signals`]. Returns only when it did not work;
/// then everything is as before.
pub(crate) fn replace_program(
    program: &Path,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
    stdin: &OwnedFd,
) -> io::Error {
    match try_replace(program, arguments, environment, stdin) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

fn try_replace(
    program: &Path,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
    stdin: &OwnedFd,
) -> io::Result<std::convert::Infallible> {
    let program = CString::new(os_bytes(program.as_os_str()))?;
    let arguments = arguments
        .iter()
        .map(|argument| CString::new(os_bytes(argument)))
        .collect::<Result<Vec<_>, _>>()?;
    let environment = environment
        .iter()
        .map(|(name, value)| CString::new([os_bytes(name), b"=", os_bytes(value)].concat()))
        .collect::<Result<Vec<_>, _>>()?;
    let argument_pointers = pointers(&arguments);
    let environment_pointers = pointers(&environment);
    let own_stdin = fcntl_dupfd_cloexec(std::io::stdin().as_fd(), 0)?;
    rustix::stdio::dup2_stdin(stdin)?;
    set_signals(libc::SIG_BLOCK)?;
    // SAFETY: all three end in NUL, both arrays end in a null pointer, and what they point into
    // (`program`, `arguments`, `environment`) lives until after the call.
    unsafe {
        libc::execve(
            program.as_ptr(),
            argument_pointers.as_ptr(),
            environment_pointers.as_ptr(),
        )
    };
    let error = io::Error::last_os_error();
    set_signals(libc::SIG_UNBLOCK)?;
    rustix::stdio::dup2_stdin(&own_stdin)?;
    Err(error)
}

/// Lets signals through that waited across an exec; to be called when their handlers stand.
pub(crate) fn unblock_signals() -> io::Result<()> {
    set_signals(libc::SIG_UNBLOCK)
}

fn set_signals(how: libc::c_int) -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initialises the set it is given.
    let set = unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    };
    // SAFETY: `set` is initialised; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(how, &set, std::ptr::null_mut()) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_exec_leaves_stdin_and_signals_as_they_were() {
        let before = rustix::fs::fstat(std::io::stdin()).unwrap();
        let (ours, _theirs) = crate::parcel::pair().unwrap();
        let error = replace_program(Path::new("/no/such/program"), &[], &[], &ours);
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let after = rustix::fs::fstat(std::io::stdin()).unwrap();
        assert_eq!((before.st_dev, before.st_ino), (after.st_dev, after.st_ino));
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let blocked = status
            .lines()
            .find(|line| line.starts_with("SigBlk:"))
            .unwrap();
        assert!(blocked.ends_with("0000000000000000"), "{blocked}");
    }

    #[test]
    fn argument_with_a_nul_is_refused_before_anything_changes() {
        let (ours, _theirs) = crate::parcel::pair().unwrap();
        let error = replace_program(Path::new("/bin/true"), &["a\0b".into()], &[], &ours);
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
