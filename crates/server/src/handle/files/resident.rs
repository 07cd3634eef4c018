//! How much of a file is in memory, asked of the kernel without reading it.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::ReadWriteFlags;

/// Bytes asked about at a time: pages missing in one window do not hide those before it.
const WINDOW_BYTES: u64 = 256 * 1024;
const PAGE_BYTES: u64 = 4096;

/// How many bytes from `offset`, at most `len`, are in the page cache.
pub fn resident_bytes(file: impl AsFd, offset: u64, len: u64) -> u64 {
    let mut found = 0;
    while found < len {
        let window = (len - found).min(WINDOW_BYTES);
        if !is_resident(&file, offset + found, window) {
            break;
        }
        found += window;
    }
    found
}

#[repr(C)]
struct CacheStatRange {
    offset: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// `cachestat(2)` has this number on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

static HAS_NO_CACHESTAT: AtomicBool = AtomicBool::new(false);

fn is_resident(file: impl AsFd, offset: u64, len: u64) -> bool {
    if HAS_NO_CACHESTAT.load(Ordering::Relaxed) {
        return ends_are_resident(file, offset, len);
    }
    let range = CacheStatRange { offset, len };
    let mut stat = CacheStat::default();
    // SAFETY: both pointers are to live values of the layout cachestat(2) describes; it writes only
    // `stat`.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_fd().as_raw_fd(),
            &raw const range,
            &raw mut stat,
            0,
        )
    };
    if result != 0 {
        // Linux before 6.5, or a filter that does not know the call.
        HAS_NO_CACHESTAT.store(true, Ordering::Relaxed);
        return ends_are_resident(file, offset, len);
    }
    let first_page = offset / PAGE_BYTES;
    let end_page = (offset + len).div_ceil(PAGE_BYTES);
    stat.cached >= end_page - first_page
}

/// The older way: the first and the last byte can be read without waiting. Pages between them were
/// most likely read ahead together.
fn ends_are_resident(file: impl AsFd, offset: u64, len: u64) -> bool {
    let can_read = |at: u64| {
        let mut byte = [0u8; 1];
        let mut room = [std::io::IoSliceMut::new(&mut byte)];
        rustix::io::preadv2(&file, &mut room, at, ReadWriteFlags::NOWAIT) == Ok(1)
    };
    len == 0 || can_read(offset) && can_read(offset + len - 1)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_just_written_is_in_memory_and_nothing_is_beyond_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 700_000]).unwrap();
        assert_eq!(resident_bytes(&file, 0, 700_000), 700_000);
        assert_eq!(resident_bytes(&file, 4097, 10), 10);
        assert_eq!(resident_bytes(&file, 0, 0), 0);
        assert_eq!(resident_bytes(&file, 1_000_000, 10), 0);
        assert!(ends_are_resident(&file, 0, 700_000));
        assert!(!ends_are_resident(&file, 1_000_000, 10));
    }
}
