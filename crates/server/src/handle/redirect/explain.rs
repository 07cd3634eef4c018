//! Where a request would be sent.

use std::sync::Arc;

use hob_http::Response;

use crate::explain::{Explanation, OnExplained};
use crate::handle::redirect::{Redirect, answer};
use crate::handle::{ExplainsRoute, plain};

impl ExplainsRoute for Redirect {
    fn explain(self: &Arc<Redirect>, on: &OnExplained<'_>, _: &mut Explanation) -> Response {
        match on.route.pattern.matches(on.path) {
            Some(captures) => answer::answer(self, on.way.request, on.path, &captures),
            None => plain::error(500),
        }
    }
}
