//! Looking through the history, a segment at a time, so that whoever looks can do other things in
//! between.
//!
//! Newest first is the order of the end of requests. Segments of different threads overlap in time:
//! what was found is given out once no segment that is left can hold anything newer. For the
//! slowest, segments are looked through from the one with the slowest entry on, until none that is
//! left can hold one that belongs to the page. Who follows is told of entries as segments came in,
//! which has neither gaps nor doubles, whatever clocks say.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;

use super::entry::Finished;
use super::filter::{Filter, Sieve};
use super::kept::NUMBER_FIRST;
use super::mark::{HistoryPosition, Mark, Rank, Reached};
use super::segment::{HistorySegment, SegmentOrigin};
use super::{Holdings, RequestHistory};
use crate::record::{Record, Texts};
use crate::series::SeriesName;

/// Most entries looked at for one answer.
pub(super) const SCANNED_MAX: u64 = 500_000;
/// Most entries of one answer.
pub const FOUND_MAX: usize = 1000;

/// The name of a request, as people pass it on: `2.1234.0`, server, connection and request; what an
/// earlier start of hob answered has the time of that start before: `1795392000123-2.1234.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    /// The start of hob it belongs to, in Unix milliseconds; 0 is the present one.
    pub run: u64,
    /// Which server of that start.
    pub server: u64,
    /// Number of the connection.
    pub connection: u64,
    /// Number of the request on it.
    pub request: u32,
}

impl RequestId {
    /// The id of a request as this history tells it.
    pub fn new(of: SegmentOrigin, here: SegmentOrigin, record: &Record) -> RequestId {
        RequestId {
            run: if of.run == here.run { 0 } else { of.run },
            server: of.server,
            connection: record.connection,
            request: record.request,
        }
    }

    /// Reads an id.
    pub fn parse(text: &str) -> Option<RequestId> {
        let (run, rest) = match text.split_once('-') {
            Some((run, rest)) => (run.parse().ok()?, rest),
            None => (0, text),
        };
        let mut parts = rest.split('.');
        let id = RequestId {
            run,
            server: parts.next()?.parse().ok()?,
            connection: parts.next()?.parse().ok()?,
            request: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(id)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.run != 0 {
            write!(f, "{}-", self.run)?;
        }
        write!(f, "{}.{}.{}", self.server, self.connection, self.request)
    }
}

/// A request that was found.
#[derive(Clone, Debug)]
pub struct FoundRequest {
    /// Its name.
    pub id: RequestId,
    /// Where it stands.
    pub place: HistoryPosition,
    record: Record,
    texts: Box<[u8]>,
    ends: [u16; 10],
}

impl FoundRequest {
    fn new(finished: &Finished<'_>, id: RequestId, place: HistoryPosition) -> FoundRequest {
        let all = [
            finished.texts.method,
            finished.texts.target,
            finished.texts.host,
            finished.texts.referer,
            finished.texts.user_agent,
            finished.texts.user,
            finished.texts.detail,
            finished.tls_suite,
            finished.reason,
            finished.note,
        ];
        let mut end = 0;
        let ends = all.map(|text| {
            end += text.len();
            // An entry is shorter than that.
            end as u16
        });
        FoundRequest {
            id,
            place,
            record: finished.record,
            texts: all.concat().into_boxed_slice(),
            ends,
        }
    }

    /// What is known of it.
    pub fn finished(&self) -> Finished<'_> {
        let text = |index: usize| {
            let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.texts[usize::from(begin)..usize::from(self.ends[index])]
        };
        Finished {
            record: self.record,
            texts: Texts {
                method: text(0),
                target: text(1),
                host: text(2),
                referer: text(3),
                user_agent: text(4),
                user: text(5),
                detail: text(6),
                asked: b"",
            },
            tls_suite: text(7),
            reason: text(8),
            note: text(9),
        }
    }
}

/// By place, for the newest; by time and place, for the slowest.
struct Ranked<K>(K, FoundRequest);

impl<K: Ord> PartialEq for Ranked<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K: Ord> Eq for Ranked<K> {}

impl<K: Ord> PartialOrd for Ranked<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> Ord for Ranked<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// What a search has found.
#[derive(Debug)]
pub struct HistoryPage {
    /// The requests, in the order asked for.
    pub found: Vec<FoundRequest>,
    /// Entries looked at.
    pub scanned: u64,
    /// Where the next page begins; `None` when there is nothing more. For those as they came in
    /// there always is one: more may come.
    pub next: Option<Mark>,
    /// There is more already.
    pub has_more: bool,
    /// Not everything was looked at that had to be: the search had an end.
    pub is_cut: bool,
    /// Requests as they came in were let go of before they were asked for.
    pub is_gap: bool,
    /// What the history held.
    pub holdings: Holdings,
}

/// A search under way.
pub struct HistorySearch {
    sieve: Sieve,
    here: SegmentOrigin,
    holdings: Holdings,
    /// Those left to look through, the next one last.
    segments: Vec<Arc<HistorySegment>>,
    limit: usize,
    scanned: u64,
    wanted: SearchGoal,
}

enum SearchGoal {
    Newest {
        before: Option<HistoryPosition>,
        /// Found, and perhaps not the next.
        heap: BinaryHeap<Ranked<HistoryPosition>>,
        done: Vec<FoundRequest>,
    },
    Slowest {
        before: Option<Rank>,
        /// One more than wanted: it tells that there is more.
        heap: BinaryHeap<Ranked<Reverse<Rank>>>,
    },
    Arrived {
        reached: Reached,
        is_gap: bool,
        found: Vec<FoundRequest>,
    },
    One(RequestId, Option<Box<FoundRequest>>),
}

impl HistorySearch {
    /// Looks for the newest that were finished before `before`.
    pub fn newest(
        history: &RequestHistory,
        names: &[Arc<SeriesName>],
        filter: Filter,
        before: Option<HistoryPosition>,
        limit: usize,
    ) -> HistorySearch {
        let wanted = SearchGoal::Newest {
            before,
            heap: BinaryHeap::new(),
            done: Vec::new(),
        };
        HistorySearch::new(history, Sieve::new(filter, names), limit, wanted)
    }

    /// Looks for those that took longest, behind `before`.
    pub fn slowest(
        history: &RequestHistory,
        names: &[Arc<SeriesName>],
        filter: Filter,
        before: Option<Rank>,
        limit: usize,
    ) -> HistorySearch {
        let wanted = SearchGoal::Slowest {
            before,
            heap: BinaryHeap::new(),
        };
        let mut search = HistorySearch::new(history, Sieve::new(filter, names), limit, wanted);
        let slowest = |one: &Arc<HistorySegment>| (one.extent.slowest_us, one.number);
        search.segments.sort_by_key(slowest);
        search
    }

    /// Looks for those that came in since `after`, in that order; without it, from now on. Where
    /// `after` is of an earlier server, all that came in here.
    pub fn arrived(
        history: &RequestHistory,
        names: &[Arc<SeriesName>],
        filter: Filter,
        after: Option<Reached>,
        limit: usize,
    ) -> HistorySearch {
        let (mut segments, next_number) = history.arrivals();
        let origin = history.origin();
        let now = (next_number, 0);
        let (segment, entry) = match after {
            None => now,
            Some(after) if after.origin == origin => (after.segment, after.entry),
            Some(_) => (NUMBER_FIRST, 0),
        };
        segments.retain(|one| one.number >= segment);
        // What the server before finished last is not known here.
        let is_elsewhere = after.is_some_and(|after| after.origin != origin);
        let first = segments.first().map_or(next_number, |one| one.number);
        let wanted = SearchGoal::Arrived {
            reached: Reached {
                origin,
                segment,
                entry,
            },
            is_gap: is_elsewhere || first > segment,
            found: Vec::new(),
        };
        let mut search = HistorySearch::new(history, Sieve::new(filter, names), limit, wanted);
        segments.reverse();
        search.segments = segments;
        search
    }

    /// Looks for one; if several have that name, for the newest.
    pub fn one(history: &RequestHistory, id: RequestId) -> HistorySearch {
        let none: &[Arc<SeriesName>] = &[];
        let sieve = Sieve::new(Filter::default(), none);
        HistorySearch::new(history, sieve, 1, SearchGoal::One(id, None))
    }

    fn new(
        history: &RequestHistory,
        sieve: Sieve,
        limit: usize,
        wanted: SearchGoal,
    ) -> HistorySearch {
        let mut segments = history.segments();
        segments.sort_by_key(|segment| (segment.extent.last_unix_ms, segment.number));
        HistorySearch {
            sieve,
            here: history.origin(),
            holdings: history.holdings(),
            segments,
            limit: limit.clamp(1, FOUND_MAX),
            scanned: 0,
            wanted,
        }
    }

    /// Looks through one more segment. False when the search is over.
    pub fn step(&mut self) -> bool {
        self.settle();
        // Nobody can ask for the next part of a search for one.
        let is_bounded = !matches!(self.wanted, SearchGoal::One(..));
        if self.is_done() || is_bounded && self.scanned >= SCANNED_MAX {
            return false;
        }
        let Some(segment) = self.segments.pop() else {
            return false;
        };
        if self.is_beyond(&segment) {
            self.segments.clear();
            return false;
        }
        if self.may_hold(&segment) {
            self.scanned += u64::from(segment.extent.count);
            self.look_through(&segment);
        }
        true
    }

    /// Neither this segment nor one that is left can hold anything.
    fn is_beyond(&self, segment: &HistorySegment) -> bool {
        let extent = &segment.extent;
        match &self.wanted {
            SearchGoal::Newest { .. } | SearchGoal::One(..) => {
                self.sieve.is_over(extent.last_unix_ms)
            }
            SearchGoal::Slowest { heap, .. } => {
                let least = heap.peek().filter(|_| heap.len() > self.limit);
                self.sieve.is_quick(extent.slowest_us)
                    || least.is_some_and(|least| extent.slowest_us < least.0.0.total_us)
            }
            SearchGoal::Arrived { .. } => false,
        }
    }

    /// What has been found, when the search is over.
    pub fn page(mut self) -> HistoryPage {
        let is_cut = !self.segments.is_empty();
        if !is_cut {
            self.settle();
        }
        let left_ms = self.segments.last().map(|left| left.extent.last_unix_ms);
        let mut page = HistoryPage {
            found: Vec::new(),
            scanned: self.scanned,
            next: None,
            has_more: false,
            is_cut,
            is_gap: false,
            holdings: self.holdings,
        };
        match self.wanted {
            SearchGoal::Newest { heap, mut done, .. } => {
                page.has_more = is_cut || !heap.is_empty() || done.len() > self.limit;
                done.truncate(self.limit);
                let next = match (done.len() < self.limit, left_ms, done.last()) {
                    // All that ended later is told.
                    (true, Some(left_ms), _) => Some(HistoryPosition {
                        finished_unix_ms: left_ms,
                        segment: u64::MAX,
                        entry: u64::MAX,
                    }),
                    (_, _, last) => last.map(|last| last.place),
                };
                page.next = next.filter(|_| page.has_more).map(Mark::Newest);
                page.is_cut = is_cut && done.len() < self.limit;
                page.found = done;
            }
            SearchGoal::Slowest { heap, .. } => {
                let mut sorted = heap.into_sorted_vec();
                page.has_more = sorted.len() > self.limit;
                sorted.truncate(self.limit);
                let last = sorted.last().map(|last| Mark::Slowest(last.0.0));
                page.next = last.filter(|_| page.has_more);
                page.found = sorted.into_iter().map(|one| one.1).collect();
            }
            SearchGoal::Arrived {
                reached,
                is_gap,
                found,
            } => {
                page.has_more = is_cut || reached.entry > 0;
                page.is_cut = is_cut && found.len() < self.limit;
                page.next = Some(Mark::Reached(reached));
                (page.is_gap, page.found) = (is_gap, found);
            }
            SearchGoal::One(_, found) => {
                page.found = found.map(|found| *found).into_iter().collect()
            }
        }
        page
    }

    fn is_done(&self) -> bool {
        match &self.wanted {
            SearchGoal::Newest { done, .. } => done.len() >= self.limit,
            SearchGoal::Slowest { .. } => false,
            SearchGoal::Arrived { found, .. } => found.len() >= self.limit,
            SearchGoal::One(_, found) => found.is_some(),
        }
    }

    /// Gives out what nothing newer can come before any more.
    fn settle(&mut self) {
        let SearchGoal::Newest { heap, done, .. } = &mut self.wanted else {
            return;
        };
        let left_ms = self.segments.last().map(|left| left.extent.last_unix_ms);
        while done.len() < self.limit
            && heap
                .peek()
                .is_some_and(|best| left_ms.is_none_or(|left_ms| best.0.finished_unix_ms > left_ms))
        {
            done.extend(heap.pop().map(|best| best.1));
        }
    }

    fn may_hold(&self, segment: &HistorySegment) -> bool {
        let is_useless = self.sieve.is_quick(segment.extent.slowest_us)
            || self.sieve.is_over(segment.extent.last_unix_ms);
        match &self.wanted {
            // Those after it are told to whoever follows, whatever is in it.
            SearchGoal::Arrived { .. } => true,
            _ if is_useless => false,
            SearchGoal::Newest { before, .. } => {
                before.is_none_or(|before| segment.extent.first_unix_ms <= before.finished_unix_ms)
            }
            SearchGoal::Slowest { .. } => true,
            SearchGoal::One(id, _) => {
                let run = RequestId::new(segment.origin, self.here, &Record::empty()).run;
                (run, segment.origin.server) == (id.run, id.server)
            }
        }
    }

    fn look_through(&mut self, segment: &HistorySegment) {
        let (limit, sieve) = (self.limit, &self.sieve);
        let entries = Located {
            segment,
            here: self.here,
        };
        match &mut self.wanted {
            SearchGoal::Newest { before, heap, .. } => entries.newest(sieve, *before, limit, heap),
            SearchGoal::Slowest { before, heap } => entries.slowest(sieve, *before, limit, heap),
            SearchGoal::Arrived { reached, found, .. } => {
                entries.arrived(sieve, reached, limit, found);
            }
            SearchGoal::One(id, one) => entries.one(*id, one),
        }
    }
}

/// A segment whose entries are looked at from here.
#[derive(Clone, Copy)]
struct Located<'s> {
    segment: &'s HistorySegment,
    here: SegmentOrigin,
}

impl<'s> Located<'s> {
    fn entries(self) -> impl Iterator<Item = (HistoryPosition, Finished<'s>)> {
        let entries = self.segment.entries().enumerate();
        entries.map(move |(index, (_, finished))| {
            let place = HistoryPosition {
                finished_unix_ms: finished.finished_unix_ms(),
                segment: self.segment.number,
                entry: index as u64,
            };
            (place, finished)
        })
    }

    fn found(self, finished: &Finished<'_>, place: HistoryPosition) -> FoundRequest {
        let id = RequestId::new(self.segment.origin, self.here, &finished.record);
        FoundRequest::new(finished, id, place)
    }

    fn newest(
        self,
        sieve: &Sieve,
        before: Option<HistoryPosition>,
        limit: usize,
        heap: &mut BinaryHeap<Ranked<HistoryPosition>>,
    ) {
        // Entries stand in the order of their end but for a millisecond or so.
        let mut newest = BinaryHeap::new();
        for (place, finished) in self.entries() {
            if before.is_none_or(|before| place < before) && sieve.holds(&finished) {
                newest.push(Ranked(Reverse(place), self.found(&finished, place)));
                // One more than wanted tells that there is more.
                if newest.len() > limit + 1 {
                    newest.pop();
                }
            }
        }
        heap.extend(newest.into_iter().map(|one| Ranked(one.1.place, one.1)));
    }

    fn slowest(
        self,
        sieve: &Sieve,
        before: Option<Rank>,
        limit: usize,
        heap: &mut BinaryHeap<Ranked<Reverse<Rank>>>,
    ) {
        for (place, finished) in self.entries() {
            let total_us = finished.record.total_us;
            let rank = Rank { total_us, place };
            let key = Reverse(rank);
            let is_among = before.is_none_or(|before| rank < before)
                && (heap.len() <= limit || heap.peek().is_some_and(|least| key < least.0));
            if is_among && sieve.holds(&finished) {
                heap.push(Ranked(key, self.found(&finished, place)));
                if heap.len() > limit + 1 {
                    heap.pop();
                }
            }
        }
    }

    fn arrived(
        self,
        sieve: &Sieve,
        reached: &mut Reached,
        limit: usize,
        found: &mut Vec<FoundRequest>,
    ) {
        let number = self.segment.number;
        let first = match reached.segment == number {
            true => reached.entry,
            false => 0,
        };
        (reached.segment, reached.entry) = (number + 1, 0);
        for (place, finished) in self.entries().filter(|(place, _)| place.entry >= first) {
            if found.len() >= limit {
                (reached.segment, reached.entry) = (number, place.entry);
                return;
            }
            if sieve.holds(&finished) {
                found.push(self.found(&finished, place));
            }
        }
    }

    fn one(self, id: RequestId, one: &mut Option<Box<FoundRequest>>) {
        for (place, finished) in self.entries() {
            let record = &finished.record;
            if (record.connection, record.request) == (id.connection, id.request) {
                *one = Some(Box::new(self.found(&finished, place)));
            }
        }
    }
}
