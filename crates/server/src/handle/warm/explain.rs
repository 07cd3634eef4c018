//! What would be forked, told as `cgi` tells what would be started.

use std::sync::Arc;

use hob_http::Response;

use crate::explain::{Explanation, OnExplained, Setting};
use crate::handle::ExplainsRoute;
use crate::handle::cgi::Cgi;
use crate::handle::config;
use crate::handle::warm::Warm;
use crate::handle::warm::config::WarmSettings;

impl ExplainsRoute for Warm {
    fn settings(settings: &WarmSettings) -> Vec<(&'static str, Setting)> {
        Cgi::settings(&settings.0)
    }

    fn explain(self: &Arc<Warm>, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
        self.0.explain(on, told)
    }
}

/// What it has that `cgi` has not.
pub(crate) fn of_warm(warm: &config::Warm) -> [(&'static str, Setting); 4] {
    [
        ("interpreter", Setting::text(&warm.interpreter)),
        ("preload", Setting::Texts(warm.preload.clone())),
        ("hosts", Setting::Number(warm.hosts as u64)),
        ("compile", Setting::Flag(warm.compile)),
    ]
}
