//! From a request to its answer.

use std::sync::Arc;

use hob_http::Answered;

use crate::handle::AnswersRoute;
use crate::handle::scgi::Scgi;
use crate::handle::upstream::program::ask;
use crate::serve::context::OnRoute;

impl AnswersRoute for Scgi {
    fn answer(self: &Arc<Scgi>, on: &OnRoute<'_>) -> Answered {
        ask::answer(&self.0, on)
    }
}
