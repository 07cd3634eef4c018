//! Who would be asked is told, and not asked.

use std::sync::Arc;

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, shown};
use crate::handle::ExplainsRoute;
use crate::handle::resident::Resident;
use crate::handle::resident::answer::refuse_method;
use crate::route::target;

impl ExplainsRoute for Resident {
    fn explain(self: &Arc<Resident>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        let request = on.way.request;
        if let Some(refusal) = refuse_method(request) {
            return refusal;
        }
        let recipe = self.recipe();
        let (name, path_info) = self.split(request, on.path, on.below);
        let path_info = target::told(path_info);
        told.program = Some(ExplainedProgram {
            file: shown(&self.file),
            arguments: recipe.arguments().iter().map(shown).collect(),
            dir: shown(recipe.dir()),
            parts: Some((shown(&name), shown(&path_info))),
        });
        Response::new(0, Fields::new(), Body::Empty)
    }
}
