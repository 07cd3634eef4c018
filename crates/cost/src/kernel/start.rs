//! Starting a process in each of the three ways there are, and waiting for it with what it used.
//! The standard library picks the way itself, and the way is what is measured. It runs in a process
//! of one thread, the hidden command `cost-bare`, so a forked child may do whatever its parent
//! could; all the same it makes system calls and no more.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Room for what a child does on a stack of its own.
const STACK_BYTES: usize = 64 * 1024;
/// Bytes a child that executes nothing copies at a time.
const PIECE_BYTES: usize = 4096;
const PAGE_BYTES: usize = 4096;
const NOT_EXECUTED: c_int = 127;

/// How a process is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// `fork`: a copy of the parent's page tables.
    Fork,
    /// `clone` with `CLONE_VM | CLONE_VFORK`: the parent's memory, and the parent waits.
    Vfork,
    /// `posix_spawn` of the C library.
    PosixSpawn,
}

impl How {
    const ALL: [(How, &'static str); 3] = [
        (How::Fork, "fork"),
        (How::Vfork, "vfork"),
        (How::PosixSpawn, "posix_spawn"),
    ];

    pub(crate) fn word(self) -> &'static str {
        let found = How::ALL.iter().find(|(how, _)| *how == self);
        found.map_or("", |(_, word)| word)
    }

    pub(crate) fn named(word: &str) -> Option<How> {
        let found = How::ALL.iter().find(|(_, other)| *other == word);
        found.map(|(how, _)| *how)
    }
}

/// A program with its arguments and variables, as the kernel takes them.
pub(crate) struct ExecArguments {
    strings: Vec<CString>,
    argument_count: usize,
}

impl ExecArguments {
    /// Takes texts without zeros in them.
    pub(crate) fn new(arguments: &[String], variables: &[String]) -> Option<ExecArguments> {
        let all = arguments.iter().chain(variables);
        let strings = all.map(|text| CString::new(text.as_str()).ok());
        Some(ExecArguments {
            strings: strings.collect::<Option<_>>()?,
            argument_count: arguments.len(),
        })
        .filter(|program| program.argument_count > 0)
    }

    /// Two lists of pointers, each ended by none; good as long as the strings are.
    fn lists(&self) -> (Vec<*const c_char>, Vec<*const c_char>) {
        let (arguments, variables) = self.strings.split_at(self.argument_count);
        let list = |strings: &[CString]| {
            let pointers = strings.iter().map(|string| string.as_ptr());
            pointers.chain([ptr::null()]).collect::<Vec<_>>()
        };
        (list(arguments), list(variables))
    }
}

/// What a child is given as 0, 1 and 2.
#[derive(Clone, Copy)]
pub(crate) struct ChildStreams<'a> {
    pub(crate) input: BorrowedFd<'a>,
    pub(crate) output: BorrowedFd<'a>,
    pub(crate) errors: BorrowedFd<'a>,
}

impl ChildStreams<'_> {
    fn raw(&self) -> [RawFd; 3] {
        [
            self.input.as_raw_fd(),
            self.output.as_raw_fd(),
            self.errors.as_raw_fd(),
        ]
    }
}

/// Everything a child needs, where it needs no memory of its own.
struct Orders {
    streams: [RawFd; 3],
    /// Program, arguments, variables; null where the child copies its input itself.
    arguments: *const *const c_char,
    variables: *const *const c_char,
}

/// Makes processes; has what they need ready, so that making one is all that is measured.
pub(crate) struct Starter {
    program: Option<ExecArguments>,
    stack: Vec<u8>,
}

impl Starter {
    /// For a program, or for a child that copies its input to its output and exits.
    pub(crate) fn new(program: Option<ExecArguments>) -> Starter {
        Starter {
            program,
            stack: vec![0; STACK_BYTES],
        }
    }

    /// Starts a process and says its number.
    pub(crate) fn start(&mut self, how: How, streams: ChildStreams<'_>) -> io::Result<i32> {
        let lists = self.program.as_ref().map(ExecArguments::lists);
        let orders = Orders {
            streams: streams.raw(),
            arguments: lists
                .as_ref()
                .map_or(ptr::null(), |(list, _)| list.as_ptr()),
            variables: lists
                .as_ref()
                .map_or(ptr::null(), |(_, list)| list.as_ptr()),
        };
        match how {
            How::Fork => fork(&orders),
            How::Vfork => self.vfork(&orders),
            How::PosixSpawn => posix_spawn(&orders),
        }
    }

    fn vfork(&mut self, orders: &Orders) -> io::Result<i32> {
        let top = self.stack.as_mut_ptr_range().end;
        let top = top.wrapping_sub(top as usize % 16);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let orders: *const Orders = orders;
        // SAFETY: the stack is ours and unused, `top` is its aligned end, and this process waits
        // until the child has left its memory, so `orders` lives as long as the child looks at it.
        let pid = unsafe { libc::clone(child, top.cast(), flags, orders.cast_mut().cast()) };
        started(pid)
    }
}

fn fork(orders: &Orders) -> io::Result<i32> {
    // SAFETY: this process has one thread, so the copy of its memory is whole.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let orders: *const Orders = orders;
        child(orders.cast_mut().cast());
    }
    started(pid)
}

fn started(pid: libc::pid_t) -> io::Result<i32> {
    match pid {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

/// What every child does. Returns only into `clone`, which ends it.
extern "C" fn child(orders: *mut c_void) -> c_int {
    // SAFETY: it is the address of an `Orders` that outlives the child's use of it (see `vfork`).
    let orders = unsafe { &*orders.cast::<Orders>() };
    // SAFETY: numbers; it ends with the process that waits for it, and with no measurement else.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    for (to, from) in orders.streams.iter().enumerate() {
        // SAFETY: two numbers.
        unsafe { libc::dup2(*from, to as c_int) };
    }
    if orders.arguments.is_null() {
        copy();
        // SAFETY: ends this process without running what its parent has registered.
        unsafe { libc::_exit(0) }
    }
    // SAFETY: both lists end with a null pointer, the strings in them with a zero, and the first
    // list has one string at least (`ExecArguments::new`).
    unsafe { libc::execve(*orders.arguments, orders.arguments, orders.variables) };
    // SAFETY: as above.
    unsafe { libc::_exit(NOT_EXECUTED) }
}

/// Copies descriptor 0 to 1 until it ends.
fn copy() {
    let mut piece = [0u8; PIECE_BYTES];
    loop {
        // SAFETY: writes at most the piece's length into it.
        let count = unsafe { libc::read(0, piece.as_mut_ptr().cast(), PIECE_BYTES) };
        if count <= 0 {
            return;
        }
        // SAFETY: reads as many bytes of the piece as were just written into it.
        unsafe { libc::write(1, piece.as_ptr().cast(), count as usize) };
    }
}

fn posix_spawn(orders: &Orders) -> io::Result<i32> {
    if orders.arguments.is_null() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut actions = std::mem::MaybeUninit::<libc::posix_spawn_file_actions_t>::uninit();
    // SAFETY: initializes what it is given.
    check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
    let mut failed = Ok(());
    for (to, from) in orders.streams.iter().enumerate() {
        let (from, to) = (*from, to as c_int);
        // SAFETY: initialized above; it notes two numbers.
        let added =
            unsafe { libc::posix_spawn_file_actions_adddup2(actions.as_mut_ptr(), from, to) };
        failed = failed.and(check(added));
    }
    let mut pid = 0;
    if failed.is_ok() {
        // SAFETY: the lists are as `execve` in `child` needs them, the actions were initialized,
        // and none of them is kept.
        failed = check(unsafe {
            libc::posix_spawn(
                &mut pid,
                *orders.arguments,
                actions.as_ptr(),
                ptr::null(),
                orders.arguments.cast(),
                orders.variables.cast(),
            )
        });
    }
    // SAFETY: initialized above, used no more.
    unsafe { libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr()) };
    failed.map(|()| pid)
}

fn check(code: c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// How a process ended, and the CPU time it used, with its own children that it waited for.
pub(crate) struct ChildExit {
    pub(crate) is_success: bool,
    pub(crate) cpu_ns: u64,
}

/// Waits for a process.
pub(crate) fn wait(pid: i32) -> io::Result<ChildExit> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: writes a status and a usage into what is there for them.
    while unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) } != pid {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: numbers only; all of it was zero, and wait4 filled it in.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Ok(ChildExit {
        is_success: libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
    })
}

/// Takes so much memory and writes to every page of it, in pages of 4 KiB: large pages would make a
/// fork look cheap. It stays until the process ends.
pub(crate) fn touch(bytes: usize) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let (both, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: memory at an address that the kernel picks, which nobody else has.
    let begin = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, both, private) }?;
    // SAFETY: the mapping just made; a kernel without large pages refuses, which is as good.
    let _ = unsafe { rustix::mm::madvise(begin, bytes, Advice::LinuxNoHugepage) };
    for at in (0..bytes).step_by(PAGE_BYTES) {
        // SAFETY: inside the mapping, which is writable and ours.
        unsafe { begin.cast::<u8>().add(at).write_volatile(1) };
    }
    Ok(())
}

/// Makes this process an account without rights, if it is root's; it must have one thread.
pub(crate) fn become_account(number: u32) -> io::Result<()> {
    use rustix::process::{Gid, Uid};
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)?;
    Ok(())
}

/// Goes to a folder that programs run in.
pub(crate) fn go_to(folder: &Path) -> io::Result<()> {
    Ok(rustix::process::chdir(folder)?)
}
