//! Blocks of memory that travel between processes as descriptors: written once, sealed, read whole.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::wire::WireValue;

/// Largest block that is read, in bytes: sources, papers, what a check printed.
pub(crate) const MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Memory with these bytes, which nobody can change any more.
pub fn sealed(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, flags())?);
    file.write_all(bytes)?;
    // A child that has it as standard input reads from the position.
    file.rewind()?;
    fcntl_add_seals(
        &file,
        SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )?;
    Ok(file.into())
}

/// Sealed memory with a value, in a version of its layout.
pub(crate) fn sealed_value(name: &str, version: u8, value: &impl WireValue) -> io::Result<OwnedFd> {
    sealed(name, &value.encode_whole(version))
}

/// The value that was written so. A failure names the `part`.
pub(crate) fn read_value<T: WireValue>(
    memory: BorrowedFd<'_>,
    version: u8,
    part: &'static str,
) -> io::Result<T> {
    T::decode_whole(&read(memory)?, version, part).map_err(io::Error::other)
}

/// Memory that a child writes its output to.
pub(crate) fn empty(name: &str) -> io::Result<OwnedFd> {
    Ok(memfd_create(name, flags())?)
}

/// The bytes of a block, from its start and whatever its position.
pub(crate) fn read(memory: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let file = File::from(memory.try_clone_to_owned()?);
    let len = file.metadata()?.len();
    if len > MEMORY_BYTES_MAX {
        return Err(io::Error::other(format!(
            "{len} bytes, more than {MEMORY_BYTES_MAX}"
        )));
    }
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// The bytes of a block as text, for people; what cannot be read is empty.
pub(crate) fn read_text(memory: impl AsFd) -> String {
    let bytes = read(memory.as_fd()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

fn flags() -> MemfdFlags {
    MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_memory_is_read_whole_and_cannot_change() {
        let memory = sealed("test", b"bytes").unwrap();
        assert_eq!(read(memory.as_fd()).unwrap(), b"bytes");
        assert_eq!(
            read(memory.as_fd()).unwrap(),
            b"bytes",
            "reading moves nothing"
        );
        let mut file = File::from(memory);
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
    }
}
