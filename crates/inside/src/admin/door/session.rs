//! Who is logged in: a bounded list, each with the secret of its cookie and an end.

use hob_keeper::secret;
use hob_server::config::AdminRole;

/// Sessions, those of one browser each.
#[derive(Default)]
pub(super) struct Sessions {
    list: Vec<LoginSession>,
    last_number: u64,
}

/// One login.
#[derive(Clone, Debug)]
pub(super) struct LoginSession {
    /// Counts logins, from 1. Unlike the secret it may be shown.
    pub(super) number: u64,
    secret: String,
    pub(super) name: String,
    pub(super) role: AdminRole,
    /// It came by a token, not by a password.
    pub(super) is_by_token: bool,
    until_ms: u64,
    used_ms: u64,
}

/// Who logs in.
pub(super) struct Login {
    pub(super) name: String,
    pub(super) role: AdminRole,
    pub(super) is_by_token: bool,
}

impl Sessions {
    /// Begins a session and returns its secret, and whether another ended to make room. `None` when
    /// the kernel gives no randomness.
    pub(super) fn begin(
        &mut self,
        login: Login,
        now_ms: u64,
        time_ms: u64,
        most: usize,
    ) -> Option<(String, bool)> {
        self.forget_old(now_ms);
        let secret = secret::new()?;
        let is_full = self.list.len() >= most.max(1);
        while self.list.len() >= most.max(1) {
            let longest = (0..self.list.len()).min_by_key(|index| self.list[*index].used_ms)?;
            self.list.remove(longest);
        }
        self.last_number += 1;
        self.list.push(LoginSession {
            number: self.last_number,
            secret: secret.clone(),
            name: login.name,
            role: login.role,
            is_by_token: login.is_by_token,
            until_ms: now_ms.saturating_add(time_ms),
            used_ms: now_ms,
        });
        Some((secret, is_full))
    }

    /// The session of a cookie.
    pub(super) fn find(&mut self, secret: &str, now_ms: u64) -> Option<LoginSession> {
        self.forget_old(now_ms);
        // Every one is compared, whichever it is.
        let mut found = None;
        for (index, session) in self.list.iter().enumerate() {
            if secret::is_same(&session.secret, secret) {
                found = Some(index);
            }
        }
        let session = self.list.get_mut(found?)?;
        session.used_ms = now_ms;
        Some(session.clone())
    }

    /// True while a session goes on.
    pub(super) fn goes_on(&self, number: u64, now_ms: u64) -> bool {
        let mut list = self.list.iter();
        list.any(|session| session.number == number && now_ms < session.until_ms)
    }

    /// Ends a session.
    pub(super) fn end(&mut self, number: u64) {
        self.list.retain(|session| session.number != number);
    }

    /// Ends those that do not pass.
    pub(super) fn retain(&mut self, is_kept: impl FnMut(&LoginSession) -> bool) {
        self.list.retain(is_kept);
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    fn forget_old(&mut self, now_ms: u64) {
        self.list.retain(|session| now_ms < session.until_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(sessions: &mut Sessions, name: &str, now_ms: u64) -> (String, bool) {
        let login = Login {
            name: name.to_owned(),
            role: AdminRole::Look,
            is_by_token: false,
        };
        sessions.begin(login, now_ms, 1000, 2).unwrap()
    }

    #[test]
    fn a_session_is_found_by_its_secret_until_it_ends() {
        let mut sessions = Sessions::default();
        let (secret, _) = begin(&mut sessions, "anna", 0);
        let found = sessions.find(&secret, 999).unwrap();
        assert_eq!((found.name.as_str(), found.number), ("anna", 1));
        assert!(sessions.goes_on(1, 999) && !sessions.goes_on(1, 1000));
        assert!(sessions.find("", 999).is_none());
        assert!(sessions.find(&secret, 1000).is_none());
        let (secret, _) = begin(&mut sessions, "anna", 2000);
        sessions.end(2);
        assert!(sessions.find(&secret, 2000).is_none());
    }

    #[test]
    fn at_the_limit_the_one_that_was_not_used_longest_ends() {
        let mut sessions = Sessions::default();
        let (first, _) = begin(&mut sessions, "a", 0);
        let (second, is_full) = begin(&mut sessions, "b", 1);
        assert!(!is_full);
        sessions.find(&first, 2).unwrap();
        let (third, is_full) = begin(&mut sessions, "c", 3);
        assert!(is_full);
        assert!(sessions.find(&second, 4).is_none());
        assert!(sessions.find(&first, 4).is_some() && sessions.find(&third, 4).is_some());
        assert_eq!(sessions.count(), 2);
    }
}
