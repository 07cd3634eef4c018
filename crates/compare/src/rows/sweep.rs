//! Rows of `--sweep`: the bandwidth program over each carrier with other sizes than the usual ones,
//! of what is handed over at once, of what the kernel takes for a connection, and of what lies in
//! shared memory. The first of each row is the default.

use super::{ComparisonRow, Entrant, Per, RowGroup, Scope};
use crate::server::{Extra, Installed, ServerSoftware};
use crate::site::ComparisonSite;

/// One answer.
const ANSWER_KIB: u64 = 32 * 1024;
/// KiB that the program hands over at once. Up to 64 they are what one chunk of shared memory, or
/// one message of a stream, holds; more are cut.
const PIECES_KIB: [u64; 7] = [64, 4, 8, 16, 32, 256, 1024];
/// KiB of send buffer.
const BUFFERS_KIB: [u32; 4] = [64, 256, 1024, 4096];
/// Chunks of shared memory, the most there may be first.
const CHUNKS: [u32; 4] = [32, 4, 8, 16];
/// KiB of each, the largest first.
const CHUNK_KIB: [u32; 5] = [64, 4, 8, 16, 32];

/// All of them, for the first server that is hob.
pub(crate) fn sweep(servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    let Some(hob) = servers
        .iter()
        .find(|server| server.kind == ServerSoftware::Hob)
    else {
        return vec![];
    };
    let mut carriers = vec![];
    if site.c.is_some() {
        carriers.push(("cgi", "CGI", "/cgi/program"));
        carriers.push(("lines", "lines", "/lines"));
    }
    if site.resident.is_some() {
        carriers.push(("stream", "a stream", "/stream"));
        carriers.push(("shm", "shared memory", "/shm"));
    }
    let of = |carrier: &(&str, &str, &str)| [pieces(hob, carrier), buffers(hob, carrier)];
    let mut rows: Vec<ComparisonRow> = carriers.iter().flat_map(of).collect();
    if site.resident.is_some() {
        rows.extend([chunks(hob), chunk_sizes(hob)]);
    }
    rows
}

fn pieces(hob: &Installed, (word, text, path): &(&str, &str, &str)) -> ComparisonRow {
    let id = format!("sweep.piece.{word}.clear.keep.32m.c1");
    let title = format!("32 MiB over {text}, by how much the program hands over at once");
    let entrants = PIECES_KIB.map(|kib| Entrant {
        label: format!(
            "{kib} KiB{}",
            if kib == PIECES_KIB[0] {
                " (default)"
            } else {
                ""
            }
        ),
        server: hob.name.clone(),
        extra: Extra::None,
        path: format!("{path}?{ANSWER_KIB}&{kib}"),
        bytes: ANSWER_KIB * 1024,
    });
    row(id, title, entrants.into())
}

fn chunks(hob: &Installed) -> ComparisonRow {
    let id = "sweep.chunks.shm.clear.keep.32m.c1".to_owned();
    let title = "32 MiB over shared memory, by how many chunks of 64 KiB there are".to_owned();
    let entrant = |count| of_shared(hob, format!("{count} chunks"), Extra::Chunks(count));
    row(id, title, first_is_default(CHUNKS.map(entrant)))
}

fn chunk_sizes(hob: &Installed) -> ComparisonRow {
    let id = "sweep.chunk.shm.clear.keep.32m.c1".to_owned();
    let title = "32 MiB over shared memory, by the size of its 32 chunks".to_owned();
    let entrant = |kib| of_shared(hob, format!("{kib} KiB"), Extra::ChunkKib(kib));
    row(id, title, first_is_default(CHUNK_KIB.map(entrant)))
}

fn of_shared(hob: &Installed, label: String, extra: Extra) -> Entrant {
    Entrant {
        label,
        server: hob.name.clone(),
        extra,
        path: format!("/shm?{ANSWER_KIB}"),
        bytes: ANSWER_KIB * 1024,
    }
}

/// The default is hob as it comes.
fn first_is_default<const COUNT: usize>(mut entrants: [Entrant; COUNT]) -> Vec<Entrant> {
    if let Some(first) = entrants.first_mut() {
        first.label.push_str(" (default)");
        first.extra = Extra::None;
    }
    entrants.into()
}

fn buffers(hob: &Installed, (word, text, path): &(&str, &str, &str)) -> ComparisonRow {
    let id = format!("sweep.buffer.{word}.clear.keep.32m.c1");
    let title = format!("32 MiB over {text}, by the send buffer of connections");
    let entrant = |label: String, extra| Entrant {
        label,
        server: hob.name.clone(),
        extra,
        path: format!("{path}?{ANSWER_KIB}"),
        bytes: ANSWER_KIB * 1024,
    };
    let mut entrants = vec![entrant("the kernel's (default)".to_owned(), Extra::None)];
    entrants.extend(
        BUFFERS_KIB.map(|kib| entrant(format!("{kib} KiB"), Extra::SendBuffer(kib * 1024))),
    );
    row(id, title, entrants)
}

fn row(id: String, title: String, entrants: Vec<Entrant>) -> ComparisonRow {
    let mut row = ComparisonRow::new(id, title, RowGroup::Sweep, 1);
    row.scope = Scope::Quick;
    row.per = Per::Megabyte;
    row.entrants = entrants;
    row
}
