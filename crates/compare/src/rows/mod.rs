//! Which rows there are: what is asked of whom, and which old figures stand beside it.

mod compressed;
mod cost;
mod files;
mod flow;
mod programs;
mod remote;
mod row;
mod rules;
mod stored;
mod sweep;
#[cfg(test)]
mod tests;
mod ways;

use crate::server::{Installed, ServerSoftware};
use crate::site::ComparisonSite;

pub use row::Scope;
pub(crate) use row::{ComparisonRow, Entrant, Per, RowGroup, RowRequest, way_of};
pub(crate) use sweep::sweep;
pub(crate) use ways::VISIT;

/// All rows for these servers and what they can serve, in the order in which they are measured.
pub(crate) fn rows(servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    let mut rows = files::rows(servers, site);
    rows.extend(compressed::rows(servers, site));
    rows.extend(stored::rows(servers, site));
    rows.extend(flow::rows(servers));
    rows.extend(programs::rows(servers, site));
    rows.extend(remote::rows(servers, site));
    rows.extend(ways::rows(servers, site));
    rows.extend(cost::rows());
    rows.extend(rules::rows(servers));
    rows.sort_by_key(|row| row.group);
    for row in &mut rows {
        with_builds(row, servers);
    }
    rows
}

/// Rows of files have every server; those of programs get the other builds of hob here.
fn with_builds(row: &mut ComparisonRow, servers: &[Installed]) {
    let hobs = { servers.iter() }.filter(|server| server.kind == ServerSoftware::Hob);
    let names: Vec<&str> = hobs.map(|server| server.name.as_str()).collect();
    let is_of_programs = matches!(
        row.group,
        RowGroup::Scripts | RowGroup::Stream | RowGroup::Remote | RowGroup::Ways
    );
    if let [first, others @ ..] = &names[..]
        && is_of_programs
    {
        row.with_builds(first, others);
    }
}

/// The rows that were asked for: of a scope, or those whose id has the words of one of these texts
/// beside each other (`c1` is no part of `c10`).
pub(crate) fn chosen(
    rows: Vec<ComparisonRow>,
    scope: Scope,
    only: &[String],
) -> Vec<ComparisonRow> {
    let is_chosen = |row: &ComparisonRow| match only {
        [] => row.scope <= scope,
        // Whoever names a row means it, in whatever scope it is.
        only => only.iter().any(|part| has_words(&row.id, part)),
    };
    rows.into_iter().filter(is_chosen).collect()
}

fn has_words(id: &str, part: &str) -> bool {
    let words: Vec<&str> = part.split('.').filter(|word| !word.is_empty()).collect();
    let all: Vec<&str> = id.split('.').collect();
    !words.is_empty() && all.windows(words.len()).any(|some| some == words)
}
