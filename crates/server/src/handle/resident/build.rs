//! A handler as the config has it: names of programs looked up, the pool found or made.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::handle::config::{self, ProgramConfig, ResidentRuns};
use crate::handle::resident::Resident;
use crate::handle::resident::pool::Pool;
use crate::handle::resident::start::Recipe;
use crate::handle::script::build::half_close;
use crate::route::pattern::Pattern;
use crate::serve::ServerState;
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
    let executed = recipe.path.clone();
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
        Pool::new(name, settings.clone(), recipe.clone(), disk, &shared.fleet)
    });
    // One that is kept starts workers under the rules of this config, which are the same.
    *pool.0.recipe.lock() = recipe;
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    Ok(Resident {
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
        document_root: settings.document_root.as_os_str().as_bytes().to_vec(),
        file: match &settings.runs {
            ResidentRuns::Command(_) => executed,
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
        settings: settings.clone(),
        pool,
    })
}

/// A program's own lane in the file pool; those of roots are counted from zero.
fn lane(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() | 1 << 63
}
