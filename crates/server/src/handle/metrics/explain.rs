//! What would be answered, without the numbers.

use std::sync::Arc;

use crate::explain::{Explanation, OnExplained, Setting};
use hob_http::Response;
use hob_trace::exposition::ExpositionFormat;

use crate::handle::ExplainsRoute;
use crate::handle::metrics::config::MetricsSettings;
use crate::handle::metrics::{Metrics, ready};

impl ExplainsRoute for Metrics {
    fn settings(settings: &MetricsSettings) -> Vec<(&'static str, Setting)> {
        let file = settings.token_file.display().to_string();
        vec![("token_file", Setting::text(&file))]
    }

    fn explain(self: &Arc<Metrics>, on: &OnExplained<'_>, _: &mut Explanation) -> Response {
        let allowed = || ready(String::new(), ExpositionFormat::Prometheus);
        self.refusal(on.way.request).unwrap_or_else(allowed)
    }
}
