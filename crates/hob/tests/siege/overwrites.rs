//! Files are overwritten in place while clients download them, over everything that hob speaks: a
//! download that ends as its length says is one version of the file, never two.
//!
//! What no server can see is left out, as `docs/src/how-to/files.md` has it. No download begins
//! while the file is written, nor within the same tick of the kernel's clock; and what a client of
//! clear text is owed last, which may have left already, is not written to.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, RwLock};

use rustix::time::{ClockId, clock_gettime};

use crate::harness::client::Connection;
use crate::harness::over::{Carrier, Protocol};
use crate::harness::{DEADLINE, Place};
use crate::watch::{besieged, take_turn};

const PROTOCOLS: [Protocol; 4] = [Protocol::H1, Protocol::Tls, Protocol::H2, Protocol::H3];
/// A line of a file: the number of its version.
const LINE_BYTES: usize = 16;
/// Larger than what sockets buffer by more than [`LAST_BYTES`].
const LARGE_BYTES: usize = 24 * 1024 * 1024;
const SMALL_BYTES: usize = 100 * 1024;
/// What may have left in clear text and not reached its client.
const LAST_BYTES: usize = 12 * 1024 * 1024;
/// Versions that are written at least.
const VERSIONS: usize = 6;

/// A file and its versions.
struct Written {
    path: std::path::PathBuf,
    target: &'static str,
    /// Lengths of all versions. Held for reading: the file is not written to.
    lengths: RwLock<Vec<usize>>,
    waits: Mutex<Waits>,
    changed: Condvar,
}

#[derive(Default)]
struct Waits {
    /// How many versions there are.
    versions: usize,
    /// How many downloads wait for one more.
    downloads: usize,
}

impl Written {
    fn new(place: &Place, name: &str, target: &'static str, len: usize) -> Written {
        let written = Written {
            path: place.path(name),
            target,
            lengths: RwLock::default(),
            waits: Mutex::default(),
            changed: Condvar::new(),
        };
        std::fs::write(&written.path, "").unwrap();
        written.overwrite(len, true);
        written
    }

    /// Writes a version over the one before.
    fn overwrite(&self, len: usize, truncates: bool) {
        let mut lengths = self.lengths.write().unwrap();
        wait_for_the_clock(&self.path);
        let line = format!("{:0width$}\n", lengths.len(), width = LINE_BYTES - 1);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .truncate(truncates)
            .open(&self.path)
            .unwrap();
        file.write_all(&line.as_bytes().repeat(len / LINE_BYTES))
            .unwrap();
        file.set_len(len as u64).unwrap();
        wait_for_the_clock(&self.path);
        lengths.push(len);
        self.waits.lock().unwrap().versions += 1;
        self.changed.notify_all();
    }

    /// Waits until the file has another version than `known`, or nothing goes on.
    fn wait_for_more(&self, known: usize, is_over: &AtomicBool) {
        let mut waits = self.waits.lock().unwrap();
        waits.downloads += 1;
        self.changed.notify_all();
        let is_known =
            |waits: &mut Waits| waits.versions <= known && !is_over.load(Ordering::SeqCst);
        waits = self.changed.wait_while(waits, is_known).unwrap();
        waits.downloads -= 1;
    }

    /// Waits until so many downloads wait for another version.
    fn wait_for_downloads(&self, count: usize) {
        let waits = self.waits.lock().unwrap();
        let lacks = |waits: &mut Waits| waits.downloads < count;
        let waited = self.changed.wait_timeout_while(waits, DEADLINE, lacks);
        let (waits, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "{} of {count} wait", waits.downloads);
    }
}

/// Waits until the kernel's clock has gone on since the file was written to.
fn wait_for_the_clock(path: &Path) {
    let stat = std::fs::metadata(path).unwrap();
    loop {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        if (now.tv_sec, now.tv_nsec) > (stat.mtime(), stat.mtime_nsec()) {
            return;
        }
        std::thread::yield_now();
    }
}

/// What became of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    Whole,
    /// Not as much as its length says.
    BrokenOff,
}

#[test]
fn files_overwritten_in_place_are_never_a_mixture_with_a_clean_end() {
    let _turn = take_turn();
    let place = Place::new();
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\
         [[site]]\nroot = \"site\"\n",
    );
    let carriers: Vec<_> = PROTOCOLS[1..]
        .iter()
        .map(|protocol| Carrier::start(*protocol, hob.tls_port()))
        .collect();
    let mut ports = vec![hob.clear_port()];
    ports.extend(carriers.iter().map(|carrier| carrier.port));
    let files = [
        Written::new(&place, "site/big.bin", "/big.bin", LARGE_BYTES),
        Written::new(&place, "site/small.bin", "/small.bin", SMALL_BYTES),
    ];
    let (is_over, whole) = (&AtomicBool::new(false), &Counts::default());
    let outcomes = std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for (index, port) in ports.into_iter().enumerate() {
            for file in &files {
                clients
                    .push(scope.spawn(move || download_until(is_over, index, port, file, whole)));
            }
        }
        let over = Over(is_over, &files);
        let goes_on = besieged();
        let mut version = 0;
        while version < VERSIONS || goes_on() || !whole.are_all_there() {
            version += 1;
            // Now those that do not wait come to their end, now they are amid it.
            files[0].wait_for_downloads([1, PROTOCOLS.len()][version % 2]);
            for (file, usual) in files.iter().zip([LARGE_BYTES, SMALL_BYTES]) {
                // Longer, shorter, and twice the same.
                let len = usual + LINE_BYTES * [64, 0, 32, 32][version % 4];
                file.overwrite(len, version % 3 == 0);
            }
            assert!(!clients.iter().any(|client| client.is_finished()));
        }
        println!("{version} versions");
        drop(over);
        let mut outcomes = BTreeMap::new();
        for outcome in clients.into_iter().flat_map(|one| one.join().unwrap()) {
            *outcomes.entry(outcome).or_insert(0) += 1;
        }
        outcomes
    });
    println!("{outcomes:?}");
    drop(carriers);
    hob.stop();
}

/// Says that it is over, to those as well who wait for another version.
struct Over<'a>(&'a AtomicBool, &'a [Written]);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        for file in self.1 {
            // Nobody is between a look and the wait.
            drop(file.waits.lock());
            file.changed.notify_all();
        }
    }
}

/// Downloads of the large file that were whole, and that broke off, by protocol.
#[derive(Default)]
struct Counts([[AtomicUsize; 2]; PROTOCOLS.len()]);

impl Counts {
    /// Each protocol has seen both.
    fn are_all_there(&self) -> bool {
        let mut all = self.0.iter().flatten();
        all.all(|count| count.load(Ordering::SeqCst) > 0)
    }
}

type Outcome = (&'static str, usize, Came);

fn download_until(
    is_over: &AtomicBool,
    protocol: usize,
    port: u16,
    file: &Written,
    counts: &Counts,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        // The first, and every other of the large ones, is written to while it is under way.
        let waits = outcomes.len() % 2 == 0 && file.target == "/big.bin";
        let owed_last = match PROTOCOLS[protocol] {
            Protocol::H1 => LAST_BYTES,
            _ => 0,
        };
        let came = download(is_over, port, file, waits, owed_last)
            .unwrap_or_else(|error| panic!("{:?} {}: {error}", PROTOCOLS[protocol], file.target));
        if file.target == "/big.bin" {
            counts.0[protocol][came as usize].fetch_add(1, Ordering::SeqCst);
        }
        outcomes.push((file.target, protocol, came));
    }
    outcomes
}

/// Downloads the file, and while `waits` only when it has another version. Of the last bytes, so
/// many, nothing is written over.
fn download(
    is_over: &AtomicBool,
    port: u16,
    file: &Written,
    waits: bool,
    owed_last: usize,
) -> io::Result<Came> {
    let mut connection = Connection::open(port)?;
    // Fewer bytes are under way than are left out below.
    rustix::net::sockopt::set_socket_recv_buffer_size(&connection, 256 * 1024)?;
    let mut calm = Some(file.lengths.read().unwrap());
    let known = calm.as_ref().map_or(0, |lengths| lengths.len());
    connection.send_get(file.target)?;
    let (status, headers) = connection.read_head()?;
    assert_eq!(status, 200, "{headers:?}");
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.unwrap().1.parse().unwrap();
    if length > owed_last {
        calm = None;
    }
    if waits {
        file.wait_for_more(known, is_over);
    }
    let mut body = Vec::with_capacity(length);
    while body.len() < length {
        if calm.is_none() && length - body.len() <= owed_last {
            calm = Some(file.lengths.read().unwrap());
        }
        match connection.read_some() {
            Ok(bytes) => body.extend_from_slice(&bytes),
            Err(error) if is_end(&error) => return Ok(Came::BrokenOff),
            Err(error) => return Err(error),
        }
    }
    drop(calm);
    let line = body[..LINE_BYTES].to_vec();
    let odd = body.chunks(LINE_BYTES).position(|one| one != line);
    let shown = |at: usize| String::from_utf8_lossy(&body[at..at + LINE_BYTES]).into_owned();
    assert!(
        odd.is_none(),
        "{} ({owed_last}): {} then {} at line {odd:?}",
        file.target,
        shown(0),
        shown(odd.unwrap_or(0) * LINE_BYTES)
    );
    let version: usize = shown(0).trim().parse().unwrap();
    let lengths = file.lengths.read().unwrap();
    assert_eq!(length, lengths[version], "{} {version}", file.target);
    Ok(Came::Whole)
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
    )
}
