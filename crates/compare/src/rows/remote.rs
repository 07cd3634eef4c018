//! Rows of programs on another machine: each request over a connection of its own, over ones that
//! are kept, and the same program at home.

use std::time::Duration;

use super::{ComparisonRow, Entrant, RowGroup, Scope};
use crate::server::{Extra, Installed, ServerSoftware};
use crate::site::ComparisonSite;

/// Where the other machine is: as ids say it, as titles do, and how much longer a round trip takes.
const DISTANCES: [(&str, &str, Option<Duration>); 3] = [
    ("loopback", "over the loopback", None),
    ("200us", "0.2 ms away", Some(Duration::from_micros(200))),
    ("20ms", "20 ms away", Some(Duration::from_millis(20))),
];

pub(super) fn rows(servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    if site.hobs.is_none() || site.c.is_none() {
        return vec![];
    }
    let mut rows = vec![];
    for distance in DISTANCES {
        for kib in [0, 16] {
            rows.extend([1, 10].map(|connections| row(servers, site, distance, kib, connections)));
        }
    }
    rows.retain(|row| !row.entrants.is_empty());
    rows
}

fn row(
    servers: &[Installed],
    site: &ComparisonSite,
    (word, text, distance): (&str, &str, Option<Duration>),
    kib: u64,
    connections: usize,
) -> ComparisonRow {
    let id = format!("remote.c.{word}.{kib}k.c{connections}");
    let title = format!("program in C with an answer of {kib}k, {text}");
    let mut row = ComparisonRow::new(id, title, RowGroup::Remote, connections);
    row.scope = match (distance, kib) {
        (None, 0) => Scope::Usual,
        _ => Scope::Full,
    };
    let of = |kind, way: &str, path: &str| {
        let server = servers.iter().find(|server| server.kind == kind)?;
        Some(Entrant {
            label: format!("{} {way}", server.name),
            server: server.name.clone(),
            extra: Extra::Away(distance),
            path: format!("{path}?{kib}"),
            bytes: kib * 1024,
        })
    };
    let hob = |way, path| of(ServerSoftware::Hob, way, path);
    let has_resident = site.resident.is_some();
    let all = [
        hob("resident, kept", "/kept/resident").filter(|_| has_resident),
        hob("resident, a connection each", "/once/resident").filter(|_| has_resident),
        hob("resident, at home", "/stream").filter(|_| has_resident),
        hob("cgi, kept", "/kept/cgi"),
        hob("cgi, a connection each", "/once/cgi"),
        hob("cgi, at home", "/cgi/program"),
        of(ServerSoftware::Nginx, "fastcgi, kept", "/kept/fastcgi"),
        of(
            ServerSoftware::Nginx,
            "fastcgi, a connection each",
            "/once/fastcgi",
        ),
    ];
    row.entrants = match servers
        .iter()
        .any(|server| server.kind == ServerSoftware::Hob)
    {
        true => all.into_iter().flatten().collect(),
        false => vec![],
    };
    if distance.is_none() {
        row.beside(["once", "kept"].map(|way| format!("A.remote.{way}.{kib}k.c{connections}")));
    }
    row
}
