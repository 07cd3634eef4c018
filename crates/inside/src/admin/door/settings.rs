//! What the config says of the admin pages, as the door needs it.

use std::net::IpAddr;

use super::{Door, DoorCounters};
use hob_server::config::{Admin, AdminUser, Config, Loopback, Purpose};

/// Settings in force.
#[derive(Default)]
pub(in crate::admin) struct DoorSettings {
    admin: Option<Admin>,
    /// Addresses of its listeners as people read them, and whether they speak TLS.
    places: Vec<(String, bool)>,
}

impl DoorSettings {
    /// Those of a config; `addresses` has the real address of each of its listeners.
    pub(in crate::admin) fn of(config: &Config, addresses: &[String]) -> DoorSettings {
        let listeners = config.listeners.iter().zip(addresses);
        let ours = listeners.filter(|(one, _)| {
            one.purpose == Purpose::Admin && one.localhost != Some(Loopback::V6)
        });
        DoorSettings {
            admin: config.admin.clone(),
            places: ours
                .map(|(one, shown)| (shown.clone(), one.tls.is_some()))
                .collect(),
        }
    }

    /// There are admin pages.
    pub(super) fn is_open(&self) -> bool {
        self.admin.is_some()
    }

    /// The config's table, if it has one.
    pub(super) fn admin(&self) -> Option<&Admin> {
        self.admin.as_ref()
    }

    /// Where the pages are, with a token for a login.
    pub(super) fn urls(&self, token: Option<&str>) -> Vec<String> {
        let Some(admin) = &self.admin else {
            return Vec::new();
        };
        let places = self.places.iter();
        places
            .map(|(shown, is_tls)| admin.url(shown, *is_tls, token))
            .collect()
    }

    fn user(&self, name: &str) -> Option<&AdminUser> {
        self.admin
            .as_ref()?
            .users
            .iter()
            .find(|user| user.name == name)
    }
}

/// What a try to log in with a password is up against.
pub(super) struct Challenge {
    /// The hash of the user's password; `None` when there is no such user.
    pub(super) user: Option<AdminUser>,
}

impl Door {
    /// Puts settings in force. Sessions of users go on who are the same as before; those that came
    /// by a URL go on as long as there are admin pages.
    pub(in crate::admin) fn set(&self, settings: DoorSettings) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.settings, settings);
        let state = &mut *state;
        let now = &state.settings;
        state.sessions.retain(|session| {
            let is_same = before.user(&session.name) == now.user(&session.name);
            now.is_open() && (session.is_by_token || is_same)
        });
    }

    /// Takes in a token that was printed.
    pub fn take_token(&self, token: &str, now_ms: u64) {
        let mut state = self.state.lock();
        let Some(admin) = state.settings.admin() else {
            return;
        };
        let until_ms = now_ms.saturating_add(admin.token_time.as_millis() as u64);
        if state.tokens.add(token.to_owned(), until_ms, now_ms) {
            DoorCounters::add(&self.tally.tokens_limited);
        }
    }

    /// Counts a try with a password, and says whose it is; else how many seconds to wait.
    pub(super) fn challenge(
        &self,
        name: &str,
        address: Option<IpAddr>,
        now_ms: u64,
    ) -> Result<Challenge, u64> {
        let mut state = self.state.lock();
        let most = state
            .settings
            .admin()
            .map_or(0, |admin| admin.login_tries_max);
        if let Some(wait_s) = state.tries.wait_s(address, now_ms, most) {
            return Err(wait_s);
        }
        if state.tries.count(address, now_ms) {
            DoorCounters::add(&self.tally.addresses_limited);
        }
        Ok(Challenge {
            user: state.settings.user(name).cloned(),
        })
    }
}
