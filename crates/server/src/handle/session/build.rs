//! A handler as the config has it: the program looked up, its visits found, or a table made for
//! them.

use crate::handle::config::{self, ProgramConfig};
use crate::handle::resident::build::{ResidentParts, lane};
use crate::handle::resident::start::Recipe;
use crate::handle::session::Session;
use crate::handle::session::config::SessionSettings;
use crate::handle::session::visit::SessionTable;
use crate::route::pattern::Pattern;
use crate::serve::ServerState;
use hob_keeper::process::ProgramRef;

/// Makes a handler of its settings, for a route of a site. Visits whose section did not change are
/// kept; no other site has them. May wait for a disk.
///
/// # Errors
/// What is not there, or not as it should be.
pub fn build(
    settings: &SessionSettings,
    (site, route, pattern): (&str, &config::Route, &Pattern),
    (program, reference): (&ProgramConfig, ProgramRef),
    shared: &ServerState,
) -> Result<Session, String> {
    let recipe = Recipe::of(&settings.program, program, reference)?;
    let name = format!("{} {}", route.path, settings.program.runs.name());
    let placeless = settings.placeless();
    let key = format!("{site} {} {placeless:?} {program:?}", route.path);
    let table = shared
        .fleet
        .visits(&key, || SessionTable::new(name, settings.visits.rules));
    Ok(Session {
        parts: ResidentParts::new(&settings.program, (route, pattern), &recipe),
        recipe,
        disk: shared.pool.for_lane(lane(&key)),
        carriers: settings.carriers(&route.path),
        settings: settings.clone(),
        table,
    })
}
