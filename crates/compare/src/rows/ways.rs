//! Rows of hob alone: the same answer in each way there is to make one, as the AS/400's table has
//! them.

use hob_load::Reuse;

use super::row::{carrier_text, reuse_text};
use super::{ComparisonRow, Entrant, RowGroup, Scope};
use crate::programs::PAGE_BYTES;
use crate::server::{Extra, Installed, ServerSoftware};
use crate::site::ComparisonSite;

/// In a path: the handle of a visit, which is begun by asking for what stands before it.
pub(crate) const VISIT: &str = "{visit}";

pub(super) fn rows(servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    let hob = servers
        .iter()
        .find(|server| server.kind == ServerSoftware::Hob);
    let Some(hob) = hob else {
        return vec![];
    };
    let secure = [false, true].into_iter();
    let secure = secure.filter(|is_secure| !is_secure || site.certificate.is_some());
    secure
        .flat_map(|is_secure| {
            let kinds = [Reuse::PerRequest, Reuse::KeepAlive];
            kinds.map(|reuse| row(&hob.name, site, is_secure, reuse))
        })
        .collect()
}

fn row(server: &str, site: &ComparisonSite, is_secure: bool, reuse: Reuse) -> ComparisonRow {
    let (carrier, over) = carrier_text(is_secure);
    let (kept, kept_text) = reuse_text(reuse);
    let id = format!("ways.{carrier}.{kept}.1k.c1");
    // Those of the old table read their answer from a file, too.
    let title = format!(
        "an answer of 1k, which CGI, resident and session read from a file each time, {over}, \
         {kept_text}"
    );
    // A visitor waits for one answer before the next is asked for.
    let mut row = ComparisonRow::new(id, title, RowGroup::Ways, 1);
    row.scope = match (is_secure, reuse) {
        (true, Reuse::PerRequest) => Scope::Full,
        _ => Scope::Usual,
    };
    row.is_secure = is_secure;
    row.reuse = reuse;
    row.entrants = ways(server, site);
    // Clients of its time opened a connection for each request.
    if reuse == Reuse::PerRequest {
        let beside: &[&str] = match is_secure {
            true => &["E.capacity.secure.1k"],
            false => &["E.plain.ways.1k", "E.capacity.plain.1k"],
        };
        row.beside(beside.iter().map(|id| (*id).to_owned()));
    }
    row
}

fn ways(server: &str, site: &ComparisonSite) -> Vec<Entrant> {
    let way = |label: &str, path: &str, extra| Entrant {
        label: label.to_owned(),
        server: server.to_owned(),
        extra,
        path: path.to_owned(),
        bytes: PAGE_BYTES,
    };
    let usual = |label, path, is_there: bool| is_there.then(|| way(label, path, Extra::None));
    let has_database = site.select.is_some();
    let visit = format!("/visit/{VISIT}/?file");
    let all = [
        Some(way("file, not cached", "/1k.txt", Extra::NoCache)),
        usual("file, cached", "/1k.txt", true),
        usual("CGI", "/cgi/reader", site.c.is_some()),
        usual("CGI, SQL", "/cgi/select?1", has_database),
        usual("resident", "/shm?file", site.resident.is_some()),
        usual("session (persistent CGI)", &visit, site.visit.is_some()),
        usual("macro page", "/page/html.ndm/report", has_database),
        usual("macro page, SQL", "/page/sql.ndm/report?id=1", has_database),
    ];
    all.into_iter().flatten().collect()
}
