//! A file system that a process answers for: the other side of `/dev/fuse`, as much of it as who
//! reads files needs. It passes everything on to a folder, which is what most such file systems do
//! in the end, and keeps nothing: what it tells is good for a second, which is libfuse's default.
//!
//! What the kernel asks begins with a header: length (4 bytes), operation (4), number (8), node
//! (8), and 16 more. An answer begins with length (4), error as a negative number (4) and the
//! number asked (8). All numbers are in the machine's order (`linux/fuse.h`, protocol 7.31).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

const HEADER_BYTES: usize = 40;
/// Room for a request: the kernel refuses to read into less than 8 KiB.
const REQUEST_BYTES_MAX: usize = 256 << 10;
/// Bytes of one answer to a read; larger ones are asked for in parts.
const READ_BYTES_MAX: u32 = 128 << 10;
/// Nodes and open files at once.
const NODE_COUNT_MAX: usize = 100_000;
const FILE_COUNT_MAX: usize = 10_000;
/// Seconds for which what was told is good.
const VALID_SECONDS: u64 = 1;

const LOOKUP: u32 = 1;
const GET_ATTRIBUTES: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const FACTS: u32 = 17;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPEN_FOLDER: u32 = 27;
const RELEASE_FOLDER: u32 = 29;
/// Operations that are not answered: forget, interrupt, forget many.
const SILENT: [u32; 3] = [2, 36, 42];

/// Answers for a folder through a descriptor of `/dev/fuse`, until what is mounted is gone.
///
/// # Errors
/// What the kernel said of the descriptor.
pub(crate) fn answer_for(folder: &Path, device: impl AsFd) -> io::Result<()> {
    let mut folder = PassedFolder::new(folder);
    let mut room = vec![0; REQUEST_BYTES_MAX];
    loop {
        let length = match rustix::io::read(&device, &mut room) {
            Ok(0) | Err(Errno::NODEV) => return Ok(()),
            Ok(length) => length,
            // A request that was withdrawn meanwhile, or a signal.
            Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(answer) = folder.answer(&room[..length]) {
            // Who asked may have been killed.
            let _ = rustix::io::write(&device, &answer);
        }
    }
}

/// The folder, what of it the kernel knows, and what is open.
struct PassedFolder {
    /// Paths by the number of their node: the first is the folder, node 1.
    nodes: Vec<PathBuf>,
    numbers: HashMap<PathBuf, u64>,
    files: HashMap<u64, File>,
    /// The handle of the next file that is opened.
    next: u64,
}

impl PassedFolder {
    fn new(folder: &Path) -> PassedFolder {
        PassedFolder {
            nodes: vec![folder.to_owned()],
            numbers: HashMap::from([(folder.to_owned(), 1)]),
            files: HashMap::new(),
            next: 1,
        }
    }

    /// The answer to a request; none where none is wanted, or where it is no request.
    fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let operation = number_at(request, 4)?;
        let number = request.get(8..16)?;
        if SILENT.contains(&operation) {
            return None;
        }
        let (error, body) = match self.body(operation, request) {
            Ok(body) => (0, body),
            Err(error) => (-error.raw_os_error(), vec![]),
        };
        let mut answer = Vec::with_capacity(16 + body.len());
        answer.extend_from_slice(&(16 + body.len() as u32).to_ne_bytes());
        answer.extend_from_slice(&error.to_ne_bytes());
        answer.extend_from_slice(number);
        answer.extend_from_slice(&body);
        Some(answer)
    }

    fn body(&mut self, operation: u32, request: &[u8]) -> Result<Vec<u8>, Errno> {
        let node = long_at(request, 16).ok_or(Errno::INVAL)?;
        let arguments = request.get(HEADER_BYTES..).unwrap_or_default();
        match operation {
            INIT => Ok(greeting()),
            LOOKUP => self.look_up(node, arguments),
            GET_ATTRIBUTES => {
                let found = fs::symlink_metadata(self.path(node)?).map_err(errno)?;
                let mut told = VALID_SECONDS.to_ne_bytes().to_vec();
                told.extend_from_slice(&[0; 8]);
                told.extend_from_slice(&attributes(node, &found));
                Ok(told)
            }
            OPEN => self.open(node),
            READ => self.read(arguments),
            FACTS => Ok(vec![0; 80]),
            OPEN_FOLDER => Ok(vec![0; 16]),
            RELEASE => {
                self.files.remove(&long_at(arguments, 0).unwrap_or(0));
                Ok(vec![])
            }
            FLUSH | RELEASE_FOLDER => Ok(vec![]),
            _ => Err(Errno::NOSYS),
        }
    }

    fn path(&self, node: u64) -> Result<&Path, Errno> {
        let index = usize::try_from(node)
            .ok()
            .and_then(|node| node.checked_sub(1));
        let path = index.and_then(|index| self.nodes.get(index));
        path.map(PathBuf::as_path).ok_or(Errno::NOENT)
    }

    /// A name in a folder, which ends with a zero: its node, and what it is.
    fn look_up(&mut self, node: u64, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let is_name = !name.is_empty() && !name.contains(&b'/') && name != b"..";
        let path = self.path(node)?.join(OsStr::from_bytes(name));
        let found = match is_name {
            true => fs::symlink_metadata(&path).map_err(errno)?,
            false => return Err(Errno::NOENT),
        };
        let node = match self.numbers.get(&path) {
            Some(node) => *node,
            None if self.nodes.len() >= NODE_COUNT_MAX => return Err(Errno::NFILE),
            None => {
                self.nodes.push(path.clone());
                let node = self.nodes.len() as u64;
                self.numbers.insert(path, node);
                node
            }
        };
        let mut entry = node.to_ne_bytes().to_vec();
        entry.extend_from_slice(&[0; 8]);
        entry.extend_from_slice(&[VALID_SECONDS.to_ne_bytes(); 2].concat());
        entry.extend_from_slice(&[0; 8]);
        entry.extend_from_slice(&attributes(node, &found));
        Ok(entry)
    }

    fn open(&mut self, node: u64) -> Result<Vec<u8>, Errno> {
        if self.files.len() >= FILE_COUNT_MAX {
            return Err(Errno::NFILE);
        }
        let file = File::open(self.path(node)?).map_err(errno)?;
        let handle = self.next;
        self.next += 1;
        self.files.insert(handle, file);
        Ok([handle.to_ne_bytes(), [0; 8]].concat())
    }

    fn read(&self, arguments: &[u8]) -> Result<Vec<u8>, Errno> {
        let handle = long_at(arguments, 0).ok_or(Errno::INVAL)?;
        let offset = long_at(arguments, 8).ok_or(Errno::INVAL)?;
        let bytes = number_at(arguments, 16).ok_or(Errno::INVAL)?;
        let file = self.files.get(&handle).ok_or(Errno::BADF)?;
        let mut content = vec![0; bytes.min(READ_BYTES_MAX) as usize];
        let mut filled = 0;
        // Less than was asked for is the end of the file to the kernel.
        while filled < content.len() {
            let count = file.read_at(&mut content[filled..], offset + filled as u64);
            match count.map_err(errno)? {
                0 => break,
                count => filled += count,
            }
        }
        content.truncate(filled);
        Ok(content)
    }
}

/// The answer to the first question: version 7.31, and that look-ups may come side by side.
fn greeting() -> Vec<u8> {
    const PARALLEL: u32 = 1 << 18;
    let mut greeting = Vec::new();
    // Background requests at most and when it is full are two numbers of two bytes.
    for number in [
        7,
        31,
        READ_BYTES_MAX,
        PARALLEL,
        0x0010_0010,
        READ_BYTES_MAX,
        1,
    ] {
        greeting.extend_from_slice(&number.to_ne_bytes());
    }
    greeting.resize(64, 0);
    greeting
}

fn attributes(node: u64, found: &Metadata) -> Vec<u8> {
    let mut attributes = Vec::with_capacity(88);
    let times = [found.atime(), found.mtime(), found.ctime()].map(|time| time as u64);
    // Node, size, blocks; times of access, content and state.
    for long in [[node, found.size(), found.blocks()], times].concat() {
        attributes.extend_from_slice(&long.to_ne_bytes());
    }
    let parts = [found.atime_nsec(), found.mtime_nsec(), found.ctime_nsec()].map(|ns| ns as u32);
    // Nanoseconds of the times, mode, links, user, group, device, block size, flags.
    let others = [
        found.mode(),
        found.nlink() as u32,
        found.uid(),
        found.gid(),
        0,
        4096,
        0,
    ];
    for number in parts.into_iter().chain(others) {
        attributes.extend_from_slice(&number.to_ne_bytes());
    }
    attributes
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn long_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request as the kernel writes it.
    fn request(operation: u32, node: u64, arguments: &[u8]) -> Vec<u8> {
        let mut request = ((HEADER_BYTES + arguments.len()) as u32)
            .to_ne_bytes()
            .to_vec();
        request.extend_from_slice(&operation.to_ne_bytes());
        request.extend_from_slice(&7u64.to_ne_bytes());
        request.extend_from_slice(&node.to_ne_bytes());
        request.resize(HEADER_BYTES, 0);
        request.extend_from_slice(arguments);
        request
    }

    #[test]
    fn file_is_found_opened_and_read_and_nothing_above_the_folder() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("in")).unwrap();
        fs::write(place.path().join("secret"), "no").unwrap();
        fs::write(place.path().join("in/a.txt"), "0123456789").unwrap();
        let mut folder = PassedFolder::new(&place.path().join("in"));
        let mut ask = |operation, node, arguments: &[u8]| {
            let answer = folder.answer(&request(operation, node, arguments)).unwrap();
            assert_eq!(number_at(&answer, 0), Some(answer.len() as u32));
            assert_eq!(long_at(&answer, 8), Some(7));
            let error = number_at(&answer, 4).unwrap() as i32;
            (error, answer[16..].to_vec())
        };
        let (error, entry) = ask(LOOKUP, 1, b"a.txt\0");
        assert_eq!((error, entry.len()), (0, 128));
        let node = long_at(&entry, 0).unwrap();
        assert_eq!(long_at(&entry, 48), Some(10), "its size");
        assert_eq!(ask(GET_ATTRIBUTES, node, &[]).1.len(), 104);
        let handle = long_at(&ask(OPEN, node, &[]).1, 0).unwrap();
        let read = |handle: u64| {
            let numbers = [handle.to_ne_bytes(), 3u64.to_ne_bytes()].concat();
            [&numbers[..], &4u32.to_ne_bytes()].concat()
        };
        assert_eq!(ask(READ, node, &read(handle)), (0, b"3456".to_vec()));
        ask(RELEASE, node, &handle.to_ne_bytes());
        assert_eq!(
            ask(READ, node, &read(handle)).0,
            -Errno::BADF.raw_os_error()
        );
        for name in [&b"../secret\0"[..], b"..\0", b"\0", b"missing\0"] {
            assert_eq!(ask(LOOKUP, 1, name).0, -Errno::NOENT.raw_os_error());
        }
        assert_eq!(ask(999, 1, &[]).0, -Errno::NOSYS.raw_os_error());
        assert_eq!(folder.answer(&request(SILENT[0], 1, &[])), None);
        // No request at all.
        assert_eq!(folder.answer(&[0; 9]), None);
    }
}
