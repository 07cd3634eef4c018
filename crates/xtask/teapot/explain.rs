//! What a teapot would say, which is what it says.

use std::sync::Arc;

use hob_http::Response;

use crate::explain::{Explanation, OnExplained, Setting};
use crate::handle::ExplainsRoute;
use crate::handle::teapot::Teapot;
use crate::handle::teapot::config::TeapotSettings;

impl ExplainsRoute for Teapot {
    fn settings(settings: &TeapotSettings) -> Vec<(&'static str, Setting)> {
        vec![("words", Setting::text(&settings.words))]
    }

    fn explain(self: &Arc<Teapot>, _: &OnExplained<'_>, _: &mut Explanation) -> Response {
        Response::text(418, &self.words)
    }
}
