//! What would be done is told, and not done.

use std::sync::Arc;

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, shown};
use crate::handle::ExplainsRoute;
use crate::handle::resident::answer::refuse_method;
use crate::handle::session::Session;

impl ExplainsRoute for Session {
    fn explain(self: &Arc<Session>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        if let Some(refusal) = refuse_method(on.way.request) {
            return refusal;
        }
        told.program = Some(ExplainedProgram {
            file: shown(self.parts.file()),
            arguments: self.recipe.arguments().iter().map(shown).collect(),
            dir: shown(self.recipe.dir()),
            parts: None,
        });
        told.notes.push(self.table.room_words());
        Response::new(0, Fields::new(), Body::Empty)
    }
}
