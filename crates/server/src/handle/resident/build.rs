//! A handler as the config has it: names of programs looked up, the pool found or made.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hob_http::HalfClose;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::config::{self, ProgramConfig, ResidentRuns};
use crate::handle::resident::Resident;
use crate::handle::resident::bound::PoolBond;
use crate::handle::resident::pool::{Keep, Pool};
use crate::handle::resident::start::Recipe;
use crate::handle::script::build::half_close;
use crate::route::pattern::Pattern;
use crate::serve::ServerState;
use crate::serve::fleet::Fleet;
use hob_keeper::process::ProgramRef;

/// Makes a handler of its settings. A pool whose section did not change is kept. May wait for a
/// disk.
///
/// # Errors
/// What is not there, or not as it should be.
pub fn build(
    settings: &config::Resident,
    (route, pattern): (&config::Route, &Pattern),
    (program, reference): (&ProgramConfig, ProgramRef),
    shared: &ServerState,
) -> Result<Resident, String> {
    let recipe = Recipe::of(settings, program, reference)?;
    let parts = ResidentParts::new(settings, (route, pattern), &recipe);
    let name = format!("{} {}", route.path, settings.runs.name());
    // All that decides how a worker runs. Where it stands in the config is no part of it.
    let same = config::Resident {
        program: 0,
        place: config::SourceLocation::default(),
        ..settings.clone()
    };
    let key = format!("{} {same:?} {program:?}", route.path);
    let pool = shared.fleet.pool(&key, || {
        let disk = shared.pool.for_lane(lane(&key));
        let settings = Arc::clone(&parts.settings);
        Pool::new(name, settings, recipe.clone(), disk, &shared.fleet)
    });
    // One that is kept starts workers under the rules of this config, which are the same.
    *pool.0.recipe.lock() = recipe;
    Ok(parts.with(pool))
}

/// All of a handler but its pool.
pub(crate) struct ResidentParts {
    pub(crate) settings: Arc<config::Resident>,
    document_root: Vec<u8>,
    file: Vec<u8>,
    splits_path: bool,
    finds_scripts: bool,
    half_close: HalfClose,
}

impl ResidentParts {
    pub(crate) fn new(
        settings: &config::Resident,
        (route, pattern): (&config::Route, &Pattern),
        recipe: &Recipe,
    ) -> ResidentParts {
        ResidentParts {
            document_root: settings.document_root.as_os_str().as_bytes().to_vec(),
            file: match &settings.runs {
                ResidentRuns::Command(_) => recipe.path.clone(),
                ResidentRuns::Hosted { what, .. } => what.as_bytes().to_vec(),
            },
            // A rewritten path is the program's own, all of it.
            splits_path: !pattern.is_one_path() || route.rewrite.is_some(),
            finds_scripts: matches!(
                &settings.runs,
                ResidentRuns::Hosted {
                    host: config::ApplicationKind::Scripts,
                    ..
                }
            ),
            half_close: half_close(route),
            settings: Arc::new(settings.clone()),
        }
    }

    /// The program's file.
    pub(crate) fn file(&self) -> &[u8] {
        &self.file
    }

    pub(crate) fn with(&self, pool: Arc<Keep>) -> Resident {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Resident {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            document_root: self.document_root.clone(),
            file: self.file.clone(),
            splits_path: self.splits_path,
            finds_scripts: self.finds_scripts,
            half_close: self.half_close,
            settings: Arc::clone(&self.settings),
            pool,
        }
    }

    /// The same with one worker, which belongs to a visitor and is started with its first request.
    pub(crate) fn bound(
        &self,
        name: &str,
        recipe: Recipe,
        (disk, fleet): (DiskThreads, &Arc<Fleet>),
        bond: PoolBond,
    ) -> Resident {
        let settings = Arc::clone(&self.settings);
        let pool = Pool::new(name.to_owned(), settings, recipe, disk, fleet).bound(bond);
        self.with(Arc::new(Keep::new(Arc::new(pool), false)))
    }
}

/// A program's own lane in the file pool; those of roots are counted from zero.
pub(crate) fn lane(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() | 1 << 63
}
