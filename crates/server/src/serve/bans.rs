//! Clients that are banned: who, until when, and why. Bans outlive reloads; where there is a file
//! to keep them in, upgrades and the server, too.
//!
//! Threads that serve look up one client at a time, in the part of the table that its address is
//! in. While nobody is banned they read one number. Whoever changes something holds the book, in
//! which bans stand in the order in which they end. Locks are taken in this order: file, book,
//! part of the table.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Seek, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hob_trace::Mutex;
use serde::{Deserialize, Serialize};

use crate::step::banned_network::{BanNetwork, PrefixLengths};

/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// The table is locked in so many parts.
const SHARDS: usize = 64;
/// What the rule of bans is called that an operator has made.
pub const BY_HAND: &str = "";

/// A client that is banned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ban {
    /// Who.
    pub network: BanNetwork,
    /// The rule that has banned it; [`BY_HAND`] where an operator has.
    pub rule: String,
    /// What it was refused last.
    pub why: String,
    /// Since when, in milliseconds of Unix time.
    pub since_ms: u64,
    /// Until when.
    pub until_ms: u64,
    /// Its new connections are closed.
    pub close: bool,
}

/// A ban in the table, and how often it has been of use.
#[derive(Debug)]
pub struct BanInForce {
    /// Who is banned, and why.
    pub ban: Ban,
    /// Requests and connections that were refused for it.
    pub refused: AtomicU64,
}

/// A part of the table.
type BanShard = HashMap<BanNetwork, Arc<BanInForce>>;

/// All who are banned.
pub struct Bans {
    /// How many; nobody looks further while there are none.
    count: AtomicUsize,
    /// When the first of them ends, in milliseconds of Unix time.
    next_end_ms: AtomicU64,
    /// So many there may be.
    count_max: AtomicUsize,
    /// The file does not say what is so.
    is_changed: AtomicBool,
    /// Somebody writes to the file, or is about to.
    is_being_kept: AtomicBool,
    /// There is a file: who serves does not wait for its lock to know that.
    has_file: AtomicBool,
    lengths: PrefixLengths,
    hasher: RandomState,
    shards: Box<[Mutex<BanShard>]>,
    /// Bans by when they end.
    book: Mutex<BTreeSet<(u64, BanNetwork)>>,
    file: Mutex<Option<File>>,
}

impl Default for Bans {
    fn default() -> Bans {
        Bans {
            count: AtomicUsize::new(0),
            next_end_ms: AtomicU64::new(u64::MAX),
            count_max: AtomicUsize::new(usize::MAX),
            is_changed: AtomicBool::new(false),
            is_being_kept: AtomicBool::new(false),
            has_file: AtomicBool::new(false),
            lengths: PrefixLengths::default(),
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            book: Mutex::default(),
            file: Mutex::default(),
        }
    }
}

impl Bans {
    /// Whether anybody is banned, as far as is known without looking at the time.
    #[inline]
    pub fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// The ban of a client at a time in milliseconds of Unix time.
    pub fn find(&self, client: IpAddr, now_ms: u64) -> Option<Arc<BanInForce>> {
        if !self.is_any() {
            return None;
        }
        self.lengths.of(client).find_map(|bits| {
            let network = BanNetwork::of(client, bits);
            let found = self.shard(&network).lock().get(&network).map(Arc::clone);
            found.filter(|found| found.ban.until_ms > now_ms)
        })
    }

    /// Bans somebody. Who is banned already stays so for the longer of both times. How many others
    /// had to be let go for it, the first to end first: there may be only so many.
    pub fn add(&self, mut ban: Ban, now_ms: u64) -> usize {
        let mut book = self.book.lock();
        self.sweep_book(&mut book, now_ms);
        let mut refused = 0;
        if let Some(before) = self.remove(&mut book, &ban.network) {
            ban.until_ms = ban.until_ms.max(before.ban.until_ms);
            ban.close |= before.ban.close;
            refused = before.refused.load(Ordering::Relaxed);
        }
        let let_go = self.make_room(&mut book, 1);
        self.insert(&mut book, ban, refused);
        self.note_change(&book);
        let_go
    }

    /// Ends the bans of these, or of networks that one of them is in. How many those were.
    pub fn lift(&self, network: BanNetwork) -> usize {
        self.lift_where(|ban| ban.network.has(&network))
    }

    /// Ends all bans of which something is so. How many those were.
    pub fn lift_where(&self, is_meant: impl Fn(&Ban) -> bool) -> usize {
        let mut book = self.book.lock();
        let networks: Vec<BanNetwork> = book.iter().map(|(_, network)| *network).collect();
        let mut count = 0;
        for network in networks {
            let known = self.shard(&network).lock().get(&network).map(Arc::clone);
            if known.is_some_and(|known| is_meant(&known.ban)) {
                self.remove(&mut book, &network);
                count += 1;
            }
        }
        if count > 0 {
            self.note_change(&book);
        }
        count
    }

    /// Who is banned, who is free first in front.
    pub fn all(&self, now_ms: u64) -> Vec<Arc<BanInForce>> {
        let mut book = self.book.lock();
        self.sweep_book(&mut book, now_ms);
        let found = book.iter().filter_map(|(_, network)| {
            let shard = self.shard(network).lock();
            shard.get(network).map(Arc::clone)
        });
        found.collect()
    }

    /// How many are banned.
    pub fn count(&self, now_ms: u64) -> usize {
        self.sweep(now_ms);
        self.count.load(Ordering::Acquire)
    }

    /// Forgets bans that are over; costs two loads where none is.
    pub fn sweep(&self, now_ms: u64) {
        if self.next_end_ms.load(Ordering::Acquire) <= now_ms {
            self.sweep_book(&mut self.book.lock(), now_ms);
        }
    }

    /// So many may be banned from now on; those that are too many go, the first to end first.
    /// Returns their number.
    pub fn set_count_max(&self, count_max: usize) -> usize {
        self.count_max.store(count_max, Ordering::Relaxed);
        let mut book = self.book.lock();
        let let_go = self.make_room(&mut book, 0);
        if let_go > 0 {
            self.note_change(&book);
        }
        let_go
    }

    /// Takes over what a file says, and says it there from now on.
    pub fn open(&self, mut file: File, now_ms: u64) {
        let mut text = Vec::new();
        // Servers share one place in it: the one before has left that at the end.
        let begun = file.rewind();
        let read = begun.and_then(|()| { (&mut file).take(FILE_BYTES_MAX) }.read_to_end(&mut text));
        let known: Result<Vec<Ban>, String> = match read {
            Ok(0) => Ok(Vec::new()),
            Ok(_) => serde_json::from_slice(&text).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match known {
            Ok(known) => {
                for ban in known.into_iter().filter(|ban| ban.until_ms > now_ms) {
                    self.add(ban, now_ms);
                }
            }
            Err(error) => {
                tracing::error!(%error, "the file of bans cannot be read; none are known")
            }
        }
        *self.file.lock() = Some(file);
        self.has_file.store(true, Ordering::Release);
        self.is_changed.store(false, Ordering::Release);
    }

    /// Whether something is to be written down and nobody does it yet: who asks has it done by
    /// [`Bans::keep_changes`], or says with [`Bans::end_keeping`] that it could not.
    pub fn begin_keeping(&self) -> bool {
        self.has_file.load(Ordering::Acquire)
            && self.is_changed.load(Ordering::Acquire)
            && !self.is_being_kept.swap(true, Ordering::AcqRel)
    }

    /// Nobody writes any more.
    pub fn end_keeping(&self) {
        self.is_being_kept.store(false, Ordering::Release);
    }

    /// Writes down who is banned until that is what the file says: many bans of a moment are
    /// written once. Waits for a disk.
    pub fn keep_changes(&self, now_ms: fn() -> u64) {
        loop {
            while self.is_changed.swap(false, Ordering::AcqRel) {
                // Where the file has been left, the next server says it.
                if let Some(file) = &mut *self.file.lock()
                    && let Err(error) = self.write(file, now_ms())
                {
                    tracing::error!(%error, "bans cannot be written down");
                }
            }
            self.end_keeping();
            // What has changed since was nobody else's to write.
            if !self.begin_keeping() {
                return;
            }
        }
    }

    /// Writes down who is banned. Waits for a disk.
    ///
    /// # Errors
    /// It cannot be written down: bans end with the server.
    pub fn keep(&self, now_ms: u64) -> Result<(), String> {
        match &mut *self.file.lock() {
            Some(file) => {
                self.is_changed.store(false, Ordering::Release);
                self.write(file, now_ms)
            }
            None => Err("there is no folder for what is kept (`state`)".to_owned()),
        }
    }

    /// The server goes, and another one writes to the file from now on: writes down what is so,
    /// also where nothing seems to have changed, as that may still wait. Waits for a disk.
    ///
    /// # Errors
    /// It cannot be written down.
    pub fn leave_file(&self, now_ms: u64) -> Result<(), String> {
        self.has_file.store(false, Ordering::Release);
        match self.file.lock().take() {
            Some(mut file) => self.write(&mut file, now_ms),
            None => Ok(()),
        }
    }

    fn write(&self, file: &mut File, now_ms: u64) -> Result<(), String> {
        let all = self.all(now_ms);
        let bans: Vec<&Ban> = all.iter().map(|one| &one.ban).collect();
        let text = serde_json::to_vec(&bans).map_err(|error| error.to_string())?;
        let written = file
            .rewind()
            .and_then(|()| file.write_all(&text))
            .and_then(|()| file.set_len(text.len() as u64))
            .and_then(|()| file.sync_data());
        written.map_err(|error| error.to_string())
    }

    fn shard(&self, network: &BanNetwork) -> &Mutex<BanShard> {
        &self.shards[self.hasher.hash_one(network) as usize % SHARDS]
    }

    fn insert(&self, book: &mut BTreeSet<(u64, BanNetwork)>, ban: Ban, refused: u64) {
        let network = ban.network;
        book.insert((ban.until_ms, network));
        self.lengths.add(&network);
        let known = Arc::new(BanInForce {
            ban,
            refused: AtomicU64::new(refused),
        });
        self.shard(&network).lock().insert(network, known);
    }

    fn remove(
        &self,
        book: &mut BTreeSet<(u64, BanNetwork)>,
        network: &BanNetwork,
    ) -> Option<Arc<BanInForce>> {
        let known = self.shard(network).lock().remove(network)?;
        book.remove(&(known.ban.until_ms, *network));
        self.lengths.remove(network);
        Some(known)
    }

    /// Lets go of as many as there are too many when so many more come.
    fn make_room(&self, book: &mut BTreeSet<(u64, BanNetwork)>, more: usize) -> usize {
        let count_max = self.count_max.load(Ordering::Relaxed);
        let mut let_go = 0;
        while book.len() + more > count_max {
            let Some((_, first)) = book.first().copied() else {
                break;
            };
            self.remove(book, &first);
            let_go += 1;
        }
        let_go
    }

    fn sweep_book(&self, book: &mut BTreeSet<(u64, BanNetwork)>, now_ms: u64) {
        let mut is_any = false;
        while let Some((end_ms, network)) = book.first().copied() {
            if end_ms > now_ms {
                break;
            }
            self.remove(book, &network);
            is_any = true;
        }
        if is_any {
            self.count_anew(book);
        }
    }

    fn count_anew(&self, book: &BTreeSet<(u64, BanNetwork)>) {
        let next_ms = book.first().map_or(u64::MAX, |(end_ms, _)| *end_ms);
        self.next_end_ms.store(next_ms, Ordering::Release);
        self.count.store(book.len(), Ordering::Release);
    }

    fn note_change(&self, book: &BTreeSet<(u64, BanNetwork)>) {
        self.count_anew(book);
        self.is_changed.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
