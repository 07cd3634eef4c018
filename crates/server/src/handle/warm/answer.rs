//! A request for a script that is forked: `cgi` answers it, and takes its process from a host.

use std::sync::Arc;

use hob_http::Answered;

use crate::handle::AnswersRoute;
use crate::handle::warm::Warm;
use crate::serve::context::OnRoute;

impl AnswersRoute for Warm {
    fn answer(self: &Arc<Warm>, on: &OnRoute<'_>) -> Answered {
        self.0.answer(on)
    }
}
