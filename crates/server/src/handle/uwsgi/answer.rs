//! From a request to its answer.

use std::sync::Arc;

use hob_http::Answered;

use crate::handle::AnswersRoute;
use crate::handle::upstream::program::ask;
use crate::handle::uwsgi::Uwsgi;
use crate::serve::context::OnRoute;

impl AnswersRoute for Uwsgi {
    fn answer(self: &Arc<Uwsgi>, on: &OnRoute<'_>) -> Answered {
        ask::answer(&self.0, on)
    }
}
