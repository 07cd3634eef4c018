//! A route's settings by the names the config has for them.

use super::answer::Setting;
use crate::handle::config::{HalfClose, HeaderRule, Route};
use hob_config::Handlers as _;

/// The settings of a route's handler, then those of the route itself.
pub(super) fn settings(route: &Route) -> Vec<(&'static str, Setting)> {
    let mut all = route.handler.settings();
    let headers = route.headers.iter().map(|rule| match rule {
        HeaderRule::Set(name, value) => format!("{name}: {value}"),
        HeaderRule::Add(name, value) => format!("{name}: {value} (added)"),
        HeaderRule::Remove(name) => format!("{name} (removed)"),
    });
    all.push(("headers", Setting::Texts(headers.collect())));
    if route.handler.program().is_some() {
        all.extend(of_after(route));
    }
    if route.server_timing {
        all.push(("server_timing", Setting::Flag(true)));
    }
    if route.strict {
        all.push(("strict", Setting::Flag(true)));
    }
    if route.internal {
        all.push(("internal", Setting::Flag(true)));
    }
    let half_close = match route.half_close {
        HalfClose::Cancel => "cancel",
        HalfClose::Serve => "serve",
    };
    all.push(("half_close", Setting::text(half_close)));
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
