//! Diagnostics: events of the program on standard error, never one per request.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// What is shown when nobody asked for a level.
const USUAL_LEVEL: &str = "info";

/// Shows events of this level and above, or as a filter of `tracing` says.
pub(crate) fn begin(level: Option<&str>) {
    let wanted = level.unwrap_or(USUAL_LEVEL);
    let (filter, refusal) = match EnvFilter::try_new(wanted) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(USUAL_LEVEL), Some(error)),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // A second subscriber in one process would be a mistake of ours and changes nothing.
    let _ = subscriber.try_init();
    if let Some(error) = refusal {
        tracing::warn!(%error, wanted, "HOB_LOG is not understood; showing {USUAL_LEVEL}");
    }
}
