//! A request for a program of another machine: `proxy` passes it on.

use std::sync::Arc;

use hob_http::Answered;

use crate::handle::AnswersRoute;
use crate::handle::remote::Remote;
use crate::serve::context::OnRoute;

impl AnswersRoute for Remote {
    const OPENS_TUNNELS: bool = true;

    fn answer(self: &Arc<Remote>, on: &OnRoute<'_>) -> Answered {
        self.0.answer(on)
    }
}
