//! Which file would answer, and what stands on the disk for the path.

use std::sync::Arc;

use hob_http::Response;

use crate::cache::local::Local;
use crate::explain::{DiskOutcome, Explanation, OnDisk, OnExplained, shown_path, wait};

use crate::handle::files::find::{self, ELSEWHERE, FileRequest, Others};
use crate::handle::files::{Files, disk};
use crate::handle::{ExplainsRoute, plain};
use crate::route::target;

impl ExplainsRoute for Files {
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
            None if response.status() == ELSEWHERE => {
                told.note(
                    "`try`: no such file is there, so that the next route answers".to_owned(),
                );
                way.route_behind((site, settings), on.route.index, told)
            }
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
