//! What would run for a request is told, and not started.

use std::sync::Arc;

use hob_http::{Body, Fields, Response};

use crate::explain::{ExplainedProgram, Explanation, OnExplained, Setting, shown};
use crate::handle::cgi::answer::refuse_method;
use crate::handle::cgi::job::JobKind;
use crate::handle::cgi::{Cgi, Runs};
use crate::handle::config;
use crate::handle::config::CgiRuns;
use crate::handle::config::units::duration_text;
use crate::handle::files::open::May;
use crate::handle::{ExplainsRoute, warm};

impl ExplainsRoute for Cgi {
    fn settings(settings: &config::Cgi) -> Vec<(&'static str, Setting)> {
        of_cgi(settings)
    }

    fn explain(self: &Arc<Cgi>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        let request = on.way.request;
        if let Some(refusal) = refuse_method(self, request) {
            return refusal;
        }
        let found = match &self.runs {
            Runs::Folder(folder) => folder.find(&on.path[on.below..], 0, 0, May::Wait),
            Runs::Script(_) | Runs::Command(_) => None,
        };
        match self.job(request, found, on.path, on.below) {
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

fn of_cgi(cgi: &config::Cgi) -> Vec<(&'static str, Setting)> {
    let path = |path: &std::path::Path| Setting::text(&path.display().to_string());
    let shown = |of: &[std::path::PathBuf]| of.iter().map(|to| to.display().to_string()).collect();
    let by_ending = |interpreters: &[(String, Vec<String>)]| {
        let one = |(ending, words): &(String, Vec<String>)| format!("{ending} {}", words.join(" "));
        Setting::Texts(interpreters.iter().map(one).collect())
    };
    let mut all = match &cgi.runs {
        CgiRuns::Folder {
            dir,
            index,
            symlinks_to,
            interpreters,
        } => vec![
            ("dir", path(dir)),
            ("index", Setting::Texts(index.clone())),
            ("symlinks_to", Setting::Texts(shown(symlinks_to))),
            ("interpreters", by_ending(interpreters)),
        ],
        CgiRuns::Script { file, interpreters } => {
            vec![
                ("script", path(file)),
                ("interpreters", by_ending(interpreters)),
            ]
        }
        CgiRuns::Command {
            dir,
            arguments,
            output,
            parameters,
        } => {
            let words = arguments.iter().map(ToString::to_string).collect();
            let of_query = |(name, pattern): &(String, String)| format!("{name} {pattern}");
            vec![
                ("command", Setting::Texts(words)),
                ("dir", path(dir)),
                ("output", Setting::text(output)),
                (
                    "parameters",
                    Setting::Texts(parameters.iter().map(of_query).collect()),
                ),
            ]
        }
    };
    if let Some(warm) = &cgi.warm {
        all.retain(|(name, _)| *name != "interpreters");
        all.extend(warm::explain::of_warm(warm));
    }
    let limits = &cgi.limits;
    let time = |time| Setting::text(&duration_text(time));
    all.extend([
        ("document_root", path(&cgi.document_root)),
        ("pass_authorization", Setting::Flag(cgi.pass_authorization)),
        ("dev", Setting::Flag(cgi.dev)),
        ("exit", Setting::text(cgi.exit.word())),
        ("concurrent", Setting::Number(limits.concurrent as u64)),
        ("queue", Setting::Number(limits.queue as u64)),
        ("queue_time", time(limits.queue_time)),
        ("first_byte", time(limits.first_byte)),
        ("total", time(limits.total)),
        ("head", Setting::Number(limits.head as u64)),
        ("linger", time(limits.linger)),
        ("grace", time(limits.grace)),
    ]);
    all
}
