//! Where a request stands among the others, and the marks at which a page or somebody who follows
//! goes on; as text they are passed on by readers.

use std::fmt;

use super::segment::SegmentOrigin;

/// Where a request stands in the order: by its end, then by segment and entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HistoryPosition {
    pub(super) finished_unix_ms: u64,
    pub(super) segment: u64,
    pub(super) entry: u64,
}

/// Where a request stands among the slowest: by its time, then by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// What it took, in microseconds.
    pub total_us: u64,
    /// Of two that took the same the newer one comes first.
    pub place: HistoryPosition,
}

/// How far somebody who follows the history has come: everything before is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    pub(super) origin: SegmentOrigin,
    pub(super) segment: u64,
    pub(super) entry: u64,
}

/// Where a page has ended: the next one goes on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Of those with the newest first: `@FINISHED-SEGMENT-ENTRY`.
    Newest(HistoryPosition),
    /// Of those with the slowest first: `@FINISHED-SEGMENT-ENTRY-TOTAL`.
    Slowest(Rank),
    /// Of those as they came in: `~RUN-SERVER-SEGMENT-ENTRY`.
    Reached(Reached),
}

impl Mark {
    /// Reads what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Mark> {
        if let Some([run, server, segment, entry]) = text.strip_prefix('~').and_then(numbers) {
            let origin = SegmentOrigin { run, server };
            return Some(Mark::Reached(Reached {
                origin,
                segment,
                entry,
            }));
        }
        let text = text.strip_prefix('@')?;
        let place = |[finished_unix_ms, segment, entry]: [u64; 3]| HistoryPosition {
            finished_unix_ms,
            segment,
            entry,
        };
        if let Some(numbers) = numbers(text) {
            return Some(Mark::Newest(place(numbers)));
        }
        let [finished_unix_ms, segment, entry, total_us] = numbers(text)?;
        let place = place([finished_unix_ms, segment, entry]);
        Some(Mark::Slowest(Rank { total_us, place }))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mark::Newest(place) => write!(f, "@{place}"),
            Mark::Slowest(Rank { total_us, place }) => write!(f, "@{place}-{total_us}"),
            Mark::Reached(reached) => {
                let Reached {
                    origin,
                    segment,
                    entry,
                } = reached;
                write!(f, "~{}-{}-{segment}-{entry}", origin.run, origin.server)
            }
        }
    }
}

impl fmt::Display for HistoryPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HistoryPosition {
            finished_unix_ms,
            segment,
            entry,
        } = self;
        write!(f, "{finished_unix_ms}-{segment}-{entry}")
    }
}

/// So many numbers with `-` between them, and nothing else.
fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let mut parts = text.split('-');
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = parts.next()?.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_are_written_and_nothing_else_is() {
        let place = HistoryPosition {
            finished_unix_ms: 1,
            segment: 2,
            entry: u64::MAX,
        };
        let rank = Rank { total_us: 4, place };
        let reached = Reached {
            origin: SegmentOrigin { run: 5, server: 6 },
            segment: 7,
            entry: 8,
        };
        for (mark, text) in [
            (Mark::Newest(place), "@1-2-18446744073709551615"),
            (Mark::Slowest(rank), "@1-2-18446744073709551615-4"),
            (Mark::Reached(reached), "~5-6-7-8"),
        ] {
            assert_eq!(mark.to_string(), text);
            assert_eq!(Mark::parse(text), Some(mark));
        }
        for bad in [
            "",
            "@",
            "~",
            "@1-2",
            "@1-2-3-4-5",
            "@1-2--3",
            "@1-2-x",
            "~1-2-3",
            "~1-2-3-4-5",
            "1-2-3",
            "@1-2-18446744073709551616",
        ] {
            assert_eq!(Mark::parse(bad), None, "{bad}");
        }
    }
}
