//! Which page would be run is told, and it is not run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, shown};
use crate::handle::page::Pages;
use crate::handle::page::answer::{AskedPage, asked};
use crate::handle::page::files::{FileLookupError, PageSource};
use crate::handle::{ExplainsRoute, plain};

impl ExplainsRoute for Pages {
    fn explain(self: &Arc<Pages>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        let method = on.way.request.head().method();
        match method {
            b"GET" | b"HEAD" | b"POST" => {}
            b"OPTIONS" => return plain::options(plain::COMMANDS),
            other => return plain::wrong_method(other, plain::COMMANDS),
        }
        let below = self.page_begin(on.way.request, on.path, on.below);
        let rest = on.path.get(below..).unwrap_or_default();
        let (name, block) = match asked(self, rest) {
            AskedPage::Block(invocation) => (invocation.page, invocation.block),
            AskedPage::Page(page) => (page, ""),
            AskedPage::Nothing => return plain::error(404),
        };
        let found = match self.known(name) {
            Ok(found) => found,
            Err(FileLookupError::Missing) => return plain::error(404),
            Err(FileLookupError::Forbidden) => return plain::error(403),
            Err(_) => return plain::error(500),
        };
        match &found.page {
            Err(fault) => told.notes.push(fault.to_string()),
            Ok(PageSource::Sql(_)) => {}
            Ok(PageSource::Macro(page)) => {
                let entries = page.entries().join(", ");
                told.notes
                    .push(format!("blocks that stand in the page itself: {entries}"));
                if let Some(home) = self.visits.as_ref().filter(|_| page.asks_to_last()) {
                    let room = home.table.room_words();
                    told.notes.push(format!(
                        "the page lasts over the requests of a visitor; {room}"
                    ));
                }
            }
        }
        if found.waits.load(Ordering::Relaxed) {
            told.notes
                .push("the page has waited for something: it is run beside others".to_owned());
        }
        let dir = self.settings.dir.join(name).display().to_string();
        told.program = Some(ExplainedProgram {
            arguments: vec![dir.clone(), block.to_owned()],
            file: dir,
            dir: String::new(),
            parts: Some((
                shown(&on.path[..below.saturating_sub(1)]),
                shown(&on.path[below.saturating_sub(1)..]),
            )),
        });
        Response::new(0, Fields::new(), Body::Empty)
    }
}
