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

use std::sync::{Arc, Mutex, PoisonError};

use hob_http::Request;
use hob_trace::watch::{Full, Hidden, Hub, Terms};

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
        *self.hidden.lock().unwrap_or_else(PoisonError::into_inner) = hidden;
    }

    /// Somebody begins to watch, and does so while they may.
    ///
    /// # Errors
    /// As many watch as may.
    pub(crate) fn begin(
        &self,
        terms: Terms,
        request: &Request,
        may_go_on: impl Fn() -> bool + 'static,
    ) -> Result<Feed, Full> {
        let hidden = self.hidden.lock();
        let hidden = hidden.unwrap_or_else(PoisonError::into_inner).clone();
        let reactor = request.reactor();
        let watcher = self.hub.add(terms, hidden)?;
        let may_go_on = Box::new(may_go_on);
        Ok(Feed::new(&self.hub, watcher, reactor, may_go_on))
    }
}
