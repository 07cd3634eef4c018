//! Has the kernel throw away what it keeps of a file, so that the next reader finds it on the disk.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Advice, fadvise, fstatfs};

/// Where the folder is memory itself, nothing can be thrown away.
pub(crate) fn forget(path: &Path) -> Result<(), String> {
    const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
    let told = |error: std::io::Error| {
        format!("cannot make the kernel forget {}: {error}", path.display())
    };
    let file = File::open(path).map_err(told)?;
    let kind = fstatfs(&file).map_err(|error| told(error.into()))?.f_type;
    if IN_MEMORY.contains(&(kind as i64)) {
        return Err("the temporary folder is in memory; set TMPDIR to one on a disk".to_owned());
    }
    // What was not written yet stays.
    file.sync_data().map_err(told)?;
    fadvise(&file, 0, None, Advice::DontNeed).map_err(|error| told(error.into()))
}
