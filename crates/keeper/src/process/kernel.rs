//! System calls of the spawner that no crate wraps: waiting with resource use, signals as a
//! descriptor, memory that forks share, Landlock rules.
//!
//! Unsafe for that reason alone: each block is one call with arguments that are seen beside it.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::AtomicU64;

use super::message::Usage;

/// The limit whose value marks what a program started. It counts for real-time threads only, and
/// is so high that it never binds; a hard limit is inherited and cannot be raised again.
pub(super) const MARK_RESOURCE: u32 = libc::RLIMIT_RTTIME;

/// A process that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReapedProcess {
    pub(super) pid: i32,
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) core: bool,
    pub(super) usage: Usage,
}

/// The monotonic clock, in microseconds.
pub fn now_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000 + now.tv_nsec.cast_unsigned() / 1000
}

/// The next child that ended, if there is one.
pub(super) fn reap() -> Option<ReapedProcess> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let pid = loop {
        // SAFETY: two live places are written.
        let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG, usage.as_mut_ptr()) };
        let is_interrupted =
            pid < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        if !is_interrupted {
            break pid;
        }
    };
    if pid <= 0 {
        return None;
    }
    // SAFETY: numbers only; all of it was zero, and wait4 filled it in.
    let usage = unsafe { usage.assume_init() };
    let us = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    Some(ReapedProcess {
        pid,
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        core: libc::WIFSIGNALED(status) && libc::WCOREDUMP(status),
        usage: Usage {
            user_us: us(usage.ru_utime),
            system_us: us(usage.ru_stime),
            max_rss_kib: u32::try_from(usage.ru_maxrss).unwrap_or(u32::MAX),
            major_faults: count(usage.ru_majflt),
            minor_faults: count(usage.ru_minflt),
            voluntary_switches: count(usage.ru_nvcsw),
            forced_switches: count(usage.ru_nivcsw),
        },
    })
}

/// Has no signal handled or ignored any more and all of them blocked, and returns a descriptor
/// that is readable when a child ended. Children inherit the dispositions.
pub(super) fn take_signals() -> io::Result<OwnedFd> {
    // Handler, flags, restorer, mask: the default is all zeros on every processor. libc's wrapper
    // would leave out two signals, and one of them ignored would stay so for every program.
    let default = [0usize; 8];
    for signal in 1..=64 {
        let [signal, mask_bytes] = [signal, size_of::<u64>()];
        // SAFETY: reads a live array that is longer than the kernel's structure; refused for the
        // two signals that have nothing but the default.
        unsafe {
            let old = ptr::null_mut::<u8>();
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                &raw const default,
                old,
                mask_bytes,
            );
        }
    }
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut children = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the sets are initialised before they are read, all places are live.
    let descriptor = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigemptyset(children.as_mut_ptr());
        libc::sigaddset(children.as_mut_ptr(), libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::signalfd(
            -1,
            children.as_ptr(),
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// `count` words, all 0, in memory that stays shared across a fork. Never given back.
pub(super) fn shared_words(count: usize) -> io::Result<&'static [AtomicU64]> {
    let bytes = count * size_of::<AtomicU64>();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at a place the kernel chooses.
    let place = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh mapping of that size, page-aligned, zero, never unmapped, reached as atomics
    // only.
    Ok(unsafe { std::slice::from_raw_parts(place.cast::<AtomicU64>(), count) })
}

/// Rights of Landlock's first version, as far as hob tells them apart.
pub(super) mod right {
    pub(crate) const EXECUTE: u64 = 1;
    pub(crate) const WRITE_FILE: u64 = 1 << 1;
    pub(crate) const READ_FILE: u64 = 1 << 2;
    pub(crate) const READ_DIR: u64 = 1 << 3;
    /// Removing and making of every kind of file.
    pub(crate) const CHANGE_DIR: u64 = 0x1ff0;
    /// From version 2: moving between folders.
    pub(crate) const REFER: u64 = 1 << 13;
    /// From version 3.
    pub(crate) const TRUNCATE: u64 = 1 << 14;
    /// From version 5: ioctl on devices.
    pub(crate) const IOCTL_DEV: u64 = 1 << 15;
    /// Those that mean something for a file that is no folder.
    pub(crate) const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
}

/// The version of Landlock this kernel has; an error when it has none.
pub fn landlock_version() -> io::Result<u32> {
    const VERSION: libc::c_uint = 1;
    let create = libc::SYS_landlock_create_ruleset;
    // SAFETY: without attributes and with this flag it only returns a number.
    let version = unsafe { libc::syscall(create, ptr::null::<u8>(), 0usize, VERSION) };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

/// A set of rules that denies these rights where no rule grants them.
pub(super) fn landlock_rules(handled: u64) -> io::Result<OwnedFd> {
    let create = libc::SYS_landlock_create_ruleset;
    // SAFETY: the attribute's first version is one number, live, with its size beside it.
    let descriptor = unsafe {
        libc::syscall(
            create,
            &raw const handled,
            size_of::<u64>(),
            0 as libc::c_uint,
        )
    };
    let descriptor = i32::try_from(descriptor).unwrap_or(-1);
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, owned by nobody else. The kernel closes it on exec.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Grants rights to a file, or to a folder and all below it.
pub(super) fn landlock_grant(
    rules: BorrowedFd<'_>,
    place: BorrowedFd<'_>,
    rights: u64,
) -> io::Result<()> {
    const PATH_BENEATH: libc::c_uint = 1;
    let mut attribute = [0u8; 12];
    attribute[..8].copy_from_slice(&rights.to_ne_bytes());
    attribute[8..].copy_from_slice(&place.as_raw_fd().to_ne_bytes());
    let add = libc::SYS_landlock_add_rule;
    // SAFETY: the attribute is a packed u64 and i32, as laid out above, and live.
    let result = unsafe {
        libc::syscall(
            add,
            rules.as_raw_fd(),
            PATH_BENEATH,
            attribute.as_ptr(),
            0 as libc::c_uint,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
