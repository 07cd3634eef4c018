//! A route's settings by the names the config has for them.

use super::told::Setting;
use crate::config::units::duration_text;
use crate::config::{
    Cgi, CgiRuns, Coding, Files, HalfClose, Handler, HeaderRule, Redirect, Resident, ResidentRuns,
    Respond, Route, Warm,
};

/// The settings of a route's handler, then those of the route itself.
pub(super) fn settings(route: &Route) -> Vec<(&'static str, Setting)> {
    let mut all = match &route.handler {
        Handler::Files(files) => of_files(files),
        Handler::Cgi(cgi) => of_cgi(cgi),
        Handler::Resident(resident) => of_resident(resident),
        Handler::Redirect(redirect) => of_redirect(redirect),
        Handler::Respond(respond) => of_respond(respond),
        Handler::Metrics(metrics) => {
            let file = metrics.token_file.display();
            vec![("token_file", text(&file.to_string()))]
        }
        Handler::Admin => Vec::new(),
    };
    let headers = route.headers.iter().map(|rule| match rule {
        HeaderRule::Set(name, value) => format!("{name}: {value}"),
        HeaderRule::Add(name, value) => format!("{name}: {value} (added)"),
        HeaderRule::Remove(name) => format!("{name} (removed)"),
    });
    all.push(("headers", Setting::Texts(headers.collect())));
    if let Handler::Cgi(_) | Handler::Resident(_) = &route.handler {
        all.extend(of_after(route));
    }
    if route.server_timing {
        all.push(("server_timing", Setting::Flag(true)));
    }
    if route.internal {
        all.push(("internal", Setting::Flag(true)));
    }
    let half_close = match route.half_close {
        HalfClose::Cancel => "cancel",
        HalfClose::Serve => "serve",
    };
    all.push(("half_close", text(half_close)));
    all
}

/// What is done to a program's answers.
fn of_after(route: &Route) -> [(&'static str, Setting); 6] {
    let after = &route.after;
    let codings = after.compress.iter().map(|coding| coding.word().to_owned());
    let folders = route.sendfile.iter();
    let folders = folders.map(|files| files.root.display().to_string());
    [
        ("compress", Setting::Texts(codings.collect())),
        ("compress_min", Setting::Number(after.compress_min)),
        (
            "compress_types",
            Setting::Texts(after.compress_types.clone()),
        ),
        ("intercept_errors", Setting::Flag(after.intercept_errors)),
        ("sendfile", Setting::Texts(folders.collect())),
        ("buffer_max", Setting::Number(after.buffer_max)),
    ]
}

fn of_files(files: &Files) -> Vec<(&'static str, Setting)> {
    let words = |codings: &[Coding], word: fn(Coding) -> &'static str| {
        Setting::Texts(codings.iter().map(|one| word(*one).to_owned()).collect())
    };
    let types = files.types.iter();
    let types = types
        .map(|(ending, media)| format!("{ending} {media}"))
        .collect();
    vec![
        ("root", text(&files.root.display().to_string())),
        ("keep_prefix", Setting::Flag(files.keep_prefix)),
        ("index", Setting::Texts(files.index.clone())),
        ("listing", Setting::Flag(files.listing)),
        (
            "fallback",
            text(files.fallback.as_deref().unwrap_or_default()),
        ),
        ("precompressed", words(&files.precompressed, Coding::ending)),
        ("compress", words(&files.compress, Coding::word)),
        ("compress_min", Setting::Number(files.compress_min)),
        (
            "compress_types",
            Setting::Texts(files.compress_types.clone()),
        ),
        ("dot_files", Setting::Flag(files.dot_files)),
        ("symlinks", text(files.symlinks.word())),
        ("charset", text(&files.charset)),
        ("types", Setting::Texts(types)),
        ("cache_control", text(&files.cache_control)),
        ("cache", text(files.cache.word())),
    ]
}

fn of_resident(resident: &Resident) -> Vec<(&'static str, Setting)> {
    let mut all = match &resident.runs {
        ResidentRuns::Command(words) => vec![("run", Setting::Texts(words.clone()))],
        ResidentRuns::Hosted {
            host,
            what,
            interpreter,
        } => vec![(host.key(), text(what)), ("interpreter", text(interpreter))],
    };
    let (workers, timeout) = (&resident.workers, &resident.timeout);
    let max = workers.max.map_or_else(
        || text("twice the cores"),
        |max| Setting::Number(max as u64),
    );
    all.extend([
        ("dir", text(&resident.dir.display().to_string())),
        ("carrier", text(resident.carrier.word())),
        ("workers.min", Setting::Number(workers.min as u64)),
        ("workers.max", max),
        (
            "workers.concurrency",
            Setting::Number(workers.concurrency.into()),
        ),
        ("queue.max", Setting::Number(resident.queue as u64)),
        ("queue.wait", text(&duration_text(resident.wait))),
        ("timeout.start", text(&duration_text(timeout.start))),
        (
            "timeout.first_byte",
            text(&duration_text(timeout.first_byte)),
        ),
        ("timeout.total", text(&duration_text(timeout.total))),
        ("timeout.progress", text(&duration_text(timeout.progress))),
        ("timeout.tunnel", text(&duration_text(timeout.tunnel))),
        ("grace", text(&duration_text(resident.grace))),
        (
            "pass_authorization",
            Setting::Flag(resident.pass_authorization),
        ),
        ("dev", Setting::Flag(resident.dev)),
        ("watch", Setting::Texts(resident.watch.clone())),
    ]);
    all
}

fn of_cgi(cgi: &Cgi) -> Vec<(&'static str, Setting)> {
    let path = |path: &std::path::Path| text(&path.display().to_string());
    let by_ending = |interpreters: &[(String, Vec<String>)]| {
        let one = |(ending, words): &(String, Vec<String>)| format!("{ending} {}", words.join(" "));
        Setting::Texts(interpreters.iter().map(one).collect())
    };
    let mut all = match &cgi.runs {
        CgiRuns::Folder {
            dir,
            index,
            interpreters,
        } => vec![
            ("dir", path(dir)),
            ("index", Setting::Texts(index.clone())),
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
                ("output", text(output)),
                (
                    "parameters",
                    Setting::Texts(parameters.iter().map(of_query).collect()),
                ),
            ]
        }
    };
    if let Some(warm) = &cgi.warm {
        all.retain(|(name, _)| *name != "interpreters");
        all.extend(of_warm(warm));
    }
    let limits = &cgi.limits;
    let time = |time| text(&duration_text(time));
    all.extend([
        ("document_root", path(&cgi.document_root)),
        ("pass_authorization", Setting::Flag(cgi.pass_authorization)),
        ("dev", Setting::Flag(cgi.dev)),
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

fn of_warm(warm: &Warm) -> [(&'static str, Setting); 4] {
    [
        ("interpreter", text(&warm.interpreter)),
        ("preload", Setting::Texts(warm.preload.clone())),
        ("hosts", Setting::Number(warm.hosts as u64)),
        ("compile", Setting::Flag(warm.compile)),
    ]
}

fn of_redirect(redirect: &Redirect) -> Vec<(&'static str, Setting)> {
    vec![
        ("to", text(&redirect.to)),
        ("status", Setting::Number(u64::from(redirect.status))),
    ]
}

fn of_respond(respond: &Respond) -> Vec<(&'static str, Setting)> {
    vec![
        ("status", Setting::Number(u64::from(respond.status))),
        ("content_type", text(&respond.content_type)),
        ("body", text(&respond.body)),
    ]
}

fn text(text: &str) -> Setting {
    Setting::Text(text.to_owned())
}
