//! `concurrency` of a site or a route: how many requests it has in service at once, and how many
//! wait.

use std::time::Duration;

use super::fault::Faults;
use super::rate::{RateKey, read_key};
use super::route::pattern::Pattern;
use super::tree::Section;

/// How many requests are in service at once, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcurrencySettings {
    /// So many with the same key.
    pub requests: usize,
    /// What requests have in common that are counted together.
    pub by: RateKey,
    /// So many more of that key wait.
    pub queue: usize,
    /// For so long at most.
    pub wait: Duration,
    /// Addresses of IPv6 that begin with so many same bits are one client.
    pub v6_prefix: u8,
    /// So many keys are counted each for itself.
    pub keys: usize,
    /// Nobody waits or is refused; it is only counted.
    pub dry_run: bool,
}

/// The limit of a site or a route, if it has one of its own. `pattern` is the route's path.
pub(crate) fn read_concurrency(
    section: &Section,
    pattern: Option<&Pattern>,
    faults: &mut Faults<'_>,
) -> Option<ConcurrencySettings> {
    let section = section.section("concurrency")?;
    Some(ConcurrencySettings {
        requests: section.number("requests"),
        by: read_key(section, pattern, faults),
        queue: section.number("queue"),
        wait: section.time("wait"),
        v6_prefix: section.number("v6_prefix"),
        keys: section.number("keys"),
        dry_run: section.flag("dry_run"),
    })
}
