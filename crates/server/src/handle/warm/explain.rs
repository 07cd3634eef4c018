//! What would be forked, told as `cgi` tells what would be started.

use std::sync::Arc;

use hob_http::Response;

use crate::explain::{Explanation, OnExplained};
use crate::handle::ExplainsRoute;

use crate::handle::warm::Warm;

impl ExplainsRoute for Warm {
    fn explain(self: &Arc<Warm>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        self.0.explain(on, told)
    }
}
