//! What would run for a request is told, and not started.

use std::sync::Arc;

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, shown};
use crate::handle::cgi::answer::refuse_method;
use crate::handle::cgi::job::{AskedJob, JobKind, ProgramJob};
use crate::handle::cgi::{Cgi, Runs};

use crate::handle::ExplainsRoute;
use crate::handle::files::open::May;

impl ExplainsRoute for Cgi {
    fn explain(self: &Arc<Cgi>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        let request = on.way.request;
        if let Some(refusal) = refuse_method(self, request) {
            return refusal;
        }
        let asked = AskedJob {
            request,
            call: None,
        };
        if let Runs::Captured(captured) = &self.runs {
            let job = captured.explain(self, asked, on, told);
            return self.tell_job(job, told);
        }
        let found = match &self.runs {
            Runs::Folder(folder) => folder.find(&on.path[on.below..], 0, 0, May::Wait),
            _ => None,
        };
        self.tell_job(self.job(asked, found, on.path, on.below), told)
    }
}

impl Cgi {
    /// Tells what would run, or why nothing would.
    fn tell_job(&self, job: Result<ProgramJob, Box<Response>>, told: &mut Explanation) -> Response {
        match job {
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
