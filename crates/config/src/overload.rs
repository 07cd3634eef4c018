//! `[overload]`, and `priority` of a site or a route: who is refused first when requests wait too
//! long.

use std::time::Duration;

use super::tree::Section;

/// When the server has too much to do, and what it tells who is refused then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverloadSettings {
    /// So long 99 of 100 requests may wait in queues of programs and other servers.
    pub queue: Duration,
    /// When to come again, as who is refused is told.
    pub retry_after: Duration,
}

/// Which routes are refused first: the lower ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoutePriority {
    /// First.
    Low = 1,
    /// Where that was not enough.
    #[default]
    Normal = 2,
    /// Never.
    High = 3,
}

impl RoutePriority {
    /// The one of a word of the schema.
    pub(crate) fn of(word: &str) -> RoutePriority {
        match word {
            "low" => RoutePriority::Low,
            "high" => RoutePriority::High,
            _ => RoutePriority::Normal,
        }
    }
}

/// The table of a config, if it has one.
pub(crate) fn build_overload(root: &Section) -> Option<OverloadSettings> {
    let section = root.section("overload")?;
    Some(OverloadSettings {
        queue: section.time("queue"),
        retry_after: section.time("retry_after"),
    })
}
