//! Who would be asked is told, and not asked.

use std::sync::Arc;

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, shown};
use crate::handle::ExplainsRoute;
use crate::handle::fastcgi::FastCgi;
use crate::handle::fastcgi::answer::{refuse_method, settle};
use crate::handle::fastcgi::find::{AskedPath, ScriptLookup};
use crate::handle::files::open::May;

impl ExplainsRoute for FastCgi {
    fn explain(self: &Arc<FastCgi>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        let request = on.way.request;
        if let Some(refusal) = refuse_method(request) {
            return refusal;
        }
        let at = AskedPath {
            path: on.path,
            below: on.below,
        };
        let sent = request.head().path();
        let found = self
            .scripts
            .find(&self.settings, sent, at, (0, 0), May::Wait);
        match settle(
            self,
            request,
            found.unwrap_or(ScriptLookup::Missing),
            on.path,
        ) {
            Err(response) => *response,
            Ok(script) => {
                let file = match script.file.is_empty() {
                    true => self.addresses.clone(),
                    false => format!("{} at {}", shown(&script.file), self.addresses),
                };
                told.program = Some(ExplainedProgram {
                    arguments: vec![file.clone()],
                    file,
                    dir: String::new(),
                    parts: Some((shown(&script.name), shown(&script.path_info))),
                });
                Response::new(0, Fields::new(), Body::Empty)
            }
        }
    }
}
