//! Live tracing on the request path: who watches a request is decided once its route is known, and
//! what was before that is told from its record.
//!
//! `feed` is what a watcher is sent; what it is told of a request, and when, is `answer/watch`'s.

pub mod feed;

use std::sync::Arc;

use hob_http::Request;
use hob_trace::Mutex;
use hob_trace::watch::{Hidden, Hub, Refused, Trail, WatchTerms};

pub(crate) use feed::Feed;

/// Who watches, without a request at hand.
pub(crate) fn trail_of(request: &Request) -> Trail {
    match request.is_traced() {
        true => request.trail(),
        false => Trail::default(),
    }
}

/// All who watch, and what they are not shown.
#[derive(Default)]
pub struct Watching {
    /// Those who watch.
    pub hub: Arc<Hub>,
    hidden: Mutex<Hidden>,
}

impl Watching {
    /// What those who begin to watch from now on are not shown.
    pub fn set_hidden(&self, hidden: Hidden) {
        *self.hidden.lock() = hidden;
    }

    /// What is not shown of requests.
    pub fn hidden(&self) -> Hidden {
        self.hidden.lock().clone()
    }

    /// Somebody begins to watch, and does so while they may.
    ///
    /// # Errors
    /// As many watch as may, or the server ends.
    pub fn begin(
        &self,
        terms: WatchTerms,
        request: &Request,
        may_go_on: impl Fn() -> bool + 'static,
    ) -> Result<Feed, Refused> {
        let reactor = request.reactor();
        let watcher = self.hub.add(terms, self.hidden())?;
        let may_go_on = Box::new(may_go_on);
        Ok(Feed::new(&self.hub, watcher, reactor, may_go_on))
    }
}
