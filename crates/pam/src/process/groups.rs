//! The groups of an account, as the system knows them.
//!
//! Unsafe because they are calls of the C library: only that asks whatever `nsswitch.conf` names.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use crate::message::GROUPS_MAX;

/// Room for an entry of the system's lists, in bytes. One that does not fit is not told.
const ENTRY_BYTES: usize = 256 * 1024;

/// The names of an account's groups; none where the system does not know it.
pub(super) fn of(account: &str) -> Vec<String> {
    let Ok(name) = CString::new(account) else {
        return Vec::new();
    };
    let mut room = vec![0; ENTRY_BYTES];
    let Some(first) = group_of(&name, &mut room) else {
        return Vec::new();
    };
    let names = numbers_of(&name, first).into_iter();
    names
        .filter_map(|group| name_of(group, &mut room))
        .collect()
}

/// The group that an account's own entry has.
fn group_of(account: &CStr, room: &mut [libc::c_char]) -> Option<libc::gid_t> {
    let mut entry = MaybeUninit::<libc::passwd>::zeroed();
    let mut found = null_mut();
    // SAFETY: the name ends in NUL, and all room is as long as said.
    let failed = unsafe {
        let (entry, found) = (entry.as_mut_ptr(), &raw mut found);
        libc::getpwnam_r(
            account.as_ptr(),
            entry,
            room.as_mut_ptr(),
            room.len(),
            found,
        )
    };
    // SAFETY: it was found, so it is filled in.
    (failed == 0 && !found.is_null()).then(|| unsafe { entry.assume_init() }.pw_gid)
}

/// The numbers of all its groups.
fn numbers_of(account: &CStr, first: libc::gid_t) -> Vec<libc::gid_t> {
    let mut numbers = vec![0; GROUPS_MAX];
    let mut count = GROUPS_MAX as libc::c_int;
    let (list, room) = (numbers.as_mut_ptr(), &raw mut count);
    // SAFETY: the name ends in NUL, and there is room for so many; more are left out.
    unsafe { libc::getgrouplist(account.as_ptr(), first, list, room) };
    numbers.truncate(usize::try_from(count).unwrap_or(0).min(GROUPS_MAX));
    numbers
}

/// What a group is called.
fn name_of(group: libc::gid_t, room: &mut [libc::c_char]) -> Option<String> {
    let mut entry = MaybeUninit::<libc::group>::zeroed();
    let mut found = null_mut();
    // SAFETY: all room is as long as said.
    let failed = unsafe {
        let (entry, found) = (entry.as_mut_ptr(), &raw mut found);
        libc::getgrgid_r(group, entry, room.as_mut_ptr(), room.len(), found)
    };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: it was found, so its name is a string that ends in NUL, in `room`.
    let name = unsafe { CStr::from_ptr(entry.assume_init().gr_name) };
    name.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_the_system() {
        assert_eq!(of("root"), ["root"]);
        assert!(of("no such account").is_empty() && of("a\0b").is_empty());
    }
}
