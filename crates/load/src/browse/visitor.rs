//! One visitor and the view of a page it is at: what is to be asked for next, and what comes of it.
//!
//! ```text
//! begin --> next() is the document --> settled() finds assets --> next() ... --> is_complete()
//!                                            ^                        |
//!                                            +---- settled() <--------+
//! ```
//!
//! A visitor knows neither connections nor the clock: times are given, what is wanted is taken by
//! whoever has a place for a request.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

use super::ahead::Ahead;
use super::cache::CachedAsset;
use super::found::Scan;
use super::reference::{Base, ResolvedReference};
use super::unpack::unpack;
use crate::limits::{ASSET_COUNT_MAX, ASSET_TOLD_COUNT_MAX, REDIRECT_COUNT_MAX};
use crate::measure::{AssetEnd, AssetKind, FailureKind, PageCount};
use crate::send::{Kept, KeptField};

/// What a document or stylesheet names, with where it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    here: Vec<(AssetKind, Arc<str>)>,
    elsewhere: Vec<String>,
    left_out: u64,
    /// It is longer than is looked at.
    is_cut: bool,
}

/// What was read already, so that what comes again unchanged is not read again.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    hasher: RandomState,
    known: HashMap<Arc<str>, (u64, Arc<Scanned>)>,
}

/// Something that is to be asked for.
#[derive(Debug, Clone)]
pub(crate) struct AssetRequest {
    pub(crate) kind: AssetKind,
    pub(crate) target: Arc<str>,
    /// What results call it: where it was before a redirect.
    name: Arc<str>,
    redirect_count: u8,
    /// What is known of it already.
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
}

/// How a request ended.
#[derive(Debug)]
pub(crate) enum FetchOutcome {
    Answered(Answered),
    Failed(FailureKind, String),
}

/// An answer that came whole.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) is_expected: bool,
    pub(crate) kept: Kept,
}

/// Which view it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// One that counts.
    Measured,
    /// One before the warm-up was over.
    WarmUp,
    /// The one that fills the cache.
    Priming,
}

/// A view of a page.
#[derive(Debug)]
struct PageView {
    what: What,
    base: Base,
    urgent: VecDeque<AssetRequest>,
    later: VecDeque<AssetRequest>,
    seen: HashSet<Arc<str>>,
    active: usize,
    ended: PageViewOutcome,
}

/// What a view has come to.
#[derive(Debug, Clone)]
pub(crate) struct PageViewOutcome {
    pub(crate) class: usize,
    pub(crate) intended_ns: u64,
    pub(crate) begun_ns: u64,
    pub(crate) body_bytes: u64,
    /// When the first byte of the document came.
    pub(crate) first_byte_ns: Option<u64>,
    /// The document's status; none while there is no answer.
    pub(crate) status: Option<u16>,
    /// The first thing that went wrong.
    pub(crate) fault: Option<(FailureKind, String)>,
}

/// One visitor.
#[derive(Debug)]
pub(crate) struct Visitor {
    /// What a browser would have of earlier views; none where each view is a first one.
    cache: Option<HashMap<Arc<str>, CachedAsset>>,
    pub(crate) is_primed: bool,
    view: Option<PageView>,
    /// Measured pages.
    pub(crate) page_count: u64,
}

impl Visitor {
    pub(crate) fn new(has_cache: bool) -> Visitor {
        Visitor {
            cache: has_cache.then(HashMap::new),
            is_primed: !has_cache,
            view: None,
            page_count: 0,
        }
    }

    /// Goes to a page.
    pub(crate) fn begin(&mut self, base: &Base, what: What, class: usize, times: (u64, u64)) {
        let target: Arc<str> = base.target.as_str().into();
        let mut view = PageView {
            what,
            base: base.clone(),
            urgent: VecDeque::new(),
            later: VecDeque::new(),
            seen: HashSet::from([target.clone()]),
            active: 0,
            ended: PageViewOutcome {
                class,
                intended_ns: times.0,
                begun_ns: times.1,
                body_bytes: 0,
                first_byte_ns: None,
                status: None,
                fault: None,
            },
        };
        view.urgent
            .push_back(AssetRequest::new(AssetKind::Document, target));
        self.view = Some(view);
    }

    /// Which view it is at.
    pub(crate) fn what(&self) -> Option<What> {
        self.view.as_ref().map(|view| view.what)
    }

    /// What is to be asked for next, if there is anything.
    pub(crate) fn next(&mut self, now: u64, count: &mut PageCount) -> Option<AssetRequest> {
        let view = self.view.as_mut()?;
        loop {
            let queue = if view.urgent.is_empty() {
                &mut view.later
            } else {
                &mut view.urgent
            };
            let mut wanted = queue.pop_front()?;
            let known = self.cache.as_ref();
            if let Some(entry) = known.and_then(|cache| cache.get(&wanted.target)) {
                // The page itself is asked for always, as when somebody presses "reload".
                if entry.is_fresh(now) && wanted.kind != AssetKind::Document {
                    count.from_cache += u64::from(view.what == What::Measured);
                    if let Some(scanned) = entry.scanned.clone() {
                        view.add(&scanned, count);
                    }
                    continue;
                }
                wanted.etag.clone_from(&entry.etag);
                wanted.last_modified.clone_from(&entry.last_modified);
            }
            view.active += 1;
            return Some(wanted);
        }
    }

    /// Does it wait for the first byte of its document?
    pub(crate) fn awaits_first_byte(&self) -> bool {
        let view = self.view.as_ref();
        view.is_some_and(|view| view.ended.first_byte_ns.is_none() && view.active > 0)
    }

    /// The first byte of the document is there.
    pub(crate) fn heard(&mut self, now: u64) {
        if let Some(view) = &mut self.view {
            view.ended.first_byte_ns.get_or_insert(now);
        }
    }

    /// More of an answer that is not whole has come; true when it names what was not known. A
    /// stylesheet is read when it is whole.
    pub(crate) fn coming(
        &mut self,
        wanted: &AssetRequest,
        ahead: &mut Option<Box<Ahead>>,
        (status, kept): (u16, &Kept),
    ) -> bool {
        let Some(view) = &mut self.view else {
            return false;
        };
        if ahead.is_none() {
            // A redirect is no page.
            let is_page = wanted.kind != AssetKind::Style && !(300..400).contains(&status);
            if !is_page || !is_readable(wanted.kind, kept) {
                return false;
            }
            let codings = kept.get(KeptField::ContentEncoding).unwrap_or_default();
            *ahead = Some(Box::new(Ahead::new(&codings)));
        }
        let Some(scan) = ahead.as_mut().and_then(|ahead| ahead.look(&kept.body)) else {
            return false;
        };
        view.expect(&Scanned::new(scan, &view.base.at(&wanted.target)))
    }

    /// A request has ended, which was sent then.
    pub(crate) fn settled(
        &mut self,
        wanted: AssetRequest,
        outcome: FetchOutcome,
        (begun_ns, now): (u64, u64),
        readings: &mut Readings,
        count: &mut PageCount,
    ) {
        let Some(view) = &mut self.view else {
            return;
        };
        view.active -= 1;
        let (name, kind) = (wanted.name.clone(), wanted.kind);
        let has_validator = wanted.etag.is_some() || wanted.last_modified.is_some();
        let (mut body_bytes, mut is_answered, mut is_not_modified) = (0, false, false);
        let fault = match outcome {
            FetchOutcome::Failed(kind, text) => Some((kind, text)),
            FetchOutcome::Answered(answered) => {
                (body_bytes, is_answered) = (answered.body_bytes, true);
                if kind == AssetKind::Document {
                    view.ended.status = Some(answered.status);
                    view.ended.first_byte_ns.get_or_insert(now);
                }
                is_not_modified = answered.status == 304 && has_validator;
                let cache = self.cache.as_mut();
                if is_not_modified {
                    view.unchanged(&wanted, &answered.kept, (cache, now), count);
                    None
                } else {
                    let taken = view.take(wanted, answered, (cache, now), readings, count);
                    taken.err()
                }
            }
        };
        view.ended.body_bytes += body_bytes;
        if view.what == What::Measured {
            count.ended(AssetEnd {
                target: &name,
                kind,
                took_ns: now.saturating_sub(begun_ns),
                body_bytes,
                is_good: fault.is_none(),
                is_answered,
                is_not_modified,
            });
        }
        if let Some((failure, text)) = fault {
            let told = (failure, format!("{name}: {text}"));
            view.ended.fault.get_or_insert(told);
        }
    }

    /// Gives what the view has come to, if nothing of it is left.
    pub(crate) fn end(&mut self) -> Option<(What, PageViewOutcome)> {
        let is_over =
            |view: &&PageView| view.active == 0 && view.urgent.is_empty() && view.later.is_empty();
        self.view.as_ref().filter(is_over)?;
        let view = self.view.take()?;
        // Whatever came of it: what could not be loaded then fails again in a view that counts.
        self.is_primed = true;
        Some((view.what, view.ended))
    }
}

/// What a visitor's browser has, and the time.
type Cache<'a> = (Option<&'a mut HashMap<Arc<str>, CachedAsset>>, u64);

impl PageView {
    /// An answer that came whole: a redirect, something to be read, or something that is there.
    fn take(
        &mut self,
        wanted: AssetRequest,
        answered: Answered,
        (cache, now): Cache<'_>,
        readings: &mut Readings,
        count: &mut PageCount,
    ) -> Result<(), (FailureKind, String)> {
        let mut kept = answered.kept;
        let location = kept.get(KeptField::Location);
        if let (301 | 302 | 303 | 307 | 308, Some(location)) = (answered.status, location) {
            return self.redirect(wanted, &location, count);
        }
        // A document with another status may be a page all the same: it names what it looks like.
        let own = self.base.at(&wanted.target);
        let mut scanned = None;
        if is_readable(wanted.kind, &kept) {
            let read = readings.read(&wanted, &own, &mut kept);
            let read = read.map_err(|text| (FailureKind::Malformed, text))?;
            self.add(&read, count);
            scanned = Some(read);
        }
        if !answered.is_expected {
            return Err((FailureKind::Status, answered.status.to_string()));
        }
        if let (Some(cache), 200) = (cache, answered.status) {
            store(cache, wanted.target, CachedAsset::of(&kept, scanned, now));
        }
        Ok(())
    }

    /// The server says that what the cache has is still so.
    fn unchanged(
        &mut self,
        wanted: &AssetRequest,
        kept: &Kept,
        (cache, now): Cache<'_>,
        count: &mut PageCount,
    ) {
        let Some(entry) = cache.and_then(|cache| cache.get_mut(&wanted.target)) else {
            return;
        };
        //= rfc9111#3.2: what it says of its age counts from now on.
        entry.renew(kept, now);
        if let Some(scanned) = entry.scanned.clone() {
            self.add(&scanned, count);
        }
    }

    fn redirect(
        &mut self,
        wanted: AssetRequest,
        location: &str,
        count: &mut PageCount,
    ) -> Result<(), (FailureKind, String)> {
        if wanted.redirect_count >= REDIRECT_COUNT_MAX {
            let text = format!("more than {REDIRECT_COUNT_MAX} redirects");
            return Err((FailureKind::Status, text));
        }
        match self.base.at(&wanted.target).join(location) {
            ResolvedReference::Here(target) => {
                if wanted.kind == AssetKind::Document {
                    self.ended.first_byte_ns = None;
                }
                let next = AssetRequest {
                    target: target.into(),
                    redirect_count: wanted.redirect_count + 1,
                    etag: None,
                    last_modified: None,
                    ..wanted
                };
                self.queue(next);
                Ok(())
            }
            ResolvedReference::Elsewhere(origin) if wanted.kind == AssetKind::Document => {
                let text = format!("it redirects to {origin}, another server");
                Err((FailureKind::Status, text))
            }
            ResolvedReference::Elsewhere(origin) => {
                if self.what == What::Measured {
                    count.elsewhere(&origin, 1);
                }
                Ok(())
            }
            ResolvedReference::Nowhere => {
                Err((FailureKind::Status, format!("it redirects to {location:?}")))
            }
        }
    }

    /// Queues what was named so far and not seen before; true when there is some. All of it is
    /// named again, and what is more is counted, when the document is whole.
    fn expect(&mut self, scanned: &Scanned) -> bool {
        let mut has_new = false;
        for (kind, target) in &scanned.here {
            let has_room = self.seen.len() <= ASSET_COUNT_MAX;
            if has_room && self.seen.insert(target.clone()) {
                self.queue(AssetRequest::new(*kind, target.clone()));
                has_new = true;
            }
        }
        has_new
    }

    /// Queues what was named and not seen before.
    fn add(&mut self, scanned: &Scanned, count: &mut PageCount) {
        let mut left_out = scanned.left_out;
        for (kind, target) in &scanned.here {
            if self.seen.contains(target) {
                continue;
            }
            if self.seen.len() > ASSET_COUNT_MAX {
                left_out += 1;
                continue;
            }
            self.seen.insert(target.clone());
            self.queue(AssetRequest::new(*kind, target.clone()));
        }
        if self.what == What::Measured {
            count.left_out += left_out;
            count.cut += u64::from(scanned.is_cut);
            for origin in &scanned.elsewhere {
                count.elsewhere(origin, 1);
            }
        }
    }

    fn queue(&mut self, wanted: AssetRequest) {
        match wanted.kind.is_urgent() {
            true => self.urgent.push_back(wanted),
            false => self.later.push_back(wanted),
        }
    }
}

impl AssetRequest {
    fn new(kind: AssetKind, target: Arc<str>) -> AssetRequest {
        AssetRequest {
            kind,
            name: target.clone(),
            target,
            redirect_count: 0,
            etag: None,
            last_modified: None,
        }
    }
}

impl Readings {
    /// What an answer names; it is only read where it is not what it was.
    fn read(
        &mut self,
        wanted: &AssetRequest,
        own: &Base,
        kept: &mut Kept,
    ) -> Result<Arc<Scanned>, String> {
        let hash = self.hasher.hash_one(&kept.body);
        let known = self.known.get(&wanted.target);
        if let Some((_, scanned)) = known.filter(|(known, _)| *known == hash) {
            return Ok(scanned.clone());
        }
        let codings = kept.get(KeptField::ContentEncoding).unwrap_or_default();
        let unpacked = unpack(std::mem::take(&mut kept.body), kept.is_cut, &codings)?;
        let scan = match wanted.kind {
            AssetKind::Style => super::scan_css(&unpacked.text),
            _ => super::scan_html(&unpacked.text),
        };
        let mut scanned = Scanned::new(scan, own);
        scanned.is_cut = unpacked.is_cut;
        let scanned = Arc::new(scanned);
        if self.known.len() >= ASSET_TOLD_COUNT_MAX {
            self.known.clear();
        }
        let entry = (hash, scanned.clone());
        self.known.insert(wanted.target.clone(), entry);
        Ok(scanned)
    }
}

impl Scanned {
    /// Resolves what was found in a text of this place.
    fn new(scan: Scan, own: &Base) -> Scanned {
        let mut scanned = Scanned {
            left_out: scan.left_out,
            ..Scanned::default()
        };
        let (base, foreign) = match scan.base.as_deref().map(|base| own.join(base)) {
            Some(ResolvedReference::Here(target)) => (own.at(&target), None),
            Some(ResolvedReference::Elsewhere(origin)) => (own.clone(), Some(origin)),
            _ => (own.clone(), None),
        };
        for found in scan.found {
            let place = match &foreign {
                Some(origin) => own.join_foreign(origin, &found.reference),
                None => base.join(&found.reference),
            };
            match place {
                ResolvedReference::Here(target) => scanned.here.push((found.kind, target.into())),
                ResolvedReference::Elsewhere(origin) => scanned.elsewhere.push(origin),
                ResolvedReference::Nowhere => {}
            }
        }
        scanned
    }
}

/// Is it what its kind says, as far as the server says what it is?
fn is_readable(kind: AssetKind, kept: &Kept) -> bool {
    let media = kept.get(KeptField::ContentType).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    let media = media.to_ascii_lowercase();
    match kind {
        AssetKind::Style => media.is_empty() || media == "text/css",
        AssetKind::Document | AssetKind::Frame => {
            media.is_empty() || media == "text/html" || media == "application/xhtml+xml"
        }
        _ => false,
    }
}

fn store(cache: &mut HashMap<Arc<str>, CachedAsset>, target: Arc<str>, entry: Option<CachedAsset>) {
    match entry {
        None => {
            cache.remove(&target);
        }
        Some(entry) if cache.len() <= ASSET_COUNT_MAX || cache.contains_key(&target) => {
            cache.insert(target, entry);
        }
        // What a page names anew each time would fill any cache.
        Some(_) => {}
    }
}

#[cfg(test)]
#[path = "tests/visitor.rs"]
mod tests;
