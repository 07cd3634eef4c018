//! Who would be asked is told, and not asked.

use std::sync::Arc;

use hob_http::Response;

use crate::explain::{Explanation, OnExplained};
use crate::handle::ExplainsRoute;
use crate::handle::scgi::Scgi;
use crate::handle::upstream::program::explain;

impl ExplainsRoute for Scgi {
    fn explain(self: &Arc<Scgi>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        explain::explain(&self.0, on, told)
    }
}
