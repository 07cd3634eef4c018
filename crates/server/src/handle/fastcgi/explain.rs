//! Who would be asked is told, and not asked.

use std::sync::Arc;

use hob_http::Response;

use crate::explain::{Explanation, OnExplained};
use crate::handle::ExplainsRoute;
use crate::handle::fastcgi::FastCgi;
use crate::handle::fastcgi::answer::settle;
use crate::handle::fastcgi::find::{AskedPath, ScriptLookup};
use crate::handle::files::open::May;
use crate::handle::upstream::program::ask::refuse_method;
use crate::handle::upstream::program::explain::tell;

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
        let found = found.unwrap_or(ScriptLookup::Missing);
        match settle(self, request, found, on.path) {
            Err(response) => *response,
            Ok(script) => tell(&self.program, &script, told),
        }
    }
}
