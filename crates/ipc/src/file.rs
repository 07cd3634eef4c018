//! The `file` message: bytes of a file that a worker has opened are the next bytes of an answer.
//!
//! ```text
//! payload:  0 u64 offset of the first byte    8 u64 how many, at least one
//! ```
//!
//! The descriptor comes over the socket with the message's first byte. In shared memory the same
//! message stands in the ring, where it says what follows what, and before that it goes over the
//! socket, as the place that brings the descriptor. Either way descriptors and messages come in one
//! order. A worker passes none before both hellos have said that it may.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::limits::FILE_BYTES;
use crate::malformed::MalformedMessage;

/// The part of a file that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// Its first byte.
    pub offset: u64,
    /// How many bytes, at least one.
    pub len: u64,
}

/// What reading a socket gave that may bring descriptors.
#[derive(Debug)]
pub struct Received {
    /// So many bytes; none at the end.
    pub count: usize,
    /// The descriptors that came with them.
    pub files: Vec<OwnedFd>,
    /// Some were lost: too many at a time, or this process may have no more.
    pub is_cut: bool,
}

impl FileRange {
    /// The payload.
    pub fn encode(&self) -> [u8; FILE_BYTES] {
        let mut bytes = [0; FILE_BYTES];
        bytes[0..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    /// Reads and checks a payload. Where it ends is a place that a file can have.
    ///
    /// # Errors
    /// [`MalformedMessage::File`] when it does not, or nothing is to be sent.
    pub fn decode(payload: &[u8]) -> Result<FileRange, MalformedMessage> {
        let bytes: &[u8; FILE_BYTES] = payload.try_into().map_err(|_| MalformedMessage::File)?;
        let (offset, len) = bytes.split_at(8);
        let number = |bytes: &[u8]| {
            let bytes = bytes.first_chunk().ok_or(MalformedMessage::File)?;
            Ok(u64::from_le_bytes(*bytes))
        };
        let range = FileRange {
            offset: number(offset)?,
            len: number(len)?,
        };
        let end = range.offset.checked_add(range.len);
        match end.is_some_and(|end| i64::try_from(end).is_ok()) && range.len > 0 {
            true => Ok(range),
            false => Err(MalformedMessage::File),
        }
    }
}

/// Sends bytes with a descriptor; says how many bytes went out, at least one. The rest is sent as
/// usual.
///
/// # Errors
/// What the socket says. Nothing was sent then.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<usize> {
    let fds = [file];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let has_room = control.push(SendAncillaryMessage::ScmRights(&fds));
    assert!(has_room, "the space was made for one descriptor");
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let pieces = [IoSlice::new(bytes)];
    Ok(rustix::net::sendmsg(socket, &pieces, &mut control, flags)?)
}

/// Reads bytes, and the descriptors that come with them; they are close-on-exec.
///
/// # Errors
/// What the socket says.
pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut into = [IoSliceMut::new(into)];
    let received = rustix::net::recvmsg(socket, &mut into, &mut control, flags)?;
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    Ok(Received {
        count: received.bytes,
        files,
        is_cut: received.flags.contains(ReturnFlags::CTRUNC),
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn range_is_within_what_files_can_have() {
        let range = |offset, len| FileRange { offset, len };
        for good in [range(0, 1), range(7, 1 << 40), range(0, i64::MAX as u64)] {
            assert_eq!(FileRange::decode(&good.encode()), Ok(good));
        }
        for bad in [
            range(0, 0),
            range(1, i64::MAX as u64),
            range(u64::MAX, 1),
            range(u64::MAX, u64::MAX),
        ] {
            assert_eq!(
                FileRange::decode(&bad.encode()),
                Err(MalformedMessage::File)
            );
        }
        assert_eq!(FileRange::decode(&[1; 15]), Err(MalformedMessage::File));
    }

    /// Each descriptor arrives with the first byte of its message, however much is read at a time.
    #[test]
    fn descriptors_come_in_the_order_of_their_messages() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let files: Vec<_> = (0..3)
            .map(|_| rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
            .collect();
        let inode = |file: BorrowedFd<'_>| rustix::fs::fstat(file).unwrap().st_ino;
        let expected: Vec<_> = files.iter().map(|file| inode(file.as_fd())).collect();
        for (number, file) in files.iter().enumerate() {
            rustix::io::write(&theirs, b"no descriptor").unwrap();
            let bytes = [number as u8; 4];
            assert_eq!(send(theirs.as_fd(), &bytes, file.as_fd()).unwrap(), 4);
        }
        drop(theirs);
        let (mut came, mut bytes) = (Vec::new(), 0);
        loop {
            let mut room = [0; 100];
            let received = receive(ours.as_fd(), &mut room).unwrap();
            assert!(!received.is_cut);
            if received.count == 0 {
                break;
            }
            bytes += received.count;
            came.extend(received.files.iter().map(|file| inode(file.as_fd())));
            // The message that brought one is among what was read.
            assert_eq!(came.len(), bytes / 17);
        }
        assert_eq!(came, expected);
    }
}
