//! Files that a worker passes by their descriptors: looked at before a byte of them is read, and
//! sent from where they are.
//!
//! What a worker could open it may pass: it could have sent the bytes as well. But a descriptor can
//! be anything. Only regular files are sent, and none of the kernel's own; nothing is mapped, and
//! what may wait (a disk, a network, a program that answers for a file system) waits in the pool.

use std::mem;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use hob_http::body::FetchFuture;
use hob_http::{FileBody, FileSource, Request};
use hob_ipc::file::FileRange;
use hob_ipc::limits::FILE_WINDOW_BYTES;
use hob_ipc::message::MessageHead;
use rustix::fs::{FileType, OFlags};

use crate::cache::disk_threads::DiskThreads;
use crate::cache::entry::{OpenFile, Stamp};
use crate::handle::files::open::is_local;
use crate::handle::files::source::file_body;
use crate::handle::resident::driver::DrivenWorker;
use crate::handle::resident::exchange::{AnswerPiece, Ending};
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::FILES_HELD_MAX;
use crate::handle::resident::termination::{after, limit};
use crate::handle::resident::wire::WorkerWire;

/// A part of a file as a worker has passed it: nothing of it has been looked at.
pub(super) struct PassedFile {
    fd: OwnedFd,
    range: FileRange,
    /// Counts those of its worker that are on their way.
    count: Arc<()>,
}

/// One that may be sent.
pub(super) struct KnownFile {
    file: Arc<OpenFile>,
    range: FileRange,
    count: Arc<()>,
}

impl PassedFile {
    pub(super) fn new(fd: OwnedFd, range: FileRange, count: &Arc<()>) -> PassedFile {
        PassedFile {
            fd,
            range,
            count: Arc::clone(count),
        }
    }

    /// Looks at it, where that may take its time.
    pub(super) async fn examine(self, pool: &DiskThreads) -> Result<KnownFile, ResidentFailure> {
        let examined = pool.run(move || self.look());
        let examined =
            examined.map_err(|_| ResidentFailure::File("limits: the file pool's queue is full"));
        examined?
            .await
            .unwrap_or(Err(ResidentFailure::File(UNKNOWN)))
    }

    fn look(self) -> Result<KnownFile, ResidentFailure> {
        let unknown = |_| ResidentFailure::File(UNKNOWN);
        let stat = rustix::fs::fstat(&self.fd).map_err(unknown)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(ResidentFailure::File(
                "the program passed what is no regular file",
            ));
        }
        let flags = rustix::fs::fcntl_getfl(&self.fd).map_err(unknown)?;
        if flags.contains(OFlags::PATH) || flags & OFlags::RWMODE == OFlags::WRONLY {
            return Err(ResidentFailure::File(
                "the program passed a file that cannot be read",
            ));
        }
        let magic = rustix::fs::fstatfs(&self.fd).map_err(unknown)?.f_type as u64;
        if is_of_kernel(magic) {
            return Err(ResidentFailure::File(
                "the program passed a file of the kernel's",
            ));
        }
        let stamp = Stamp::of(&stat);
        if stamp.size < self.range.offset + self.range.len {
            return Err(ResidentFailure::File(
                "the program passed a file that is shorter than it says",
            ));
        }
        // Which part of it stands is the program's to say: more may come behind.
        let file = OpenFile::new(self.fd, stamp, is_local(magic)).that_may_grow(true);
        Ok(KnownFile {
            file: Arc::new(file),
            range: self.range,
            count: self.count,
        })
    }
}

impl KnownFile {
    /// How many bytes are sent.
    pub(super) fn len(&self) -> u64 {
        self.range.len
    }

    /// Its part as a body.
    pub(super) fn into_body(self, pool: &DiskThreads, request: &Request) -> FileBody {
        let FileRange { offset, len } = self.range;
        let body = file_body(&self.file, pool, request, offset, len);
        FileBody {
            source: Rc::new(CountedFile {
                source: body.source,
                _count: self.count,
            }),
            offset,
            len,
        }
    }
}

/// A file that is counted until it is sent.
struct CountedFile {
    source: Rc<dyn FileSource>,
    _count: Arc<()>,
}

impl FileSource for CountedFile {
    fn fd(&self) -> BorrowedFd<'_> {
        self.source.fd()
    }

    fn resident(&self, offset: u64, len: u64) -> u64 {
        self.source.resident(offset, len)
    }

    fn is_unchanged(&self) -> bool {
        self.source.is_unchanged()
    }

    fn fetch(&self, offset: u64, len: usize) -> FetchFuture {
        self.source.fetch(offset, len)
    }
}

const UNKNOWN: &str = "a file that the program passed could not be looked at";

/// The driver's side: descriptors find their messages.
impl DrivenWorker {
    /// A file is the next of an answer's body; its descriptor is with the socket.
    pub(super) fn note_file(&mut self, head: MessageHead, payload: &[u8]) {
        match FileRange::decode(payload) {
            _ if !self.passes_files => {
                self.blame = Some("it sent a file, which its hello did not say".to_owned());
            }
            Ok(range) => self.files.push((head, range)),
            Err(malformed) => self.blame = Some(malformed.to_string()),
        }
    }

    /// Takes the descriptors of files, those too that nobody wants any more.
    pub(super) fn take_files(&mut self, wire: &mut WorkerWire) {
        for (head, range) in mem::take(&mut self.files) {
            match wire.take_file() {
                Ok(fd) => self.take_file(wire, head, PassedFile::new(fd, range, &self.files_held)),
                Err(blame) => {
                    self.blame.get_or_insert_with(|| blame.to_owned());
                }
            }
        }
    }

    fn take_file(&mut self, wire: &mut WorkerWire, head: MessageHead, file: PassedFile) {
        let Some(index) = self.requests.find(head.request) else {
            return;
        };
        let now_ms = self.home.reactor.now_ms();
        let pool = Arc::clone(&self.pool);
        let one = self.requests.at(index);
        one.is_started = true;
        if FILE_WINDOW_BYTES > one.data_credit {
            self.blame = Some("it sent more files than its window allows".to_owned());
            return;
        }
        if one.is_tunnel {
            self.blame = Some("it sent a file into a tunnel".to_owned());
            return;
        }
        one.data_credit -= FILE_WINDOW_BYTES;
        one.step_due_ms = limit(now_ms, pool.settings.timeout.progress);
        let mut is_wanted = false;
        // This one is counted, too, and so is the driver's own.
        if Arc::strong_count(&self.files_held) > FILES_HELD_MAX + 1 {
            self.home.counters.limit_resident_files.add(1);
            one.give_up(wire, after(now_ms, pool.settings.grace));
            let failed = Ending::Failed(ResidentFailure::TooManyFiles);
            self.wakers.extend(one.exchange.end(failed));
        } else if one.given_up_until_ms.is_none() {
            let (wanted, waker) = one.exchange.put_data(|| AnswerPiece::File(file));
            is_wanted = wanted;
            self.wakers.extend(waker);
        }
        if !is_wanted {
            self.drop_data(index, FILE_WINDOW_BYTES);
        }
        if head.is_last() {
            self.finish(index, Ending::Whole(Vec::new()));
        } else if self.requests.at(index).data_credit < FILE_WINDOW_BYTES {
            // It may wait for the client now.
            self.requests.at(index).step_due_ms = u64::MAX;
        }
    }
}

/// File systems that make up what is read, by their magic number (`statfs(2)`): reading them can
/// wait, or tell what was not meant for others.
fn is_of_kernel(magic: u64) -> bool {
    const OF_KERNEL: &[u64] = &[
        0x9fa0,      // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x0027_e0eb, // cgroup
        0x6367_7270, // cgroup2
        0x7363_6673, // securityfs
        0xf97c_ff8c, // selinuxfs
        0x4341_5d53, // smackfs
        0x5a3c_69f0, // apparmorfs
        0x6265_6570, // configfs
        0xcafe_4a11, // bpf
        0x6165_676c, // pstore
        0xde5e_81e4, // efivarfs
        0x1cd1,      // devpts
        0x0187,      // autofs
        0x1980_0202, // mqueue
        0x4249_4e4d, // binfmt_misc
        0x6759_6969, // rpc_pipefs
        0x6e73_6673, // nsfs
        0x5049_4446, // pidfs
        0x0904_1934, // anonymous inodes
        0x534f_434b, // sockfs
        0x5049_5045, // pipefs
        0x0765_5821, // resctrl
        0x9fa2,      // usbdevice
        0x5345_434d, // secretmem
    ];
    OF_KERNEL.contains(&(magic & 0xffff_ffff))
}
