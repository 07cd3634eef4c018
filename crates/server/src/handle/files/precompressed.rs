//! Which folders hold precompressed files, and under which names: most hold none, and then the
//! kernel is asked nothing for each file of theirs.
//!
//! The file pool reads a folder once. What it found holds as long as the folder's own state does:
//! no name comes or goes without a change of its times. Whoever has read it can tell, too, which of
//! its files stay as they are until the kernel tells of a change.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hob_trace::Mutex;
use rustix::fs::{Dir, FileType};

use crate::cache::changes::{FolderChanges, ToldFolder, clock_ns};
use crate::cache::disk_threads::DiskThreads;
use crate::cache::entry::Stamp;
use crate::handle::config::{Coding, Symlinks};
use crate::handle::files::load;
use crate::handle::files::open::{FileOpenError, May, RootDir};

/// Memory for what is known of the folders below one root, in bytes. Beyond it all is forgotten and
/// learnt again.
const BYTES_MAX: usize = 8 << 20;
/// Memory of a folder besides its path and its names, in bytes.
const FOLDER_BYTES: usize = 320;
/// A folder with more precompressed files than this is not remembered.
const NAMES_MAX: usize = BYTES_MAX / 2 / size_of::<u64>();
/// Files of a folder whose neighbours are looked for one by one before it is read.
const ASKED_MIN: usize = 2;
/// So many names of a folder are read in the time that the looks beside one file take.
const NAMES_FOR_ONE_ASKED: usize = 8;

/// What is known of the folders below a root.
#[derive(Default)]
pub(super) struct PrecompressedNames {
    state: Mutex<KnownFolders>,
    hasher: RandomState,
}

#[derive(Default)]
struct KnownFolders {
    folders: HashMap<Box<[u8]>, KnownFolder, RandomState>,
    bytes: usize,
}

#[derive(Default)]
struct KnownFolder {
    names: Option<FolderNames>,
    /// Files whose neighbours were looked for one by one since the folder was read.
    asked: usize,
    /// So many are worth another reading.
    asked_max: usize,
    is_being_read: bool,
}

/// The names that end as those of precompressed files do, as a folder stood.
struct FolderNames {
    folder: Stamp,
    /// Their hashes, in order. Two names may share one: it says where to look and no more.
    hashes: Box<[u64]>,
    /// The hashes of names that are no files themselves: links, above all.
    others: Box<[u64]>,
    /// When they were read, in nanoseconds.
    read_ns: u64,
    /// The kernel tells of changes in the folder.
    told: Option<ToldFolder>,
    /// When the folder was last seen to be as it was, in milliseconds.
    checked_ms: u64,
}

/// Whose neighbours are asked for, and how.
#[derive(Clone, Copy)]
pub(super) struct NeighbourQuery<'a> {
    /// The file's path below the root.
    pub(super) path: &'a [u8],
    /// Which links are followed on the way.
    pub(super) symlinks: Symlinks,
    /// Loop time, in milliseconds.
    pub(super) now_ms: u64,
    /// How old the answer may be, in milliseconds.
    pub(super) age_ms: u64,
    /// Whether it may wait for a disk.
    pub(super) may: May,
}

/// What may stand beside a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbours {
    /// By coding: false when there is none.
    may_be: [bool; 3],
    /// The moment of which that is known, in milliseconds.
    pub(super) as_of_ms: u64,
}

enum Recalled {
    Known(Neighbours),
    /// It was so some time ago.
    Stale,
    Unknown,
}

impl Neighbours {
    /// Nothing is known but the moment of the look: any may be there.
    pub(super) fn unknown(as_of_ms: u64) -> Neighbours {
        let may_be = [true; 3];
        Neighbours { may_be, as_of_ms }
    }

    /// False when there is none of this coding.
    pub(super) fn may_be(&self, coding: Coding) -> bool {
        self.may_be[coding as usize]
    }
}

impl RootDir {
    /// What may stand beside a file that was found a moment ago. Has the pool read the folder when
    /// that is worth it.
    pub(super) fn neighbours(
        self: &Arc<RootDir>,
        query: &NeighbourQuery<'_>,
        pool: &DiskThreads,
    ) -> Result<Neighbours, FileOpenError> {
        let unknown = Neighbours::unknown(query.now_ms);
        // Elsewhere a folder's times may be older than its names.
        if !self.is_local {
            return Ok(unknown);
        }
        let changes = &self.changes;
        let mut recalled = self.precompressed.recall(query, None, changes);
        if let Recalled::Stale = recalled {
            let stat = self.state(folder_of(query.path), query.symlinks, query.may)?;
            let now = Some(Stamp::of(&stat));
            recalled = self.precompressed.recall(query, now, changes);
        }
        if let Recalled::Known(neighbours) = recalled {
            return Ok(neighbours);
        }
        if self.precompressed.begin_reading(query.path) {
            let (dir, symlinks, as_of_ms) = (Arc::clone(self), query.symlinks, query.now_ms);
            let folder: Box<[u8]> = folder_of(query.path).into();
            let read = pool.run(move || {
                let names = &dir.precompressed;
                let found = names.read(&dir, &folder, symlinks, as_of_ms);
                names.end_reading(&folder, found);
            });
            if read.is_err() {
                let names = &self.precompressed;
                names.end_reading(folder_of(query.path), None);
            }
        }
        Ok(unknown)
    }

    /// The moment until which files are known to be as they were when they were looked at: one of a
    /// folder, and those of these codings beside it. `None` when they must be looked at again.
    pub(super) fn unchanged_until_ms(
        &self,
        query: &NeighbourQuery<'_>,
        mut codings: impl Iterator<Item = Option<Coding>>,
        looked_ms: u64,
    ) -> Option<u64> {
        let known_ms = self.changes.known_ms(query.now_ms, query.age_ms);
        let state = self.precompressed.state.lock();
        let known = state.folders.get(folder_of(query.path))?;
        let names = known.names.as_ref()?;
        let told = names.told.as_ref()?;
        let is_file = |coding: Option<Coding>| {
            let ending = coding.map_or(&b""[..], load::suffix);
            let hash = self.precompressed.hash(query.path, ending);
            names.others.binary_search(&hash).is_err()
        };
        let is_unchanged = self.changes.has_the_names_it_had(told, names.read_ns)
            && self.changes.is_as_it_was(told, looked_ms * 1_000_000)
            && codings.all(is_file);
        is_unchanged.then_some(known_ms)
    }
}

impl PrecompressedNames {
    /// The hash of a file's name with this ending.
    fn hash(&self, path: &[u8], ending: &[u8]) -> u64 {
        let name = load::file_name(path);
        match ending {
            b"" => self.hasher.hash_one(name),
            ending => self.hasher.hash_one(&[name, ending].concat()[..]),
        }
    }

    /// What is known, given the folder's state where that was just looked at.
    fn recall(
        &self,
        query: &NeighbourQuery<'_>,
        now: Option<Stamp>,
        changes: &FolderChanges,
    ) -> Recalled {
        let mut state = self.state.lock();
        let KnownFolders { folders, bytes } = &mut *state;
        let Some(known) = folders.get_mut(folder_of(query.path)) else {
            return Recalled::Unknown;
        };
        let Some(names) = &mut known.names else {
            return Recalled::Unknown;
        };
        match now {
            None if query.now_ms >= names.checked_ms + query.age_ms => return Recalled::Stale,
            None => {}
            // What the kernel was to tell of may be another folder by now: it is asked anew.
            Some(now) if now == names.folder && names.has_way(changes) => {
                names.checked_ms = names.checked_ms.max(query.now_ms);
            }
            Some(_) => {
                *bytes -= names.bytes();
                known.names = None;
                return Recalled::Unknown;
            }
        }
        let mut may_be = [false; 3];
        if !names.hashes.is_empty() {
            for coding in Coding::ALL {
                let hash = self.hash(query.path, load::suffix(coding));
                may_be[coding as usize] = names.hashes.binary_search(&hash).is_ok();
            }
        }
        let as_of_ms = names.checked_ms;
        Recalled::Known(Neighbours { may_be, as_of_ms })
    }

    /// True for the one caller that is to have the folder of this file read.
    fn begin_reading(&self, path: &[u8]) -> bool {
        let folder = folder_of(path);
        let mut state = self.state.lock();
        if !state.folders.contains_key(folder) {
            state.take(FOLDER_BYTES + folder.len());
            state.folders.insert(folder.into(), KnownFolder::default());
        }
        let Some(known) = state.folders.get_mut(folder) else {
            return false;
        };
        known.asked += 1;
        let is_worth_it = known.asked >= known.asked_max.max(ASKED_MIN) && !known.is_being_read;
        known.is_being_read |= is_worth_it;
        is_worth_it
    }

    /// Reads the names of a folder; `None` of the names when they may change without its showing.
    fn read(
        &self,
        dir: &RootDir,
        folder: &[u8],
        symlinks: Symlinks,
        checked_ms: u64,
    ) -> Option<(usize, Option<FolderNames>)> {
        let told = dir.tell_of(folder);
        let read_ns = clock_ns();
        let fd = dir.open_folder(folder, symlinks).ok()?;
        let before = Stamp::of(&rustix::fs::fstat(&fd).ok()?);
        let stood_still = load::is_settled(&before, load::unix_ns());
        let (mut count, mut hashes, mut others) = (0, Vec::new(), Vec::new());
        for item in Dir::read_from(&fd).ok()? {
            let item = item.ok()?;
            let name = item.file_name().to_bytes();
            count += 1;
            if Coding::ALL
                .iter()
                .any(|&coding| name.ends_with(load::suffix(coding)))
            {
                hashes.push(self.hasher.hash_one(name));
            }
            if !matches!(
                item.file_type(),
                FileType::RegularFile | FileType::Directory
            ) {
                others.push(self.hasher.hash_one(name));
            }
        }
        let after = Stamp::of(&rustix::fs::fstat(&fd).ok()?);
        hashes.sort_unstable();
        others.sort_unstable();
        let is_small = hashes.len() + others.len() <= NAMES_MAX;
        let is_kept = stood_still && after == before && is_small;
        let names = is_kept.then(|| FolderNames {
            folder: before,
            hashes: hashes.into(),
            others: others.into(),
            read_ns,
            told,
            checked_ms,
        });
        Some((count, names))
    }

    /// Takes what a reading found; `None` when the folder cannot be read.
    fn end_reading(&self, folder: &[u8], found: Option<(usize, Option<FolderNames>)>) {
        let (count, names) = found.unwrap_or((1 << 20, None));
        let bytes = names.as_ref().map_or(0, FolderNames::bytes);
        let mut state = self.state.lock();
        if !state.folders.contains_key(folder) {
            // Forgotten meanwhile.
            return;
        }
        state.take(bytes);
        if let Some(known) = state.folders.get_mut(folder) {
            *known = KnownFolder {
                names,
                asked: 0,
                asked_max: count / NAMES_FOR_ONE_ASKED,
                is_being_read: false,
            };
        }
    }
}

impl FolderNames {
    /// Changes are told of the folder that the path led to, or were never told.
    fn has_way(&self, changes: &FolderChanges) -> bool {
        let told = self.told.as_ref();
        told.is_none_or(|told| changes.has_way(told))
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.hashes) + size_of_val(&*self.others)
    }
}

impl KnownFolders {
    /// Counts memory that is about to be taken. Forgets everything when it would be too much.
    fn take(&mut self, bytes: usize) {
        if self.bytes + bytes > BYTES_MAX {
            *self = KnownFolders::default();
        }
        self.bytes += bytes;
    }
}

/// The path of the folder that a file is in; empty is the root.
fn folder_of(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(b"", |slash| &path[..slash])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::handle::files::open::Root;

    const BROTLI: [bool; 3] = [true, false, false];
    const NONE: [bool; 3] = [false; 3];

    /// A root whose files are asked about one after the other.
    struct Asked {
        root: Root,
        pool: DiskThreads,
        now_ms: u64,
    }

    impl Asked {
        fn of(path: &Path) -> Asked {
            Asked {
                root: Root::open(path, &Arc::default()).unwrap(),
                pool: DiskThreads::default(),
                now_ms: 1000,
            }
        }

        fn query<'a>(&self, path: &'a str) -> NeighbourQuery<'a> {
            NeighbourQuery {
                path: path.as_bytes(),
                symlinks: Symlinks::Inside,
                now_ms: self.now_ms,
                age_ms: 500,
                may: May::Wait,
            }
        }

        /// What may stand beside a file; `None` while each name must be looked for.
        fn once(&self, path: &str) -> Option<Neighbours> {
            let query = self.query(path);
            let found = self.root.dir().neighbours(&query, &self.pool).unwrap();
            (found != Neighbours::unknown(self.now_ms)).then_some(found)
        }

        /// The same once the folder has been read.
        fn learnt(&self, path: &str) -> Neighbours {
            loop {
                if let Some(found) = self.once(path) {
                    return found;
                }
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn folder_is_read_once_and_again_when_a_name_comes_or_goes() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a");
        fs::create_dir(&folder).unwrap();
        let mut asked = Asked::of(place.path());
        let found = asked.learnt("a/x.css");
        assert_eq!((found.may_be, found.as_of_ms), (NONE, 1000));
        fs::write(folder.join("x.css.br"), "").unwrap();
        // It is believed for so long.
        asked.now_ms = 1499;
        assert_eq!(asked.once("a/x.css").unwrap().as_of_ms, 1000);
        asked.now_ms = 1500;
        assert_eq!(asked.once("a/x.css"), None);
        let found = asked.learnt("a/x.css");
        assert_eq!((found.may_be, found.as_of_ms), (BROTLI, 1500));
        assert!(found.may_be(Coding::Brotli) && !found.may_be(Coding::Gzip));
        assert_eq!(asked.once("a/y.css").unwrap().may_be, NONE);
        fs::remove_file(folder.join("x.css.br")).unwrap();
        asked.now_ms = 2000;
        assert_eq!(asked.once("a/x.css"), None);
        assert_eq!(asked.learnt("a/x.css").may_be, NONE);
        // One that stands as it stood is not read again.
        asked.now_ms = 9000;
        assert_eq!(asked.once("a/x.css").unwrap().as_of_ms, 9000);
    }

    #[test]
    fn another_folder_at_the_path_is_another_folder() {
        let place = tempfile::tempdir().unwrap();
        for (name, file) in [("a", "x.css"), ("b", "x.css.br")] {
            fs::create_dir(place.path().join(name)).unwrap();
            fs::write(place.path().join(name).join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("a", place.path().join("link")).unwrap();
        let mut asked = Asked::of(place.path());
        assert_eq!(asked.learnt("link/x.css").may_be, NONE);
        fs::remove_file(place.path().join("link")).unwrap();
        std::os::unix::fs::symlink("b", place.path().join("link")).unwrap();
        asked.now_ms = 2000;
        assert_eq!(asked.once("link/x.css"), None);
        assert_eq!(asked.learnt("link/x.css").may_be, BROTLI);
    }

    #[test]
    fn folders_with_links_are_forgotten_as_they_were_counted() {
        let place = tempfile::tempdir().unwrap();
        let mut asked = Asked::of(place.path());
        for number in 0..20 {
            let link = place.path().join(format!("{number}.gz"));
            std::os::unix::fs::symlink("x", link).unwrap();
        }
        let dir = asked.root.dir();
        let held = || dir.precompressed.state.lock().bytes;
        asked.learnt("1");
        assert_eq!(held(), FOLDER_BYTES + 40 * size_of::<u64>());
        fs::remove_file(place.path().join("0.gz")).unwrap();
        asked.now_ms = 2000;
        assert_eq!(asked.once("1"), None);
        assert_eq!(held(), FOLDER_BYTES);
        asked.learnt("1");
        assert_eq!(held(), FOLDER_BYTES + 38 * size_of::<u64>());
    }

    #[test]
    fn file_is_unchanged_as_long_as_nothing_else_is_told() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a/b")).unwrap();
        let path = place.path().join("a/b/x");
        fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink("x", place.path().join("a/b/link")).unwrap();
        let mut asked = Asked::of(place.path());
        asked.learnt("a/b/x");
        let is_unchanged = |asked: &mut Asked, path: &str| {
            asked.now_ms += 1000;
            let query = asked.query(path);
            let codings = std::iter::once(None);
            // A look now, as its loop would tell the time.
            let looked_ms = clock_ns() / 1_000_000;
            let until_ms = asked
                .root
                .dir()
                .unchanged_until_ms(&query, codings, looked_ms);
            assert!(until_ms.is_none_or(|until_ms| until_ms == asked.now_ms));
            until_ms.is_some()
        };
        let since = std::time::Instant::now();
        // The first millisecond is that in which it began.
        while !is_unchanged(&mut asked, "a/b/x") {
            assert!(since.elapsed().as_secs() < 10);
        }
        assert!(!is_unchanged(&mut asked, "a/b/link"));
        assert!(!is_unchanged(&mut asked, "a/y"));
        // A folder that comes anywhere may be on the way: all is asked anew, and told of again.
        fs::create_dir(place.path().join("c")).unwrap();
        assert!(!is_unchanged(&mut asked, "a/b/x"));
        assert_eq!(asked.once("a/b/x"), None);
        asked.learnt("a/b/x");
        while !is_unchanged(&mut asked, "a/b/x") {
            assert!(since.elapsed().as_secs() < 20);
        }
    }

    #[test]
    fn large_folder_that_changes_is_read_again_when_that_is_worth_it() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..200 {
            fs::write(place.path().join(format!("{number}.txt")), "").unwrap();
        }
        let mut asked = Asked::of(place.path());
        asked.learnt("1.txt");
        fs::write(place.path().join("new.txt"), "").unwrap();
        asked.now_ms = 2000;
        let dir = asked.root.dir();
        // One may have been asked for while the reading came to its end.
        for _ in 0..200 / NAMES_FOR_ONE_ASKED - 2 {
            assert_eq!(asked.once("1.txt"), None);
            let state = dir.precompressed.state.lock();
            assert!(!state.folders[&b""[..]].is_being_read);
        }
        asked.learnt("1.txt");
    }

    #[test]
    fn what_is_known_is_bounded() {
        let names = PrecompressedNames::default();
        for number in 0..100_000 {
            names.begin_reading(format!("folder{number:0100}/x").as_bytes());
            let state = names.state.lock();
            assert!(state.bytes <= BYTES_MAX);
            assert!(state.folders.len() * (FOLDER_BYTES + 106) <= BYTES_MAX);
        }
        let found = FolderNames {
            folder: Stamp::default(),
            hashes: vec![0; NAMES_MAX].into(),
            others: Box::default(),
            read_ns: 0,
            told: None,
            checked_ms: 0,
        };
        names.end_reading(b"nowhere", Some((NAMES_MAX, Some(found))));
        let last = format!("folder{:0100}", 99_999);
        names.end_reading(last.as_bytes(), None);
        assert!(!names.begin_reading(format!("{last}/x").as_bytes()));
    }

    #[test]
    fn folder_that_cannot_be_read_is_looked_into_name_by_name() {
        let place = tempfile::tempdir().unwrap();
        let asked = Asked::of(place.path());
        let dir = asked.root.dir();
        let names = &dir.precompressed;
        assert!(names.read(&dir, b"nowhere", Symlinks::Inside, 0).is_none());
        assert!(!names.begin_reading(b"a/x") && names.begin_reading(b"a/x"));
        names.end_reading(b"a", None);
        for _ in 0..1000 {
            assert_eq!(asked.once("a/x"), None);
        }
    }
}
