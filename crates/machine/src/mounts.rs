//! What is mounted, as this process sees it. No file system is asked: one that hangs must not hold
//! who wants to know its kind.

use crate::read::read;

/// The kind of a mounted file system (`ext4`, `nfs4`, `fuse.sshfs`), by the number that `statx` and
/// `/proc/self/mountinfo` have for it (`STATX_MNT_ID`, proc(5)).
pub fn kind_of_mount(id: u64) -> Option<String> {
    kind_in(&read("/proc/self/mountinfo"), id)
}

/// The same of such a file: `ID PARENT DEVICE ROOT PLACE OPTIONS [TAG...] - KIND SOURCE OPTIONS`.
fn kind_in(mounts: &str, id: u64) -> Option<String> {
    let mut lines = mounts.lines();
    lines.find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let own: u64 = mount.split(' ').next()?.parse().ok()?;
        let kind = file_system.split(' ').next()?;
        (own == id).then(|| kind.to_owned())
    })
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
        assert_eq!(kind_in(mounts, 36).as_deref(), Some("ext3"));
        assert_eq!(kind_in(mounts, 40).as_deref(), Some("fuse.sshfs"));
        assert_eq!(kind_in(mounts, 41), None);
        assert_eq!(kind_in("", 1), None);
    }

    #[test]
    fn root_of_this_machine_has_a_kind() {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
        let root = statx(CWD, "/", AtFlags::empty(), StatxFlags::MNT_ID).unwrap();
        assert!(kind_of_mount(root.stx_mnt_id).is_some());
    }
}
