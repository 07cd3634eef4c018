//! Included files: looked for in the page's own folder, then in those of INCLUDE_PATH, and never
//! outside of them. The kernel holds to that, by `openat2`: neither `..` nor a symbolic link leads
//! out. Each file is read once. A name that no file has is that of one written in another case.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_page::fault::{PageFault, PageFaultKind};
use hob_page::host::{SourceFault, Sources};
use hob_page::tree::Page;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::{PageIni, content};

/// Reads a file as what it is included as.
type Parse = fn(&str, &[u8]) -> Result<Page, PageFault>;
type Read = Result<Arc<Page>, SourceFault>;

/// The folders that a page's included files may be in.
pub(super) struct PageFolders {
    folders: Vec<PageFolder>,
    /// By name, and whether it is included inside of a block.
    files: RefCell<HashMap<(String, bool), Read>>,
}

struct PageFolder {
    path: PathBuf,
    handle: OwnedFd,
}

impl PageFolders {
    /// Folders for the page in this file; one of INCLUDE_PATH that is not there is told.
    pub(super) fn of(file: &Path, ini: &PageIni) -> Result<PageFolders, String> {
        let own = match file.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let refused = |path: &Path, error: io::Error| {
            let path = path.display();
            format!("cannot open the folder {path} for included files: {error}")
        };
        let mut folders = vec![PageFolder::open(own).map_err(|error| refused(own, error))?];
        for path in ini.include_folders() {
            match PageFolder::open(&path) {
                Ok(folder) => folders.push(folder),
                Err(error) => eprintln!("hob: INCLUDE_PATH: {}", refused(&path, error)),
            }
        }
        Ok(PageFolders {
            folders,
            files: RefCell::default(),
        })
    }

    fn file(&self, name: &str, is_body: bool, parse: Parse) -> Read {
        let key = (name.to_owned(), is_body);
        if let Some(read) = self.files.borrow().get(&key) {
            return read.clone();
        }
        let mut folders = self.folders.iter();
        let read = folders.find_map(|folder| folder.read(name, parse));
        let read = read.or_else(|| {
            // As on a server: old systems took any case of letters for the same.
            let mut folders = self.folders.iter();
            folders.find_map(|folder| folder.read(&folder.in_another_case(name)?, parse))
        });
        let read = read.unwrap_or(Err(SourceFault::Missing));
        self.files.borrow_mut().insert(key, read.clone());
        read
    }
}

impl Sources for PageFolders {
    fn declarations(&self, name: &str) -> Read {
        self.file(name, false, Page::parse)
    }

    fn body(&self, name: &str) -> Read {
        self.file(name, true, Page::parse_body)
    }
}

impl PageFolder {
    fn open(path: &Path) -> io::Result<PageFolder> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(PageFolder {
            path: path.to_path_buf(),
            handle: rustix::fs::openat(CWD, path, flags, Mode::empty())?,
        })
    }

    /// The file with this name; `None` if it is not below this folder.
    fn read(&self, name: &str, parse: Parse) -> Option<Read> {
        let shown = self.path.strip_prefix(".").unwrap_or(&self.path).join(name);
        let shown = shown.to_string_lossy();
        let content = match self.open_below(name).and_then(content) {
            Ok(content) => content,
            Err(error) if is_missing(&error) => return None,
            Err(error) => {
                let fault = PageFault {
                    file: shown.into(),
                    line: 1,
                    column: 1,
                    kind: PageFaultKind::Include,
                    message: format!("it cannot be read: {error}"),
                };
                return Some(Err(SourceFault::Wrong(fault)));
            }
        };
        let page = parse(&shown, &content);
        Some(page.map(Arc::new).map_err(SourceFault::Wrong))
    }

    /// How a name is written below this folder, where that is another case of its letters.
    fn in_another_case(&self, name: &str) -> Option<String> {
        let mut found = PathBuf::new();
        for part in name.split('/') {
            let entries = std::fs::read_dir(self.path.join(&found)).ok()?;
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            found.push(names.filter(|name| name.eq_ignore_ascii_case(part)).min()?);
        }
        found.into_os_string().into_string().ok()
    }

    fn open_below(&self, name: &str) -> io::Result<File> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        // A pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let opened = rustix::fs::openat2(&self.handle, name, flags, Mode::empty(), resolve)?;
        Ok(File::from(opened))
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
