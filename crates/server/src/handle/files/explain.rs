//! Which file would answer, and what stands on the disk for the path.

use std::sync::Arc;

use hob_http::Response;

use crate::cache::local::Local;
use crate::explain::{DiskOutcome, Explanation, OnDisk, OnExplained, Setting, shown_path, wait};
use crate::handle::config;
use crate::handle::config::Coding;
use crate::handle::files::find::{self, ELSEWHERE, FileRequest, Others};
use crate::handle::files::{Files, disk};
use crate::handle::{ExplainsRoute, plain};
use crate::route::target;

impl ExplainsRoute for Files {
    fn settings(settings: &config::Files) -> Vec<(&'static str, Setting)> {
        of_files(settings)
    }

    fn explain(self: &Arc<Files>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        let (way, (site, settings)) = (on.way, on.site);
        let (others, below) = Others::on(self, (site, on.route), on.path, on.below);
        let path = on.path.get(below..).unwrap_or_default();
        if matches!(way.request.head().method(), b"GET" | b"HEAD") {
            told.disk = Some(disk::look(self, path));
        }
        let ask = FileRequest {
            files: self,
            request: way.request,
            shared: way.shared,
            counters: &Arc::default(),
            now_ms: 0,
            others,
            slashes: site.slashes.as_ref(),
        };
        let (mut local, mut key) = (Local::default(), Vec::new());
        let response = wait(find::answer(&ask, path, &mut local, &mut key));
        match response.fields().value(b"Location") {
            Some(location) if response.status() == ELSEWHERE => {
                let mut room = Vec::new();
                let Ok(normal) = target::normalise(location, &mut room) else {
                    return plain::error(404);
                };
                let path = normal.path(location, &room);
                told.answered_as = Some(shown_path(path));
                way.route(site, settings, path, told)
            }
            _ => {
                let is_folder = |disk: &OnDisk| disk.outcome == DiskOutcome::AddSlash;
                let is_slash = matches!(response.status(), 301 | 308)
                    && !told.disk.as_ref().is_some_and(is_folder);
                if is_slash && way.slash((site, settings), told) {
                    told.disk = None;
                }
                response
            }
        }
    }
}

fn of_files(files: &config::Files) -> Vec<(&'static str, Setting)> {
    let words = |codings: &[Coding], word: fn(Coding) -> &'static str| {
        Setting::Texts(codings.iter().map(|one| word(*one).to_owned()).collect())
    };
    let types = files.types.iter();
    let types = types
        .map(|(ending, media)| format!("{ending} {media}"))
        .collect();
    vec![
        ("root", Setting::text(&files.root.display().to_string())),
        ("keep_prefix", Setting::Flag(files.keep_prefix)),
        ("index", Setting::Texts(files.index.clone())),
        ("listing", Setting::Flag(files.listing)),
        (
            "fallback",
            Setting::text(files.fallback.as_deref().unwrap_or_default()),
        ),
        (
            "fallback_cache_control",
            Setting::text(match files.fallback {
                Some(_) => &files.fallback_cache_control,
                None => "",
            }),
        ),
        ("precompressed", words(&files.precompressed, Coding::ending)),
        ("compress", words(&files.compress, Coding::word)),
        ("compress_min", Setting::Number(files.compress_min)),
        (
            "compress_types",
            Setting::Texts(files.compress_types.clone()),
        ),
        ("dot_files", Setting::Flag(files.dot_files)),
        ("symlinks", Setting::text(files.symlinks.word())),
        ("charset", Setting::text(&files.charset)),
        ("types", Setting::Texts(types)),
        ("cache_control", Setting::text(&files.cache_control)),
        ("cache", Setting::text(files.cache.word())),
    ]
}
