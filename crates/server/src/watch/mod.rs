//! Live tracing on the request path: who watches a request is decided once its route is known, and
//! what was before that is told from its record.
//!
//! - `moments` when watchers are asked, at a request's begin and end
//! - `told` the events of every request, from what is known of it
//! - `tap` the answer's head and the bytes of its body, for those who want to see them
//! - `feed` what a watcher is sent

mod feed;
mod moments;
mod tap;
mod told;

use std::sync::Arc;

use hob_http::Request;
use hob_trace::Mutex;
use hob_trace::watch::{Hidden, Hub, Refused, WatchTerms};

pub(crate) use feed::Feed;
pub(crate) use moments::{begin, finish, trail_of};
pub(crate) use tap::tap;

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
    pub(crate) fn begin(
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
