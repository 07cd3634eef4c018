//! Who would be asked is told, and not asked.

use std::sync::Arc;

use hob_http::Response;

use crate::explain::{Explanation, OnExplained};
use crate::handle::ExplainsRoute;
use crate::handle::upstream::program::explain;
use crate::handle::uwsgi::Uwsgi;

impl ExplainsRoute for Uwsgi {
    fn explain(self: &Arc<Uwsgi>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        explain::explain(&self.0, on, told)
    }
}
