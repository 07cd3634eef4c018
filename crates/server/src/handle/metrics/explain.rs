//! What would be answered, without the numbers.

use std::sync::Arc;

use hob_http::Response;
use hob_trace::exposition::ExpositionFormat;

use crate::explain::{Explanation, OnExplained};
use crate::handle::ExplainsRoute;
use crate::handle::metrics::{Metrics, ready};

impl ExplainsRoute for Metrics {
    fn explain(self: &Arc<Metrics>, on: &OnExplained<'_>, _: &mut Explanation) -> Response {
        let allowed = || ready(String::new(), ExpositionFormat::Prometheus);
        self.refusal(on.way.request).unwrap_or_else(allowed)
    }
}
