//! What every handler of programs makes of its settings.

use hob_http::HalfClose;

use crate::handle::config;

/// What it means that a client has sent everything.
pub(crate) fn half_close(route: &config::Route) -> HalfClose {
    match route.half_close {
        config::HalfClose::Cancel => HalfClose::Cancel,
        config::HalfClose::Serve => HalfClose::Serve,
    }
}
