//! The same file on several file systems: each is mounted for the server that serves from it.

use super::{ComparisonRow, Entrant, RowGroup, Scope};
use crate::mounts::FileSystem;
use crate::server::{Extra, Installed, ServerSoftware};
use crate::site::{ComparisonSite, STORED_BYTES, STORED_FILE};

/// What ids and titles say of hob's own cache, and whether it is on.
const CACHES: [(&str, &str, bool); 2] = [
    ("keep", "cached as servers come", true),
    ("uncached", "hob's cache off", false),
];

pub(super) fn rows(servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    CACHES.map(|cache| row(servers, site, cache)).into()
}

fn row(
    servers: &[Installed],
    site: &ComparisonSite,
    (word, text, is_cached): (&str, &str, bool),
) -> ComparisonRow {
    let id = format!("store.h1.clear.{word}.16k.c10");
    let title = format!("file of 16k by what it lies on, {text}");
    let mut row = ComparisonRow::new(id, title, RowGroup::Stored, 10);
    row.scope = Scope::Usual;
    row.advice = "IBM told of 2 to 5 times less capacity from the slower file systems of the \
                  AS/400 (QDLS, QSYS)"
        .into();
    let servers = servers.iter().filter(|server| is_asked(server, is_cached));
    row.entrants = servers
        .flat_map(|server| FileSystem::ALL.map(|on| entrant(server, site, on, is_cached)))
        .collect();
    row
}

/// Rivals have no cache of their own: once is enough. Another build of hob is a rival of rows in
/// which less is started.
fn is_asked(server: &Installed, is_cached: bool) -> bool {
    match server.kind {
        ServerSoftware::Hob => server.name == "hob",
        ServerSoftware::Nginx | ServerSoftware::Apache | ServerSoftware::Lighttpd => is_cached,
        _ => false,
    }
}

fn entrant(server: &Installed, site: &ComparisonSite, on: FileSystem, is_cached: bool) -> Entrant {
    let kind = match on {
        FileSystem::Own => &site.own_file_system,
        other => other.name(),
    };
    Entrant {
        label: format!("{}, {kind}", server.name),
        server: server.name.clone(),
        extra: match is_cached {
            true => Extra::Stored(on),
            false => Extra::StoredNoCache(on),
        },
        path: format!("/store/{STORED_FILE}"),
        bytes: STORED_BYTES,
    }
}
