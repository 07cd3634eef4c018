//! What a teapot says.

use std::sync::Arc;

use hob_http::{Answered, Response};

use crate::serve::context::OnRoute;
use crate::handle::AnswersRoute;
use crate::handle::teapot::Teapot;

impl AnswersRoute for Teapot {
    fn answer(self: &Arc<Teapot>, _: &OnRoute<'_>) -> Answered {
        Answered::Ready(Response::text(418, &self.words))
    }
}
