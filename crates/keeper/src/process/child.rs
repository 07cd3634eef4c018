//! From the wish to run a program to its first instruction: clone, then the steps of the child.
//!
//! ```text
//! spawner                                    child
//!   slot: strings, pointers, plan, stack
//!   clone ------------------------------->   cgroup, (namespaces), limits, priority,
//!   goes on with other things                groups, group, user, parent-death signal,
//!                                            no_new_privs, sandbox, folder, 0 1 2 (3), the rest
//!                                            closed, process group, signal mask, execve
//!   reaps it: report empty?  it ran             a step fails: report = step and error, exit
//! ```
//!
//! The usual child shares the spawner's memory (CLONE_VM) until it executes, on a stack of its
//! own: no page table is copied, which is half of what a fork costs, and the spawner does not wait
//! for it (no CLONE_VFORK), so one that is stopped or that hangs in a slow file system holds its
//! slot and nothing else. The kernel clears the slot's word when the child no longer uses the
//! memory (CLONE_CHILD_CLEARTID). Where sharing would not do (namespaces, control groups whose
//! limit could kill whoever shares the memory, a kernel that makes such memory readable, no slot
//! free, qemu-user, which cannot) it is a plain fork of this small process. Reports stand in memory
//! that forks share too, so no pipe is needed in either case.
//!
//! Unsafe because of all that. What keeps it sound: a child makes raw system calls only (libc's
//! would write to an `errno` it shares with us), allocates nothing, never returns, reads what its
//! `ChildPlan` points to and writes its report; the slot keeps all of that alive and unchanged
//! until the word is cleared.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::message::{PACKET_BYTES_MAX, Step};
use super::recipe::{
    AccountStart, AccountWay, ChildCredentials, Particulars, Recipe, StringsLayout, point,
};

/// Stack of a child, in bytes; what it calls needs a fraction of this.
const STACK_BYTES: usize = 32 * 1024;
const _: () = assert!(STACK_BYTES.is_multiple_of(size_of::<u128>()));

/// Everything a child reads, by address.
struct ChildPlan {
    program: *const u8,
    folder: *const u8,
    arguments: *const *const u8,
    variables: *const *const u8,
    recipe: *const Recipe,
    descriptors: [i32; 3],
    /// -1 when there is none.
    channel: i32,
    groups: *const OwnedFd,
    group_count: usize,
    mark: u64,
    /// The spawner as the child sees it.
    parent: i32,
    outlives: bool,
    /// Null when the recipe says who it becomes.
    account: *const AccountStart,
    report: *const AtomicU64,
}

/// Room for one child on its way: the packet it was asked for with, and its stack.
pub(super) struct ChildSlot {
    /// 1 while a child may use what is below.
    word: Box<AtomicU32>,
    buffer: Vec<u8>,
    /// Strings that were too many for a packet.
    memory: Vec<u8>,
    pointers: Vec<*const u8>,
    stack: Vec<u128>,
    plan: Option<Box<ChildPlan>>,
    recipe: Option<Rc<Recipe>>,
    account: Option<Box<AccountStart>>,
    /// Children of this slot are forked, so that it is always free again.
    is_spare: bool,
}

impl ChildSlot {
    /// A slot whose children never share its memory.
    pub(super) fn spare() -> ChildSlot {
        let mut slot = ChildSlot::new();
        slot.is_spare = true;
        slot
    }

    pub(super) fn new() -> ChildSlot {
        ChildSlot {
            is_spare: false,
            word: Box::new(AtomicU32::new(0)),
            buffer: vec![0; PACKET_BYTES_MAX],
            memory: Vec::new(),
            pointers: Vec::new(),
            stack: Vec::new(),
            plan: None,
            recipe: None,
            account: None,
        }
    }

    /// No child uses it.
    pub(super) fn is_free(&self) -> bool {
        self.word.load(Ordering::Acquire) == 0
    }

    /// Where the next packet is received.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        assert!(self.is_free(), "a child still reads this slot");
        &mut self.buffer
    }

    /// Strings for the next start that came as memory, instead of those in the buffer.
    pub(super) fn set_memory(&mut self, memory: Vec<u8>) {
        assert!(self.is_free(), "a child still reads this slot");
        self.memory = memory;
    }

    /// The first two strings of a start, without their NULs.
    pub(super) fn path_and_folder(&self, layout: StringsLayout) -> Option<(&[u8], &[u8])> {
        let mut strings = self.strings(layout)?.split(|byte| *byte == 0);
        Some((strings.next()?, strings.next()?))
    }

    /// The arguments of a start, without their NULs.
    pub(super) fn arguments(&self, layout: StringsLayout) -> impl Iterator<Item = &[u8]> + Clone {
        self.some(layout, 2, layout.argument_count)
    }

    /// The variables of a start, without their NULs.
    pub(super) fn variables(&self, layout: StringsLayout) -> impl Iterator<Item = &[u8]> + Clone {
        self.some(layout, 2 + layout.argument_count, layout.variable_count)
    }

    fn some(
        &self,
        layout: StringsLayout,
        first: usize,
        count: usize,
    ) -> impl Iterator<Item = &[u8]> + Clone {
        let strings = self.strings(layout).unwrap_or_default();
        let strings = strings.split(|byte| *byte == 0);
        strings.skip(first).take(count)
    }

    fn strings(&self, layout: StringsLayout) -> Option<&[u8]> {
        let strings = match layout.offset {
            0 => &self.memory[..],
            offset => self.buffer.get(offset..)?,
        };
        strings.get(..layout.len)
    }

    /// Starts a child on the strings at `layout`; `report` stays empty if it gets to run its
    /// program. Returns its process id. The child has a table of descriptors of its own, so those
    /// it was given can be closed.
    ///
    /// The strings must be NUL-ended and as many as the layout says; what is not so is an error.
    pub(super) fn start(
        &mut self,
        layout: StringsLayout,
        particulars: Particulars<'_>,
        report: StepReport<'_>,
    ) -> io::Result<i32> {
        assert!(self.is_free(), "a child still reads this slot");
        let mut pointers = std::mem::take(&mut self.pointers);
        let strings = self.strings(layout);
        let own = &particulars.recipe.variables;
        let is_right = strings.is_some_and(|strings| point(&mut pointers, strings, layout, own));
        self.pointers = pointers;
        if !is_right {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let Particulars {
            recipe,
            descriptors,
            channel,
            groups,
            born_in,
            mark,
            spawner,
            outlives,
            account,
        } = particulars;
        // SAFETY: `point` left path, folder, arguments, null, variables, null; `own` is the
        // recipe's, which lives as long as the strings.
        let (arguments, variables) = unsafe {
            let arguments = self.pointers.as_ptr().add(2);
            (arguments, arguments.add(layout.argument_count + 1))
        };
        self.account = account.map(Box::new);
        let account = self.account.as_deref().map_or(ptr::null(), ptr::from_ref);
        let is_plain = recipe.namespaces == 0 && groups.is_empty() && born_in.is_none();
        let shares_memory = is_plain && !recipe.must_fork && !self.is_spare;
        let in_own_pids = recipe.namespaces & libc::CLONE_NEWPID as u64 != 0;
        let plan = self.plan.insert(Box::new(ChildPlan {
            program: self.pointers[0],
            folder: self.pointers[1],
            arguments,
            variables,
            recipe: Rc::as_ptr(&recipe),
            descriptors: descriptors.each_ref().map(AsRawFd::as_raw_fd),
            channel: channel.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            groups: groups.as_ptr(),
            group_count: groups.len(),
            mark,
            parent: if in_own_pids { 0 } else { spawner },
            outlives,
            account,
            report: report.0,
        }));
        let plan: *mut ChildPlan = &raw mut **plan;
        if shares_memory {
            match self.clone_sharing(plan, &recipe) {
                // qemu-user says so: it knows no such clone.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                started => return started,
            }
        }
        // SAFETY: the plan and what it points to live until the call returns here; the child has
        // a copy of all of it.
        unsafe { fork(plan, recipe.namespaces, born_in) }
    }

    /// A child in our memory; while it may use it, the slot keeps the recipe and is not free.
    fn clone_sharing(&mut self, plan: *mut ChildPlan, recipe: &Rc<Recipe>) -> io::Result<i32> {
        self.recipe = Some(Rc::clone(recipe));
        self.word.store(1, Ordering::Release);
        if self.stack.is_empty() {
            self.stack = vec![0; STACK_BYTES / size_of::<u128>()];
        }
        let flags = libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
        let top = self.stack.as_mut_ptr_range().end;
        // SAFETY: the child runs `run` with `plan` on the slot's own stack. Plan, stack and word
        // stay where they are, because nobody touches the slot until the kernel has cleared the
        // word, which it does once the child no longer runs in this memory.
        let pid = unsafe {
            libc::clone(
                run,
                top.cast(),
                flags,
                plan.cast(),
                ptr::null_mut::<libc::pid_t>(),
                ptr::null_mut::<libc::c_void>(),
                self.word.as_ptr().cast::<libc::pid_t>(),
            )
        };
        if pid < 0 {
            let error = io::Error::last_os_error();
            self.word.store(0, Ordering::Release);
            return Err(error);
        }
        Ok(pid)
    }
}

impl Drop for ChildSlot {
    /// What a child may still use stays behind; the process ends soon anyway.
    fn drop(&mut self) {
        if self.is_free() {
            return;
        }
        let word = std::mem::replace(&mut self.word, Box::new(AtomicU32::new(0)));
        std::mem::forget(word);
        std::mem::forget(std::mem::take(&mut self.buffer));
        std::mem::forget(std::mem::take(&mut self.memory));
        std::mem::forget(std::mem::take(&mut self.pointers));
        std::mem::forget(std::mem::take(&mut self.stack));
        std::mem::forget((self.plan.take(), self.recipe.take(), self.account.take()));
    }
}

/// `struct clone_args` up to what is used of it.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// A fork of this process that runs `plan`, in namespaces of its own where wanted, born in a
/// control group where wanted: entering one later takes a lock of the whole system.
///
/// # Safety
/// The plan and what it points to live until this returns.
unsafe fn fork(
    plan: *mut ChildPlan,
    namespaces: u64,
    born_in: Option<BorrowedFd<'_>>,
) -> io::Result<i32> {
    const CLONE_INTO_CGROUP: u64 = 1 << 33;
    let arguments = CloneArguments {
        flags: namespaces | born_in.map_or(0, |_| CLONE_INTO_CGROUP),
        exit_signal: libc::SIGCHLD as u64,
        cgroup: born_in.map_or(0, |group| group.as_raw_fd() as u64),
        ..CloneArguments::default()
    };
    let flags = (namespaces | arguments.exit_signal) as usize;
    // SAFETY: without a stack and CLONE_VM it is a fork: the child goes on on a copy of everything.
    let result = unsafe {
        match born_in {
            None => call(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]),
            Some(_) => {
                let place = &raw const arguments as usize;
                let bytes = size_of::<CloneArguments>();
                call(libc::SYS_clone3, [place, bytes, 0, 0, 0, 0])
            }
        }
    };
    match result {
        Ok(0) => {
            run(plan.cast());
            unreachable!("a child ends in `run`")
        }
        Ok(pid) => i32::try_from(pid).map_err(io::Error::other),
        Err(errno) => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Where a child reports which step did not work: 0, or the step above the error.
#[derive(Clone, Copy)]
pub(super) struct StepReport<'a>(pub(super) &'a AtomicU64);

impl StepReport<'_> {
    /// What a child that has ended reported.
    pub(super) fn take(self) -> Option<(Step, i32)> {
        let word = self.0.swap(0, Ordering::AcqRel);
        let step = u16::try_from(word >> 32).ok().and_then(Step::of)?;
        Some((step, word as u32 as i32))
    }
}

/// The child. Never returns.
extern "C" fn run(plan: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a plan that outlives this child's use of it and that nobody changes.
    let plan = unsafe { &*plan.cast::<ChildPlan>() };
    // SAFETY: as above for everything the plan points to; this is a child.
    let Err((step, errno)) = unsafe { take_steps(plan) };
    // SAFETY: reports outlive every child that may write to them.
    let report = unsafe { &*plan.report };
    report.store(
        (step as u64) << 32 | u64::from(errno as u32),
        Ordering::Release,
    );
    loop {
        // SAFETY: ends this process and nothing else.
        let _ = unsafe { call(libc::SYS_exit_group, [127, 0, 0, 0, 0, 0]) };
    }
}

type Failed = (Step, i32);

/// The steps, in the order that lets each still do its work: what needs privileges first.
///
/// # Safety
/// Runs in a child of `start`, with the plan that was made for it.
unsafe fn take_steps(plan: &ChildPlan) -> Result<std::convert::Infallible, Failed> {
    // SAFETY: the recipe is kept by the slot, or copied by the fork. The rest of this function
    // passes numbers, and addresses of what plan and recipe hold, to system calls that read them.
    unsafe {
        let recipe = &*plan.recipe;
        enter_groups(plan)?;
        if recipe.namespaces != 0 {
            settle_namespaces(recipe)?;
        }
        set_limits(recipe, plan.mark)?;
        set_priority(recipe)?;
        if let Some(mask) = recipe.umask {
            let _ = call(libc::SYS_umask, [mask as usize, 0, 0, 0, 0, 0]);
        }
        let account = plan.account.as_ref();
        let identity = account.map(|account| &account.identity);
        if let Some(ids) = identity.or(recipe.identity.as_ref()) {
            become_ids(ids)?;
        }
        if !plan.outlives {
            tie_to_spawner(plan)?;
        }
        restrict(recipe)?;
        if let Some(account) = account {
            connect(plan)?;
            execute_checked(&account.way, plan, account.identity.uid)?;
        } else {
            let folder = [plan.folder as usize, 0, 0, 0, 0, 0];
            step(Step::ChangeFolder, libc::SYS_chdir, folder)?;
            connect(plan)?;
        }
        let program = plan.program as usize;
        let (arguments, variables) = (plan.arguments as usize, plan.variables as usize);
        let execute = [program, arguments, variables, 0, 0, 0];
        step(Step::Exec, libc::SYS_execve, execute)?;
        Err((Step::Exec, libc::EIO))
    }
}

/// Goes down to the program of an account, as that account, looks at each folder and at the file
/// itself, and executes that very file. Returns where another one is to be executed: the program's
/// interpreter, or its path if it is a script, which the kernel has its interpreter open by name.
/// Who could put something else there meanwhile is the account alone, and it runs as that.
unsafe fn execute_checked(way: &AccountWay, plan: &ChildPlan, uid: u32) -> Result<(), Failed> {
    let by_name = (libc::O_PATH | libc::O_CLOEXEC) as usize;
    let (folder, no_link) = (libc::O_DIRECTORY as usize, libc::O_NOFOLLOW as usize);
    // SAFETY: all names end in NUL and are kept by the slot, or copied by the fork.
    unsafe {
        let fixed = [
            libc::AT_FDCWD as usize,
            way.fixed.as_ptr() as usize,
            by_name | folder,
            0,
            0,
            0,
        ];
        let mut at = step(Step::ChangeFolder, libc::SYS_openat, fixed)?;
        let mut left = way.count;
        for name in way.names.split_inclusive(|byte| *byte == 0) {
            left -= 1;
            let place = name.as_ptr() as usize;
            if left == 0 {
                let open = [at, place, by_name | no_link, 0, 0, 0];
                let file = step(Step::Exec, libc::SYS_openat, open)?;
                check_program(&look(Step::ProgramKind, file)?, uid)?;
                step(Step::ChangeFolder, libc::SYS_fchdir, [at, 0, 0, 0, 0, 0])?;
                return match way.executes_itself {
                    true => execute_file(file, plan),
                    false => Ok(()),
                };
            }
            let open = [at, place, by_name | no_link | folder, 0, 0, 0];
            let next = step(Step::FolderKind, libc::SYS_openat, open)?;
            check_folder(&look(Step::FolderKind, next)?, uid, left == 1)?;
            let _ = call(libc::SYS_close, [at, 0, 0, 0, 0, 0]);
            at = next;
        }
    }
    Err((Step::ProgramKind, libc::EINVAL))
}

/// The folders that lead to the last may be root's: it has made them.
fn check_folder(found: &libc::statx, uid: u32, is_last: bool) -> Result<(), Failed> {
    let is_own = found.stx_uid == uid || (found.stx_uid == 0 && !is_last);
    match (is_own, u32::from(found.stx_mode) & 0o022) {
        (false, _) => Err((Step::FolderOwner, libc::EPERM)),
        (true, 0) => Ok(()),
        (true, _) => Err((Step::FolderMode, libc::EPERM)),
    }
}

fn check_program(found: &libc::statx, uid: u32) -> Result<(), Failed> {
    let mode = u32::from(found.stx_mode);
    let checks = [
        (mode & libc::S_IFMT == libc::S_IFREG, Step::ProgramKind),
        (found.stx_uid == uid, Step::ProgramOwner),
        (mode & 0o022 == 0, Step::ProgramMode),
        (mode & 0o6000 == 0, Step::ProgramSetId),
    ];
    for (is_right, step) in checks {
        if !is_right {
            return Err((step, libc::EPERM));
        }
    }
    Ok(())
}

/// What a descriptor leads to.
unsafe fn look(which: Step, fd: usize) -> Result<libc::statx, Failed> {
    // SAFETY: numbers only, for which zero is a value; the kernel fills it in.
    unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        let mask = (libc::STATX_TYPE | libc::STATX_MODE | libc::STATX_UID) as usize;
        let (empty, flags) = (c"".as_ptr() as usize, libc::AT_EMPTY_PATH as usize);
        let place = &raw mut found as usize;
        step(which, libc::SYS_statx, [fd, empty, flags, mask, place, 0])?;
        Ok(found)
    }
}

/// Executes an open file. Returns where it is a script: the descriptor that its interpreter would
/// have to read it by is closed by then.
unsafe fn execute_file(file: usize, plan: &ChildPlan) -> Result<(), Failed> {
    let (empty, flags) = (c"".as_ptr() as usize, libc::AT_EMPTY_PATH as usize);
    let (arguments, variables) = (plan.arguments as usize, plan.variables as usize);
    let execute = [file, empty, arguments, variables, flags, 0];
    // SAFETY: what the plan points to is as `execve` wants it.
    match unsafe { step(Step::Exec, libc::SYS_execveat, execute) } {
        Ok(_) => Err((Step::Exec, libc::EIO)),
        Err((_, libc::ENOENT)) => Ok(()),
        Err(failed) => Err(failed),
    }
}

/// A spawner that dies takes its programs along.
unsafe fn tie_to_spawner(plan: &ChildPlan) -> Result<(), Failed> {
    // SAFETY: numbers.
    unsafe {
        let tie = [
            libc::PR_SET_PDEATHSIG as usize,
            libc::SIGKILL as usize,
            0,
            0,
            0,
            0,
        ];
        step(Step::DeathSignal, libc::SYS_prctl, tie)?;
        // It may have died before.
        let parent = step(Step::DeathSignal, libc::SYS_getppid, [0; 6])?;
        if parent != plan.parent as usize {
            return Err((Step::DeathSignal, libc::ESRCH));
        }
    }
    Ok(())
}

unsafe fn restrict(recipe: &Recipe) -> Result<(), Failed> {
    // SAFETY: numbers, and a descriptor that the recipe holds.
    unsafe {
        if recipe.no_new_privileges {
            let set = [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0];
            step(Step::NoNewPrivileges, libc::SYS_prctl, set)?;
        }
        if let Some(sandbox) = &recipe.sandbox {
            let rules = [sandbox.as_raw_fd() as usize, 0, 0, 0, 0, 0];
            step(Step::Sandbox, libc::SYS_landlock_restrict_self, rules)?;
        }
    }
    Ok(())
}

/// Its standard streams and nothing else of ours: descriptors, group, signals.
unsafe fn connect(plan: &ChildPlan) -> Result<(), Failed> {
    let [input, output, errors] = plan.descriptors;
    // SAFETY: numbers, and a live set of signals with its length.
    unsafe {
        for (from, to) in [(input, 0), (output, 1), (errors, 2)] {
            // All are above 2, because the spawner keeps 0 to 2 open: none overwrites another.
            let arguments = [from as usize, to, 0, 0, 0, 0];
            step(Step::StandardStreams, libc::SYS_dup3, arguments)?;
        }
        let first_unused = connect_channel(plan.channel)?;
        // Everything of ours is closed on exec anyway; a kernel without this call loses a net.
        let rest = [first_unused, u32::MAX as usize, 0, 0, 0, 0];
        let _ = call(libc::SYS_close_range, rest);
        match plan.outlives {
            true => step(Step::Session, libc::SYS_setsid, [0; 6])?,
            false => step(Step::Session, libc::SYS_setpgid, [0; 6])?,
        };
        // Dispositions are as a program expects them: the spawner handles and ignores no signal.
        let (set, none) = (libc::SIG_SETMASK as usize, 0u64);
        let mask = [set, &raw const none as usize, 0, size_of::<u64>(), 0, 0];
        step(Step::Signals, libc::SYS_rt_sigprocmask, mask)?;
    }
    Ok(())
}

/// Its channel, after the streams: what stood at 3 is one of them and was duplicated, or the
/// channel itself. Returns the first descriptor that is nobody's.
unsafe fn connect_channel(channel: i32) -> Result<usize, Failed> {
    if channel < 0 {
        return Ok(3);
    }
    // SAFETY: numbers.
    unsafe {
        match channel {
            3 => {
                // No flags: it stays open over the exec.
                let keep = [3, libc::F_SETFD as usize, 0, 0, 0, 0];
                step(Step::StandardStreams, libc::SYS_fcntl, keep)?
            }
            from => {
                let arguments = [from as usize, 3, 0, 0, 0, 0];
                step(Step::StandardStreams, libc::SYS_dup3, arguments)?
            }
        };
    }
    Ok(4)
}

unsafe fn enter_groups(plan: &ChildPlan) -> Result<(), Failed> {
    // SAFETY: `groups` are `group_count` descriptors that the slot holds; "0" is whoever writes.
    unsafe {
        for index in 0..plan.group_count {
            let file = (*plan.groups.add(index)).as_raw_fd() as usize;
            let arguments = [file, c"0".as_ptr() as usize, 1, 0, 0, 0];
            step(Step::Cgroup, libc::SYS_write, arguments)?;
        }
    }
    Ok(())
}

/// User maps before anything that needs the rights they give, then mounts.
unsafe fn settle_namespaces(recipe: &Recipe) -> Result<(), Failed> {
    // SAFETY: paths, texts and options are NUL-ended or have their length with them.
    unsafe {
        if let Some((users, groups)) = &recipe.maps {
            // Otherwise the files below are root's. This is a fork, with memory of its own.
            let shown = [libc::PR_SET_DUMPABLE as usize, 1, 0, 0, 0, 0];
            step(Step::Namespaces, libc::SYS_prctl, shown)?;
            write_file(c"/proc/self/setgroups", b"deny")?;
            write_file(c"/proc/self/uid_map", users)?;
            write_file(c"/proc/self/gid_map", groups)?;
        }
        if !recipe.mount_tmp {
            return Ok(());
        }
        let private = (libc::MS_REC | libc::MS_PRIVATE) as usize;
        let root = c"/".as_ptr() as usize;
        step(
            Step::Namespaces,
            libc::SYS_mount,
            [0, root, 0, private, 0, 0],
        )?;
        let safe = (libc::MS_NOSUID | libc::MS_NODEV) as usize;
        let (tmpfs, mode) = (c"tmpfs".as_ptr() as usize, c"mode=1777".as_ptr() as usize);
        let tmp = [tmpfs, c"/tmp".as_ptr() as usize, tmpfs, safe, mode, 0];
        step(Step::Namespaces, libc::SYS_mount, tmp)?;
        if recipe.mount_proc {
            let safe = safe | libc::MS_NOEXEC as usize;
            let proc = c"proc".as_ptr() as usize;
            let place = c"/proc".as_ptr() as usize;
            step(
                Step::Namespaces,
                libc::SYS_mount,
                [proc, place, proc, safe, 0, 0],
            )?;
        }
    }
    Ok(())
}

unsafe fn write_file(path: &std::ffi::CStr, text: &[u8]) -> Result<(), Failed> {
    // SAFETY: the path ends in NUL, the text has its length with it, the descriptor is ours.
    unsafe {
        let flags = (libc::O_WRONLY | libc::O_CLOEXEC) as usize;
        let here = libc::AT_FDCWD as usize;
        let open = [here, path.as_ptr() as usize, flags, 0, 0, 0];
        let file = step(Step::Namespaces, libc::SYS_openat, open)?;
        let written = [file, text.as_ptr() as usize, text.len(), 0, 0, 0];
        step(Step::Namespaces, libc::SYS_write, written)?;
        let _ = call(libc::SYS_close, [file, 0, 0, 0, 0, 0]);
    }
    Ok(())
}

unsafe fn set_limits(recipe: &Recipe, mark: u64) -> Result<(), Failed> {
    let mark = [mark; 2];
    // SAFETY: each limit is two numbers, as the kernel reads them.
    unsafe {
        let set = |resource: u32, limit: &[u64; 2]| {
            let arguments = [0, resource as usize, limit.as_ptr() as usize, 0, 0, 0];
            step(Step::Limits, libc::SYS_prlimit64, arguments)
        };
        set(super::kernel::MARK_RESOURCE, &mark)?;
        for (resource, limit) in &recipe.limits {
            set(*resource, limit)?;
        }
    }
    Ok(())
}

unsafe fn set_priority(recipe: &Recipe) -> Result<(), Failed> {
    const IOPRIO_WHO_PROCESS: usize = 1;
    // SAFETY: numbers, and a set of CPUs with its length.
    unsafe {
        if let Some(nice) = recipe.nice {
            let arguments = [libc::PRIO_PROCESS as usize, 0, nice as usize, 0, 0, 0];
            step(Step::Priority, libc::SYS_setpriority, arguments)?;
        }
        if let Some(priority) = recipe.io_priority {
            let arguments = [IOPRIO_WHO_PROCESS, 0, priority as usize, 0, 0, 0];
            step(Step::Priority, libc::SYS_ioprio_set, arguments)?;
        }
        if !recipe.cpus.is_empty() {
            let bytes = size_of_val(recipe.cpus.as_slice());
            let arguments = [0, bytes, recipe.cpus.as_ptr() as usize, 0, 0, 0];
            step(Step::Priority, libc::SYS_sched_setaffinity, arguments)?;
        }
    }
    Ok(())
}

/// Groups while the user may still change them, the user last. This thread is the whole process,
/// so the raw calls are the whole story.
unsafe fn become_ids(ids: &ChildCredentials) -> Result<(), Failed> {
    let (uid, gid) = (ids.uid as usize, ids.gid as usize);
    if uid == 0 {
        return Err((Step::User, libc::EPERM));
    }
    // SAFETY: numbers, and an array of numbers with its length.
    unsafe {
        let groups = [ids.groups.len(), ids.groups.as_ptr() as usize, 0, 0, 0, 0];
        step(Step::Groups, libc::SYS_setgroups, groups)?;
        step(Step::Group, libc::SYS_setresgid, [gid, gid, gid, 0, 0, 0])?;
        step(Step::User, libc::SYS_setresuid, [uid, uid, uid, 0, 0, 0])?;
    }
    Ok(())
}

unsafe fn step(step: Step, number: libc::c_long, arguments: [usize; 6]) -> Result<usize, Failed> {
    // SAFETY: the caller's.
    unsafe { call(number, arguments) }.map_err(|errno| (step, errno))
}

/// A system call that touches no memory of ours but what its arguments point to; libc's wrappers
/// also write `errno`, which a child that shares memory shares.
///
/// # Safety
/// Whatever the call with these arguments requires.
unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> Result<usize, i32> {
    // SAFETY: the caller's.
    let result = unsafe { machine::call(number as usize, arguments) };
    match result {
        -4095..0 => Err(-result as i32),
        _ => Ok(result as usize),
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    /// # Safety
    /// Whatever the call with these arguments requires.
    #[inline]
    pub(super) unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
        let result;
        // SAFETY: the kernel keeps every register but rax, rcx and r11, and uses no stack of ours.
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") number => result,
                in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
                lateout("rcx") _, lateout("r11") _,
                options(nostack),
            );
        }
        result
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    /// # Safety
    /// Whatever the call with these arguments requires.
    #[inline]
    pub(super) unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
        let result;
        // SAFETY: the kernel keeps every register but x0, and uses no stack of ours.
        unsafe {
            std::arch::asm!(
                "svc 0",
                in("x8") number,
                inlateout("x0") a => result,
                in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
                options(nostack),
            );
        }
        result
    }
}

#[cfg(target_arch = "riscv64")]
mod machine {
    /// # Safety
    /// Whatever the call with these arguments requires.
    #[inline]
    pub(super) unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
        let result;
        // SAFETY: the kernel keeps every register but a0, and uses no stack of ours.
        unsafe {
            std::arch::asm!(
                "ecall",
                in("a7") number,
                inlateout("a0") a => result,
                in("a1") b, in("a2") c, in("a3") d, in("a4") e, in("a5") f,
                options(nostack),
            );
        }
        result
    }
}

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
)))]
compile_error!("process/child.rs needs the system call instruction of this processor");

#[cfg(test)]
mod tests;
