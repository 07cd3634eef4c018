//! The one place where files of the kernel are opened to be read whole.

use std::fs;
use std::path::Path;

/// Largest file that is read, in bytes; what is longer is cut.
const FILE_BYTES_MAX: usize = 256 * 1024;

/// A small file of the kernel's; empty where it cannot be read. Bytes that are no text (a process
/// may give itself any name) come as U+FFFD.
pub fn read(path: impl AsRef<Path>) -> String {
    let mut bytes = fs::read(path).unwrap_or_default();
    bytes.truncate(FILE_BYTES_MAX);
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_is_not_there_is_empty() {
        assert_eq!(read("/proc/no/such/file"), "");
    }
}
