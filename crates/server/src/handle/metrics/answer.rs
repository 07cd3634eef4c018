//! A request on a route: the numbers for who has the token.

use std::sync::Arc;

use hob_http::Answered;

use crate::answer::OnRoute;
use crate::handle::AnswersRoute;
use crate::handle::metrics::{Metrics, page};

impl AnswersRoute for Metrics {
    fn answer(self: &Arc<Metrics>, on: &OnRoute<'_>) -> Answered {
        match self.refusal(on.request) {
            None => page(&on.desk.admin, on.request),
            Some(refusal) => Answered::Ready(refusal),
        }
    }
}
