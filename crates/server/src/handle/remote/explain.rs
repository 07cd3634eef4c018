//! Which program would be asked for, and of which machine.

use std::sync::Arc;

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained};
use crate::handle::ExplainsRoute;
use crate::handle::plain;
use crate::handle::remote::Remote;

impl ExplainsRoute for Remote {
    fn explain(self: &Arc<Remote>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        let request = on.way.request;
        if request.head().method() == b"TRACE" {
            return plain::wrong_method(b"TRACE", plain::PROGRAMS);
        }
        told.program = Some(ExplainedProgram {
            arguments: self.0.settings.program.iter().cloned().collect(),
            file: self.0.addresses.clone(),
            dir: String::new(),
            parts: None,
        });
        Response::new(0, Fields::new(), Body::Empty)
    }
}
