//! A handler as the config has it: names of programs looked up, the pool found or made.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::{self, Program, ResidentRuns};
use crate::handle::cgi::build::{environment, half_close, resolve};
use crate::handle::resident::pool::Pool;
use crate::handle::resident::start::Recipe;
use crate::handle::resident::{Resident, host, native};
use crate::process::{ProgramRef, Strings};
use crate::route::pattern::Pattern;
use crate::shared::Shared;

/// Makes a handler of its settings. A pool whose section did not change is kept. May wait for a
/// disk.
///
/// # Errors
/// What is not there, or not as it should be.
pub fn build(
    settings: &config::Resident,
    (route, pattern): (&config::Route, &Pattern),
    (program, reference): (&Program, ProgramRef),
    shared: &Shared,
) -> Result<Resident, String> {
    let (mut environment, _) = environment(program)?;
    if let ResidentRuns::Hosted { host, .. } = &settings.runs
        && host.is_python()
        && !settings.watch.is_empty()
    {
        // Compiled files know their source by second and size: two changes in a second look alike.
        let pushed = environment.push_pair(b"PYTHONDONTWRITEBYTECODE", b"1");
        debug_assert!(pushed.is_ok(), "there is no NUL in it");
    }
    let resolved = resolve(settings.runs.program(), program.path())?;
    let path = resolved.as_os_str().as_bytes().to_vec();
    let mut arguments = Strings::new();
    let mut push = |word: &[u8]| {
        let pushed = arguments.push(word);
        pushed.map_err(|error| format!("an argument: {error}"))
    };
    push(&path)?;
    let host = match &settings.runs {
        ResidentRuns::Command(words) => {
            for word in words.iter().skip(1) {
                push(word.as_bytes())?;
            }
            None
        }
        ResidentRuns::Hosted { host, what, .. } => {
            for word in host::words(*host, what) {
                push(word.as_bytes())?;
            }
            Some(*host)
        }
    };
    let recipe = Recipe {
        program: reference,
        path,
        arguments,
        dir: settings.dir.as_os_str().as_bytes().to_vec(),
        environment,
        shared: settings.shared,
        host,
        native: host.and_then(|_| native::folder()),
    };
    let name = format!("{} {}", route.path, settings.runs.name());
    // All that decides how a worker runs. The program's number in the config is no part of it.
    let same = config::Resident {
        program: 0,
        ..settings.clone()
    };
    let key = format!("{} {same:?} {program:?}", route.path);
    let pool = shared.fleet.pool(&key, || {
        let disk = shared.pool.for_lane(lane(&key));
        Pool::new(name, settings.clone(), recipe.clone(), disk, &shared.fleet)
    });
    // One that is kept starts workers under the rules of this config, which are the same.
    *pool.0.recipe.lock().unwrap_or_else(PoisonError::into_inner) = recipe;
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    Ok(Resident {
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
        document_root: settings.document_root.as_os_str().as_bytes().to_vec(),
        file: match &settings.runs {
            ResidentRuns::Command(_) => resolved.as_os_str().as_bytes().to_vec(),
            ResidentRuns::Hosted { what, .. } => what.as_bytes().to_vec(),
        },
        // A rewritten path is the program's own, all of it.
        splits_path: !pattern.is_one_path() || route.rewrite.is_some(),
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
