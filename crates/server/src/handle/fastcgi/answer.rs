//! From a request to its answer.

use std::sync::Arc;
use std::time::Instant;

use hob_http::{Answered, Request, Response};
use hob_trace::Fault;

use crate::handle::AnswersRoute;
use crate::handle::fastcgi::FastCgi;
use crate::handle::fastcgi::find::{AskedPath, ScriptLookup};
use crate::handle::files::open::May;
use crate::handle::plain;
use crate::handle::script::fail::note;
use crate::handle::upstream::program::ask::{AskedScript, ProgramAsk, refuse_method, run};
use crate::handle::upstream::program::fail::{self, Befallen, ProgramFailure};
use crate::serve::context::OnRoute;

/// One request for a script.
struct FastCgiRequest {
    fastcgi: Arc<FastCgi>,
    ask: ProgramAsk,
    /// Loop time, and how old what is known of a script may be, in milliseconds.
    moment: (u64, u64),
}

impl AnswersRoute for FastCgi {
    fn answer(self: &Arc<FastCgi>, on: &OnRoute<'_>) -> Answered {
        if let Some(refusal) = refuse_method(on.request) {
            return Answered::Ready(refusal);
        }
        let asked = FastCgiRequest {
            fastcgi: Arc::clone(self),
            ask: ProgramAsk::new(&self.program, on),
            moment: (on.desk.now_ms.get(), on.desk.shared.recheck_ms()),
        };
        let at = AskedPath {
            path: on.path,
            below: on.below,
        };
        match asked.find(at, May::TouchMemoryOnly) {
            Some(found) => asked.go_on(found, on.path),
            None => Answered::Later(Box::pin(find_and_ask(asked, on.path.into(), on.below))),
        }
    }
}

/// The answer for a path that means no script, or the script.
pub(super) fn settle(
    fastcgi: &FastCgi,
    request: &Request,
    found: ScriptLookup,
    path: &[u8],
) -> Result<AskedScript, Box<Response>> {
    let on = Befallen {
        program: &fastcgi.program,
        script: path,
        member: "",
        printed: b"",
    };
    let failed = |status, reason, why| {
        fail::respond(request, on, &ProgramFailure::Unasked(status, reason, why))
    };
    Err(Box::new(match found {
        ScriptLookup::Script(script) => return Ok(script),
        ScriptLookup::FolderWithoutSlash => plain::add_slash(request),
        ScriptLookup::Missing => plain::error(404),
        ScriptLookup::Forbidden => failed(
            403,
            "the server may not look into a folder on the way to it",
            String::new(),
        ),
        ScriptLookup::Failed(error) => failed(500, "the program could not be looked for", error),
    }))
}

impl FastCgiRequest {
    fn find(&self, at: AskedPath<'_>, may: May) -> Option<ScriptLookup> {
        let FastCgi {
            scripts, settings, ..
        } = &*self.fastcgi;
        let sent = self.ask.request.head().path();
        scripts.find(settings, sent, at, self.moment, may)
    }

    fn go_on(self, found: ScriptLookup, path: &[u8]) -> Answered {
        match settle(&self.fastcgi, &self.ask.request, found, path) {
            Ok(script) => Answered::Later(Box::pin(run(self.ask, script))),
            Err(response) => Answered::Ready(*response),
        }
    }
}

/// The pool looks what the path means; then the program is asked.
async fn find_and_ask(asked: FastCgiRequest, path: Box<[u8]>, below: usize) -> Response {
    let started = Instant::now();
    let FastCgiRequest {
        fastcgi,
        ask,
        moment,
    } = asked;
    let Some(pool) = fastcgi.scripts.pool().cloned() else {
        return plain::error(500);
    };
    let (looking, sent) = (Arc::clone(&fastcgi), ask.request.head().path().to_vec());
    let wanted = path.clone();
    let job = pool.run(move || {
        let at = AskedPath {
            path: &wanted,
            below,
        };
        let FastCgi {
            scripts, settings, ..
        } = &*looking;
        scripts.find(settings, &sent, at, moment, May::Wait)
    });
    let found = match job {
        Ok(job) => job.await.flatten(),
        Err(_) => {
            ask.counters.disk_refused.add(1);
            ask.counters.limit_disk_queue.add(1);
            let reason = "limits: the file pool's queue is full";
            note(&ask.request, Fault::Server, reason);
            return plain::busy();
        }
    };
    ask.request.record_mut().disk_wait_us += started.elapsed().as_micros() as u64;
    let found = found.unwrap_or(ScriptLookup::Missing);
    match settle(&fastcgi, &ask.request, found, &path) {
        Ok(script) => run(ask, script).await,
        Err(response) => *response,
    }
}
