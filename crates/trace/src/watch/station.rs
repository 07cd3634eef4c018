//! The watchers as one server thread sees them, and how it tells them what happens.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use crate::pen::PenBuffer;
use crate::watch::event::{Begin, Pen};
use crate::watch::{FieldsOf, Hub, RequestStage, WATCHERS_MAX, WatchCandidate, Watcher};
use crate::{HandlerKind, Record};

/// One thread's view of the watchers.
#[derive(Default)]
pub struct Station {
    hub: OnceCell<Arc<Hub>>,
    /// Bits of the places somebody is in.
    taken: Cell<u32>,
    generation: Cell<u64>,
    server: Cell<u64>,
    watchers: RefCell<[Option<Arc<Watcher>>; WATCHERS_MAX]>,
    /// The generation in which this thread learned of the one in each place.
    since: RefCell<[u64; WATCHERS_MAX]>,
    /// Bits of those who are shown heads, bodies, and secrets.
    shows_head: Cell<u32>,
    shows_body: Cell<u32>,
    shows_secrets: Cell<u32>,
    /// How the events of the last request that was told of begin.
    begin: RefCell<Begin>,
    /// Where an event is written before it gets there.
    block: RefCell<PenBuffer>,
    /// Room for events: for those who are shown secrets, and for the others.
    room: RefCell<[Vec<u8>; 2]>,
}

/// Who watches a request: all that has to be carried along to tell of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// The number of its connection.
    pub connection: u64,
    /// Its number there.
    pub request: u32,
    /// Bits of watchers it matches.
    pub live: u32,
    /// Bits of watchers for whom its end decides.
    pub held: u32,
    /// The [`Station::generation`] the bits are of: who came to a place later is another.
    pub generation: u64,
    /// When it began, on the monotonic clock, in microseconds.
    pub started_us: u64,
}

impl Trail {
    /// Somebody watches, or may turn out to.
    pub fn is_traced(&self) -> bool {
        self.live | self.held != 0
    }

    fn all(&self) -> u32 {
        self.live | self.held
    }
}

impl Station {
    /// Somebody watches something by now. Nothing else here is called while this is false.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.refresh();
        self.taken.get() != 0
    }

    /// Says whose watchers it tells. Called once.
    pub fn set_hub(&self, hub: &Arc<Hub>) {
        let _ = self.hub.set(Arc::clone(hub));
    }

    /// Says which server's requests these are: the first part of their ids.
    pub fn set_server(&self, number: u64) {
        self.server.set(number);
    }

    /// Looks whether watchers have come or gone. Called in each turn of the loop too, so that those
    /// who have gone leave nothing behind.
    #[inline]
    pub fn refresh(&self) {
        let Some(hub) = self.hub.get() else { return };
        let generation = hub.generation();
        if generation != self.generation.get() {
            self.generation.set(generation);
            self.take(hub.watchers());
        }
    }

    #[cold]
    fn take(&self, watchers: [Option<Arc<Watcher>>; WATCHERS_MAX]) {
        let bits = |is_shown: fn(&Watcher) -> bool| {
            let shown = watchers
                .iter()
                .flatten()
                .filter(|watcher| is_shown(watcher));
            shown.fold(0, |bits, watcher| bits | watcher.bit())
        };
        self.taken.set(bits(|_| true));
        self.shows_head
            .set(bits(|watcher| watcher.terms.shows_head));
        self.shows_body
            .set(bits(|watcher| watcher.terms.shows_body));
        self.shows_secrets
            .set(bits(|watcher| watcher.terms.shows_secrets));
        let mut before = self.watchers.borrow_mut();
        let mut since = self.since.borrow_mut();
        for ((was, is), since) in before.iter().zip(&watchers).zip(&mut *since) {
            let is_same = matches!((was, is), (Some(was), Some(is)) if Arc::ptr_eq(was, is));
            if !is_same {
                *since = self.generation.get();
            }
        }
        *before = watchers;
        drop(before);
        if self.taken.get() == 0 {
            *self.room.borrow_mut() = [Vec::new(), Vec::new()];
        }
    }

    /// Moves whenever this thread learns that watchers have come or gone.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Who watches a request: bits of those it matches, and of those for whom its end decides.
    pub fn match_begin(&self, subject: &WatchCandidate<'_>) -> (u32, u32) {
        let (mut live, mut held) = (0, 0);
        let watchers = self.watchers.borrow();
        for watcher in places(self.taken.get()).filter_map(|place| watchers[place].as_ref()) {
            if watcher.terms.match_begin(subject) {
                match watcher.terms.needs_end() {
                    true => held |= watcher.bit(),
                    false => live |= watcher.bit(),
                }
            }
        }
        (live, held)
    }

    /// Tells of a connection that came to no request whoever would hear of one from this client, as
    /// far as nothing else is asked for: it has no path, site or fields. `record` has its client,
    /// its number and its times.
    #[cold]
    pub fn tell_of_connection(
        &self,
        record: &Record,
        stage: RequestStage,
        write: impl Fn(&mut Pen<'_>),
    ) {
        let subject = WatchCandidate {
            client: record.client,
            site: "",
            path: b"",
            method: b"",
            handler: HandlerKind::None,
            fields: &NoFields,
        };
        let (live, held) = self.match_begin(&subject);
        let trail = Trail {
            connection: record.connection,
            request: record.request,
            live,
            held,
            generation: self.generation(),
            started_us: record.started_us,
        };
        let end_us = record.started_us + record.total_us;
        let tell = |out: &mut Vec<u8>, _: Option<&crate::watch::Hidden>| {
            self.write(&trail, stage, end_us, out, |pen| write(pen));
        };
        self.end(&trail, record, |_, _| {}, tell);
    }

    /// Some of those who watch a request are shown heads.
    pub fn shows_head(&self, trail: &Trail) -> bool {
        trail.all() & self.shows_head.get() != 0
    }

    /// Some of those who watch a request are shown bodies.
    pub fn shows_body(&self, trail: &Trail) -> bool {
        trail.all() & self.shows_body.get() != 0
    }

    /// Tells everybody who watches a request of an event. `write` is called for those who are shown
    /// secrets and for those who are not, as far as there are some; it gets what to hide.
    pub fn tell(
        &self,
        trail: &Trail,
        stage: RequestStage,
        now_us: u64,
        write: impl Fn(&mut Pen<'_>, Option<&crate::watch::Hidden>),
    ) {
        let mut bits = trail.all();
        match stage {
            RequestStage::RequestHead => bits &= self.shows_head.get(),
            RequestStage::RequestBody | RequestStage::AnswerBody => bits &= self.shows_body.get(),
            _ => {}
        }
        let (watchers, since) = (self.watchers.borrow(), self.since.borrow());
        let mut rooms = self.room.borrow_mut();
        for (room, is_secret) in rooms.iter_mut().zip([true, false]) {
            let shown = match is_secret {
                true => bits & self.shows_secrets.get(),
                false => bits & !self.shows_secrets.get(),
            };
            room.clear();
            for watcher in of_bits(&watchers, &since, shown, trail) {
                if room.is_empty() {
                    let hidden = (!is_secret).then_some(&watcher.hidden);
                    self.write(trail, stage, now_us, room, |pen| write(pen, hidden));
                }
                match trail.live & watcher.bit() != 0 {
                    true => watcher.push(room),
                    false => watcher.hold(trail, room),
                }
            }
        }
    }

    /// A request is over: those it matches are told by `after`; those for whom its end decides by
    /// `before`, what was held, and `after`. Both write whole events with what is to be hidden.
    pub fn end(
        &self,
        trail: &Trail,
        record: &Record,
        before: impl Fn(&mut Vec<u8>, Option<&crate::watch::Hidden>),
        after: impl Fn(&mut Vec<u8>, Option<&crate::watch::Hidden>),
    ) {
        let (watchers, since) = (self.watchers.borrow(), self.since.borrow());
        let mut rooms = self.room.borrow_mut();
        let [begun, ended] = &mut *rooms;
        for is_secret in [true, false] {
            let shown = match is_secret {
                true => trail.all() & self.shows_secrets.get(),
                false => trail.all() & !self.shows_secrets.get(),
            };
            begun.clear();
            ended.clear();
            for watcher in of_bits(&watchers, &since, shown, trail) {
                let is_live = trail.live & watcher.bit() != 0;
                if !is_live && !watcher.terms.match_end(record) {
                    watcher.forget(trail, record);
                    continue;
                }
                let hidden = (!is_secret).then_some(&watcher.hidden);
                if ended.is_empty() {
                    after(ended, hidden);
                }
                if is_live {
                    watcher.push(ended);
                    continue;
                }
                if begun.is_empty() {
                    before(begun, hidden);
                }
                watcher.settle(trail, record, begun, ended);
            }
        }
    }

    /// Appends one event.
    pub fn write(
        &self,
        trail: &Trail,
        stage: RequestStage,
        now_us: u64,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Pen<'_>),
    ) {
        let t_us = now_us.saturating_sub(trail.started_us);
        let mut begin = self.begin.borrow_mut();
        begin.set((self.server.get(), trail.connection, trail.request));
        let mut block = self.block.borrow_mut();
        let mut pen = Pen::begin(&mut block, out, (t_us, &begin, stage));
        write(&mut pen);
        pen.end();
    }

    /// Gives those it matches whole events.
    pub fn push(&self, trail: &Trail, write: impl Fn(&mut Vec<u8>, Option<&crate::watch::Hidden>)) {
        let live = Trail { held: 0, ..*trail };
        self.end(&live, &Record::empty(), |_, _| {}, write);
    }
}

/// What has no head has no fields.
struct NoFields;

impl FieldsOf for NoFields {
    fn any(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }
}

/// The watchers of some bits, unless those were another's when the request was matched.
fn of_bits<'a>(
    watchers: &'a [Option<Arc<Watcher>>; WATCHERS_MAX],
    since: &'a [u64; WATCHERS_MAX],
    bits: u32,
    trail: &Trail,
) -> impl Iterator<Item = &'a Arc<Watcher>> {
    let generation = trail.generation;
    let known = places(bits).filter(move |place| since[*place] <= generation);
    known.filter_map(|place| watchers[place].as_ref())
}

/// The places whose bits are set. Nearly all are empty, and to look at each costs as much as some
/// events do.
fn places(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (place < WATCHERS_MAX).then_some(place)
    })
}

#[cfg(test)]
mod tests;
