//! What a teapot would say, which is what it says.

use std::sync::Arc;

use hob_http::Response;

use crate::explain::{Explanation, OnExplained};
use crate::handle::ExplainsRoute;
use crate::handle::teapot::Teapot;

impl ExplainsRoute for Teapot {
    fn explain(self: &Arc<Teapot>, _: &OnExplained<'_>, _: &mut Explanation) -> Response {
        Response::text(418, &self.words)
    }
}
