//! What would be answered, which is what is answered.

use std::sync::Arc;

use crate::explain::{Explanation, OnExplained, Setting};
use hob_http::Response;

use crate::handle::ExplainsRoute;
use crate::handle::respond::config::RespondSettings;
use crate::handle::respond::{Respond, answer};

impl ExplainsRoute for Respond {
    fn settings(settings: &RespondSettings) -> Vec<(&'static str, Setting)> {
        vec![
            ("status", Setting::Number(u64::from(settings.status))),
            ("content_type", Setting::text(&settings.content_type)),
            ("body", Setting::text(&settings.body)),
        ]
    }

    fn explain(self: &Arc<Respond>, on: &OnExplained<'_>, _: &mut Explanation) -> Response {
        answer::answer(self, on.way.request)
    }
}
