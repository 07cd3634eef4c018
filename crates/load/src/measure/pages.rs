//! What came of views of pages: what one of them takes, and what of it was slow.

use std::collections::{BTreeMap, HashMap};

use crate::limits::{ASSET_TOLD_COUNT_MAX, ORIGIN_COUNT_MAX};
use crate::measure::{AssetKind, Interval, Latency};

/// Everything beyond the assets that are told apart.
const OTHERS: &str = "(others)";

/// What the measured pages of one thread, or of several, have come to.
#[derive(Debug)]
pub(crate) struct PageCount {
    /// From when a page was due to the first byte of its document.
    pub(crate) first_byte: Latency,
    /// Requests that were sent.
    pub(crate) requests: u64,
    /// Answers that said that nothing has changed.
    pub(crate) not_modified: u64,
    /// What was not asked for, because it was fresh.
    pub(crate) from_cache: u64,
    /// What other servers have.
    pub(crate) elsewhere: u64,
    /// What was found beyond the limits.
    pub(crate) left_out: u64,
    /// Documents and stylesheets that were longer than is looked at.
    pub(crate) cut: u64,
    /// What other servers have, by server.
    pub(crate) origins: BTreeMap<String, u64>,
    pub(crate) assets: HashMap<String, AssetCount>,
}

/// What came of one asset.
#[derive(Debug)]
pub(crate) struct AssetCount {
    pub(crate) kind: AssetKind,
    /// Times from when it was asked for, right to a hundredth, and how many failed.
    pub(crate) times: Interval,
    pub(crate) not_modified: u64,
    pub(crate) body_bytes: u64,
}

/// How the request for an asset ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AssetEnd<'a> {
    pub(crate) target: &'a str,
    pub(crate) kind: AssetKind,
    /// Nanoseconds from when it was asked for.
    pub(crate) took_ns: u64,
    pub(crate) body_bytes: u64,
    pub(crate) is_good: bool,
    pub(crate) is_answered: bool,
    pub(crate) is_not_modified: bool,
}

impl PageCount {
    pub(crate) fn new() -> PageCount {
        PageCount {
            first_byte: Latency::new(),
            requests: 0,
            not_modified: 0,
            from_cache: 0,
            elsewhere: 0,
            left_out: 0,
            cut: 0,
            origins: BTreeMap::new(),
            assets: HashMap::new(),
        }
    }

    /// A request has ended.
    pub(crate) fn ended(&mut self, end: AssetEnd<'_>) {
        self.requests += 1;
        self.not_modified += u64::from(end.is_not_modified);
        let asset = self.asset(end.target, end.kind);
        if end.is_answered {
            asset.times.answered(end.took_ns, end.is_good);
        }
        asset.times.failed += u64::from(!end.is_good);
        asset.not_modified += u64::from(end.is_not_modified);
        asset.body_bytes += end.body_bytes;
    }

    /// Something at another server was named.
    pub(crate) fn elsewhere(&mut self, origin: &str, count: u64) {
        self.elsewhere += count;
        if let Some(known) = self.origins.get_mut(origin) {
            *known += count;
            return;
        }
        let is_told = self.origins.len() < ORIGIN_COUNT_MAX;
        let name = if is_told { origin } else { OTHERS };
        *self.origins.entry(name.to_owned()).or_default() += count;
    }

    /// One of them, new or known.
    pub(crate) fn asset(&mut self, target: &str, kind: AssetKind) -> &mut AssetCount {
        let is_told = self.assets.len() < ASSET_TOLD_COUNT_MAX || self.assets.contains_key(target);
        let (name, kind) = if is_told {
            (target, kind)
        } else {
            (OTHERS, AssetKind::Other)
        };
        if !self.assets.contains_key(name) {
            self.assets.insert(name.to_owned(), AssetCount::new(kind));
        }
        self.assets
            .get_mut(name)
            .expect("it was put there just now")
    }

    /// Adds what another thread counted.
    pub(crate) fn merge(&mut self, other: PageCount) {
        self.first_byte.merge(&other.first_byte);
        self.requests += other.requests;
        self.not_modified += other.not_modified;
        self.from_cache += other.from_cache;
        self.left_out += other.left_out;
        self.cut += other.cut;
        for (origin, count) in other.origins {
            self.elsewhere(&origin, count);
        }
        for (target, asset) in other.assets {
            let own = self.asset(&target, asset.kind);
            own.times.merge(&asset.times);
            own.not_modified += asset.not_modified;
            own.body_bytes += asset.body_bytes;
        }
    }

    /// The assets with their targets, the slowest first.
    pub(crate) fn slowest(&self) -> Vec<(&str, &AssetCount)> {
        let mut all: Vec<_> = self.assets.iter().collect();
        all.sort_by_key(|(target, asset)| {
            let slow = asset.times.percentile(99.0).unwrap_or(0);
            (std::cmp::Reverse(slow), target.as_str())
        });
        all.into_iter()
            .map(|(target, asset)| (target.as_str(), asset))
            .collect()
    }
}

impl AssetCount {
    fn new(kind: AssetKind) -> AssetCount {
        AssetCount {
            kind,
            times: Interval::new(),
            not_modified: 0,
            body_bytes: 0,
        }
    }
}
