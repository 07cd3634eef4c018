//! Which file would answer, and what stands on the disk for the path.

use std::sync::Arc;

use hob_http::Response;

use crate::cache::local::Local;
use crate::explain::{DiskOutcome, Explanation, OnDisk, OnExplained, shown_path, wait};

use crate::handle::files::captured::{Opened, refuse_root};
use crate::handle::files::find::{self, ELSEWHERE, FileRequest, Others};
use crate::handle::files::{Files, disk};
use crate::handle::{ExplainsRoute, plain};
use crate::route::target;
use crate::serve::captured::Captured;

impl ExplainsRoute for Files {
    fn explain(self: &Arc<Files>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        match &self.captured {
            None => self.explain_from_root(on, told),
            Some(captured) => self.explain_from(captured, on, told),
        }
    }
}

impl Files {
    /// Which root the request gives, and what would answer there.
    fn explain_from(
        self: &Arc<Files>,
        captured: &Captured<Files>,
        on: &OnExplained<'_>,
        told: &mut Explanation,
    ) -> Response {
        let Some(name) = told.captured_name(on.captured(), &captured.template) else {
            return self.no_root();
        };
        let root = captured.template.whole(&name);
        let shown = root.display();
        match self.open_root(captured, &name, on.way.shared, 0) {
            Opened::Open(files, _) => {
                told.note(format!("the `root` is {shown} here"));
                files.explain_from_root(on, told)
            }
            Opened::Missing => {
                told.note(format!(
                    "the `root` is {shown} here, and there is no such folder, or a link leads there"
                ));
                self.no_root()
            }
            other => {
                told.note(format!("the `root` is {shown} here, which cannot be used"));
                refuse_root(on.way.request, &other, captured, &name)
            }
        }
    }

    fn explain_from_root(
        self: &Arc<Files>,
        on: &OnExplained<'_>,
        told: &mut Explanation,
    ) -> Response {
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
                way.route_behind((site, settings), (on.matched, on.route.index), told)
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
