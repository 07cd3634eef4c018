//! What would be asked for, and of whom.

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, shown};
use crate::handle::ExplainsRoute;
use crate::handle::proxy::Proxy;
use crate::handle::proxy::head::push_target;

impl ExplainsRoute for Proxy {
    fn explain(
        self: &std::sync::Arc<Proxy>,
        on: &OnExplained<'_>,
        told: &mut Explanation,
    ) -> Response {
        let request = on.way.request;
        if let Some(refusal) = self.refuse(request) {
            return refusal;
        }
        let mut target = Vec::new();
        let is_rewritten = on.route.rewrite.is_some() || request.rewritten_path().is_some();
        push_target(
            &self.parts(request, (on.path, on.below), is_rewritten),
            &mut target,
        );
        told.program = Some(ExplainedProgram {
            arguments: vec![shown(&target)],
            file: self.addresses.clone(),
            dir: String::new(),
            parts: None,
        });
        Response::new(0, Fields::new(), Body::Empty)
    }
}
