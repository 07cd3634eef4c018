//! Rows of hob alone: what it costs to have something on.

use super::{ComparisonRow, Entrant, RowGroup, Scope};
use crate::server::{DiagnosticsLevel, Extra};

pub(super) fn rows() -> Vec<ComparisonRow> {
    let all = [what_is_told(), how_it_serves()];
    all.into_iter().flatten().map(Switch::row).collect()
}

/// What the server tells of itself and its requests.
fn what_is_told() -> Vec<Switch> {
    vec![
        Switch {
            name: "inside",
            title: "what shows its inside",
            scope: Scope::Quick,
            first: ("neither history nor activity", Extra::Bare),
            more: vec![
                ("hob as it comes", Extra::None),
                ("watched, of nothing", Extra::WatchedElsewhere),
                ("watched, all of it", Extra::Watched),
                ("ten admin pages open", Extra::Pages),
                ("metrics read each second", Extra::Scraped),
            ],
            then: &[],
            advice: "nothing of the kind was on the list of 1998",
        },
        Switch {
            name: "log",
            title: "an access log",
            scope: Scope::Quick,
            first: ("hob", Extra::None),
            more: vec![
                ("combined log", Extra::CombinedLog),
                ("log in a format of one's own", Extra::CustomLog),
                ("that with names of clients", Extra::Names),
            ],
            then: &["A.log.names.0k.c1"],
            advice: "names of clients looked up came first in 1998's list of what costs, the log \
                     sixth, its format ninth; hob looks them up beside, and only where it is told",
        },
        Switch {
            name: "diagnostics",
            title: "diagnostics in detail",
            scope: Scope::Full,
            first: ("HOB_LOG=warn", Extra::Diagnostics(DiagnosticsLevel::Warn)),
            more: vec![
                ("HOB_LOG=debug", Extra::Diagnostics(DiagnosticsLevel::Debug)),
                ("HOB_LOG=trace", Extra::Diagnostics(DiagnosticsLevel::Trace)),
            ],
            then: &["D.diagnostics.verbose.542"],
            advice: "a server of 1995 lost less than 2 % to them; hob writes none for a request that \
                     goes well",
        },
    ]
}

/// What its requests come by, and with what they share.
fn how_it_serves() -> Vec<Switch> {
    let is_root = rustix::process::geteuid().is_root();
    // Only root may be served before others.
    let (level, nice) = match is_root {
        true => (-5, "nice level -5"),
        false => (5, "nice level 5"),
    };
    vec![
        Switch {
            name: "threads",
            title: "many threads on one CPU",
            scope: Scope::Full,
            first: ("1 thread", Extra::Threads(1)),
            more: vec![
                ("2 threads", Extra::Threads(2)),
                ("4 threads", Extra::Threads(4)),
                ("16 threads", Extra::Threads(16)),
            ],
            then: &[
                "E.threads.small.text",
                "E.threads.large.text",
                "E.threads.maximum.text",
            ],
            advice: "IBM told 5 threads for a small AS/400 and 10 or more for a large one; hob wants \
                     one for each CPU, whatever its requests wait for",
        },
        Switch {
            name: "routes",
            title: "many routes",
            scope: Scope::Usual,
            first: ("hob", Extra::None),
            more: vec![
                ("10 routes", Extra::Routes(10)),
                ("1,000 routes", Extra::Routes(1000)),
                ("10,000 routes", Extra::Routes(10_000)),
            ],
            then: &[],
            advice: "the number of rules came eighth in 1998's list of what costs",
        },
        Switch {
            name: "nice",
            title: nice,
            scope: Scope::Usual,
            first: ("hob", Extra::None),
            more: vec![(nice, Extra::Nice(level))],
            then: &[],
            advice: "the server's priority came seventh in 1998's list of what matters",
        },
        Switch {
            name: "cache",
            title: "no cache of files",
            scope: Scope::Usual,
            first: ("hob", Extra::None),
            more: vec![("cache off: the kernel's page cache", Extra::NoCache)],
            then: &["A.file.nocache.0k.c10", "A.file.cache.0k.c10"],
            advice: "the cache of files came fifth in 1998's list of what matters",
        },
    ]
}

/// One thing that can be on, perhaps in more than one way.
struct Switch {
    name: &'static str,
    title: &'static str,
    scope: Scope,
    /// What it is set beside.
    first: (&'static str, Extra),
    more: Vec<(&'static str, Extra)>,
    then: &'static [&'static str],
    advice: &'static str,
}

impl Switch {
    fn row(self) -> ComparisonRow {
        let id = format!("cost.{}.clear.keep.0k.c10", self.name);
        let title = format!("hob with {}, file of 0k", self.title);
        let mut row = ComparisonRow::new(id, title, RowGroup::Cost, 10);
        row.scope = self.scope;
        row.advice = self.advice.into();
        let more = self.more.into_iter();
        row.entrants = std::iter::once(self.first)
            .chain(more)
            .map(|(label, extra)| entrant(label, extra))
            .collect();
        row.beside(self.then.iter().map(|id| (*id).to_owned()));
        row
    }
}

fn entrant(label: &str, extra: Extra) -> Entrant {
    Entrant {
        label: label.to_owned(),
        server: "hob".to_owned(),
        extra,
        path: "/0k.txt".to_owned(),
        bytes: 0,
    }
}
