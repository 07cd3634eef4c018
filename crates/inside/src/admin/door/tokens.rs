//! Tokens that stand in printed URLs: each is good for one login, and not for long.

use hob_keeper::secret;

/// Tokens at a time; at one more the oldest goes.
const TOKENS_MAX: usize = 16;

/// Tokens nobody has used yet.
#[derive(Default)]
pub(super) struct Tokens {
    list: Vec<(String, u64)>,
}

impl Tokens {
    /// Takes one in that is good until then; true when one that was good had to go for it.
    pub(super) fn add(&mut self, token: String, until_ms: u64, now_ms: u64) -> bool {
        self.list.retain(|(_, until_ms)| now_ms < *until_ms);
        let is_full = self.list.len() >= TOKENS_MAX;
        if is_full {
            self.list.remove(0);
        }
        self.list.push((token, until_ms));
        is_full
    }

    /// Uses one up; false when there is none like it.
    pub(super) fn use_up(&mut self, token: &str, now_ms: u64) -> bool {
        self.list.retain(|(_, until_ms)| now_ms < *until_ms);
        let before = self.list.len();
        self.list
            .retain(|(known, _)| !secret::is_same(known, token));
        self.list.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_once_and_for_its_time() {
        let mut tokens = Tokens::default();
        tokens.add("one".to_owned(), 10, 0);
        tokens.add("two".to_owned(), 10, 0);
        assert!(!tokens.use_up("three", 0));
        assert!(tokens.use_up("one", 9) && !tokens.use_up("one", 9));
        assert!(!tokens.use_up("two", 10));
    }

    #[test]
    fn of_too_many_the_oldest_goes() {
        let mut tokens = Tokens::default();
        for number in 0..=TOKENS_MAX {
            let is_full = tokens.add(number.to_string(), 10, 0);
            assert_eq!(is_full, number == TOKENS_MAX);
        }
        assert!(!tokens.use_up("0", 0) && tokens.use_up("1", 0));
        // One that was used up has left its place, and those whose time is over theirs.
        assert!(!tokens.add("new".to_owned(), 20, 0));
        assert!(tokens.add("newer".to_owned(), 20, 9));
        assert!(!tokens.add("newest".to_owned(), 20, 10));
    }
}
