//! Finds pages and the files that they include, below their folders, and keeps them read.

use std::cell::Cell;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use hob_page::fault::PageFault;
use hob_page::host::{SourceFault, Sources};
use hob_page::ini::Ini;
use hob_page::sql_page::SqlPage;
use hob_page::tree::Page;
use hob_trace::Mutex;

use crate::cache::entry::Stamp;
use crate::handle::config::Symlinks;
use crate::handle::files::open::{FileOpenError, FileOrFolder, May, Root, RootDir};
use crate::handle::page::config::PagesSettings;
use crate::serve::sites::SitesBuildContext;

/// Files of a route that are kept read, and their bytes; above either, all are forgotten.
const KNOWN_FILES_MAX: usize = 4_096;
const KNOWN_BYTES_MAX: u64 = 64 << 20;
/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What a file is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FileUse {
    /// A page that is asked for.
    Page,
    /// An include among declarations.
    Declarations,
    /// An include inside a block.
    Body,
}

/// What stands in a file.
#[derive(Clone)]
pub(super) enum PageSource {
    /// The macro language.
    Macro(Arc<Page>),
    /// Statements.
    Sql(Arc<SqlPage>),
}

/// A file as it was read last.
pub(super) struct KnownFile {
    pub(super) page: Result<PageSource, PageFault>,
    stamp: Stamp,
    looked_ms: AtomicU64,
    /// A run of it had to wait for something.
    pub(super) waits: AtomicBool,
}

impl KnownFile {
    /// It is a page for visits that last.
    pub(super) fn asks_to_last(&self) -> bool {
        matches!(&self.page, Ok(PageSource::Macro(page)) if page.asks_to_last())
    }
}

/// Why there is no such file.
#[derive(Debug)]
pub(super) enum FileLookupError {
    /// It is not there (404).
    Missing,
    /// It may not be read (403).
    Forbidden,
    /// Only a thread that may wait can tell.
    WouldWait,
    /// The system failed (500).
    Failed(String),
}

impl From<FileOpenError> for FileLookupError {
    fn from(error: FileOpenError) -> Self {
        match error {
            FileOpenError::Missing => Self::Missing,
            FileOpenError::Forbidden => Self::Forbidden,
            FileOpenError::WouldWait => Self::WouldWait,
            FileOpenError::Failed(error) => Self::Failed(error.to_string()),
        }
    }
}

/// When a file is looked for, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookMoment {
    /// Loop time, in milliseconds.
    pub(super) now_ms: u64,
    /// How old what is known of a file may get, in milliseconds.
    pub(super) recheck_ms: u64,
    pub(super) may: May,
}

type KnownFiles = HashMap<Box<str>, Arc<KnownFile>, RandomState>;

/// The files of a route.
pub(super) struct PageFiles {
    /// Folders of pages, in the order in which they are looked at.
    pages: Vec<Arc<Root>>,
    /// Those of files that pages include.
    includes: Vec<Arc<Root>>,
    endings: Vec<String>,
    /// Pages are found in any case of their letters; what they include always is.
    ignores_case: bool,
    /// Names that are written so in no folder, and the file that is meant.
    meant: Mutex<HashMap<Box<str>, Box<str>, RandomState>>,
    /// By what they are read as.
    known: [Mutex<KnownFiles>; 3],
    known_bytes: AtomicU64,
}

impl PageFiles {
    pub(super) fn new(
        settings: &PagesSettings,
        ini: &Ini,
        around: &mut SitesBuildContext<'_>,
    ) -> Result<PageFiles, String> {
        let dir = around.root(&settings.dir)?;
        let mut further = |name: &str| -> Vec<Arc<Root>> {
            let folders = ini.paths(name).into_iter();
            let folders = folders.filter_map(|folder| {
                let path = settings.ini_folder()?.join(folder);
                around
                    .root(&path)
                    .inspect_err(|error| tracing::warn!("page: {name} of the ini file: {error}"))
                    .ok()
            });
            folders.collect()
        };
        let mut pages = vec![Arc::clone(&dir)];
        pages.extend(further("MACRO_PATH"));
        let mut includes = further("INCLUDE_PATH");
        includes.push(dir);
        Ok(PageFiles {
            pages,
            includes,
            endings: settings.endings.clone(),
            ignores_case: settings.ini.is_some(),
            meant: Mutex::default(),
            known: Default::default(),
            known_bytes: AtomicU64::new(0),
        })
    }

    /// Whether a name can be that of a page.
    pub(super) fn is_page_name(&self, name: &str) -> bool {
        let file = name.rsplit('/').next().unwrap_or(name);
        let mut endings = self.endings.iter().map(|ending| ending.as_bytes());
        endings.any(|ending| {
            let stem_bytes = file.len().saturating_sub(ending.len());
            stem_bytes > 0 && file.as_bytes()[stem_bytes..].eq_ignore_ascii_case(ending)
        })
    }

    /// The file of this name, as it is now or was a moment ago. The systems that old macros come
    /// from take any case of letters for the same: a name that nothing has means a file whose name
    /// is the same but for that.
    pub(super) fn find(
        &self,
        name: &str,
        file_use: FileUse,
        moment: LookMoment,
    ) -> Result<Arc<KnownFile>, FileLookupError> {
        let found = self.find_exactly(name, file_use, moment);
        let is_missing = matches!(found, Err(FileLookupError::Missing));
        if !is_missing || (file_use == FileUse::Page && !self.ignores_case) {
            return found;
        }
        let meant = self.meant.lock().get(name).cloned();
        if let Some(meant) = meant {
            let found = self.find_exactly(&meant, file_use, moment);
            if !matches!(found, Err(FileLookupError::Missing)) {
                return found;
            }
        }
        if moment.may == May::TouchMemoryOnly {
            return Err(FileLookupError::WouldWait);
        }
        let mut roots = self.roots(file_use).iter();
        let meant = roots.find_map(|root| in_another_case(&root.dir(), name));
        let meant = meant.ok_or(FileLookupError::Missing)?;
        let found = self.find_exactly(&meant, file_use, moment)?;
        let mut all = self.meant.lock();
        if all.len() >= KNOWN_FILES_MAX {
            all.clear();
        }
        all.insert(name.into(), meant.into());
        Ok(found)
    }

    fn find_exactly(
        &self,
        name: &str,
        file_use: FileUse,
        moment: LookMoment,
    ) -> Result<Arc<KnownFile>, FileLookupError> {
        let known = &self.known[file_use as usize];
        let known_one = known.lock().get(name).map(Arc::clone);
        if let Some(one) = &known_one
            && moment.now_ms < one.looked_ms.load(Ordering::Relaxed) + moment.recheck_ms
        {
            return Ok(Arc::clone(one));
        }
        let (fd, stamp) = self.open(name, file_use, moment)?;
        if let Some(one) = known_one.filter(|one| one.stamp == stamp) {
            one.looked_ms.store(moment.now_ms, Ordering::Relaxed);
            return Ok(one);
        }
        if moment.may == May::TouchMemoryOnly {
            return Err(FileLookupError::WouldWait);
        }
        let source = read(fd, stamp, name)?;
        let page = match file_use {
            FileUse::Page if is_sql_name(name) => {
                // Any other file of SQL is none of ours to show.
                if !SqlPage::is_one(&source) {
                    return Err(FileLookupError::Missing);
                }
                SqlPage::parse(name, &source).map(|page| PageSource::Sql(Arc::new(page)))
            }
            FileUse::Body => Page::parse_body(name, &source).map(PageSource::of),
            FileUse::Page | FileUse::Declarations => Page::parse(name, &source).map(PageSource::of),
        };
        let found = Arc::new(KnownFile {
            page,
            stamp,
            looked_ms: AtomicU64::new(moment.now_ms),
            waits: AtomicBool::new(false),
        });
        let bytes = self.known_bytes.fetch_add(stamp.size, Ordering::Relaxed) + stamp.size;
        let mut all = known.lock();
        if all.len() >= KNOWN_FILES_MAX || bytes > KNOWN_BYTES_MAX {
            all.clear();
            self.known_bytes.store(stamp.size, Ordering::Relaxed);
        }
        all.insert(name.into(), Arc::clone(&found));
        Ok(found)
    }

    fn open(
        &self,
        name: &str,
        file_use: FileUse,
        LookMoment {
            now_ms,
            recheck_ms,
            may,
        }: LookMoment,
    ) -> Result<(OwnedFd, Stamp), FileLookupError> {
        for root in self.roots(file_use) {
            root.refresh(now_ms, recheck_ms / 2, may)?;
            match root.dir().look(name.as_bytes(), Symlinks::Inside, may) {
                Ok(FileOrFolder::File(fd, stamp)) => return Ok((fd, stamp)),
                Ok(FileOrFolder::Folder) | Err(FileOpenError::Missing) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(FileLookupError::Missing)
    }

    /// The folders that a file may be in, in the order in which they are looked at.
    fn roots(&self, file_use: FileUse) -> &[Arc<Root>] {
        match file_use {
            FileUse::Page => &self.pages,
            FileUse::Declarations | FileUse::Body => &self.includes,
        }
    }
}

/// How a name is written below a folder, where that is another case of its letters; of several the
/// first. May wait for a disk.
fn in_another_case(folder: &RootDir, name: &str) -> Option<String> {
    let mut found = String::new();
    for part in name.split('/') {
        let opened = folder
            .open_folder(found.as_bytes(), Symlinks::Inside)
            .ok()?;
        let names = rustix::fs::Dir::new(opened).ok()?.filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().to_str().ok()?;
            name.eq_ignore_ascii_case(part).then(|| name.to_owned())
        });
        let name = names.min()?;
        if !found.is_empty() {
            found.push('/');
        }
        found.push_str(&name);
    }
    Some(found)
}

impl PageSource {
    fn of(page: Page) -> PageSource {
        PageSource::Macro(Arc::new(page))
    }
}

/// Whether a page of this name is made of statements.
pub(super) fn is_sql_name(name: &str) -> bool {
    let ending = name.len().checked_sub(4).and_then(|at| name.get(at..));
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case(".sql"))
}

fn read(fd: OwnedFd, stamp: Stamp, name: &str) -> Result<Vec<u8>, FileLookupError> {
    use std::io::Read;

    let failed = |why: &dyn std::fmt::Display| FileLookupError::Failed(format!("{name}: {why}"));
    let mut source = Vec::with_capacity(stamp.size.min(FILE_BYTES_MAX) as usize);
    let mut file = std::fs::File::from(fd).take(FILE_BYTES_MAX + 1);
    file.read_to_end(&mut source)
        .map_err(|error| failed(&error))?;
    match source.len() as u64 > FILE_BYTES_MAX {
        true => Err(failed(&"it is larger than 16 MiB")),
        false => Ok(source),
    }
}

/// The files of a run.
pub(super) struct RunFiles<'a> {
    pub(super) files: &'a PageFiles,
    pub(super) moment: LookMoment,
    /// A file could not be looked at without waiting.
    pub(super) would_wait: Cell<bool>,
}

impl RunFiles<'_> {
    fn included(&self, name: &str, file_use: FileUse) -> Result<Arc<Page>, SourceFault> {
        // A path from the root is one from the folder.
        let name = name.trim_start_matches('/');
        match self.files.find(name, file_use, self.moment) {
            Ok(found) => match found.page.clone() {
                Ok(PageSource::Macro(page)) => Ok(page),
                Ok(PageSource::Sql(_)) => Err(SourceFault::Missing),
                Err(fault) => Err(SourceFault::Wrong(fault)),
            },
            Err(FileLookupError::WouldWait) => {
                self.would_wait.set(true);
                Err(SourceFault::Missing)
            }
            Err(FileLookupError::Failed(error)) => {
                hob_trace::warn_seldom!("page: an included file cannot be read: {error}");
                Err(SourceFault::Missing)
            }
            Err(FileLookupError::Missing | FileLookupError::Forbidden) => Err(SourceFault::Missing),
        }
    }
}

impl Sources for RunFiles<'_> {
    fn declarations(&self, name: &str) -> Result<Arc<Page>, SourceFault> {
        self.included(name, FileUse::Declarations)
    }

    fn body(&self, name: &str) -> Result<Arc<Page>, SourceFault> {
        self.included(name, FileUse::Body)
    }
}
