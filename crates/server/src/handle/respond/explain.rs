//! What would be answered, which is what is answered.

use std::sync::Arc;

use hob_http::Response;

use crate::explain::{Explanation, OnExplained};
use crate::handle::ExplainsRoute;

use crate::handle::respond::{Respond, answer};

impl ExplainsRoute for Respond {
    fn explain(self: &Arc<Respond>, on: &OnExplained<'_>, _: &mut Explanation) -> Response {
        answer::answer(self, on.way.request)
    }
}
