//! Passwords that were right a moment ago, as keyed hashes of the fields they came in, and those
//! that are being checked.

use std::sync::Arc;
use std::time::Duration;

use hob_trace::Mutex;

use super::accounts::AuthAccount;
use super::tag::{ByTag, CredentialTag, TagKey};
use super::{GivenPassword, ShownCredentials, basic};

/// So many passwords are remembered.
const REMEMBERED_MAX: usize = 10_000;

/// Passwords of one `[[auth]]`.
pub(crate) struct RememberedPasswords {
    /// Of the tags of what is remembered.
    key: TagKey,
    /// So long each is.
    time: Duration,
    known: Mutex<ByTag<RememberedPassword>>,
    /// Passwords that are being checked.
    pub(super) checking: Mutex<ByTag<Arc<tokio::sync::Mutex<()>>>>,
}

struct RememberedPassword {
    account: Arc<AuthAccount>,
    until_ms: u64,
}

impl RememberedPasswords {
    /// None yet.
    ///
    /// # Errors
    /// There are no random numbers for a key.
    pub(super) fn new(time: Duration) -> Result<RememberedPasswords, String> {
        Ok(RememberedPasswords {
            key: TagKey::new()?,
            time,
            known: Mutex::default(),
            checking: Mutex::default(),
        })
    }

    /// What the value of `Authorization` shows.
    pub(crate) fn shown(&self, value: Option<&[u8]>, now_ms: u64) -> ShownCredentials {
        let Some(value) = value else {
            return ShownCredentials::None;
        };
        let tag = self.key.tag(value);
        if let Some(account) = self.find(&tag, now_ms) {
            return ShownCredentials::Known(account);
        }
        match basic(value) {
            Some((name, password)) => ShownCredentials::Password(GivenPassword {
                name,
                password,
                tag,
            }),
            None => ShownCredentials::None,
        }
    }

    fn find(&self, tag: &CredentialTag, now_ms: u64) -> Option<Arc<AuthAccount>> {
        let known = self.known.lock();
        let known = known.get(tag)?;
        (now_ms < known.until_ms).then(|| Arc::clone(&known.account))
    }

    /// The account of a password that was found right while it was waited for.
    pub(crate) fn known(&self, given: &GivenPassword, now_ms: u64) -> Option<Arc<AuthAccount>> {
        self.find(&given.tag, now_ms)
    }

    /// The password is right.
    pub(super) fn remember(&self, given: &GivenPassword, account: &Arc<AuthAccount>, now_ms: u64) {
        if self.time.is_zero() {
            return;
        }
        let mut all = self.known.lock();
        if all.len() >= REMEMBERED_MAX {
            all.retain(|_, known| now_ms < known.until_ms);
        }
        // Who finds no place is checked again.
        if all.len() < REMEMBERED_MAX {
            let account = Arc::clone(account);
            let until_ms = now_ms + self.time.as_millis() as u64;
            all.insert(given.tag, RememberedPassword { account, until_ms });
        }
    }

    /// What was right may not be any more.
    pub(super) fn forget_all(&self) {
        self.known.lock().clear();
    }

    /// Waits until nobody else checks this password; who comes later finds it remembered.
    pub(crate) async fn alone(
        self: &Arc<RememberedPasswords>,
        given: &GivenPassword,
    ) -> PasswordTurn {
        // It tidies up also where its client leaves before its turn comes.
        let mut turn = PasswordTurn {
            passwords: Arc::clone(self),
            tag: given.tag,
            place: Arc::clone(self.checking.lock().entry(given.tag).or_default()),
            guard: None,
        };
        turn.guard = Some(Arc::clone(&turn.place).lock_owned().await);
        turn
    }
}

/// Nobody else checks this password as long as it is there.
pub(crate) struct PasswordTurn {
    passwords: Arc<RememberedPasswords>,
    tag: CredentialTag,
    place: Arc<tokio::sync::Mutex<()>>,
    guard: Option<tokio::sync::OwnedMutexGuard<()>>,
}

impl Drop for PasswordTurn {
    fn drop(&mut self) {
        let mut checking = self.passwords.checking.lock();
        drop(self.guard.take());
        // Whoever waits has a copy, too.
        if Arc::strong_count(&self.place) == 2 {
            checking.remove(&self.tag);
        }
    }
}
