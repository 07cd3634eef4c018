//! Who may ask, and how often: what such rules add to a file, in hob and in nginx.

use super::{ComparisonRow, Entrant, RowGroup, Scope};
use crate::server::{Extra, Installed, ServerSoftware};

/// Networks before those that clients are in.
const NETWORKS: u32 = 100;

pub(super) fn rows(servers: &[Installed]) -> Vec<ComparisonRow> {
    let title = "rules of who may ask and how often, file of 0k".to_owned();
    let id = "cost.rules.clear.keep.0k.c10".to_owned();
    let mut row = ComparisonRow::new(id, title, RowGroup::Cost, 10);
    row.scope = Scope::Usual;
    row.advice = "both look an address up in a list and keep a time for each client; nginx's list \
                  is read from its beginning"
        .into();
    row.entrants = servers.iter().filter(is_asked).flat_map(entrants).collect();
    vec![row]
}

fn is_asked(server: &&Installed) -> bool {
    server.name == "hob" || server.kind == ServerSoftware::Nginx
}

fn entrants(server: &Installed) -> [Entrant; 3] {
    let entrant = |what: &str, extra: Extra| Entrant {
        label: format!("{}, {what}", server.name),
        server: server.name.clone(),
        extra,
        path: "/0k.txt".to_owned(),
        bytes: 0,
    };
    [
        entrant("no rules", Extra::None),
        entrant("103 networks may ask", Extra::Allow(NETWORKS)),
        entrant("a rate for each client", Extra::Rate),
    ]
}
