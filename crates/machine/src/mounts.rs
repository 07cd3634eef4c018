//! What is mounted, as this process sees it. No file system is asked: one that hangs must not hold
//! who wants to know its kind.

use std::collections::HashMap;

use crate::read::read;

/// The kinds of mounted file systems (`ext4`, `nfs4`, `fuse.sshfs`), by the numbers that `statx`
/// and `/proc/self/mountinfo` have for them (`STATX_MNT_ID`, proc(5)).
pub fn kinds() -> HashMap<u64, String> {
    kinds_in(&read("/proc/self/mountinfo"))
}

/// The same of such a file: `ID PARENT DEVICE ROOT PLACE OPTIONS [TAG...] - KIND SOURCE OPTIONS`.
fn kinds_in(mounts: &str) -> HashMap<u64, String> {
    let kind = |line: &str| {
        let (mount, file_system) = line.split_once(" - ")?;
        let id = mount.split(' ').next()?.parse().ok()?;
        Some((id, file_system.split(' ').next()?.to_owned()))
    };
    mounts.lines().filter_map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_that_of_the_mount_with_this_number() {
        let mounts = "22 1 0:21 / / rw,relatime shared:1 - overlay overlay rw\n\
                      36 22 98:0 /a\\040b /mnt ro - ext3 /dev/root rw\n\
                      40 22 0:50 / /far rw - fuse.sshfs box:/ rw,user_id=0\n\
                      nonsense\n41 22 0:51 / /cut rw\n";
        let kinds = kinds_in(mounts);
        assert_eq!(
            (kinds[&22].as_str(), kinds[&36].as_str()),
            ("overlay", "ext3")
        );
        assert_eq!(kinds[&40], "fuse.sshfs");
        assert_eq!(kinds.len(), 3);
    }

    #[test]
    fn root_of_this_machine_has_a_kind() {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
        let root = statx(CWD, "/", AtFlags::empty(), StatxFlags::MNT_ID).unwrap();
        assert!(kinds().contains_key(&root.stx_mnt_id));
    }
}
