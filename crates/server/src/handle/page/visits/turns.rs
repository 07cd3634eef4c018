//! What a visit keeps of its page, and whose turn it is: one run at a time has it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;

use hob_page::run::SavedVariables;
use hob_page::tree::Page;
use hob_trace::Mutex;

use crate::handle::page::database::{OpenDatabase, ThreadDatabases};
use crate::handle::page::output::{PageOutput, RunEnd};
use crate::handle::page::visits::clock::{LeftVisit, VisitClock, VisitEnd};
use crate::handle::script::visits::handle::shown;
use crate::handle::script::visits::status::ToldKept;
use crate::handle::script::visits::table::{KeepsVisit, KeptVisit, VisitTable};
use crate::serve::fleet::now_ms;

/// A visit that a page keeps.
pub(crate) type PageVisit = KeptVisit<PageTurns>;
/// The visits of the pages of a route.
pub(crate) type PageVisitTable = VisitTable<PageTurns>;

/// Files that a page includes, by name, and whether they stand inside a block.
pub(in crate::handle::page) type IncludedPages = HashMap<(Box<str>, bool), Arc<Page>>;

/// What waits for a visit's next request.
pub(in crate::handle::page) struct KeptPage {
    /// The page as it was when the visit began, with what it includes.
    pub(in crate::handle::page) page: Arc<Page>,
    pub(in crate::handle::page) included: IncludedPages,
    pub(in crate::handle::page) variables: SavedVariables,
    /// Those with an open transaction.
    pub(in crate::handle::page) databases: Vec<OpenDatabase>,
    /// What `@DTW_STATIC` said of how long the next request is waited for.
    pub(in crate::handle::page) wait: Option<Duration>,
}

/// A request of a visit: it has its turn, or waits for it.
pub(in crate::handle::page) struct PageTurn {
    pub(in crate::handle::page) output: Arc<PageOutput>,
    pub(in crate::handle::page) run: PageTurnRun,
}

/// Runs the page with what is kept of it; nothing is in the first turn.
pub(in crate::handle::page) type PageTurnRun =
    Box<dyn FnOnce(Option<KeptPage>, &ThreadDatabases) -> TurnDone + Send>;

/// What came of a turn.
pub(in crate::handle::page) struct TurnDone {
    /// What the next one begins with, and how long that is waited for; or why there is none.
    pub(in crate::handle::page) keeps: Result<(KeptPage, Duration), VisitEnd>,
    pub(in crate::handle::page) end: RunEnd,
    /// What happened, for who watches.
    pub(in crate::handle::page) events: Vec<String>,
}

/// Why a request gets no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::handle::page) enum NoTurn {
    /// The visit is over (410).
    Over,
    /// As many of its requests wait as may (429).
    Busy,
}

/// What keeps a visit.
pub(crate) struct PageTurns {
    /// The page's name, as it stands in the path.
    pub(in crate::handle::page) page: Box<str>,
    visit: Weak<PageVisit>,
    clock: Arc<VisitClock>,
    queue_max: usize,
    /// When it is too old, in loop time.
    age_due_ms: u64,
    state: Mutex<TurnState>,
}

struct TurnState {
    stage: VisitStage,
    /// What the next turn begins with; nothing before the first one has ended.
    kept: Option<KeptPage>,
    waiting: VecDeque<PageTurn>,
    /// In loop time: since when nothing is under way, and how long its visitor is waited for.
    idle_since_ms: u64,
    idle_due_ms: u64,
}

/// Where a visit is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitStage {
    /// The request that it was made for is on its way.
    New,
    /// A request has its turn.
    Busy,
    /// Nobody is there.
    Idle,
    /// Nobody comes back to it.
    Over,
}

impl KeepsVisit for PageTurns {
    fn idle_since_ms(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.stage == VisitStage::Idle).then_some(state.idle_since_ms)
    }

    fn end(&self) {
        self.end_for(VisitEnd::Ended);
    }

    fn told(&self) -> ToldKept {
        let state = self.state.lock();
        let is_idle = state.stage == VisitStage::Idle;
        let kept = state.kept.as_ref();
        ToldKept {
            state: if is_idle { "idle" } else { "busy" }.to_owned(),
            pid: None,
            memory_bytes: kept.map(|kept| kept.variables.byte_count() as u64),
        }
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.told().memory_bytes
    }

    const BYTES_USUAL: u64 = 256 << 10;
    const COUNT_MOST: usize = 1024;
}

impl PageTurns {
    /// Those of a new visit.
    pub(in crate::handle::page) fn new(
        page: &str,
        (visit, clock): (Weak<PageVisit>, Arc<VisitClock>),
        queue_max: usize,
        age_due_ms: u64,
    ) -> PageTurns {
        PageTurns {
            page: page.into(),
            visit,
            clock,
            queue_max,
            age_due_ms,
            state: Mutex::new(TurnState {
                stage: VisitStage::New,
                kept: None,
                waiting: VecDeque::new(),
                idle_since_ms: 0,
                idle_due_ms: u64::MAX,
            }),
        }
    }

    /// A request asks for its turn: given back where it has it at once.
    pub(in crate::handle::page) fn enter(
        &self,
        turn: PageTurn,
    ) -> Result<Option<PageTurn>, NoTurn> {
        let mut state = self.state.lock();
        match state.stage {
            VisitStage::Over => Err(NoTurn::Over),
            VisitStage::New | VisitStage::Idle => {
                state.stage = VisitStage::Busy;
                Ok(Some(turn))
            }
            VisitStage::Busy if state.waiting.len() >= self.queue_max => Err(NoTurn::Busy),
            VisitStage::Busy => {
                state.waiting.push_back(turn);
                Ok(None)
            }
        }
    }

    /// No thread runs the turn that was given: those behind it have none either.
    pub(in crate::handle::page) fn give_up(&self) {
        while let Some(turn) = self.pass() {
            turn.output.end(RunEnd::Unbegun, Vec::new());
        }
    }

    /// Runs this turn, and those that wait for it, on a thread that may wait.
    pub(in crate::handle::page) fn take_turns(&self, first: PageTurn, databases: &ThreadDatabases) {
        let mut next = Some(first);
        while let Some(turn) = next {
            next = self.take_turn(turn, databases);
        }
    }

    fn take_turn(&self, turn: PageTurn, databases: &ThreadDatabases) -> Option<PageTurn> {
        let PageTurn { output, run } = turn;
        if !output.begin_lasting() {
            let next = self.pass();
            output.end(RunEnd::Unbegun, Vec::new());
            return next;
        }
        let kept = {
            let mut state = self.state.lock();
            match state.stage {
                VisitStage::Over => Err(()),
                _ => Ok(state.kept.take()),
            }
        };
        let Ok(kept) = kept else {
            output.end(RunEnd::VisitOver, Vec::new());
            return None;
        };
        let lost = LosesVisit(self);
        let done = run(kept, databases);
        std::mem::forget(lost);
        match done.keeps {
            Ok((kept, wait)) => self.put_back(kept, wait),
            Err(why) => self.end_for(why),
        }
        // Who has the answer may come back at once.
        let next = self.pass();
        output.end(done.end, done.events);
        next
    }

    fn put_back(&self, kept: KeptPage, wait: Duration) {
        let mut state = self.state.lock();
        if state.stage == VisitStage::Over {
            drop(state);
            // It was ended meanwhile, which is told already.
            drop(kept);
            return;
        }
        state.kept = Some(kept);
        state.idle_due_ms = now_ms().saturating_add(wait.as_millis() as u64);
    }

    /// The next that waits has its turn; where nobody does, the visit waits.
    fn pass(&self) -> Option<PageTurn> {
        let mut state = self.state.lock();
        let next = state.waiting.pop_front();
        if next.is_some() {
            return next;
        }
        if state.kept.is_none() {
            drop(state);
            // Nobody has the handle of a visit that was never kept.
            self.end_for(VisitEnd::Unkept);
            return None;
        }
        (state.stage, state.idle_since_ms) = (VisitStage::Idle, now_ms());
        let due_ms = state.idle_due_ms.min(self.age_due_ms);
        drop(state);
        self.clock.look_at(due_ms);
        None
    }

    /// Ends it if its time is up; else says when that is. `None` while somebody is there.
    pub(in crate::handle::page) fn look(&self, now_ms: u64) -> Option<u64> {
        let state = self.state.lock();
        if state.stage != VisitStage::Idle {
            return None;
        }
        if now_ms >= self.age_due_ms {
            self.end_now(state, VisitEnd::Age);
            None
        } else if now_ms >= state.idle_due_ms {
            self.end_now(state, VisitEnd::Idle);
            None
        } else {
            Some(state.idle_due_ms.min(self.age_due_ms))
        }
    }

    /// It is over.
    fn end_for(&self, why: VisitEnd) {
        self.end_now(self.state.lock(), why);
    }

    fn end_now(&self, mut state: MutexGuard<'_, TurnState>, why: VisitEnd) {
        if std::mem::replace(&mut state.stage, VisitStage::Over) == VisitStage::Over {
            return;
        }
        let kept = state.kept.take();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for turn in waiting {
            turn.output.end(RunEnd::VisitOver, Vec::new());
        }
        let mut handle = String::new();
        if let Some(visit) = self.visit.upgrade() {
            handle = shown(visit.handle().as_bytes());
            visit.forget();
        }
        self.clock.take(LeftVisit {
            why,
            page: self.page.clone(),
            handle,
            kept,
        });
    }
}

/// Ends the visit whose run a panic ended.
struct LosesVisit<'a>(&'a PageTurns);

impl Drop for LosesVisit<'_> {
    fn drop(&mut self) {
        self.0.end_for(VisitEnd::Failed);
    }
}
