//! A large file to many clients at once: whether each gets as much as the others.

use super::{ComparisonRow, Entrant, Per, RowGroup, Scope};
use crate::server::{Extra, Installed};
use crate::site::{FILES, file_name};

/// As the oldest document tried it: so many requests at once, from so many machines.
const CONNECTIONS: usize = 30;
const CLIENTS: usize = 6;
/// The shortest of the large files: the shorter it is, the less one answer more or less counts.
const FILE: &str = "2406400";

pub(super) fn rows(servers: &[Installed]) -> Vec<ComparisonRow> {
    let file = FILES.iter().find(|(name, _)| *name == FILE);
    file.map(|(name, bytes)| row(servers, name, *bytes))
        .into_iter()
        .collect()
}

fn row(servers: &[Installed], name: &str, bytes: u64) -> ComparisonRow {
    let id = format!("flow.h1.clear.keep.{name}.c{CONNECTIONS}");
    let title = format!("file of {name} bytes to {CLIENTS} clients at once");
    let mut row = ComparisonRow::new(id, title, RowGroup::Flow, CONNECTIONS);
    row.scope = Scope::Usual;
    row.per = Per::Megabyte;
    row.sources = CLIENTS;
    row.advice = "WASD was tried with 30 requests at once from 6 systems, and told of an even \
                  distribution of data flow to each, without figures"
        .into();
    let entrant = |server: &Installed| Entrant {
        label: server.name.clone(),
        server: server.name.clone(),
        extra: Extra::None,
        path: format!("/{}", file_name(name, bytes)),
        bytes,
    };
    let servers = servers.iter().filter(|server| server.kind.has_files());
    row.entrants = servers.map(entrant).collect();
    row
}
