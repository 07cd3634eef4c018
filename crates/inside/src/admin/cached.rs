//! The cache of files: what is in it, and throwing things out.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use hob_http::Answered;
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::{reply, threads};
use crate::api::{CacheContents, CacheEntry, CacheTotals, PurgeOutcome};
use hob_server::cache::entry::{CachedFile, handler_of, path_of};
use hob_server::cache::local::HANDED_OVER_AT_ONCE;
use hob_server::serve::ServerState;
use hob_server::serve::fleet::now_ms;
use hob_server::serve::sites::Sites;

/// Entries of one answer.
const LIMIT_MAX: u64 = 1000;
/// The lane of the file pool in which the cache is looked through.
const LANE: u64 = u64::MAX - 3;

/// Where a handler's files are.
struct FilesLocation {
    root: String,
    site: String,
}

/// `GET /v1/cache?limit&sort=bytes|hits|age&q=`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let limit = ask.number("limit", 100).min(LIMIT_MAX) as usize;
    let sort = ask.query("sort").unwrap_or_else(|| "bytes".to_owned());
    let wanted = ask.query("q").unwrap_or_default();
    if !matches!(&*sort, "bytes" | "hits" | "age") {
        return Answered::Ready(reply::text(400, "sort is bytes, hits or age"));
    }
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        hand_over_hits(&ask).await;
        let (shared, names) = (Arc::clone(&ask.admin.shared), site_names(&ask));
        let pool = shared.pool.for_lane(LANE);
        let job = pool.run(move || told(&shared, &names, limit, (&sort, &wanted)));
        let done = ask.done(job).await;
        done.map_or_else(|refusal| refusal, |value| reply::object(200, &value))
    }))
}

/// Has every thread tell entries how often they were asked for, piece by piece with its other work
/// in between. Hits of a thread that is busy for longer are in the next answer.
async fn hand_over_hits(ask: &AdminRequest) {
    let counts = threads::look_at_all(ask, |thread| thread.answer().view_count());
    let (counts, _) = counts.await;
    let most = counts.into_iter().max().unwrap_or(0);
    for first in (0..most).step_by(HANDED_OVER_AT_ONCE).rev() {
        let piece = threads::look_at_all(ask, move |thread| thread.answer().hand_over_hits(first));
        if let (_, true) = piece.await {
            return;
        }
    }
}

fn told(
    shared: &ServerState,
    names: &[String],
    limit: usize,
    (sort, wanted): (&str, &str),
) -> Value {
    let places = places(&shared.sites(), names);
    let now_ms = now_ms();
    let mut rows: Vec<(u64, CacheEntry)> = Vec::new();
    let (mut matching, mut bytes_matching) = (0u64, 0u64);
    for (entry, bytes, is_pinned) in shared.store.entries() {
        let (path, site) = named(&entry, &places);
        if !path.contains(wanted) {
            continue;
        }
        matching += 1;
        bytes_matching += bytes;
        let age_s = now_ms.saturating_sub(entry.checked_ms()) / 1000;
        let state = match (is_pinned, entry.is_hot()) {
            (true, _) => "pinned",
            (false, true) => "hot",
            (false, false) => "kept",
        };
        let row = CacheEntry {
            path,
            site,
            bytes,
            hits: entry.hits(),
            heat: entry.heat(),
            age_s,
            state: state.to_owned(),
        };
        let key = match sort {
            "hits" => row.hits,
            "age" => age_s,
            _ => bytes,
        };
        rows.push((key, row));
    }
    rows.sort_by_key(|(key, _)| Reverse(*key));
    let more = rows.len() > limit;
    rows.truncate(limit);
    let holdings = shared.store.holdings();
    json!(CacheContents {
        entries: rows.into_iter().map(|(_, row)| row).collect(),
        more,
        totals: CacheTotals {
            entries: holdings.entries,
            bytes: holdings.bytes,
            bytes_max: holdings.bytes_max,
            pinned_bytes: holdings.pinned_bytes,
            evictions: holdings.evictions,
            matching,
            matching_bytes: bytes_matching,
        },
    })
}

/// What is thrown out.
enum What {
    All,
    Site(String),
    /// A file, or all below a folder where it ends in `/*`.
    Path(String),
}

/// `POST /v1/cache/purge`
pub(super) fn purge(ask: &AdminRequest) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let body = match ask.json().await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let what = match (body["path"].as_str(), body["site"].as_str(), &body["all"]) {
            (Some(path), _, _) => What::Path(path.to_owned()),
            (None, Some(site), _) => What::Site(site.to_owned()),
            (None, None, Value::Bool(true)) => What::All,
            _ => return reply::text(400, "give a `path`, a `site`, or `all: true`"),
        };
        ask.note(match &what {
            What::All => "all".to_owned(),
            What::Site(site) => format!("site {site}"),
            What::Path(path) => path.clone(),
        });
        let (shared, names) = (Arc::clone(&ask.admin.shared), site_names(&ask));
        let pool = shared.pool.for_lane(LANE);
        let Ok(job) = pool.run(move || throw_out(&shared, &names, &what)) else {
            return reply::busy();
        };
        match job.await {
            Some(purged) => {
                let text = match purged {
                    1 => "1 file left the cache".to_owned(),
                    count => format!("{count} files left the cache"),
                };
                reply::object(200, &json!(PurgeOutcome { text, purged }))
            }
            None => reply::busy(),
        }
    }))
}

fn throw_out(shared: &ServerState, names: &[String], what: &What) -> usize {
    let places = places(&shared.sites(), names);
    let mut count = 0;
    for (entry, _, _) in shared.store.entries() {
        let (path, site) = named(&entry, &places);
        let is_meant = match what {
            What::All => true,
            What::Site(wanted) => site == *wanted,
            What::Path(wanted) => match wanted.strip_suffix('*') {
                Some(folder) => path.starts_with(folder),
                None => path == *wanted,
            },
        };
        if is_meant {
            shared.store.remove(&entry);
            count += 1;
        }
    }
    count
}

/// Names of the sites, in their order.
fn site_names(ask: &AdminRequest) -> Vec<String> {
    ask.admin.report.lock().sites.clone()
}

/// Where the files of each handler are, by its number.
fn places(sites: &Sites, names: &[String]) -> HashMap<u64, FilesLocation> {
    let mut places = HashMap::new();
    for (site, files) in sites.files_by_site() {
        for files in [files].into_iter().chain(&files.open_roots()) {
            places.entry(files.id).or_insert_with(|| FilesLocation {
                root: files.settings.root.display().to_string(),
                site: names.get(site).cloned().unwrap_or_default(),
            });
        }
    }
    places
}

/// The path of an entry's file, and the site it is served on.
fn named(entry: &CachedFile, places: &HashMap<u64, FilesLocation>) -> (String, String) {
    let below = String::from_utf8_lossy(path_of(&entry.key));
    let place = handler_of(&entry.key).and_then(|handler| places.get(&handler));
    match place {
        Some(place) => {
            let root = place.root.trim_end_matches('/');
            let below = below.trim_start_matches('/');
            (format!("{root}/{below}"), place.site.clone())
        }
        // Its handler is not in the config any more.
        None => (below.into_owned(), String::new()),
    }
}
