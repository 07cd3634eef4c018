//! A start, from the packet that asks for it to the process.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use rustix::fs::{FileType, Mode, OFlags, SealFlags, Uid, fchown, fcntl_get_seals, fstat, fstatfs};
use rustix::io::Errno;
use rustix::net::{AddressFamily, sockopt};
use rustix::pipe::PipeFlags;
use rustix::process::geteuid;

use super::asked::{self, Allowed};
use super::cgroup::ProcessCgroup;
use super::prepare::PreparedProgram;
use super::running::{RunningProgramId, RunningPrograms};
use crate::privileges;
use crate::process::bare;
use crate::process::child::ChildSlot;
use crate::process::message::{START_HEAD_BYTES, StartHead, Step};
use crate::process::packet::Descriptors;
use crate::process::recipe::{
    AccountStart, AccountWay, ChildCredentials, Particulars, Recipe, StringsLayout,
};

/// Why a program was not started.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) step: Step,
    pub(super) errno: i32,
    /// What the policy does not allow, where it is that.
    pub(super) what: Vec<u8>,
}

impl From<(Step, i32)> for Refused {
    fn from((step, errno): (Step, i32)) -> Refused {
        Refused {
            step,
            errno,
            what: Vec::new(),
        }
    }
}

/// Starts a program from the strings in `slot`.
pub(super) fn start(
    name: RunningProgramId,
    head: StartHead,
    descriptors: Descriptors,
    prepared: &PreparedProgram,
    slot: &mut ChildSlot,
    running: &mut RunningPrograms,
) -> Result<i32, Refused> {
    let Sorted {
        input,
        output,
        errors,
        channel,
        memory,
    } = sort(descriptors, head)?;
    let layout = StringsLayout {
        offset: if head.in_memory { 0 } else { START_HEAD_BYTES },
        len: head.string_bytes as usize,
        argument_count: head.argument_count as usize,
        variable_count: head.variable_count as usize,
    };
    slot.set_memory(Vec::new());
    if let Some(memory) = memory {
        let strings = read_memory(&memory, layout.len);
        slot.set_memory(strings.map_err(|errno| (Step::Message, errno.raw_os_error()))?);
    }
    let Checked {
        recipe,
        source,
        account,
    } = check(prepared, slot, layout, head)?;
    let owner = owner(prepared, account.as_ref())?;
    give_all(
        input.iter().chain([&output, &errors]),
        channel.as_ref(),
        owner,
    )?;
    let own_input;
    let input = match (source, &input, &prepared.no_input) {
        (Some(_), Some(_), _) => return Err(wrong(Step::Descriptors)),
        (None, Some(input), _) | (None, None, Some(input)) => input,
        (source, None, _) => {
            own_input = source
                .map_or_else(empty_pipe, opened_again)
                .map_err(|errno| (Step::Descriptors, errno.raw_os_error()))?;
            &own_input
        }
    };
    let seat = seat(prepared)?;
    let (report, reserved) = running
        .reserve(head.takes_along)
        .ok_or((Step::Room, libc::EAGAIN))?;
    let particulars = Particulars {
        recipe,
        descriptors: [input.as_fd(), output.as_fd(), errors.as_fd()],
        channel: channel.as_ref().map(AsFd::as_fd),
        groups: seat.as_ref().map_or(&[], |seat| seat.to_enter()),
        born_in: seat.as_ref().and_then(|seat| seat.born_in()),
        mark: reserved.mark,
        spawner: running.spawner(),
        outlives: head.outlives,
        account,
    };
    match slot.start(layout, particulars, report) {
        Ok(pid) => {
            running.add(name, pid, reserved, seat);
            Ok(pid)
        }
        Err(error) => {
            running.give_back(reserved);
            let step = match error.kind() {
                std::io::ErrorKind::InvalidInput => Step::Message,
                _ => Step::Clone,
            };
            Err((step, error.raw_os_error().unwrap_or(libc::EINVAL)).into())
        }
    }
}

/// Who a program runs as; `None` is who we are, which is never root.
fn owner(
    prepared: &PreparedProgram,
    account: Option<&AccountStart>,
) -> Result<Option<u32>, Refused> {
    let owner = account
        .map(|account| account.identity.uid)
        .or(prepared.owner);
    match owner.is_none() && geteuid().is_root() {
        true => Err((Step::User, libc::EPERM).into()),
        false => Ok(owner),
    }
}

/// Gives a program its streams and its channel.
fn give_all<'d>(
    streams: impl Iterator<Item = &'d OwnedFd>,
    channel: Option<&OwnedFd>,
    owner: Option<u32>,
) -> Result<(), Refused> {
    for descriptor in streams {
        give(descriptor, owner)?;
    }
    channel.map_or(Ok(()), |channel| give_channel(channel, owner))
}

/// A place in the control group of the program, if it has one.
fn seat(prepared: &PreparedProgram) -> Result<Option<Rc<ProcessCgroup>>, Refused> {
    let Some(group) = &prepared.group else {
        return Ok(None);
    };
    let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let seat = group.seat();
    let seat = seat.map_err(|error| (Step::Cgroup, errno(error)))?;
    Ok(Some(Rc::new(seat)))
}

/// A start that the policy allows.
struct Checked<'p> {
    recipe: Rc<Recipe>,
    /// Of a host that it is.
    source: Option<&'p OwnedFd>,
    /// Who it becomes, where its folder says that.
    account: Option<AccountStart>,
}

/// Refuses what the policy does not allow.
fn check<'p>(
    prepared: &'p PreparedProgram,
    slot: &ChildSlot,
    layout: StringsLayout,
    head: StartHead,
) -> Result<Checked<'p>, Refused> {
    let strings = slot.path_and_folder(layout);
    let (path, folder) = strings.ok_or_else(|| wrong(Step::Message))?;
    if !prepared.may_work_in(folder) {
        return Err(Refused {
            step: Step::Folder,
            errno: libc::EACCES,
            what: folder.to_vec(),
        });
    }
    let has_nothing_to_do = !head.has_channel
        && head.no_input
        && bare::is_bare(path, slot.arguments(layout), layout.variable_count);
    if has_nothing_to_do && (prepared.is_named(path) || bare::is_of_system(path)) {
        let recipe = prepared.bare().ok_or((Step::Sandbox, libc::EMFILE))?;
        // With nothing to do it is in nobody's folder: it starts as whom the policy names, or not.
        return Ok(Checked {
            recipe,
            source: None,
            account: None,
        });
    }
    let asked = asked::Start {
        path,
        arguments: slot.arguments(layout),
        variables: slot.variables(layout),
    };
    let allowed = asked.check(prepared)?;
    let account = match (&prepared.account, &allowed) {
        (None, _) => None,
        (Some(_), Allowed::File(file)) => Some(account(prepared, (path, folder), file)?),
        (Some(_), Allowed::Line | Allowed::Host(_)) => {
            return Err((Step::Account, libc::ENOENT).into());
        }
    };
    Ok(Checked {
        recipe: Rc::clone(&prepared.recipe),
        source: match allowed {
            Allowed::Host(source) => Some(source),
            Allowed::File(_) | Allowed::Line => None,
        },
        account,
    })
}

/// The account whose folder a file is in, as the system knows it now; the file runs in its own
/// folder. The rest is checked on the way there, as that account.
fn account(
    prepared: &PreparedProgram,
    (path, folder): (&[u8], &[u8]),
    file: &[u8],
) -> Result<AccountStart, Refused> {
    let refused = |step, errno, what: &[u8]| Refused {
        step,
        errno,
        what: what.to_vec(),
    };
    let (Some(rule), Some(captured)) = (&prepared.account, &prepared.captured) else {
        return Err((Step::Account, libc::ENOENT).into());
    };
    let of = file
        .iter()
        .rposition(|byte| *byte == b'/')
        .map(|at| &file[..at]);
    if of != Some(folder) {
        return Err(refused(Step::Folder, libc::EACCES, folder));
    }
    let (values, _) = captured.read(file).ok_or((Step::Account, libc::ENOENT))?;
    let mut values = captured.captures().zip(values);
    let value = values.find(|(capture, _)| rule.name.capture.as_deref() == Some(*capture));
    let (_, value) = value.ok_or((Step::Account, libc::ENOENT))?;
    let name = rule.name.filled(value);
    let known = std::str::from_utf8(&name)
        .ok()
        .and_then(privileges::account);
    let identity = known.ok_or_else(|| refused(Step::Account, libc::ENOENT, &name))?;
    let is_within = |id: u32, (min, max): (u32, u32)| id != 0 && (min..=max).contains(&id);
    if !is_within(identity.uid, rule.uids) || !is_within(identity.gid, rule.gids) {
        return Err(refused(Step::AccountNumber, libc::EPERM, &name));
    }
    let way = AccountWay::to(&captured.fixed, file, path == file);
    let way = way.ok_or_else(|| refused(Step::FolderKind, libc::EPERM, file))?;
    Ok(AccountStart {
        identity: ChildCredentials {
            uid: identity.uid,
            gid: identity.gid,
            groups: identity.groups,
        },
        way,
    })
}

fn wrong(step: Step) -> Refused {
    (step, libc::EINVAL).into()
}

/// What the descriptors of a start are.
struct Sorted {
    /// `None` when standard input is empty.
    input: Option<OwnedFd>,
    output: OwnedFd,
    errors: OwnedFd,
    /// What it is talked to over.
    channel: Option<OwnedFd>,
    /// The strings, if they are not in the packet.
    memory: Option<OwnedFd>,
}

fn sort(descriptors: Descriptors, head: StartHead) -> Result<Sorted, Refused> {
    let mut descriptors = descriptors.into_iter().flatten();
    let mut next = |is_there: bool| match is_there {
        true => descriptors
            .next()
            .map(Some)
            .ok_or_else(|| wrong(Step::Descriptors)),
        false => Ok(None),
    };
    let input = next(!head.no_input)?;
    let (output, errors) = (next(true)?, next(true)?);
    let (channel, memory) = (next(head.has_channel)?, next(head.in_memory)?);
    match (output, errors, descriptors.next()) {
        (Some(output), Some(errors), None) => Ok(Sorted {
            input,
            output,
            errors,
            channel,
            memory,
        }),
        _ => Err(wrong(Step::Descriptors)),
    }
}

/// What a program and the server talk over: a Unix socket, which belongs to nobody, or a pipe,
/// which is given to the program's user.
fn give_channel(channel: &OwnedFd, owner: Option<u32>) -> Result<(), Refused> {
    if sockopt::socket_domain(channel) == Ok(AddressFamily::UNIX) {
        return Ok(());
    }
    let found = fstat(channel).map_err(|errno| (Step::Descriptors, errno.raw_os_error()))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Fifo => give(channel, owner),
        _ => Err(wrong(Step::Descriptors)),
    }
}

/// Our own memory, to be read from its start whoever else reads it.
fn opened_again(memory: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// The reading end of a pipe nobody writes to.
pub(super) fn empty_pipe() -> rustix::io::Result<OwnedFd> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map(|(input, _)| input)
}

/// A pipe is given to the program's user, so that it can open `/dev/stdout`. Files are taken as
/// they are; sockets are not taken.
fn give(descriptor: &OwnedFd, owner: Option<u32>) -> Result<(), Refused> {
    /// `PIPEFS_MAGIC`: of a pipe, and not of a named one that stands in a file system.
    const PIPES: u32 = 0x5049_5045;
    let failed = |errno: Errno| (Step::Descriptors, errno.raw_os_error());
    if fstatfs(descriptor).map_err(failed)?.f_type as u32 == PIPES {
        return match owner {
            Some(uid) => Ok(fchown(descriptor, Some(Uid::from_raw(uid)), None).map_err(failed)?),
            None => Ok(()),
        };
    }
    match FileType::from_raw_mode(fstat(descriptor).map_err(failed)?.st_mode) {
        FileType::RegularFile | FileType::CharacterDevice => Ok(()),
        _ => Err(wrong(Step::Descriptors)),
    }
}

/// Strings from sealed memory; anything else could make us wait.
fn read_memory(memory: &OwnedFd, len: usize) -> rustix::io::Result<Vec<u8>> {
    let seals = fcntl_get_seals(memory.as_fd())?;
    if !seals.contains(SealFlags::WRITE | SealFlags::SHRINK) {
        return Err(Errno::PERM);
    }
    let file = std::fs::File::from(rustix::io::fcntl_dupfd_cloexec(memory, 0)?);
    let mut strings = vec![0; len];
    file.read_exact_at(&mut strings, 0)
        .map_err(|_| Errno::INVAL)?;
    Ok(strings)
}
