//! Which script a path means: the first part of it that has the ending of scripts. It is looked up
//! below the root and nowhere else, and is a file: `/image.jpg/x.php` is nothing.

use std::collections::HashMap;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hob_trace::Mutex;
use rustix::fs::FileType;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::config::Symlinks;
use crate::handle::fastcgi::config::FastCgiSettings;
use crate::handle::files::open::{FileOpenError, May, Root, RootDir};
use crate::handle::upstream::program::ask::AskedScript;
use crate::route::target::{rest_as_sent, told};

/// Scripts of a route whose place is remembered.
const KNOWN_SCRIPTS_MAX: usize = 1024;

/// The scripts of a route.
pub(crate) struct Scripts {
    /// Where they are looked for, and threads that may wait for the disk; `None` where they are
    /// not.
    place: Option<(DiskThreads, Arc<Root>)>,
    known: Mutex<KnownScripts>,
}

/// Where scripts were found a moment ago: a path below the root, its file, and when that was.
type KnownScripts = HashMap<Box<[u8]>, (Box<[u8]>, u64), RandomState>;

/// What a path means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScriptLookup {
    /// A script.
    Script(AskedScript),
    /// A folder asked for without its final slash.
    FolderWithoutSlash,
    /// Nothing (404).
    Missing,
    /// It may not be looked at (403).
    Forbidden,
    /// The system failed (500): why.
    Failed(String),
}

/// A path below the root that may be a script's.
struct Candidate {
    /// Below the root.
    path: Vec<u8>,
    /// Bytes of the request's path that name it.
    named: usize,
}

/// A request's path.
#[derive(Clone, Copy)]
pub(crate) struct AskedPath<'a> {
    /// In normal form.
    pub(crate) path: &'a [u8],
    /// Where it leaves the route's fixed folder.
    pub(crate) below: usize,
}

impl Scripts {
    pub(crate) fn new(place: Option<(DiskThreads, Arc<Root>)>) -> Scripts {
        let known = Mutex::default();
        Scripts { place, known }
    }

    /// Threads that may wait for its disk.
    pub(crate) fn pool(&self) -> Option<&DiskThreads> {
        self.place.as_ref().map(|(pool, _)| pool)
    }

    /// What a path means, which was sent so; `None` when only the pool can tell.
    pub(crate) fn find(
        &self,
        settings: &FastCgiSettings,
        sent: &[u8],
        at: AskedPath<'_>,
        (now_ms, recheck_ms): (u64, u64),
        may: May,
    ) -> Option<ScriptLookup> {
        if settings.split.is_empty() {
            let script = AskedScript::of_route(sent, at.path, at.below);
            return Some(ScriptLookup::Script(script));
        }
        let rest = &at.path[at.below..];
        let Some(candidates) = candidates(settings, rest, at.below) else {
            return Some(ScriptLookup::Missing);
        };
        let script = |candidate: &Candidate, file: Vec<u8>| {
            let name = [&at.path[..at.below], &candidate.path].concat();
            ScriptLookup::Script(AskedScript {
                file,
                name: told(name.into()).into_owned(),
                path_info: told(rest_as_sent(sent, at.path, candidate.named)).into_owned(),
            })
        };
        let elsewhere = |path: &[u8]| {
            let root = settings.script_root.as_ref().or(settings.root.as_ref());
            let root = root.map_or(&b""[..], |root| root.as_os_str().as_bytes());
            [root, b"/", path].concat()
        };
        let Some((_, root)) = &self.place else {
            return Some(match candidates.first() {
                Some(candidate) => script(candidate, elsewhere(&candidate.path)),
                None => ScriptLookup::Missing,
            });
        };
        if let Some(candidate) = candidates.first()
            && let Some(file) = self.known(&candidate.path, (now_ms, recheck_ms))
        {
            return Some(script(candidate, file));
        }
        let known = root.refresh(now_ms, recheck_ms / 2, may);
        let looked = known.and_then(|_| look(&root.dir(), &candidates, rest, may));
        Some(match looked {
            Ok(Looked::Script(candidate, fd)) => {
                let file = match &settings.script_root {
                    Some(_) => Ok(elsewhere(&candidate.path)),
                    None => path_of(&fd),
                };
                match file {
                    Ok(file) => {
                        self.keep(&candidate.path, &file, now_ms);
                        script(candidate, file)
                    }
                    Err(error) => ScriptLookup::Failed(error.to_string()),
                }
            }
            Ok(Looked::Folder) => ScriptLookup::FolderWithoutSlash,
            Err(FileOpenError::WouldWait) if may == May::TouchMemoryOnly => return None,
            Ok(Looked::Nothing) | Err(FileOpenError::Missing | FileOpenError::WouldWait) => {
                ScriptLookup::Missing
            }
            Err(FileOpenError::Forbidden) => ScriptLookup::Forbidden,
            Err(FileOpenError::Failed(error)) => ScriptLookup::Failed(error.to_string()),
        })
    }
}

impl Scripts {
    fn known(&self, path: &[u8], (now_ms, recheck_ms): (u64, u64)) -> Option<Vec<u8>> {
        let known = self.known.lock();
        let (file, as_of_ms) = known.get(path)?;
        (now_ms < as_of_ms + recheck_ms).then(|| file.to_vec())
    }

    fn keep(&self, path: &[u8], file: &[u8], now_ms: u64) {
        let mut known = self.known.lock();
        if known.len() >= KNOWN_SCRIPTS_MAX {
            known.clear();
        }
        known.insert(path.into(), (file.into(), now_ms));
    }
}

enum Looked<'a> {
    Script(&'a Candidate, OwnedFd),
    Folder,
    Nothing,
}

/// Paths that may be the script's: the one that has the ending, else those of a folder's indexes.
/// `None` where a part of the path is hidden.
fn candidates(settings: &FastCgiSettings, rest: &[u8], below: usize) -> Option<Vec<Candidate>> {
    let mut begin = 0;
    for end in memchr::memchr_iter(b'/', rest).chain([rest.len()]) {
        let part = &rest[begin..end];
        if part.starts_with(b".") {
            return None;
        }
        if part.ends_with(settings.split.as_bytes()) {
            let path = rest[..end].to_vec();
            let named = below + end;
            return Some(vec![Candidate { path, named }]);
        }
        begin = end + 1;
    }
    if !rest.is_empty() && !rest.ends_with(b"/") {
        return Some(Vec::new());
    }
    let index = settings.index.iter().map(|name| Candidate {
        path: [rest, name.as_bytes()].concat(),
        named: below + rest.len(),
    });
    Some(index.collect())
}

fn look<'a>(
    dir: &RootDir,
    candidates: &'a [Candidate],
    rest: &[u8],
    may: May,
) -> Result<Looked<'a>, FileOpenError> {
    for candidate in candidates {
        match reach(dir, &candidate.path, may) {
            Ok((fd, FileType::RegularFile)) => return Ok(Looked::Script(candidate, fd)),
            Ok(_) | Err(FileOpenError::Missing) => {}
            Err(trouble) => return Err(trouble),
        }
    }
    if !candidates.is_empty() || rest.is_empty() {
        return Ok(Looked::Nothing);
    }
    Ok(match reach(dir, rest, may)? {
        (_, FileType::Directory) => Looked::Folder,
        _ => Looked::Nothing,
    })
}

/// What stands at a path, whether or not the server may read it: the program does.
fn reach(dir: &RootDir, path: &[u8], may: May) -> Result<(OwnedFd, FileType), FileOpenError> {
    let (fd, stat) = dir.reach(path, Symlinks::Inside, may)?;
    Ok((fd, FileType::from_raw_mode(stat.st_mode)))
}

/// Where an open file is, links followed: what the program is told is what was looked at.
fn path_of(fd: &OwnedFd) -> std::io::Result<Vec<u8>> {
    let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    Ok(path.into_os_string().into_vec())
}
