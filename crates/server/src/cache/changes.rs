//! Changes below folders that the kernel tells of (inotify(7)), so that what is known of a file
//! need not be asked again.
//!
//! There is no thread for it: who wants to know reads what was told since. A folder that the kernel
//! tells nothing of is asked as before.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hob_trace::Mutex;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// Most folders that the kernel is asked to tell of; it has a limit for each user besides.
const FOLDERS_MAX: usize = 8192;
/// Room for what the kernel tells at a time, in bytes.
const READ_BYTES: usize = 16 * 1024;
/// Changes that are read one by one; with more at once, everything is taken to have changed.
const EVENTS_MAX: usize = 4096;

/// What the kernel tells of all folders.
pub struct FolderChanges {
    /// None where the system gives none.
    inotify: Option<OwnedFd>,
    folders: Mutex<HashMap<i32, Arc<FolderMark>>>,
    /// All that happened before this moment is known, in milliseconds.
    known_ms: AtomicU64,
    /// When a folder last came, went or changed, or something was missed, in nanoseconds.
    folder_changed_ns: AtomicU64,
}

/// When something of a folder changed last, in nanoseconds.
#[derive(Debug, Default)]
struct FolderMark {
    /// A file in it, or a name.
    changed_ns: AtomicU64,
    /// A name.
    names_changed_ns: AtomicU64,
}

/// A folder whose changes are told, with all folders on the way to it.
pub struct ToldFolder {
    folder: Arc<FolderMark>,
    /// As long as they are held, what becomes of the way is told as well.
    _above: Box<[Arc<FolderMark>]>,
    /// Since when, in nanoseconds.
    began_ns: u64,
}

impl Default for FolderChanges {
    fn default() -> FolderChanges {
        FolderChanges {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok(),
            folders: Mutex::default(),
            known_ms: AtomicU64::new(0),
            folder_changed_ns: AtomicU64::new(0),
        }
    }
}

impl FolderChanges {
    /// Has changes told of the last of these open folders, and of the others, which are the way to
    /// it. What is looked at from now on can be believed until something is told, if the way still
    /// leads there. `None` when the kernel does not tell.
    pub fn tell_of(&self, way: &[impl AsFd]) -> Option<ToldFolder> {
        let marks = way.iter().map(|folder| self.mark(folder));
        let mut marks = marks.collect::<Option<Vec<_>>>()?;
        Some(ToldFolder {
            folder: marks.pop()?,
            _above: marks.into(),
            began_ns: clock_ns(),
        })
    }

    fn mark(&self, folder: &impl AsFd) -> Option<Arc<FolderMark>> {
        let inotify = self.inotify.as_ref()?;
        let mut folders = self.folders.lock();
        if folders.len() >= FOLDERS_MAX {
            folders.retain(|&number, mark| {
                let is_held = Arc::strong_count(mark) > 1;
                if !is_held {
                    // It is gone already when the folder is.
                    let _ = inotify::remove_watch(inotify, number);
                }
                is_held
            });
        }
        let wanted = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        if folders.len() >= FOLDERS_MAX {
            return None;
        }
        // The very folder that is open, wherever its path leads by now.
        let path = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
        let number = inotify::add_watch(inotify, path, wanted).ok()?;
        Some(Arc::clone(folders.entry(number).or_default()))
    }

    /// The moment before which all changes are known. Reads what the kernel has told if that is
    /// longer ago than `age_ms`, unless another thread has it in hands: nobody waits here.
    pub fn known_ms(&self, now_ms: u64, age_ms: u64) -> u64 {
        let known_ms = self.known_ms.load(Ordering::Acquire);
        if now_ms < known_ms + age_ms {
            return known_ms;
        }
        let Some(mut folders) = self.folders.try_lock() else {
            return known_ms;
        };
        if let Some(inotify) = &self.inotify {
            self.read(inotify, &mut folders);
        }
        self.known_ms.fetch_max(now_ms, Ordering::AcqRel);
        now_ms
    }

    fn read(&self, inotify: &OwnedFd, folders: &mut HashMap<i32, Arc<FolderMark>>) {
        let mut room = [MaybeUninit::uninit(); READ_BYTES];
        let mut reader = Reader::new(inotify, &mut room);
        for _ in 0..EVENTS_MAX {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.folder_changed_ns.store(u64::MAX, Ordering::Release);
                    return;
                }
            };
            let (number, told) = (event.wd(), event.events());
            let now_ns = clock_ns();
            let of_folders = ReadFlags::ISDIR
                | ReadFlags::DELETE_SELF
                | ReadFlags::MOVE_SELF
                | ReadFlags::UNMOUNT
                | ReadFlags::IGNORED
                | ReadFlags::QUEUE_OVERFLOW;
            if told.intersects(of_folders) {
                self.folder_changed_ns.fetch_max(now_ns, Ordering::AcqRel);
            }
            if told.contains(ReadFlags::IGNORED) {
                folders.remove(&number);
                continue;
            }
            let Some(mark) = folders.get(&number) else {
                continue;
            };
            let of_names =
                ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
            if told.intersects(of_names) {
                mark.names_changed_ns.store(now_ns, Ordering::Release);
            }
            mark.changed_ns.store(now_ns, Ordering::Release);
        }
        self.folder_changed_ns
            .fetch_max(clock_ns(), Ordering::AcqRel);
    }

    /// True when nothing was told of the folder and its files since that moment, in nanoseconds.
    pub fn is_as_it_was(&self, told: &ToldFolder, since_ns: u64) -> bool {
        let changed_ns = told.folder.changed_ns.load(Ordering::Acquire);
        self.has_way(told) && since_ns > told.began_ns && since_ns > changed_ns
    }

    /// True when nothing was told of the names in the folder since that moment, in nanoseconds.
    pub fn has_the_names_it_had(&self, told: &ToldFolder, since_ns: u64) -> bool {
        let changed_ns = told.folder.names_changed_ns.load(Ordering::Acquire);
        self.has_way(told) && since_ns > changed_ns
    }

    /// True when no folder came, went or changed since, so that the way leads where it led.
    pub fn has_way(&self, told: &ToldFolder) -> bool {
        told.began_ns > self.folder_changed_ns.load(Ordering::Acquire)
    }
}

/// The monotonic clock, which the loops of all threads have, too.
pub fn clock_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    /// A folder whose changes are told, and what reads them.
    struct Told {
        changes: FolderChanges,
        folder: ToldFolder,
        now_ms: u64,
    }

    impl Told {
        fn of(way: &[&Path]) -> Told {
            let changes = FolderChanges::default();
            let way: Vec<File> = way.iter().map(|path| File::open(path).unwrap()).collect();
            let folder = changes.tell_of(&way).unwrap();
            Told {
                changes,
                folder,
                now_ms: 0,
            }
        }

        /// What was told of files, of names, and of the way, by doing this.
        fn by(&mut self, act: impl FnOnce()) -> (bool, bool, bool) {
            let before_ns = clock_ns();
            assert!(self.changes.is_as_it_was(&self.folder, before_ns));
            act();
            self.now_ms += 10;
            assert_eq!(self.changes.known_ms(self.now_ms, 10), self.now_ms);
            let (changes, folder) = (&self.changes, &self.folder);
            let of_files = !changes.is_as_it_was(folder, before_ns);
            let of_names = !changes.has_the_names_it_had(folder, before_ns);
            assert_eq!(
                changes.is_as_it_was(folder, clock_ns()),
                changes.has_way(folder)
            );
            (of_files, of_names, !changes.has_way(folder))
        }
    }

    #[test]
    fn whatever_changes_a_file_or_a_name_is_told() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let file = folder.join("file");
        fs::write(&file, "one").unwrap();
        let mut told = Told::of(&[place.path(), &folder]);
        assert_eq!(told.by(|| ()), (false, false, false));
        assert_eq!(told.by(|| drop(fs::read(&file))), (false, false, false));
        assert_eq!(
            told.by(|| fs::write(&file, "two").unwrap()),
            (true, false, false)
        );
        let mut open = File::options().append(true).open(&file).unwrap();
        assert_eq!(
            told.by(|| open.write_all(b"more").unwrap()),
            (true, false, false)
        );
        assert_eq!(told.by(|| open.set_len(2).unwrap()), (true, false, false));
        assert_eq!(told.by(|| drop(open)), (true, false, false));
        let read_only = fs::Permissions::from_mode(0o400);
        let act = || fs::set_permissions(&file, read_only).unwrap();
        assert_eq!(told.by(act), (true, false, false));
        let other = folder.join("other");
        assert_eq!(
            told.by(|| fs::write(&other, "").unwrap()),
            (true, true, false)
        );
        assert_eq!(
            told.by(|| fs::rename(&other, &file).unwrap()),
            (true, true, false)
        );
        assert_eq!(
            told.by(|| fs::remove_file(&file).unwrap()),
            (true, true, false)
        );
    }

    #[test]
    fn what_becomes_of_the_way_is_told() {
        let acts: [fn(&Path); 5] = [
            |place| fs::rename(place.join("a"), place.join("c")).unwrap(),
            |place| fs::create_dir(place.join("c")).unwrap(),
            |place| fs::remove_dir(place.join("a/b")).unwrap(),
            |place| {
                let closed = fs::Permissions::from_mode(0o700);
                fs::set_permissions(place.join("a"), closed).unwrap();
            },
            |place| fs::rename(place.join("d"), place.join("a/d")).unwrap(),
        ];
        for act in acts {
            let place = tempfile::tempdir().unwrap();
            let [above, folder, beside] = ["a", "a/b", "d"].map(|path| place.path().join(path));
            fs::create_dir_all(&folder).unwrap();
            fs::create_dir(&beside).unwrap();
            let mut told = Told::of(&[place.path(), &above, &folder]);
            assert_eq!(told.by(|| act(place.path())), (true, true, true));
        }
    }

    #[test]
    fn more_than_the_kernel_can_keep_is_told_as_a_change_of_everything() {
        let place = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| place.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        let mut told = Told::of(&[place.path(), &one]);
        let _busy = told.changes.tell_of(&[File::open(&other).unwrap()]);
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let most: usize = most.trim().parse().unwrap();
        let act = || {
            for number in 0..most {
                // Two of one kind behind each other are told as one.
                let path = other.join(number.to_string());
                File::create(&path).unwrap();
                fs::remove_file(&path).unwrap();
            }
        };
        assert_eq!(told.by(act), (true, true, true));
    }

    #[test]
    fn who_asks_while_another_has_it_in_hands_does_not_wait() {
        let changes = FolderChanges::default();
        assert_eq!(changes.known_ms(100, 10), 100);
        let held = changes.folders.lock();
        assert_eq!(changes.known_ms(200, 10), 100);
        drop(held);
        assert_eq!(changes.known_ms(200, 10), 200);
    }

    #[test]
    fn changes_that_come_faster_than_they_are_read_hold_nobody() {
        let place = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| place.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        let mut told = Told::of(&[place.path(), &one]);
        let _busy = told.changes.tell_of(&[File::open(&other).unwrap()]);
        let act = || {
            for number in 0..EVENTS_MAX {
                File::create(other.join(number.to_string())).unwrap();
            }
        };
        // The rest is left to who asks next.
        assert_eq!(told.by(act), (true, true, true));
        let mut room = [MaybeUninit::uninit(); 1024];
        let mut rest = Reader::new(told.changes.inotify.as_ref().unwrap(), &mut room);
        assert!(rest.next().is_ok());
    }

    #[test]
    fn folders_that_nobody_holds_make_room_for_others() {
        let place = tempfile::tempdir().unwrap();
        let changes = FolderChanges::default();
        let mut held = Vec::new();
        for number in 0..FOLDERS_MAX + 100 {
            let path = place.path().join(number.to_string());
            fs::create_dir(&path).unwrap();
            let told = changes.tell_of(&[File::open(&path).unwrap()]);
            // A user may have fewer than we take.
            if let Some(told) = told
                && number % 2 == 0
            {
                held.push(told);
            }
            assert!(changes.folders.lock().len() <= FOLDERS_MAX);
        }
        assert!(changes.folders.lock().len() < FOLDERS_MAX || held.len() < FOLDERS_MAX / 2);
    }
}
