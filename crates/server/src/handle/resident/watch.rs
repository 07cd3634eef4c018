//! Changed files restart workers, for development: inotify over the folder of a program.
//!
//! A thread for each program that is watched, because looking through folders may wait for a disk.
//! It sleeps until the kernel tells of a change, lets that settle, and says so once; it ends with
//! the [`FolderWatch`].

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::handle::resident::limits::{WATCH_FOLDERS_MAX, WATCH_QUIET, WATCH_SETTLE_MAX};

/// Files are watched until this is dropped.
pub(super) struct FolderWatch {
    /// The thread sees its end. Nobody waits for the thread: it may be looking at a disk, and does
    /// nothing else before it ends.
    _alive: OwnedFd,
}

/// The folders that are watched.
struct Tree {
    inotify: OwnedFd,
    root: PathBuf,
    patterns: Vec<String>,
    /// By number of their watch, relative to the root.
    folders: HashMap<i32, PathBuf>,
    folders_max: usize,
    /// There were more than are watched.
    is_full: bool,
}

impl FolderWatch {
    /// Begins to watch the files below `root` that a pattern names. `on_change` is called after
    /// each change, on another thread. May wait for a disk.
    ///
    /// # Errors
    /// The folder cannot be watched.
    pub(super) fn start(
        root: &Path,
        patterns: &[String],
        on_change: impl Fn() + Send + 'static,
    ) -> io::Result<FolderWatch> {
        let mut tree = Tree::new(root, patterns, WATCH_FOLDERS_MAX)?;
        let (ended, alive) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let builder = std::thread::Builder::new().name("hob-watch".to_owned());
        builder.spawn(move || {
            while tree.wait(&ended) {
                on_change();
            }
        })?;
        Ok(FolderWatch { _alive: alive })
    }
}

impl Tree {
    fn new(root: &Path, patterns: &[String], folders_max: usize) -> io::Result<Tree> {
        let mut tree = Tree {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            root: root.to_owned(),
            patterns: patterns.to_vec(),
            folders: HashMap::new(),
            folders_max,
            is_full: false,
        };
        tree.add(Path::new(""))?;
        Ok(tree)
    }

    /// Waits until files have changed and rest again; false when nobody watches any more.
    fn wait(&mut self, ended: &OwnedFd) -> bool {
        loop {
            if !self.sleep(ended, None) {
                return false;
            }
            if self.take_events() {
                break;
            }
        }
        // An editor writes in several steps, a checkout many files.
        let since = Instant::now();
        while since.elapsed() < WATCH_SETTLE_MAX {
            let quiet = Timespec::try_from(WATCH_QUIET).ok();
            if !self.sleep(ended, quiet) {
                return false;
            }
            if !self.has_events() {
                break;
            }
            self.take_events();
        }
        true
    }

    /// Sleeps until the kernel tells something; false when nobody watches any more.
    fn sleep(&self, ended: &OwnedFd, most: Option<Timespec>) -> bool {
        let mut fds = [
            PollFd::new(&self.inotify, PollFlags::IN),
            PollFd::new(ended, PollFlags::empty()),
        ];
        match poll(&mut fds, most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => fds[1].revents().is_empty(),
            Err(error) => {
                tracing::warn!(%error, root = %self.root.display(), "files are no longer watched");
                false
            }
        }
    }

    fn has_events(&self) -> bool {
        let mut fds = [PollFd::new(&self.inotify, PollFlags::IN)];
        let now = Timespec::default();
        poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
    }

    /// Takes what the kernel tells; true when a file has changed that a pattern names.
    fn take_events(&mut self) -> bool {
        let mut is_changed = false;
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut told = Vec::new();
        let mut reader = inotify::Reader::new(&self.inotify, &mut room);
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_bytes().to_vec());
                    told.push((event.wd(), event.events(), name.unwrap_or_default()));
                }
                Err(Errno::INTR) => {}
                // Nothing more, now.
                Err(_) => break,
            }
        }
        for (number, flags, name) in told {
            is_changed |= self.take_event(number, flags, &name);
        }
        is_changed
    }

    fn take_event(&mut self, number: i32, flags: ReadFlags, name: &[u8]) -> bool {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            // What was missed is not known: folders may be new, files may be.
            drop(self.add(Path::new("")));
            return true;
        }
        if flags.contains(ReadFlags::IGNORED) {
            let gone = self.folders.remove(&number);
            if gone.is_some_and(|folder| folder.as_os_str().is_empty()) {
                let root = self.root.display();
                tracing::warn!(%root, "the folder is gone: its files are no longer watched");
            }
            return false;
        }
        let Some(folder) = self.folders.get(&number) else {
            return false;
        };
        let path = folder.join(OsStr::from_bytes(name));
        let is_folder = flags.contains(ReadFlags::ISDIR);
        match is_folder {
            true if is_passed_over(name) => false,
            true if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) => {
                self.add(&path).unwrap_or(false)
            }
            true if flags.contains(ReadFlags::MOVED_FROM) => {
                self.forget(&path);
                true
            }
            true => false,
            // A file that is begun is told of again when it is written.
            false if flags.contains(ReadFlags::CREATE) && !self.is_whole_at_once(&path) => false,
            false => self.wants(&path),
        }
    }

    /// A link, whose contents are there with its name.
    fn is_whole_at_once(&self, path: &Path) -> bool {
        let is_link = |file: Metadata| file.is_symlink() || file.nlink() > 1;
        std::fs::symlink_metadata(self.root.join(path)).is_ok_and(is_link)
    }

    /// Watches a folder and those in it; true when a file is there that a pattern names.
    fn add(&mut self, folder: &Path) -> io::Result<bool> {
        self.watch(folder)?;
        let mut has_file = false;
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(self.root.join(&folder)) else {
                continue;
            };
            for entry in entries.filter_map(Result::ok) {
                let path = folder.join(entry.file_name());
                if !is_folder(&entry) {
                    has_file |= self.wants(&path);
                } else if !is_passed_over(entry.file_name().as_bytes()) {
                    // One that is gone again, or not ours to read.
                    if self.watch(&path).is_ok() {
                        folders.push(path);
                    }
                }
            }
        }
        Ok(has_file)
    }

    fn watch(&mut self, folder: &Path) -> io::Result<()> {
        if self.folders.len() >= self.folders_max {
            self.say_full("it has more folders than are watched");
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        match inotify::add_watch(&self.inotify, self.root.join(folder), flags) {
            Ok(number) => {
                self.folders.insert(number, folder.to_owned());
                Ok(())
            }
            Err(errno) => {
                if errno == Errno::NOSPC {
                    self.say_full("the kernel watches no more (fs.inotify.max_user_watches)");
                }
                Err(errno.into())
            }
        }
    }

    fn say_full(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_full, true) {
            let (root, folders) = (self.root.display(), self.folders.len());
            tracing::warn!(%root, folders, "not all of a program's files are watched: {why}");
        }
    }

    /// A folder has gone elsewhere, with those in it.
    fn forget(&mut self, folder: &Path) {
        let inotify = &self.inotify;
        self.folders.retain(|number, path| {
            let stays = !path.starts_with(folder);
            if !stays {
                // One that is gone already is as good.
                let _ = inotify::remove_watch(inotify, *number);
            }
            stays
        });
    }

    fn wants(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.patterns
            .iter()
            .any(|pattern| names(pattern.as_bytes(), path))
    }
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// Folders that hold no text of the program.
fn is_passed_over(name: &[u8]) -> bool {
    name.starts_with(b".") || matches!(name, b"__pycache__" | b"node_modules")
}

/// Whether a pattern names a path. `*` is any part of a name, `**` any number of folders; a pattern
/// without a slash names files in every folder.
fn names(pattern: &[u8], path: &[u8]) -> bool {
    let mut parts: Vec<&[u8]> = pattern.split(|byte| *byte == b'/').collect();
    if parts.len() == 1 {
        parts.insert(0, b"**");
    }
    let path: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    parts_name(&parts, &path)
}

fn parts_name(pattern: &[&[u8]], path: &[&[u8]]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((&b"**", rest)) => (0..=path.len()).any(|skipped| parts_name(rest, &path[skipped..])),
        Some((part, rest)) => path
            .split_first()
            .is_some_and(|(name, more)| part_names(part, name) && parts_name(rest, more)),
    }
}

/// One part of a pattern and one name. A dot at the beginning is never meant by `*`.
fn part_names(part: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !part.starts_with(b".") {
        return false;
    }
    let mut pieces = part.split(|byte| *byte == b'*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match memchr::memmem::find(rest, piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn patterns_name_files_as_a_shell_does() {
        for (pattern, path, is_named) in [
            ("*.py", "app.py", true),
            ("*.py", "deep/below/app.py", true),
            ("*.py", "app.pyc", false),
            ("*.py", ".app.py", false),
            (".env", ".env", true),
            ("app.py", "app.py", true),
            ("app.py", "my-app.py", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c", false),
            ("a*a", "a", false),
            ("*", "any", true),
            ("views/*.html", "views/a.html", true),
            ("views/*.html", "views/a/b.html", false),
            ("views/*.html", "other/views/a.html", false),
            ("views/**", "views/a/b.html", true),
            ("**/views/*.html", "a/b/views/c.html", true),
            ("**/views/*.html", "views/c.html", true),
        ] {
            assert_eq!(
                names(pattern.as_bytes(), path.as_bytes()),
                is_named,
                "{pattern} {path}"
            );
        }
    }

    fn tree(root: &Path) -> Tree {
        let mut tree = Tree::new(root, &["*.py".to_owned(), "views/**".to_owned()], 9).unwrap();
        assert!(!tree.take_events());
        tree
    }

    #[test]
    fn changes_of_files_that_a_pattern_names_are_noticed() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let write = |name: &str| fs::write(path(name), "text").unwrap();
        fs::create_dir_all(path("package/inner")).unwrap();
        fs::create_dir_all(path("__pycache__")).unwrap();
        write("app.py");
        let mut tree = tree(root.path());
        write("app.py");
        assert!(tree.take_events(), "written");
        write("package/inner/x.py");
        assert!(tree.take_events(), "begun in a folder");
        // As editors do it: another file under its name.
        write("app.new");
        assert!(!tree.take_events());
        fs::rename(path("app.new"), path("app.py")).unwrap();
        assert!(tree.take_events(), "replaced");
        fs::remove_file(path("app.py")).unwrap();
        assert!(tree.take_events(), "removed");
        std::os::unix::fs::symlink("package/inner/x.py", path("link.py")).unwrap();
        assert!(tree.take_events(), "linked");
        for name in ["notes.txt", "__pycache__/x.py", ".app.py.swp"] {
            write(name);
            assert!(!tree.take_events(), "{name}");
        }
    }

    #[test]
    fn folders_that_come_and_go_are_followed() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let write = |name: &str| fs::write(path(name), "text").unwrap();
        let mut tree = tree(root.path());
        fs::create_dir_all(path("views/new")).unwrap();
        write("views/new/page.html");
        assert!(
            tree.take_events(),
            "it was there before its folder was watched"
        );
        write("views/new/page.html");
        assert!(tree.take_events());
        fs::rename(path("views"), path("elsewhere")).unwrap();
        assert!(tree.take_events(), "all of it is gone");
        write("elsewhere/new/page.html");
        assert!(!tree.take_events(), "its name is another now");
        write("elsewhere/new/page.py");
        assert!(tree.take_events());
        assert_eq!(tree.folders.len(), 3);
    }

    #[test]
    fn thread_tells_of_changes_and_ends_with_its_watch() {
        let root = tempfile::tempdir().unwrap();
        let (tell, told) = channel();
        let patterns = ["*.py".to_owned()];
        let on_change = move || tell.send(()).unwrap();
        let watch = FolderWatch::start(root.path(), &patterns, on_change).unwrap();
        fs::write(root.path().join("app.py"), "text").unwrap();
        told.recv().unwrap();
        drop(watch);
        // The sender goes with the thread.
        while told.recv().is_ok() {}
    }

    #[test]
    fn folders_are_watched_up_to_their_limit() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..9 {
            fs::create_dir(root.path().join(number.to_string())).unwrap();
        }
        let tree = |folders_max| Tree::new(root.path(), &[], folders_max).unwrap();
        let (enough, full) = (tree(10), tree(9));
        assert_eq!((enough.folders.len(), enough.is_full), (10, false));
        assert_eq!((full.folders.len(), full.is_full), (9, true));
    }

    #[test]
    fn folder_that_is_not_there_cannot_be_watched() {
        assert!(FolderWatch::start(Path::new("/nonexistent"), &[], || {}).is_err());
    }
}
