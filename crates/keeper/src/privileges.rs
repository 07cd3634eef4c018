//! Who the server becomes, and becoming it for good.
//!
//! The keeper turns names into numbers while it may read everything; the server drops to the
//! numbers: groups, then gid, then uid (the other way round the uid would no longer be allowed to
//! change the rest), then no_new_privs and not dumpable. Then it proves that there is no way back.
//!
//! Unsafe because user look-ups and credential changes exist only as C calls: the raw system calls
//! would change one thread of a process, and only libc reads the user databases.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::ptr;

use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

use super::wire::wire_struct;
use hob_config::{Config, Handlers, ProgramConfig};

/// Users that are tried when the config names none.
const DEFAULT_USERS: [&str; 2] = ["www-data", "nobody"];
/// Users that programs run as when the config names none; the first that is not the server's.
const PROGRAM_USERS: [&str; 3] = ["nobody", "daemon", "www-data"];
/// Linux takes 65,536 groups; nobody whom a server should run as has nearly so many.
const GROUPS_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 256;
/// Largest answer of a look-up, in bytes; a group with thousands of members is long.
const LOOKUP_BYTES_MAX: usize = 1024 * 1024;

/// A user in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserIdentity {
    /// Its name, for people.
    pub(crate) name: String,
    /// User id; never 0.
    pub(crate) uid: u32,
    /// Group id.
    pub(crate) gid: u32,
    /// All groups, the main one included.
    pub(crate) groups: Vec<u32>,
}

/// Who the server becomes: nobody else unless the keeper is root.
///
/// # Errors
/// A sentence for the operator when the names are unknown, name root, or cannot be followed.
pub(crate) fn identity_for(
    user: Option<&str>,
    group: Option<&str>,
) -> Result<Option<UserIdentity>, String> {
    let is_root = geteuid().is_root();
    if !is_root && user.is_none() && group.is_none() {
        return Ok(None);
    }
    let identity = match user {
        Some(name) => find(name, group)?,
        None if !is_root => return Err(not_root("change its group")),
        None => DEFAULT_USERS
            .iter()
            .find_map(|name| find(name, group).ok())
            .ok_or("started as root and neither www-data nor nobody exists; set `user`")?,
    };
    if !is_root {
        let is_same = identity.uid == geteuid().as_raw() && group.is_none();
        return if is_same {
            Ok(None)
        } else {
            Err(not_root(&format!("become {}", identity.name)))
        };
    }
    if identity.uid == 0 {
        return Err("the server never runs as root; name another `user`".to_owned());
    }
    Ok(Some(identity))
}

/// Who a program becomes: nobody else unless the keeper is root; without a name somebody without
/// rights who is not the server.
///
/// # Errors
/// A sentence for the operator, as above.
pub(crate) fn program_identity(
    user: Option<&str>,
    group: Option<&str>,
    server: Option<&UserIdentity>,
) -> Result<Option<UserIdentity>, String> {
    let is_root = geteuid().is_root();
    let Some(server) = server.filter(|_| is_root) else {
        // Its own name is no change.
        let is_other = |identity: UserIdentity| identity.uid != geteuid().as_raw();
        let is_refused = match user {
            Some(name) => find(name, group).map(is_other)? || group.is_some(),
            None => group.is_some(),
        };
        return if is_refused {
            let text = "a program can run as another user or group only when hob is started as \
                        root; leave out its `user` and `group`";
            Err(text.to_owned())
        } else {
            Ok(None)
        };
    };
    let identity = match user {
        Some(name) => find(name, group)?,
        None => PROGRAM_USERS
            .iter()
            .filter_map(|name| find(name, group).ok())
            .find(|identity| identity.uid != 0 && identity.uid != server.uid)
            .ok_or("no account for programs: set `user` in `[program]`, and not the server's")?,
    };
    if identity.uid == 0 {
        return Err("a program never runs as root; name another `user`".to_owned());
    }
    Ok(Some(identity))
}

/// The same of a program of the config. Nobody yet where each of its accounts runs its own.
///
/// # Errors
/// A sentence for the operator, as above.
pub(crate) fn identity_of(
    program: &ProgramConfig,
    server: Option<&UserIdentity>,
) -> Result<Option<UserIdentity>, String> {
    if program.account.is_none() {
        let (user, group) = (program.user.as_deref(), program.group.as_deref());
        return program_identity(user, group, server);
    }
    match server.is_some() && geteuid().is_root() {
        true => Ok(None),
        false => Err(
            "programs can run as the accounts that they belong to only when hob is started as \
             root; leave out `user`"
                .to_owned(),
        ),
    }
}

/// An account by its name alone: a number is none, whatever account has it. `None` where there is
/// no such account.
pub(crate) fn account(name: &str) -> Option<UserIdentity> {
    let (uid, gid, found) = find_user(name)?;
    let found = found.filter(|found| found.to_bytes() == name.as_bytes())?;
    let groups = group_list(&found, gid);
    (groups.len() <= GROUPS_MAX).then(|| UserIdentity {
        name: name.to_owned(),
        uid,
        gid,
        groups,
    })
}

fn not_root(what: &str) -> String {
    format!("the server can {what} only when hob is started as root; leave out `user` and `group`")
}

/// Becomes the identity and proves that nothing of the old one is left.
///
/// # Errors
/// Any step that did not work; the process must end then.
pub(crate) fn become_identity(identity: &UserIdentity) -> io::Result<()> {
    if identity.uid == 0 {
        return Err(io::Error::other("refused to become root"));
    }
    // SAFETY: the pointer and the length describe one live array of gid_t.
    check("set groups", unsafe {
        libc::setgroups(identity.groups.len(), identity.groups.as_ptr())
    })?;
    // SAFETY: takes three numbers; real, effective and saved all change, in every thread.
    check("set the group id", unsafe {
        libc::setresgid(identity.gid, identity.gid, identity.gid)
    })?;
    // SAFETY: as above.
    check("set the user id", unsafe {
        libc::setresuid(identity.uid, identity.uid, identity.uid)
    })?;
    close_the_door()?;
    verify(identity)
}

/// Has this process become what the server of a config is, for good: to see files as it sees them.
/// Returns the user's name, or `None` when the server stays who starts it.
///
/// # Errors
/// A sentence for the operator: the config's user is unknown, or this process may not become it.
pub fn become_server_user<H: Handlers>(config: &Config<H>) -> Result<Option<String>, String> {
    let identity = identity_for(config.user.as_deref(), config.group.as_deref())?;
    if let Some(identity) = &identity {
        become_identity(identity)
            .map_err(|error| format!("cannot become {}: {error}", identity.name))?;
    }
    Ok(identity.map(|identity| identity.name))
}

/// What holds with and without a change of user: no capability is left, no program started from
/// here gains anything, and no process of the same user reads this one's memory.
pub(crate) fn close_the_door() -> io::Result<()> {
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    set_no_new_privs(true)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

fn verify(identity: &UserIdentity) -> io::Result<()> {
    // SAFETY: takes three numbers. That it fails is what we want to know.
    let is_root_again = unsafe { libc::setresuid(0, 0, 0) } == 0;
    // SAFETY: as above.
    let is_group_again = unsafe { libc::setresgid(0, 0, 0) } == 0;
    if is_root_again || (is_group_again && identity.gid != 0) {
        return Err(io::Error::other(
            "privileges came back after they were dropped",
        ));
    }
    let (mut real, mut effective, mut saved) = (0, 0, 0);
    // SAFETY: three live integers are written.
    check("read the user ids", unsafe {
        libc::getresuid(&mut real, &mut effective, &mut saved)
    })?;
    let is_uid = [real, effective, saved] == [identity.uid; 3];
    // SAFETY: three live integers are written.
    check("read the group ids", unsafe {
        libc::getresgid(&mut real, &mut effective, &mut saved)
    })?;
    let is_gid = [real, effective, saved] == [identity.gid; 3];
    let left = capabilities(None)?;
    let is_powerless = (left.effective | left.permitted) == CapabilitySet::empty();
    if is_uid && is_gid && is_powerless {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "dropped to {} only in part: {left:?}",
        identity.name
    )))
}

impl UserIdentity {}

wire_struct!(UserIdentity: name, uid, gid, groups);

/// A user by name or number, with a group by name or number instead of the user's own.
fn find(user: &str, group: Option<&str>) -> Result<UserIdentity, String> {
    let found = match user.parse::<u32>() {
        Ok(uid) => find_uid(uid).or(group.is_some().then_some((uid, u32::MAX, None))),
        Err(_) => find_user(user),
    };
    let (uid, own_gid, name) =
        found.ok_or_else(|| format!("no user `{user}` on this machine; check the name"))?;
    let gid = match group {
        None => own_gid,
        Some(group) => find_group(group)
            .ok_or_else(|| format!("no group `{group}` on this machine; check the name"))?,
    };
    let groups = match &name {
        Some(name) => group_list(name, gid),
        None => vec![gid],
    };
    let name = name.map_or(user.to_owned(), |name| name.to_string_lossy().into_owned());
    if groups.len() > GROUPS_MAX || name.len() > NAME_BYTES_MAX {
        return Err(format!(
            "user `{user}` has too long a name or more than {GROUPS_MAX} groups"
        ));
    }
    Ok(UserIdentity {
        name,
        uid,
        gid,
        groups,
    })
}

type User = (u32, u32, Option<CString>);

fn find_user(name: &str) -> Option<User> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` ends in NUL; the rest is what `look_up_user` vouches for.
    look_up_user(|entry, buffer, len, found| unsafe {
        libc::getpwnam_r(name.as_ptr(), entry, buffer, len, found)
    })
}

fn find_uid(uid: u32) -> Option<User> {
    // SAFETY: what `look_up_user` vouches for.
    look_up_user(|entry, buffer, len, found| unsafe {
        libc::getpwuid_r(uid, entry, buffer, len, found)
    })
}

/// Runs a user look-up with room for its answer: `entry`, `buffer` of `len` bytes and `found` are
/// live and exclusively borrowed for the call.
fn look_up_user(
    call: impl Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> i32,
) -> Option<User> {
    let mut buffer: Vec<libc::c_char> = vec![0; 4096];
    loop {
        // SAFETY: passwd is plain integers and pointers, for which zero is a value.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = ptr::null_mut();
        let code = call(&mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found);
        if code == libc::ERANGE && buffer.len() < LOOKUP_BYTES_MAX {
            buffer.resize(buffer.len() * 4, 0);
            continue;
        }
        if code != 0 || found.is_null() {
            return None;
        }
        // SAFETY: the call succeeded, so pw_name is a C string inside `buffer`, which still lives.
        let name = unsafe { CStr::from_ptr(entry.pw_name) };
        return Some((entry.pw_uid, entry.pw_gid, Some(name.to_owned())));
    }
}

fn find_group(group: &str) -> Option<u32> {
    if let Ok(gid) = group.parse() {
        return Some(gid);
    }
    let name = CString::new(group).ok()?;
    let mut buffer: Vec<libc::c_char> = vec![0; 4096];
    loop {
        // SAFETY: group is plain integers and pointers, for which zero is a value.
        let mut entry: libc::group = unsafe { std::mem::zeroed() };
        let mut found = ptr::null_mut();
        // SAFETY: `name` ends in NUL; entry, buffer (with its length) and found are live.
        let code = unsafe {
            libc::getgrnam_r(
                name.as_ptr(),
                &mut entry,
                buffer.as_mut_ptr(),
                buffer.len(),
                &mut found,
            )
        };
        if code == libc::ERANGE && buffer.len() < LOOKUP_BYTES_MAX {
            buffer.resize(buffer.len() * 4, 0);
            continue;
        }
        return (code == 0 && !found.is_null()).then_some(entry.gr_gid);
    }
}

fn group_list(user: &CStr, gid: u32) -> Vec<u32> {
    let mut groups = vec![0; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: `user` ends in NUL; `groups` has room for `count` numbers; `count` is live.
        let code =
            unsafe { libc::getgrouplist(user.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
        let count = usize::try_from(count).unwrap_or(0);
        if code >= 0 {
            groups.truncate(count);
            return groups;
        }
        if groups.len() > GROUPS_MAX {
            return groups;
        }
        groups.resize((groups.len() * 2).max(count), 0);
    }
}

fn check(what: &str, code: libc::c_int) -> io::Result<()> {
    if code == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(io::Error::new(
        error.kind(),
        format!("cannot {what}: {error}"),
    ))
}

#[cfg(test)]
mod tests;
