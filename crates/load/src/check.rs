//! What a plan asks for together may make no sense, though each part does.

use crate::arrive::ArrivalRate;
use crate::entry::{RequestSpec, ResultRows};
use crate::error::LoadError;
use crate::expect::Expectation;
use crate::limits::{
    CONNECTION_COUNT_MAX, LANE_COUNT_MAX, ROW_COUNT_MAX, SOURCE_COUNT_MAX, STREAM_COUNT_MAX,
    THREAD_COUNT_MAX, URL_COUNT_MAX, VISITOR_COUNT_MAX,
};
use crate::plan::{BenchPlan, LoadModel, Protocol, Reuse};
use crate::send::ServerAddress;

/// Refuses a plan that cannot be carried out.
pub(crate) fn check(plan: &BenchPlan) -> Result<(), LoadError> {
    let wrong = |text: String| Err(LoadError::Arguments(text));
    check_entries(plan)?;
    if !(1..=CONNECTION_COUNT_MAX).contains(&plan.connections) {
        return wrong(format!("connections: from 1 to {CONNECTION_COUNT_MAX}"));
    }
    check_sources(plan)?;
    check_streams(plan)?;
    check_page(plan)?;
    if !(1..=THREAD_COUNT_MAX.min(plan.connections)).contains(&plan.threads) {
        return wrong(format!(
            "threads: from 1 to {THREAD_COUNT_MAX}, each with a connection at least ({} {})",
            plan.connections,
            if plan.connections == 1 {
                "is asked for"
            } else {
                "are asked for"
            },
        ));
    }
    if plan.timeout.is_zero() {
        return wrong("the timeout must be longer than nothing".to_owned());
    }
    let is_log = matches!(plan.pace, LoadModel::Log(_));
    if plan.duration.is_none() && plan.count.is_none() && !is_log {
        return wrong("a run ends after a time, a count or both".to_owned());
    }
    if plan.duration.is_some_and(|duration| duration.is_zero()) || plan.count == Some(0) {
        return wrong("a run of no length measures nothing".to_owned());
    }
    if let (LoadModel::Open { rate, .. }, None) = (&plan.pace, plan.duration)
        && !matches!(rate, ArrivalRate::Constant(_))
    {
        return wrong(format!(
            "the rate {} changes over a time: say --for how long",
            rate.text()
        ));
    }
    Ok(())
}

fn check_sources(plan: &BenchPlan) -> Result<(), LoadError> {
    let wrong = |text: String| Err(LoadError::Arguments(text));
    if !(1..=SOURCE_COUNT_MAX).contains(&plan.sources) {
        return wrong(format!("sources: from 1 to {SOURCE_COUNT_MAX}"));
    }
    if plan.sources > plan.connections {
        return wrong(format!(
            "sources: each has at least one of the {}, of which there are {} here",
            plan.makers(),
            plan.connections
        ));
    }
    Ok(())
}

/// Refuses to spread connections where the client addresses are not all ours.
pub(crate) fn check_reached(plan: &BenchPlan, address: &ServerAddress) -> Result<(), LoadError> {
    if plan.sources == 1 || address.has_sources() {
        return Ok(());
    }
    Err(LoadError::Arguments(format!(
        "sources: only to a server of this machine at 127.0.0.0/8 can connections come from several \
         addresses, and this one is at {address}"
    )))
}

/// What pages cannot be asked for with.
fn check_page(plan: &BenchPlan) -> Result<(), LoadError> {
    if plan.page.is_none() {
        return Ok(());
    }
    let wrong = |text: &str| Err(LoadError::Arguments(text.to_owned()));
    let is_plain =
        |entry: &RequestSpec| plan.method_of(entry) == "GET" && plan.body_of(entry).is_none();
    if !plan.entries.iter().all(is_plain) {
        return wrong("a page is asked for with GET: leave --method and --body out");
    }
    if plan.reuse == Reuse::PerRequest || plan.streams != 1 {
        return wrong(
            "how many connections and streams there are for a page is as in browsers: leave --close \
             and --streams out",
        );
    }
    if matches!(plan.pace, LoadModel::Log(_)) {
        return wrong("a log has every request of its own: leave --page out, or the log");
    }
    let has_own = |entry: &RequestSpec| !entry.fields.is_empty() || !entry.expectations.is_empty();
    if let Some(entry) = plan.entries.iter().find(|entry| has_own(entry)) {
        return wrong(&format!(
            "{}: fields and expectations hold for all pages and what they name: write --header and \
             --expect, not header= and expect= in the list",
            entry.url.text
        ));
    }
    let is_status = |one: &Expectation| matches!(one, Expectation::Status(_));
    if !plan.expectations.iter().all(is_status) {
        return wrong(
            "of the answers for a page only the status can be expected: --expect status=...",
        );
    }
    if plan.connections > VISITOR_COUNT_MAX {
        return wrong(&format!("at most {VISITOR_COUNT_MAX} visitors"));
    }
    Ok(())
}

/// What is asked for must be of one server, and not more than can be told apart.
fn check_entries(plan: &BenchPlan) -> Result<(), LoadError> {
    let wrong = |text: String| Err(LoadError::Arguments(text));
    let Some(first) = plan.entries.first().map(|entry| &entry.url) else {
        return wrong("there is no URL to ask for".to_owned());
    };
    if plan.entries.len() > URL_COUNT_MAX {
        return wrong(format!("at most {URL_COUNT_MAX} URLs"));
    }
    if ResultRows::of(&plan.entries).first.len() > ROW_COUNT_MAX {
        return wrong(format!(
            "at most {ROW_COUNT_MAX} rows of results; give URLs that belong together one name \
             (name=WORD in the list)"
        ));
    }
    let mut urls = plan.entries.iter().map(|entry| &entry.url);
    if let Some(other) = urls.find(|url| url.origin() != first.origin()) {
        return wrong(format!(
            "{} and {} are of two servers; one run measures one server",
            first.text, other.text
        ));
    }
    if let LoadModel::Log(replay) = &plan.pace {
        replay
            .check(plan.entries.len())
            .map_err(LoadError::Arguments)?;
    }
    let weights = || plan.entries.iter().map(|entry| entry.weight);
    let is_weight = |weight: f64| weight.is_finite() && weight > 0.0;
    if !weights().all(is_weight) || !is_weight(weights().sum()) {
        return wrong("a weight is a number above 0".to_owned());
    }
    Ok(())
}

fn check_streams(plan: &BenchPlan) -> Result<(), LoadError> {
    let wrong = |text: String| Err(LoadError::Arguments(text));
    if plan.protocol == Protocol::H3 && (!plan.entries[0].url.is_secure || plan.unix.is_some()) {
        return wrong(
            "HTTP/3 is spoken over QUIC alone: write https://, without --unix".to_owned(),
        );
    }
    if !(1..=STREAM_COUNT_MAX).contains(&plan.streams) {
        return wrong(format!("streams: from 1 to {STREAM_COUNT_MAX}"));
    }
    if plan.streams == 1 {
        return Ok(());
    }
    if plan.protocol == Protocol::H1 {
        return wrong(
            "a connection of HTTP/1.1 carries one request at a time; --streams needs --http 2 or 3"
                .to_owned(),
        );
    }
    if plan.reuse == Reuse::PerRequest {
        return wrong("with a connection for every request there is one stream on each".to_owned());
    }
    if plan.streams * plan.connections > LANE_COUNT_MAX {
        return wrong(format!(
            "{} connections with {} streams each are more than {LANE_COUNT_MAX} requests at once",
            plan.connections, plan.streams
        ));
    }
    Ok(())
}
