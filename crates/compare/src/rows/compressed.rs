//! A page that is asked for with `Accept-Encoding: gzip`: its compressed copy lies beside it, is
//! made once and kept, is made for each request, or there is none.

use super::{ComparisonRow, Entrant, RowGroup, RowRequest, Scope};
use crate::copies::{COPIES, DOCUMENT, DOCUMENT_BYTES};
use crate::server::{Extra, Installed, ServerSoftware, has_lighttpd_deflate};
use crate::site::ComparisonSite;

pub(super) fn rows(servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    let row = |connections| row(servers, site, connections);
    [1, 10].map(row).into()
}

fn row(servers: &[Installed], site: &ComparisonSite, connections: usize) -> ComparisonRow {
    let id = format!("gzip.h1.clear.keep.64k.c{connections}");
    let title = "page of 64k, asked for with Accept-Encoding: gzip".to_owned();
    let mut row = ComparisonRow::new(id, title, RowGroup::Compressed, connections);
    row.scope = match connections {
        1 => Scope::Full,
        _ => Scope::Usual,
    };
    row.request = RowRequest::Gzip;
    row.advice = "WASD's authors urged that files be converted once and not at each request, \
                  without figures"
        .into();
    row.entrants = servers
        .iter()
        .flat_map(|server| ways(server, site.copy_bytes))
        .collect();
    row
}

/// Each way in which a server does it, and the bytes of its answer where they are known before.
fn ways(server: &Installed, copy_bytes: u64) -> Vec<Entrant> {
    let way = |text: &str, folder: &str, bytes| Entrant {
        label: format!("{}, {text}", server.name),
        server: server.name.clone(),
        extra: Extra::Copies,
        path: format!("/{COPIES}/{folder}/{DOCUMENT}"),
        bytes,
    };
    let beside = || way("copy beside it", "beside", copy_bytes);
    let each_time = || way("made each time", "made", 0);
    let plain = way("not compressed", "plain", DOCUMENT_BYTES);
    match server.kind {
        ServerSoftware::Hob => vec![
            beside(),
            way("made once and kept", "made", 0),
            Entrant {
                extra: Extra::CopiesNoCache,
                ..each_time()
            },
            plain,
        ],
        ServerSoftware::Nginx | ServerSoftware::Apache | ServerSoftware::Caddy => {
            vec![beside(), each_time(), plain]
        }
        // Its module that compresses is in a package of its own.
        ServerSoftware::Lighttpd if has_lighttpd_deflate() => vec![beside(), each_time(), plain],
        ServerSoftware::Lighttpd => vec![beside(), plain],
        _ => vec![],
    }
}
