//! Pages of the macro language (`hob_page`), and their databases.
//!
//! A page that waits for nothing is run on the serving thread as it is asked for, within a small
//! budget. One that asks a database, or comes to the end of that budget, is run on a thread that
//! may wait; what it prints is held, in memory and then in a file without a name, so that neither a
//! connection to a database nor a transaction waits for a slow client.
//!
//! ```text
//!  request --> inline run --> answer
//!                  | it has to wait, or is long
//!                  '--> queue --> thread with its connections --> output --> answer
//! ```
//!
//! - `answer` from a request to its answer, `explain` which page would be run, `fail` what is said
//!   when something is wrong
//! - `files` finds pages and what they include, and keeps them read
//! - `flat` flat files and registries that pages use
//! - `request` what a page is told of its request
//! - `run` runs a page here or there, `threads` the threads that may wait, `database` their
//!   connections, `output` what a run prints on its way to the client
//! - `visits` what is kept of a page that lasts over several requests
//! - `program` programs that pages may call, `calls` how they are called
//! - `keys` its keys, `config` what they say

mod answer;
mod calls;
pub mod config;
mod database;
mod explain;
mod fail;
mod files;
mod flat;
pub(crate) mod keys;
mod output;
mod program;
mod request;
mod run;
mod threads;
pub(crate) mod visits;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hob_http::HalfClose;
use hob_page::ini::Ini;
use hob_page::limits::PageLimits;
use hob_page::run::PageSettings;

use crate::handle::page::config::PagesSettings;
use crate::handle::page::files::PageFiles;
use crate::handle::page::flat::PageFlatFiles;
use crate::handle::page::threads::PageThreads;
use crate::handle::page::visits::home::PageVisitHome;
use crate::serve::sites::SitesBuildContext;

/// Largest form that a page takes, in bytes.
const FORM_BYTES_MAX: usize = 1 << 20;
/// Fields of query and form together.
const FIELDS_MAX: usize = 10_000;
/// Steps of a run on a serving thread: some hundred microseconds.
const INLINE_STEPS_MAX: u64 = 10_000;
/// Bytes that such a run may print.
const INLINE_OUTPUT_BYTES_MAX: u64 = 256 << 10;

/// A handler of this kind, ready to answer.
pub struct Pages {
    settings: Arc<PagesSettings>,
    files: PageFiles,
    flat: PageFlatFiles,
    /// Those that may wait.
    threads: PageThreads,
    /// How pages are run there, and here.
    waiting: PageSettings,
    inline: PageSettings,
    /// Visits that last, where they are kept.
    visits: Option<Arc<PageVisitHome>>,
    /// The route's path.
    path: String,
    /// What it means for a run that its client has sent everything.
    half_close: HalfClose,
}

impl Pages {
    fn new(
        settings: &PagesSettings,
        (path, half_close): (&str, HalfClose),
        around: &mut SitesBuildContext<'_>,
    ) -> Result<Pages, String> {
        let ini = read_ini(settings)?;
        let files = PageFiles::new(settings, &ini, around)?;
        let flat = PageFlatFiles::new(settings, &ini);
        let database = settings.database.iter();
        let waiting = PageSettings {
            escape: settings.escape,
            limits: PageLimits::default(),
            ini,
            hidden_key: hidden_key(),
            has_page_logins: settings.has_page_logins,
            variables: database
                .map(|one| ("DATABASE".to_owned(), one.name.clone()))
                .collect(),
        };
        let mut inline = waiting.clone();
        inline.limits.steps_max = INLINE_STEPS_MAX;
        inline.limits.output_bytes_max = INLINE_OUTPUT_BYTES_MAX;
        Ok(Pages {
            threads: PageThreads::new(settings.runs_max(), settings.queue),
            settings: Arc::new(settings.clone()),
            files,
            flat,
            visits: around.page_visits(path, settings),
            path: path.to_owned(),
            waiting,
            inline,
            half_close,
        })
    }

    /// Paths of its requests may have handles.
    pub(crate) fn keeps_visits(&self) -> bool {
        self.visits.is_some()
    }

    /// How long a run may take, with waiting.
    fn time(&self) -> Duration {
        self.settings.time
    }
}

fn read_ini(settings: &PagesSettings) -> Result<Ini, String> {
    let Some(file) = &settings.ini else {
        return Ok(Ini::default());
    };
    let name = file.display().to_string();
    let text = std::fs::read(file).map_err(|error| format!("{name}: {error}"))?;
    Ini::parse(&name, &text).map_err(|fault| fault.to_string())
}

/// A secret of this process, from which names in `$$(name)` are made.
fn hidden_key() -> u64 {
    static KEY: OnceLock<u64> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut bytes = [0; 8];
        // Without a secret nothing is known that a page does not show anyway.
        let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        u64::from_ne_bytes(bytes)
    })
}
