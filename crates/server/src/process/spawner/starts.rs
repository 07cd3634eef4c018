//! A start, from the packet that asks for it to the process.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use rustix::fs::{FileType, SealFlags, Uid, fchown, fcntl_get_seals, fstat, fstatfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::prepare::Prepared;
use super::running::{Name, Running};
use crate::process::child::{Layout, Particulars, Slot};
use crate::process::message::{START_HEAD_BYTES, StartHead, Step};
use crate::process::packet::Descriptors;

/// Why a program was not started.
pub(super) type Refused = (Step, i32);

/// Starts a program from the strings in `slot`.
pub(super) fn start(
    name: Name,
    head: StartHead,
    descriptors: Descriptors,
    prepared: &Prepared,
    slot: &mut Slot,
    running: &mut Running,
) -> Result<(), Refused> {
    let (standard, channel, memory) = sort(descriptors, head)?;
    let layout = Layout {
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
    if prepared.owner.is_none() && geteuid().is_root() {
        return Err((Step::User, libc::EPERM));
    }
    let (path, folder) = slot.path_and_folder(layout).ok_or(wrong(Step::Message))?;
    if !prepared.may_run(path) {
        return Err((Step::Path, libc::EACCES));
    }
    if !prepared.may_work_in(folder) {
        return Err((Step::Folder, libc::EACCES));
    }
    for descriptor in &standard {
        give(descriptor, prepared.owner)?;
    }
    if let Some(channel) = &channel {
        give_channel(channel, prepared.owner)?;
    }
    let seat = match &prepared.group {
        None => None,
        Some(group) => {
            let seat = group.seat();
            let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
            Some(Rc::new(seat.map_err(|error| (Step::Cgroup, errno(error)))?))
        }
    };
    let (report, reserved) = running
        .reserve(head.takes_along)
        .ok_or((Step::Room, libc::EAGAIN))?;
    let particulars = Particulars {
        recipe: Rc::clone(&prepared.recipe),
        descriptors: standard,
        channel,
        groups: seat.as_ref().map_or(&[], |seat| seat.to_enter()),
        born_in: seat.as_ref().and_then(|seat| seat.born_in()),
        mark: reserved.mark,
        outlives: head.outlives,
    };
    match slot.start(layout, particulars, report) {
        Ok(pid) => {
            running.add(name, pid, reserved, seat);
            Ok(())
        }
        Err(error) => {
            running.give_back(reserved);
            let step = match error.kind() {
                std::io::ErrorKind::InvalidInput => Step::Message,
                _ => Step::Clone,
            };
            Err((step, error.raw_os_error().unwrap_or(libc::EINVAL)))
        }
    }
}

fn wrong(step: Step) -> Refused {
    (step, libc::EINVAL)
}

/// What comes with a start.
type Sorted = ([OwnedFd; 3], Option<OwnedFd>, Option<OwnedFd>);

/// The standard streams, the channel, and the memory with the strings.
fn sort(descriptors: Descriptors, head: StartHead) -> Result<Sorted, Refused> {
    let [Some(input), Some(output), Some(errors), fourth, fifth] = descriptors else {
        return Err(wrong(Step::Descriptors));
    };
    let (channel, memory) = match head.has_channel {
        true => (fourth, fifth),
        false if fifth.is_none() => (None, fourth),
        false => return Err(wrong(Step::Descriptors)),
    };
    if channel.is_some() != head.has_channel || memory.is_some() != head.in_memory {
        return Err(wrong(Step::Descriptors));
    }
    Ok(([input, output, errors], channel, memory))
}

/// A socket, or a pipe, which is given to the program's user as its streams are.
fn give_channel(channel: &OwnedFd, owner: Option<u32>) -> Result<(), Refused> {
    let found = fstat(channel).map_err(|errno| (Step::Descriptors, errno.raw_os_error()))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Socket => Ok(()),
        FileType::Fifo => give(channel, owner),
        _ => Err(wrong(Step::Descriptors)),
    }
}

/// A pipe is given to the program's user, so that it can open `/dev/stdout`. Files are taken as
/// they are; sockets are not taken.
fn give(descriptor: &OwnedFd, owner: Option<u32>) -> Result<(), Refused> {
    /// `PIPEFS_MAGIC`: of a pipe, and not of a named one that stands in a file system.
    const PIPES: u32 = 0x5049_5045;
    let failed = |errno: Errno| (Step::Descriptors, errno.raw_os_error());
    if fstatfs(descriptor).map_err(failed)?.f_type as u32 == PIPES {
        return match owner {
            Some(uid) => fchown(descriptor, Some(Uid::from_raw(uid)), None).map_err(failed),
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
