//! What would run for a request is told, and not started.

use std::sync::Arc;

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, shown};
use crate::handle::cgi::answer::refuse_method;
use crate::handle::cgi::job::{AskedJob, JobKind};
use crate::handle::cgi::{Cgi, Runs};

use crate::handle::ExplainsRoute;
use crate::handle::files::open::May;

impl ExplainsRoute for Cgi {
    fn explain(self: &Arc<Cgi>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        let request = on.way.request;
        if let Some(refusal) = refuse_method(self, request) {
            return refusal;
        }
        let found = match &self.runs {
            Runs::Folder(folder) => folder.find(&on.path[on.below..], 0, 0, May::Wait),
            Runs::Script(_) | Runs::Command(_) => None,
        };
        let asked = AskedJob {
            request,
            call: None,
        };
        match self.job(asked, found, on.path, on.below) {
            Err(response) => *response,
            Ok(job) => {
                told.program = Some(ExplainedProgram {
                    file: shown(&job.file),
                    arguments: job.arguments.iter().map(shown).collect(),
                    dir: shown(&job.dir),
                    parts: match &job.kind {
                        JobKind::Program { name, path_info } => {
                            Some((shown(name), shown(path_info)))
                        }
                        JobKind::Command(_) => None,
                    },
                });
                Response::new(0, Fields::new(), Body::Empty)
            }
        }
    }
}
