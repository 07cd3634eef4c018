//! What an account may do on the disk: of one's own account the kernel tells it, of another its
//! numbers and the modes of files do, so that root sees what the account will.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, getxattr};

use crate::privileges::UserIdentity;

/// Who looks.
pub(super) struct AccountAccess<'a>(Option<&'a UserIdentity>);

/// What is wanted of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// To pass through a folder.
    Enter,
    /// To read it.
    Read,
    /// To write to it.
    Write,
    /// To run it.
    Execute,
}

impl Want {
    fn word(self) -> &'static str {
        match self {
            Want::Enter => "entered",
            Want::Read => "read",
            Want::Write => "written to",
            Want::Execute => "executed",
        }
    }

    fn bit(self) -> u32 {
        match self {
            Want::Read => 4,
            Want::Write => 2,
            Want::Enter | Want::Execute => 1,
        }
    }

    fn access(self) -> Access {
        match self {
            Want::Read => Access::READ_OK,
            Want::Write => Access::WRITE_OK,
            Want::Enter | Want::Execute => Access::EXEC_OK,
        }
    }

    /// How it is allowed.
    fn letter(self) -> char {
        match self {
            Want::Read => 'r',
            Want::Write => 'w',
            Want::Enter | Want::Execute => 'x',
        }
    }
}

/// What stands in the way: the message, and what to do.
pub(super) type Denied = (String, String);

impl<'a> AccountAccess<'a> {
    /// `None` is whoever runs this.
    pub(super) fn of(identity: Option<&'a UserIdentity>) -> AccountAccess<'a> {
        AccountAccess(identity)
    }

    /// Why it may not do this with what stands at a path. What is not there denies nothing.
    pub(super) fn denied(&self, path: &Path, want: Want) -> Option<Denied> {
        let folders = folders_to(path).into_iter();
        let folder = folders.into_iter().find(|at| !self.may(at, Want::Enter));
        let (at, what) = match folder {
            Some(folder) => (folder, Want::Enter),
            None if !self.may(path, want) => (path.to_owned(), want),
            None => return None,
        };
        let facts = fs::metadata(&at).ok()?;
        let (mode, uid, gid) = (facts.mode() & 0o7777, facts.uid(), facts.gid());
        let who = self.name();
        let named = match at == path {
            true => "it".to_owned(),
            false => at.display().to_string(),
        };
        let message = format!(
            "{} cannot be {} by {who}: {named} has mode {mode:o} and belongs to user {uid} and \
             group {gid}",
            path.display(),
            want.word(),
        );
        let hint = format!(
            "allow it to {who} (`chmod o+{} {}`, or another owner or group)",
            what.letter(),
            at.display()
        );
        Some((message, hint))
    }

    fn name(&self) -> String {
        match self.0 {
            Some(identity) => format!("`{}`", identity.name),
            None => format!("user {}", rustix::process::geteuid().as_raw()),
        }
    }

    fn may(&self, path: &Path, want: Want) -> bool {
        let Some(identity) = self.0 else {
            let denied = accessat(CWD, path, want.access(), AtFlags::EACCESS);
            return !matches!(
                denied,
                Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM)
            );
        };
        let Ok(facts) = fs::metadata(path) else {
            return true;
        };
        // More than the mode decides there, and devices have drivers.
        let has_list = getxattr(path, "system.posix_acl_access", &mut [0_u8; 0]).is_ok();
        if has_list || facts.file_type().is_char_device() {
            return true;
        }
        let shift = match (facts.uid(), facts.gid()) {
            (uid, _) if uid == identity.uid => 6,
            (_, gid) if gid == identity.gid || identity.groups.contains(&gid) => 3,
            _ => 0,
        };
        facts.mode() >> shift & want.bit() != 0
    }
}

/// The folders that are passed on the way to a path, those behind symbolic links as well.
fn folders_to(path: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut pass = |last: &Path| {
        let all: Vec<&Path> = last.ancestors().collect();
        for folder in all.into_iter().rev() {
            if !folder.as_os_str().is_empty() && !folders.iter().any(|known| known == folder) {
                folders.push(folder.to_owned());
            }
        }
    };
    path.parent().into_iter().for_each(&mut pass);
    for link in path.ancestors().filter(|part| part.is_symlink()) {
        let Ok(real) = fs::canonicalize(link) else {
            continue;
        };
        match link == path {
            true => real.parent().into_iter().for_each(&mut pass),
            false => pass(&real),
        }
    }
    folders
}
