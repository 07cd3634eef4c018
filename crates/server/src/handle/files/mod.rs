//! Static files: found below a root, answered from the cache or from disk, never by a thread that
//! waits.
//!
//! - `open` finding a file, within what the route allows
//! - `load` making a cache entry of it, `precompressed` which folders have compressed copies
//! - `find` from a request's path to an entry: this thread's view, memory, or the file pool
//! - `keys` its keys, `config` what they say, `check` and `source_sent` what they say wrongly of
//!   the disk
//! - `answer` a request on a route, `captured` on one whose root its path decides
//! - `explain` what would be found, `disk` what stands on the disk
//! - `respond` from an entry to an answer: coding, conditions, ranges
//! - `source` bytes of files too large for the cache
//! - `listing`, `folder` folders without an index
//! - `pin` what is loaded at start

mod answer;
pub(in crate::handle) mod captured;
pub(in crate::handle) mod check;
pub mod config;
mod disk;
mod explain;
pub mod find;
pub mod folder;
pub(crate) mod keys;
pub mod listing;
pub mod load;
pub mod media_type;
pub mod open;
pub mod pin;
mod precompressed;
pub mod resident;
pub mod respond;
pub mod source;
mod source_sent;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hob_trace::Mutex;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::config::HeaderRules;
use crate::handle::files::media_type::MediaTypes;
use crate::handle::files::open::Root;
use crate::serve::captured::Captured;

/// A files handler, ready to answer.
pub struct Files {
    /// The same number for the same settings as long as the process lives: the first part of cache
    /// keys.
    pub id: u64,
    /// As configured.
    pub settings: crate::handle::config::Files,
    /// Media types by suffix.
    pub types: MediaTypes,
    /// What was found of names that end so.
    pub kinds: Arc<Mutex<FileKinds>>,
    /// The root; where that has captures, the folder before the first of them.
    pub root: Arc<Root>,
    /// The file pool, for this root.
    pub pool: DiskThreads,
    /// Header rules of the route, for heads that are prepared.
    pub headers: HeaderRules,
    /// The same with the cache rules of the fallback, where there is one: it answers under paths
    /// whose own rules it must not have.
    pub fallback: Option<Arc<Files>>,
    /// The files of each root that captures give; they answer instead.
    pub(crate) captured: Option<Arc<Captured<Files>>>,
}

/// What names of files say of them, by their endings.
type FileKinds = HashMap<Box<[u8]>, FileKind, RandomState>;

/// What the name of a file says of it.
#[derive(Clone, Debug)]
pub struct FileKind {
    /// `Content-Type`.
    pub media_type: Arc<str>,
    /// It is of a type that is compressed on demand.
    pub is_compressible: bool,
}

/// Endings of names whose kind is kept.
const KINDS_MAX: usize = 1024;

impl Files {
    /// The files of each root that is open of those that captures give.
    pub fn open_roots(&self) -> Vec<Arc<Files>> {
        let roots = self.captured.as_ref().map(|captured| captured.all());
        let with_fallback = |files: Arc<Files>| [Some(files.clone()), files.fallback.clone()];
        let roots = roots.into_iter().flatten().flat_map(with_fallback);
        roots.flatten().collect()
    }

    /// What a file of this name is. Most sites have a few kinds, and the tables of types are long.
    pub fn kind_of(&self, name: &[u8]) -> FileKind {
        let ending = self.types.deciding(name);
        if let Some(kind) = self.kinds.lock().get(ending) {
            return kind.clone();
        }
        let media = self.types.of(name);
        let types = self.settings.compress_types.iter();
        let kind = FileKind {
            media_type: media.to_string().into(),
            is_compressible: !self.settings.compress.is_empty()
                && media.is_one_of(types.map(String::as_str)),
        };
        let mut kinds = self.kinds.lock();
        if kinds.len() < KINDS_MAX {
            kinds.insert(ending.into(), kind.clone());
        }
        kind
    }
}
