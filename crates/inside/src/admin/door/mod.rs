//! The door of the admin listener: who may come in, and as whom.
//!
//! `enter` is the way of a request: the listener's own name (`origin`), the pages (`pages`), a
//! login (`login`) or a session (`session`), then the API. Passwords (`password`) and tokens of
//! printed URLs (`tokens`) are good for a session; failed tries are bounded (`tries`).

mod enter;
mod login;
mod origin;
mod pages;
pub mod password;
mod session;
mod settings;
mod tokens;
mod tries;

use std::sync::atomic::{AtomicU64, Ordering};

use hob_trace::Mutex;

use crate::api::AdminPages;

pub(super) use enter::answer;
pub(super) use login::{log_out, new_url, outcome, who_am_i};
pub(super) use settings::DoorSettings;

/// What is known at the door.
#[derive(Default)]
pub struct Door {
    state: Mutex<DoorState>,
    tally: DoorCounters,
}

#[derive(Default)]
struct DoorState {
    settings: DoorSettings,
    sessions: session::Sessions,
    tokens: tokens::Tokens,
    tries: tries::Tries,
    /// Passwords that are being checked.
    checks: usize,
}

/// What happened at the door since the server's start.
#[derive(Default)]
pub(super) struct DoorCounters {
    logins: AtomicU64,
    logins_failed: AtomicU64,
    pub(super) logins_limited: AtomicU64,
    pub(super) sessions_limited: AtomicU64,
    pub(super) checks_limited: AtomicU64,
    pub(super) addresses_limited: AtomicU64,
    pub(super) tokens_limited: AtomicU64,
    pub(super) bodies_limited: AtomicU64,
    refused: AtomicU64,
}

impl Door {
    /// Whether a session goes on.
    pub(super) fn goes_on(&self, session: u64, now_ms: u64) -> bool {
        self.state.lock().sessions.goes_on(session, now_ms)
    }

    /// How often something happened.
    pub(super) fn count(&self, of: impl FnOnce(&DoorCounters) -> &AtomicU64) -> u64 {
        of(&self.tally).load(Ordering::Relaxed)
    }

    /// A body was larger than it may be.
    pub(super) fn count_large_body(&self) {
        DoorCounters::add(&self.tally.bodies_limited);
    }

    /// For `hob status`; null without admin pages.
    pub(super) fn told(&self) -> Option<AdminPages> {
        let state = self.state.lock();
        let count = |tally: &AtomicU64| tally.load(Ordering::Relaxed);
        state.settings.is_open().then(|| AdminPages {
            pages: state.settings.urls(None),
            sessions: state.sessions.count(),
            logins: count(&self.tally.logins),
            logins_failed: count(&self.tally.logins_failed),
            limit_logins: count(&self.tally.logins_limited),
            limit_sessions: count(&self.tally.sessions_limited),
            refused: count(&self.tally.refused),
            ..AdminPages::default()
        })
    }
}

impl DoorCounters {
    fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}
