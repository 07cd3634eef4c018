//! What a process uses.

/// Its descriptors.
pub fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Its memory of a kind, such as `Pss`, in bytes.
pub fn memory_bytes(pid: u32, kind: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let kib = lines.find(|(name, _)| *name == kind);
    let kib = kib.and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok());
    1024 * kib.unwrap_or_default()
}

/// What it alone has written to. Pages of its file, which a first use touches, are nobody's memory.
pub fn private_bytes(pid: u32) -> u64 {
    memory_bytes(pid, "Private_Dirty")
}
