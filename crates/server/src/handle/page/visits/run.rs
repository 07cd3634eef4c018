//! A run with what a visit keeps, and what the page says of it.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use hob_page::fault::{FunctionFault, code};
use hob_page::host::{PageVisits, SourceFault, Sources};
use hob_page::run::SavedVariables;
use hob_page::tree::Page;

use crate::handle::page::visits::clock::VisitEnd;
use crate::handle::page::visits::turns::{IncludedPages, KeptPage, PageVisit};
use crate::handle::script::visits::handle::VisitHandle;
use crate::serve::fleet::now_ms;

/// The visit of a run.
pub(in crate::handle::page) struct RunVisit<'a> {
    visit: &'a PageVisit,
    /// An earlier request has begun it.
    is_resumed: bool,
    /// The page lasts.
    is_kept: Cell<bool>,
    /// The handle that the page is given, once it asks for one.
    handle: OnceCell<VisitHandle>,
    next: RefCell<SaidNext>,
    /// What `@DTW_STATIC` said.
    static_wait: Cell<Option<Duration>>,
}

/// What the page said of its visit's next request.
enum SaidNext {
    Nothing,
    /// It may come with this handle, and is waited for so long.
    Accepted(VisitHandle, Option<Duration>),
    /// There is none.
    Terminated,
}

impl<'a> RunVisit<'a> {
    pub(in crate::handle::page) fn new(
        visit: &'a PageVisit,
        kept: Option<&KeptPage>,
    ) -> RunVisit<'a> {
        RunVisit {
            visit,
            is_resumed: kept.is_some(),
            is_kept: Cell::new(kept.is_some()),
            handle: OnceCell::new(),
            next: RefCell::new(SaidNext::Nothing),
            static_wait: Cell::new(kept.and_then(|kept| kept.wait)),
        }
    }

    /// What `@DTW_STATIC` said of how long the next request is waited for.
    pub(in crate::handle::page) fn static_wait(&self) -> Option<Duration> {
        self.static_wait.get()
    }

    /// What the next request begins with after a run that came to this end, and how long that is
    /// waited for; or why there is none.
    pub(in crate::handle::page) fn next(
        &self,
        saved: Option<SavedVariables>,
    ) -> Result<(SavedVariables, Duration), VisitEnd> {
        match (&*self.next.borrow(), saved) {
            (SaidNext::Accepted(handle, wait), Some(saved)) => {
                let wait = wait.or(self.static_wait.get());
                let kept = self.visit.keep(handle, wait, now_ms());
                Ok((saved, kept.ok_or(VisitEnd::Ended)?))
            }
            (SaidNext::Terminated, _) => Err(VisitEnd::Terminated),
            _ => Err(self.failed()),
        }
    }

    /// Why the visit is over after a run that failed.
    pub(in crate::handle::page) fn failed(&self) -> VisitEnd {
        match self.is_resumed {
            true => VisitEnd::Failed,
            false => VisitEnd::Unkept,
        }
    }

    /// The page has not said yet what becomes of its visit.
    fn check_unsaid(&self) -> Result<(), FunctionFault> {
        match *self.next.borrow() {
            SaidNext::Nothing => Ok(()),
            _ => Err(FunctionFault::new(
                code::OUT_OF_SEQUENCE,
                "it was said already what becomes of the visit",
            )),
        }
    }

    fn check_kept(&self) -> Result<(), FunctionFault> {
        match self.is_kept.get() {
            true => Ok(()),
            false => Err(FunctionFault::new(
                code::NO_VISIT,
                "the page does not last: it has not called DTW_STATIC",
            )),
        }
    }

    /// The first request has that of the visit; a later one that asks has a new one, and who is on
    /// the way with the last one is still let in for a moment.
    fn given_handle(&self) -> &VisitHandle {
        self.handle.get_or_init(|| {
            let fresh = self.is_resumed.then(VisitHandle::random).flatten();
            fresh.unwrap_or_else(|| self.visit.handle())
        })
    }
}

impl PageVisits for RunVisit<'_> {
    fn keep(&self, seconds: Option<u64>) -> Result<(), FunctionFault> {
        self.check_unsaid()?;
        self.is_kept.set(true);
        self.static_wait.set(seconds.map(Duration::from_secs));
        Ok(())
    }

    fn handle(&self) -> Result<String, FunctionFault> {
        self.check_kept()?;
        let text = |handle: &VisitHandle| String::from_utf8_lossy(handle.as_bytes()).into_owned();
        match &*self.next.borrow() {
            SaidNext::Accepted(handle, _) => Ok(text(handle)),
            _ => Ok(text(self.given_handle())),
        }
    }

    fn accept(&self, handle: &[u8], seconds: Option<u64>) -> Result<(), FunctionFault> {
        self.check_kept()?;
        self.check_unsaid()?;
        let own = [Some(self.visit.handle()), self.handle.get().cloned()];
        let mut own = own.into_iter().flatten();
        let Some(accepted) = own.find(|own| own.as_bytes() == handle) else {
            let why = "the handle is not that of DTW_RTVHANDLE";
            return Err(FunctionFault::new(code::OUT_OF_SEQUENCE, why));
        };
        let wait = seconds.map(Duration::from_secs);
        *self.next.borrow_mut() = SaidNext::Accepted(accepted, wait);
        Ok(())
    }

    fn terminate(&self) -> Result<(), FunctionFault> {
        self.check_kept()?;
        self.check_unsaid()?;
        *self.next.borrow_mut() = SaidNext::Terminated;
        Ok(())
    }
}

/// Included files as they were when they were first included in a visit.
pub(in crate::handle::page) struct VisitSources<'a> {
    pub(in crate::handle::page) of: &'a dyn Sources,
    pub(in crate::handle::page) included: RefCell<IncludedPages>,
}

impl VisitSources<'_> {
    fn known(
        &self,
        name: &str,
        is_body: bool,
        find: impl FnOnce() -> Result<Arc<Page>, SourceFault>,
    ) -> Result<Arc<Page>, SourceFault> {
        let key = (Box::from(name), is_body);
        if let Some(known) = self.included.borrow().get(&key) {
            return Ok(Arc::clone(known));
        }
        let found = find()?;
        self.included.borrow_mut().insert(key, Arc::clone(&found));
        Ok(found)
    }
}

impl Sources for VisitSources<'_> {
    fn declarations(&self, name: &str) -> Result<Arc<Page>, SourceFault> {
        self.known(name, false, || self.of.declarations(name))
    }

    fn body(&self, name: &str) -> Result<Arc<Page>, SourceFault> {
        self.known(name, true, || self.of.body(name))
    }
}
