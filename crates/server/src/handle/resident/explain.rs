//! Who would be asked is told, and not asked.

use std::sync::Arc;

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, Setting, shown};
use crate::handle::ExplainsRoute;
use crate::handle::config;
use crate::handle::config::ResidentRuns;
use crate::handle::config::units::duration_text;
use crate::handle::resident::Resident;
use crate::handle::resident::answer::refuse_method;
use crate::route::target;

impl ExplainsRoute for Resident {
    fn settings(settings: &config::Resident) -> Vec<(&'static str, Setting)> {
        of_resident(settings)
    }

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

fn of_resident(resident: &config::Resident) -> Vec<(&'static str, Setting)> {
    let mut all = match &resident.runs {
        ResidentRuns::Command(words) => vec![("run", Setting::Texts(words.clone()))],
        ResidentRuns::Hosted {
            host,
            what,
            interpreter,
        } => vec![
            (host.key(), Setting::text(what)),
            ("interpreter", Setting::text(interpreter)),
        ],
    };
    let (workers, timeout) = (&resident.workers, &resident.timeout);
    let max = workers.max.map_or_else(
        || Setting::text("what half of the memory holds"),
        |max| Setting::Number(max as u64),
    );
    all.extend([
        ("dir", Setting::text(&resident.dir.display().to_string())),
        ("carrier", Setting::text(resident.carrier.word())),
        ("workers.min", Setting::Number(workers.min as u64)),
        ("workers.max", max),
        (
            "workers.concurrency",
            Setting::Number(workers.concurrency.into()),
        ),
        ("queue.max", Setting::Number(resident.queue as u64)),
        ("queue.wait", Setting::text(&duration_text(resident.wait))),
        (
            "timeout.start",
            Setting::text(&duration_text(timeout.start)),
        ),
        (
            "timeout.first_byte",
            Setting::text(&duration_text(timeout.first_byte)),
        ),
        (
            "timeout.total",
            Setting::text(&duration_text(timeout.total)),
        ),
        (
            "timeout.progress",
            Setting::text(&duration_text(timeout.progress)),
        ),
        (
            "timeout.tunnel",
            Setting::text(&duration_text(timeout.tunnel)),
        ),
        ("grace", Setting::text(&duration_text(resident.grace))),
        (
            "pass_authorization",
            Setting::Flag(resident.pass_authorization),
        ),
        ("dev", Setting::Flag(resident.dev)),
        ("watch", Setting::Texts(resident.watch.clone())),
    ]);
    all
}
