//! What is switched on besides.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mounts::FileSystem;

/// What is different from how a server is started else: of hob, what is switched on besides, for
/// the question what it costs; of others, what they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Extra {
    /// Nothing.
    None,
    /// An access log in combined format.
    CombinedLog,
    /// An access log in a format of one's own.
    CustomLog,
    /// So many routes before the one that answers.
    Routes(u32),
    /// With a list of who may ask: `networks`.
    Allow(u32),
    /// With a rate for each client, which none of them comes near.
    Rate,
    /// With so many routes of its path before the one that answers, each with a condition.
    Conditions(u32),
    /// With a list of so many paths that have moved.
    Moved(u32),
    /// With so many places for requests of each client at once, which none of them comes near.
    AtOnce,
    /// With another ending that is tried where there is no file.
    Try,
    /// With accounts: whoever asks signs in with a password.
    SignIn,
    /// With tokens that whoever asks brings along.
    Token,
    /// With a server that is asked about each request.
    Forward,
    /// With neither history nor activity.
    Bare,
    /// With the names of clients, in a log.
    Names,
    /// With a watcher of every event of every request.
    Watched,
    /// With a watcher of requests that nobody makes.
    WatchedElsewhere,
    /// With ten admin pages open.
    Pages,
    /// With metrics that are read each second.
    Scraped,
    /// With diagnostics of this level.
    Diagnostics(DiagnosticsLevel),
    /// With so many threads.
    Threads(u32),
    /// Served at this nice level.
    Nice(i32),
    /// Without the cache of files: from the page cache of the kernel.
    NoCache,
    /// With HTTP/3, which HTTP/1.1 and 2 would tell of in each answer.
    Http3,
    /// With contents of files up to 16 MiB in its own memory.
    WholeCache,
    /// With so many bytes of send buffer for each connection, where the kernel chooses else.
    SendBuffer(u32),
    /// With so many chunks in the memory it shares with a worker.
    Chunks(u32),
    /// With chunks of so many KiB in it.
    ChunkKib(u32),
    /// With a php-fpm that it runs itself.
    Fastcgi,
    /// Behind nginx instead of speaking HTTP itself.
    Behind,
    /// An ASGI application instead of a WSGI one.
    Asgi,
    /// With interpreters in its own processes.
    Embedded,
    /// With PHP in its own processes, which have one thread each.
    EmbeddedPhp,
    /// With a page whose compressed copy is sent, in each way that it has.
    Copies,
    /// The same without the cache of files: then hob keeps no copy that it has made.
    CopiesNoCache,
    /// With a file on a file system that is mounted for it.
    Stored(FileSystem),
    /// The same without the cache of files.
    StoredNoCache(FileSystem),
    /// With programs on another machine: this one, or one to which a round trip takes so long.
    Away(Option<Duration>),
}

/// How much hob tells of what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum DiagnosticsLevel {
    Warn,
    Debug,
    Trace,
}

impl DiagnosticsLevel {
    /// As `HOB_LOG` has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DiagnosticsLevel::Warn => "warn",
            DiagnosticsLevel::Debug => "debug",
            DiagnosticsLevel::Trace => "trace",
        }
    }
}

impl Extra {
    /// Are programs on another machine?
    pub(crate) fn is_away(self) -> bool {
        matches!(self, Extra::Away(_))
    }

    /// The file system of a file that is served, where rows ask for one.
    pub(crate) fn file_system(self) -> Option<FileSystem> {
        match self {
            Extra::Stored(on) | Extra::StoredNoCache(on) => Some(on),
            _ => None,
        }
    }

    /// Are there compressed copies of a page?
    pub(crate) fn has_copies(self) -> bool {
        matches!(self, Extra::Copies | Extra::CopiesNoCache)
    }

    /// Does somebody look at the server, over its control socket?
    pub(crate) fn is_looked_at(self) -> bool {
        matches!(
            self,
            Extra::Watched | Extra::WatchedElsewhere | Extra::Pages | Extra::Scraped
        )
    }
}
