//! Words of other servers' configs, and what is written here in their place: one table, which
//! unknown keys, `hob check --explain` and the reference page are answered from.
//!
//! A server's [`Schema`](crate::Schema) has the entries; `answer` finds and tells them; `language`
//! recognises a whole text that is another server's.

mod answer;
mod language;

use super::key::SchemaTable;

pub use answer::find_anywhere;
pub(crate) use answer::{find, plain, told};
pub use language::language_of;

/// Words that mean the same.
#[derive(Debug)]
pub struct Foreign {
    /// As they are written there.
    pub words: &'static [&'static str],
    /// Whose they are.
    pub of: &'static str,
    /// The tables they are answered in; none are all.
    pub places: &'static [&'static SchemaTable],
    /// What is written here.
    pub answer: ForeignEquivalent,
}

/// What there is in the place of a word.
#[derive(Debug)]
pub enum ForeignEquivalent {
    /// Keys of ours, and how they are written.
    Keys(&'static [&'static str], &'static str),
    /// What this version has not; what comes nearest, and the page about it.
    Lacks(&'static str, &'static str, &'static str),
    /// Nothing has to be said, and why; the page about it.
    Needless(&'static str, &'static str),
}

/// Words for keys of ours.
pub const fn keys(
    words: &'static [&'static str],
    of: &'static str,
    keys: &'static [&'static str],
    write: &'static str,
) -> Foreign {
    everywhere(words, of, ForeignEquivalent::Keys(keys, write))
}

/// Words for what this version has not.
pub const fn lacks(
    words: &'static [&'static str],
    of: &'static str,
    what: &'static str,
    nearest: &'static str,
    page: &'static str,
) -> Foreign {
    everywhere(words, of, ForeignEquivalent::Lacks(what, nearest, page))
}

/// Words for what has not to be said.
pub const fn needless(
    words: &'static [&'static str],
    of: &'static str,
    why: &'static str,
    page: &'static str,
) -> Foreign {
    everywhere(words, of, ForeignEquivalent::Needless(why, page))
}

const fn everywhere(
    words: &'static [&'static str],
    of: &'static str,
    answer: ForeignEquivalent,
) -> Foreign {
    Foreign {
        words,
        of,
        places: &[],
        answer,
    }
}

impl Foreign {
    /// Only in these tables: elsewhere the word is a key of ours, or means something else.
    pub const fn only_in(mut self, places: &'static [&'static SchemaTable]) -> Foreign {
        self.places = places;
        self
    }
}
