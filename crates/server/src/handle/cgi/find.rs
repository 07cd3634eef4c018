//! Which program a path means: the first file on the way down from the folder. What follows it in
//! the path is the program's own (`PATH_INFO`).
//!
//! A file is run or refused; it is never sent. Links and `..` lead nowhere outside of the folder,
//! because the kernel is asked to look below it only. What a link to elsewhere leads to is opened,
//! and runs under the path that it has then, without links, if that is in a place allowed: a link
//! that is changed meanwhile changes nothing.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use crate::cache::disk_threads::DiskThreads;
use crate::handle::config::Symlinks;
use crate::handle::files::open::{FileOpenError, May, Root};
use hob_keeper::process::is_lack;

/// A folder of programs.
pub struct ProgramFolder {
    /// Where it is.
    pub root: Arc<Root>,
    /// Threads that may wait for its disk.
    pub pool: DiskThreads,
    /// Programs that answer for a folder.
    pub index: Vec<String>,
    /// Where links may lead.
    pub places: Vec<Allowed>,
    /// Who runs files that cannot run by themselves.
    pub interpreters: Vec<Interpreter>,
    /// It is one of many, whose programs are told that it is the site's root.
    pub is_captured: bool,
}

/// A folder that links may lead into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// As configured, which is what the spawner knows it by.
    path: PathBuf,
    /// Where that is without links.
    real: PathBuf,
}

impl Allowed {
    /// A place of the config. May wait for a disk.
    pub fn of(path: &Path) -> Allowed {
        Allowed {
            path: path.to_owned(),
            real: std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
        }
    }

    /// The path of a file in it.
    fn holds(&self, real: &Path) -> Option<PathBuf> {
        let below = real.strip_prefix(&self.real).ok()?;
        Some(self.path.join(below))
    }
}

/// Who runs files with an ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The ending, such as `.py`.
    pub ending: String,
    /// An absolute path, and what stands before the file's among the arguments.
    pub words: Vec<Vec<u8>>,
}

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramLookup {
    /// A program.
    Program(FoundProgram),
    /// A folder asked for without its final slash.
    FolderWithoutSlash,
    /// Nothing (404).
    Missing,
    /// A link that leads here, where none may lead (404).
    Outside(Box<[u8]>),
    /// Something that is not run (403), and why.
    Refused(&'static str),
    /// The system failed (500).
    Failed {
        /// Why.
        error: Arc<str>,
        /// Something is used up.
        is_lack: bool,
    },
}

/// A program in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundProgram {
    /// Its path below the folder.
    pub path: Box<[u8]>,
    /// Bytes of the request's path that name it; all of them for a folder's index.
    pub named_bytes: usize,
    /// Index of the interpreter, for a file that needs one.
    pub interpreter: Option<usize>,
    /// The file, where a link leads out of the folder.
    pub target: Option<Box<[u8]>>,
}

/// What stands at a path.
struct At {
    stat: Stat,
    /// Where it is, outside of the folder.
    target: Option<Box<[u8]>>,
}

/// Why a path is not walked on.
enum PathWalkError {
    Trouble(FileOpenError),
    Outside(Box<[u8]>),
}

impl From<FileOpenError> for PathWalkError {
    fn from(trouble: FileOpenError) -> PathWalkError {
        PathWalkError::Trouble(trouble)
    }
}

const NOT_EXECUTABLE: &str = "the file is not executable and its ending has no interpreter; \
                              `chmod +x` it, or give its ending an interpreter";
const NO_INDEX: &str = "the folder has no program of `index`";
const NO_FILE: &str = "it is neither a file nor a folder";
const NOT_REACHABLE: &str = "the server may not look into a folder on the way to it";

impl ProgramFolder {
    /// What `path` means, which is normal, below the folder and without its first slash. `None`
    /// when only the pool can tell.
    pub fn find(&self, path: &[u8], now_ms: u64, age_ms: u64, may: May) -> Option<ProgramLookup> {
        let known = self.root.refresh(now_ms, age_ms, may);
        let trouble = match known
            .map_err(PathWalkError::Trouble)
            .and_then(|_| self.walk(path, may))
        {
            Ok(found) => return Some(found),
            Err(PathWalkError::Outside(target)) => return Some(ProgramLookup::Outside(target)),
            Err(PathWalkError::Trouble(trouble)) => trouble,
        };
        match trouble {
            FileOpenError::WouldWait if may == May::TouchMemoryOnly => None,
            FileOpenError::Missing | FileOpenError::WouldWait => Some(ProgramLookup::Missing),
            FileOpenError::Forbidden => Some(ProgramLookup::Refused(NOT_REACHABLE)),
            FileOpenError::Failed(error) => Some(ProgramLookup::Failed {
                is_lack: error.raw_os_error().is_some_and(is_lack),
                error: error.to_string().into(),
            }),
        }
    }

    /// The file of a program.
    pub fn file(&self, place: &FoundProgram) -> Vec<u8> {
        if let Some(target) = &place.target {
            return target.to_vec();
        }
        let mut file = self.root.path().as_os_str().as_bytes().to_vec();
        file.push(b'/');
        file.extend_from_slice(&place.path);
        file
    }

    fn walk(&self, path: &[u8], may: May) -> Result<ProgramLookup, PathWalkError> {
        let slashes = memchr::memchr_iter(b'/', path);
        let mut begin = 0;
        for end in slashes.chain([path.len()]) {
            let name = &path[begin..end];
            if name.is_empty() {
                // Below the last slash.
                break;
            }
            if name.starts_with(b".") {
                return Ok(ProgramLookup::Missing);
            }
            let at = self.at(&path[..end], may)?;
            match FileType::from_raw_mode(at.stat.st_mode) {
                FileType::Directory => begin = end + 1,
                FileType::RegularFile => return Ok(self.program(&path[..end], end, at)),
                _ => return Ok(ProgramLookup::Refused(NO_FILE)),
            }
        }
        if begin == path.len() {
            return self.index(path, may);
        }
        Ok(ProgramLookup::FolderWithoutSlash)
    }

    fn index(&self, folder: &[u8], may: May) -> Result<ProgramLookup, PathWalkError> {
        for name in &self.index {
            let path = [folder, name.as_bytes()].concat();
            match self.at(&path, may) {
                Ok(at) if FileType::from_raw_mode(at.stat.st_mode) == FileType::RegularFile => {
                    return Ok(self.program(&path, folder.len(), at));
                }
                Ok(_) | Err(PathWalkError::Trouble(FileOpenError::Missing)) => {}
                Err(stop) => return Err(stop),
            }
        }
        Ok(ProgramLookup::Refused(NO_INDEX))
    }

    fn at(&self, path: &[u8], may: May) -> Result<At, PathWalkError> {
        let dir = self.root.dir();
        match dir.state(path, Symlinks::Inside, may) {
            Ok(stat) => return Ok(At { stat, target: None }),
            // On a serving thread a link that leads out is for the pool.
            Err(FileOpenError::Missing) if may == May::Wait => {}
            Err(trouble) => return Err(trouble.into()),
        }
        let (real, stat) = dir.follow(path).map_err(|_| FileOpenError::Missing)?;
        let bytes = |path: &Path| path.as_os_str().as_bytes().into();
        match self.places.iter().find_map(|place| place.holds(&real)) {
            Some(target) => Ok(At {
                stat,
                target: Some(bytes(&target)),
            }),
            None => Err(PathWalkError::Outside(bytes(&real))),
        }
    }

    fn program(&self, path: &[u8], named_bytes: usize, at: At) -> ProgramLookup {
        let interpreter = interpreter_of(&self.interpreters, path);
        if interpreter.is_none() && !is_executable(&at.stat) {
            return ProgramLookup::Refused(NOT_EXECUTABLE);
        }
        ProgramLookup::Program(FoundProgram {
            path: path.into(),
            named_bytes,
            interpreter,
            target: at.target,
        })
    }
}

/// The interpreter of a file: of several endings that fit, the longest.
pub fn interpreter_of(interpreters: &[Interpreter], path: &[u8]) -> Option<usize> {
    let fitting = interpreters.iter().enumerate();
    let fitting = fitting.filter(|(_, one)| path.ends_with(one.ending.as_bytes()));
    let longest = fitting.max_by_key(|(_, one)| one.ending.len());
    longest.map(|(index, _)| index)
}

/// Someone may execute it; whether the program's user may is told by the attempt.
fn is_executable(stat: &Stat) -> bool {
    stat.st_mode & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder(path: &Path) -> ProgramFolder {
        let by = |ending: &str, program: &str| Interpreter {
            ending: ending.to_owned(),
            words: vec![program.as_bytes().to_vec()],
        };
        ProgramFolder {
            root: Arc::new(Root::open(path, &Arc::default()).unwrap()),
            pool: DiskThreads::default(),
            index: vec!["index.cgi".to_owned(), "index.py".to_owned()],
            places: vec![Allowed::of(path), Allowed::of(&path.join("../shared"))],
            interpreters: vec![by(".py", "/python"), by(".x.py", "/other")],
            is_captured: false,
        }
    }

    fn write(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn program(path: &str, named: &str, interpreter: Option<usize>) -> ProgramLookup {
        ProgramLookup::Program(FoundProgram {
            path: path.as_bytes().into(),
            named_bytes: named.len(),
            interpreter,
            target: None,
        })
    }

    #[test]
    fn path_leads_to_the_first_file_on_its_way_and_nowhere_else() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("cgi");
        for (name, mode) in [
            ("cgi/a.cgi", 0o755),
            ("cgi/plain.txt", 0o644),
            ("cgi/script.py", 0o600),
            ("cgi/two.x.py", 0o644),
            ("cgi/sub/b", 0o711),
            ("cgi/sub/index.py", 0o644),
            ("cgi/empty/note", 0o644),
            ("cgi/.hidden/c.cgi", 0o755),
            ("cgi/.d.cgi", 0o755),
            ("outside.cgi", 0o755),
            ("shared/tool.cgi", 0o755),
            ("shared/deep/plain", 0o644),
        ] {
            write(&top.path().join(name), mode);
        }
        symlink("a.cgi", root.join("inside.cgi")).unwrap();
        symlink("../outside.cgi", root.join("outside.cgi")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink(top.path().join("shared"), root.join("to")).unwrap();
        symlink("../shared/tool.cgi", root.join("tool.cgi")).unwrap();
        symlink(root.join("a.cgi"), root.join("whole.cgi")).unwrap();
        symlink("../nothing", root.join("dangling")).unwrap();
        let outside = |path: &Path| ProgramLookup::Outside(path.as_os_str().as_bytes().into());
        let at = |path: &str, named: &str, target: &Path| {
            let ProgramLookup::Program(place) = program(path, named, None) else {
                panic!("a program");
            };
            let target = Some(target.as_os_str().as_bytes().into());
            ProgramLookup::Program(FoundProgram { target, ..place })
        };
        let shared = root.join("../shared");
        let real_outside = fs::canonicalize(top.path().join("outside.cgi")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
        let folder = folder(&root);
        for (path, expected) in [
            ("a.cgi", program("a.cgi", "a.cgi", None)),
            ("a.cgi/", program("a.cgi", "a.cgi", None)),
            ("a.cgi/x/.y/z", program("a.cgi", "a.cgi", None)),
            ("inside.cgi", program("inside.cgi", "inside.cgi", None)),
            ("sub/b/x", program("sub/b", "sub/b", None)),
            ("sub/", program("sub/index.py", "sub/", Some(0))),
            ("sub", ProgramLookup::FolderWithoutSlash),
            ("script.py/x", program("script.py", "script.py", Some(0))),
            ("two.x.py", program("two.x.py", "two.x.py", Some(1))),
            ("plain.txt", ProgramLookup::Refused(NOT_EXECUTABLE)),
            ("plain.txt/x", ProgramLookup::Refused(NOT_EXECUTABLE)),
            ("empty/", ProgramLookup::Refused(NO_INDEX)),
            ("", ProgramLookup::Refused(NO_INDEX)),
            ("missing", ProgramLookup::Missing),
            ("sub/missing/x", ProgramLookup::Missing),
            (".d.cgi", ProgramLookup::Missing),
            (".hidden/c.cgi", ProgramLookup::Missing),
            ("sub/../a.cgi", ProgramLookup::Missing),
            ("../outside.cgi", ProgramLookup::Missing),
            ("outside.cgi", outside(&real_outside)),
            ("etc/passwd", outside(&fs::canonicalize("/etc").unwrap())),
            ("dangling", ProgramLookup::Missing),
            (
                "tool.cgi/x",
                at("tool.cgi", "tool.cgi", &shared.join("tool.cgi")),
            ),
            (
                "to/tool.cgi",
                at("to/tool.cgi", "to/tool.cgi", &shared.join("tool.cgi")),
            ),
            ("to/deep/plain", ProgramLookup::Refused(NOT_EXECUTABLE)),
            (
                "whole.cgi",
                at("whole.cgi", "whole.cgi", &root.join("a.cgi")),
            ),
            ("pipe", ProgramLookup::Refused(NO_FILE)),
        ] {
            let found = folder.find(path.as_bytes(), 1_000, 1_000, May::Wait);
            assert_eq!(found, Some(expected), "{path}");
        }
        let place = folder.find(b"sub/b", 1_000, 1_000, May::Wait);
        let Some(ProgramLookup::Program(place)) = place else {
            panic!("{place:?}");
        };
        let file = folder.file(&place);
        assert_eq!(file, root.join("sub/b").as_os_str().as_bytes());
    }
}
