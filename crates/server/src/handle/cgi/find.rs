//! Which program a path means: the first file on the way down from the folder. What follows it in
//! the path is the program's own (`PATH_INFO`).
//!
//! A file is run or refused; it is never sent. Links and `..` lead nowhere outside of the folder,
//! because the kernel is asked to look below it only.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use crate::cache::pool::Pool;
use crate::config::Symlinks;
use crate::handle::files::open::{May, Root, Trouble};

/// A folder of programs.
pub struct Folder {
    /// Where it is.
    pub root: Arc<Root>,
    /// Threads that may wait for its disk.
    pub pool: Pool,
    /// Programs that answer for a folder.
    pub index: Vec<String>,
    /// Who runs files that cannot run by themselves.
    pub interpreters: Vec<Interpreter>,
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
pub enum Found {
    /// A program.
    Program(Place),
    /// A folder asked for without its final slash.
    FolderWithoutSlash,
    /// Nothing (404).
    Missing,
    /// Something that is not run (403), and why.
    Refused(&'static str),
    /// The system failed (500).
    Failed(Arc<str>),
}

/// A program in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its path below the folder.
    pub path: Box<[u8]>,
    /// Bytes of the request's path that name it; all of them for a folder's index.
    pub named_bytes: usize,
    /// Index of the interpreter, for a file that needs one.
    pub interpreter: Option<usize>,
}

const NOT_EXECUTABLE: &str = "the file is not executable and its ending has no interpreter; \
                              `chmod +x` it, or give its ending an interpreter";
const NO_INDEX: &str = "the folder has no program of `index`";
const NO_FILE: &str = "it is neither a file nor a folder";
const NOT_REACHABLE: &str = "the server may not look into a folder on the way to it";

impl Folder {
    /// What `path` means, which is normal, below the folder and without its first slash. `None`
    /// when only the pool can tell.
    pub fn find(&self, path: &[u8], now_ms: u64, age_ms: u64, may: May) -> Option<Found> {
        let found = self
            .root
            .refresh(now_ms, age_ms, may)
            .and_then(|_| self.walk(path, may));
        match found {
            Ok(found) => Some(found),
            Err(Trouble::WouldWait) if may == May::TouchMemoryOnly => None,
            Err(Trouble::Missing | Trouble::WouldWait) => Some(Found::Missing),
            Err(Trouble::Forbidden) => Some(Found::Refused(NOT_REACHABLE)),
            Err(Trouble::Failed(error)) => Some(Found::Failed(error.to_string().into())),
        }
    }

    /// The file of a program.
    pub fn file(&self, place: &Place) -> Vec<u8> {
        let mut file = self.root.path().as_os_str().as_bytes().to_vec();
        file.push(b'/');
        file.extend_from_slice(&place.path);
        file
    }

    fn walk(&self, path: &[u8], may: May) -> Result<Found, Trouble> {
        let slashes = memchr::memchr_iter(b'/', path);
        let mut begin = 0;
        for end in slashes.chain([path.len()]) {
            let name = &path[begin..end];
            if name.is_empty() {
                // Below the last slash.
                break;
            }
            if name.starts_with(b".") {
                return Ok(Found::Missing);
            }
            match self.state(&path[..end], may)? {
                (FileType::Directory, _) => begin = end + 1,
                (FileType::RegularFile, stat) => return Ok(self.program(&path[..end], end, &stat)),
                _ => return Ok(Found::Refused(NO_FILE)),
            }
        }
        if begin == path.len() {
            return self.index(path, may);
        }
        Ok(Found::FolderWithoutSlash)
    }

    fn index(&self, folder: &[u8], may: May) -> Result<Found, Trouble> {
        for name in &self.index {
            let path = [folder, name.as_bytes()].concat();
            match self.state(&path, may) {
                Ok((FileType::RegularFile, stat)) => {
                    return Ok(self.program(&path, folder.len(), &stat));
                }
                Ok(_) | Err(Trouble::Missing) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(Found::Refused(NO_INDEX))
    }

    fn state(&self, path: &[u8], may: May) -> Result<(FileType, Stat), Trouble> {
        let stat = self.root.dir().state(path, Symlinks::Inside, may)?;
        Ok((FileType::from_raw_mode(stat.st_mode), stat))
    }

    fn program(&self, path: &[u8], named_bytes: usize, stat: &Stat) -> Found {
        let interpreter = interpreter_of(&self.interpreters, path);
        if interpreter.is_none() && !is_executable(stat) {
            return Found::Refused(NOT_EXECUTABLE);
        }
        Found::Program(Place {
            path: path.into(),
            named_bytes,
            interpreter,
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
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;

    fn folder(path: &Path) -> Folder {
        let by = |ending: &str, program: &str| Interpreter {
            ending: ending.to_owned(),
            words: vec![program.as_bytes().to_vec()],
        };
        Folder {
            root: Arc::new(Root::open(path).unwrap()),
            pool: Pool::default(),
            index: vec!["index.cgi".to_owned(), "index.py".to_owned()],
            interpreters: vec![by(".py", "/python"), by(".x.py", "/other")],
        }
    }

    fn write(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn program(path: &str, named: &str, interpreter: Option<usize>) -> Found {
        Found::Program(Place {
            path: path.as_bytes().into(),
            named_bytes: named.len(),
            interpreter,
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
        ] {
            write(&top.path().join(name), mode);
        }
        symlink("a.cgi", root.join("inside.cgi")).unwrap();
        symlink("../outside.cgi", root.join("outside.cgi")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
        let folder = folder(&root);
        for (path, expected) in [
            ("a.cgi", program("a.cgi", "a.cgi", None)),
            ("a.cgi/", program("a.cgi", "a.cgi", None)),
            ("a.cgi/x/.y/z", program("a.cgi", "a.cgi", None)),
            ("inside.cgi", program("inside.cgi", "inside.cgi", None)),
            ("sub/b/x", program("sub/b", "sub/b", None)),
            ("sub/", program("sub/index.py", "sub/", Some(0))),
            ("sub", Found::FolderWithoutSlash),
            ("script.py/x", program("script.py", "script.py", Some(0))),
            ("two.x.py", program("two.x.py", "two.x.py", Some(1))),
            ("plain.txt", Found::Refused(NOT_EXECUTABLE)),
            ("plain.txt/x", Found::Refused(NOT_EXECUTABLE)),
            ("empty/", Found::Refused(NO_INDEX)),
            ("", Found::Refused(NO_INDEX)),
            ("missing", Found::Missing),
            ("sub/missing/x", Found::Missing),
            (".d.cgi", Found::Missing),
            (".hidden/c.cgi", Found::Missing),
            ("sub/../a.cgi", Found::Missing),
            ("../outside.cgi", Found::Missing),
            ("outside.cgi", Found::Missing),
            ("etc/passwd", Found::Missing),
            ("pipe", Found::Refused(NO_FILE)),
        ] {
            let found = folder.find(path.as_bytes(), 1_000, 1_000, May::Wait);
            assert_eq!(found, Some(expected), "{path}");
        }
        let place = folder.find(b"sub/b", 1_000, 1_000, May::Wait);
        let Some(Found::Program(place)) = place else {
            panic!("{place:?}");
        };
        let file = folder.file(&place);
        assert_eq!(file, root.join("sub/b").as_os_str().as_bytes());
    }
}
