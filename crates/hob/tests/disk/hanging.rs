//! A file system that hangs when told to: the other side of `/dev/fuse`, as much of it as a reader
//! of files needs. One folder with files `0.txt`, `1.txt`, ... and `0.big`, `1.big`, ...
//!
//! What the kernel asks begins with a header: length (4 bytes), operation (4), number (8), node
//! (8), and 16 more. An answer begins with length (4), error as a negative number (4) and the
//! number asked (8). All numbers are in the machine's order (`linux/fuse.h`, protocol 7.31).

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::harness::{DEADLINE, is_root};

/// What can hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Operation {
    Lookup = 1,
    GetAttributes = 3,
    Open = 14,
    Read = 15,
    /// Facts of the whole file system, as `statfs` asks them.
    Facts = 17,
}

const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPEN_FOLDER: u32 = 27;
const RELEASE_FOLDER: u32 = 29;
/// Operations that are not answered: forget, interrupt, forget many.
const SILENT: [u32; 3] = [2, 36, 42];

const HEADER_BYTES: usize = 40;
const ROOT: u64 = 1;
/// Nodes from here on are small files, by their number.
const SMALL: u64 = 1000;
/// Nodes from here on are large files, by their number.
const LARGE: u64 = 1_000_000;
/// Size of a large file.
pub(crate) const LARGE_BYTES: usize = 1024 * 1024;

/// The mounted file system. Dropped, it is gone, and who waits for it gets an error.
pub(crate) struct Hanging {
    path: PathBuf,
    gate: Arc<Gate>,
    server: Option<JoinHandle<()>>,
}

struct Gate {
    device: File,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    hanging: Vec<Operation>,
    held: Vec<Vec<u8>>,
}

impl Hanging {
    /// Mounts it on a folder; else says why that cannot be.
    pub(crate) fn mount(path: &Path) -> Result<Hanging, String> {
        if !is_root() {
            return Err("mounting a file system needs root".to_owned());
        }
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
        let options = format!(
            "fd={},rootmode=40755,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let options = CString::new(options).map_err(|error| error.to_string())?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("hanging", path, "fuse", flags, &*options)
            .map_err(|error| format!("mounting FUSE: {error}"))?;
        let gate = Arc::new(Gate {
            device,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let serving = Arc::clone(&gate);
        Ok(Hanging {
            path: path.to_owned(),
            gate,
            server: Some(std::thread::spawn(move || serving.serve())),
        })
    }

    /// From now on these are not answered.
    pub(crate) fn hang(&self, operations: &[Operation]) {
        self.gate.state.lock().unwrap().hanging = operations.to_vec();
    }

    /// Waits until so many wait for an answer.
    pub(crate) fn wait_for_held(&self, count: usize) {
        let state = self.gate.state.lock().unwrap();
        let wait = self
            .gate
            .changed
            .wait_timeout_while(state, DEADLINE, |state| state.held.len() < count);
        let (state, waited) = wait.unwrap();
        assert!(
            !waited.timed_out(),
            "{} of {count} are held",
            state.held.len()
        );
    }

    /// Everything is answered, also what was held.
    pub(crate) fn release(&self) {
        let mut state = self.gate.state.lock().unwrap();
        state.hanging.clear();
        for request in std::mem::take(&mut state.held) {
            self.gate.answer(&request);
        }
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        // Aborts the connection: whoever waits gets an error, and so does the thread that serves.
        let _ = unmount(&*self.path, UnmountFlags::FORCE | UnmountFlags::DETACH);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

impl Gate {
    fn serve(&self) {
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let len = match (&self.device).read(&mut buffer) {
                Ok(len) => len,
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return,
                // A request that was withdrawn meanwhile.
                Err(_) => continue,
            };
            let request = buffer[..len].to_vec();
            let operation = number_at(&request, 4);
            let mut state = self.state.lock().unwrap();
            if state
                .hanging
                .iter()
                .any(|hanging| *hanging as u32 == operation)
            {
                state.held.push(request);
                self.changed.notify_all();
            } else {
                drop(state);
                self.answer(&request);
            }
        }
    }

    fn answer(&self, request: &[u8]) {
        let operation = number_at(request, 4);
        if SILENT.contains(&operation) {
            return;
        }
        let (error, body) = match body(operation, request) {
            Ok(body) => (0, body),
            Err(error) => (-error, Vec::new()),
        };
        let mut answer = Vec::with_capacity(16 + body.len());
        answer.extend_from_slice(&(16 + body.len() as u32).to_ne_bytes());
        answer.extend_from_slice(&error.to_ne_bytes());
        answer.extend_from_slice(&request[8..16]);
        answer.extend_from_slice(&body);
        // Who asked may have been killed.
        let _ = (&self.device).write(&answer);
    }
}

/// What is answered, or an error number.
fn body(operation: u32, request: &[u8]) -> Result<Vec<u8>, i32> {
    let node = long_at(request, 16);
    let arguments = &request[HEADER_BYTES..];
    match operation {
        INIT => Ok(greeting()),
        1 => {
            let name = arguments.strip_suffix(&[0]).unwrap_or(arguments);
            let node = node_of(name).ok_or(libc::ENOENT)?;
            // Known for no time at all: it is asked for again and again.
            let mut entry = node.to_ne_bytes().to_vec();
            entry.extend_from_slice(&[0; 32]);
            entry.extend_from_slice(&attributes(node));
            Ok(entry)
        }
        3 => Ok([&[0; 16][..], &attributes(node)].concat()),
        14 | OPEN_FOLDER => {
            // Handle 0; read from us and not from the kernel's memory.
            Ok([&[0; 8][..], &1u32.to_ne_bytes(), &[0; 4]].concat())
        }
        15 => {
            let (offset, size) = (long_at(arguments, 8), number_at(arguments, 16));
            let content = content(node);
            let from = (offset as usize).min(content.len());
            let to = (from + size as usize).min(content.len());
            Ok(content[from..to].to_vec())
        }
        17 => Ok(vec![0; 80]),
        RELEASE | FLUSH | RELEASE_FOLDER => Ok(Vec::new()),
        _ => Err(libc::ENOSYS),
    }
}

/// The answer to the first question: version 7.31, and that look-ups may come side by side.
fn greeting() -> Vec<u8> {
    const PARALLEL: u32 = 1 << 18;
    let mut greeting = Vec::new();
    for number in [7u32, 31, 128 * 1024, PARALLEL, 0x0010_0010, 128 * 1024, 1] {
        greeting.extend_from_slice(&number.to_ne_bytes());
    }
    greeting.resize(64, 0);
    greeting
}

fn node_of(name: &[u8]) -> Option<u64> {
    let name = std::str::from_utf8(name).ok()?;
    let (number, ending) = name.split_once('.')?;
    let number: u64 = number.parse().ok()?;
    match ending {
        "txt" => Some(SMALL + number),
        "big" => Some(LARGE + number),
        _ => None,
    }
}

/// The content of a file.
fn content(node: u64) -> Vec<u8> {
    match node {
        LARGE.. => large_content(node - LARGE),
        SMALL.. => small_content(node - SMALL),
        _ => Vec::new(),
    }
}

/// The content of `NUMBER.txt`.
pub(crate) fn small_content(number: u64) -> Vec<u8> {
    format!("file {number}\n").into_bytes()
}

/// The content of `NUMBER.big`.
pub(crate) fn large_content(number: u64) -> Vec<u8> {
    vec![b'a' + (number % 26) as u8; LARGE_BYTES]
}

fn attributes(node: u64) -> Vec<u8> {
    let size = content(node).len() as u64;
    let mode: u32 = if node == ROOT { 0o40755 } else { 0o100_644 };
    let mut attributes = Vec::new();
    // Inode, size, blocks; times of access, content and state, all long ago.
    for long in [
        node,
        size,
        size.div_ceil(512),
        1_000_000_000,
        1_000_000_000,
        1_000_000_000,
    ] {
        attributes.extend_from_slice(&long.to_ne_bytes());
    }
    // Nanoseconds of the times, mode, links, user, group, device, block size, flags.
    for number in [1, 1, 1, mode, 1, 0, 0, 0, 4096, 0] {
        attributes.extend_from_slice(&number.to_ne_bytes());
    }
    attributes
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn long_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}
