//! A request on a route: the numbers for who has the token.

use std::sync::Arc;

use hob_http::Answered;

use crate::handle::AnswersRoute;
use crate::handle::metrics::Metrics;
use crate::serve::context::OnRoute;

impl AnswersRoute for Metrics {
    fn answer(self: &Arc<Metrics>, on: &OnRoute<'_>) -> Answered {
        match self.refusal(on.request) {
            None => Arc::clone(&on.desk.inside).metrics(on.request),
            Some(refusal) => Answered::Ready(refusal),
        }
    }
}
