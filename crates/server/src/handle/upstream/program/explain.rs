//! Who would be asked is told, and not asked.

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, shown};
use crate::handle::upstream::program::UpstreamProgram;
use crate::handle::upstream::program::ask::{AskedScript, refuse_method};

/// Tells of a program that answers for every path of its route.
pub(crate) fn explain(
    program: &UpstreamProgram,
    on: &OnExplained<'_>,
    told: &mut Explanation,
) -> Response {
    let request = on.way.request;
    refuse_method(request).unwrap_or_else(|| {
        let script = AskedScript::of_route(request.head().path(), on.path, on.below);
        tell(program, &script, told)
    })
}

/// Tells what would be asked.
pub(crate) fn tell(
    program: &UpstreamProgram,
    script: &AskedScript,
    told: &mut Explanation,
) -> Response {
    let file = match script.file.is_empty() {
        true => program.addresses.clone(),
        false => format!("{} at {}", shown(&script.file), program.addresses),
    };
    told.program = Some(ExplainedProgram {
        arguments: vec![file.clone()],
        file,
        dir: String::new(),
        parts: Some((shown(&script.name), shown(&script.path_info))),
    });
    Response::new(0, Fields::new(), Body::Empty)
}
