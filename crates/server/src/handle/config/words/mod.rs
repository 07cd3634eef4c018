//! Words of other servers' configs, and what is written here in their place, by what they are
//! about.

mod lacking;
mod programs;
mod server;
mod sites;

use hob_config::foreign::Foreign;

/// The whole table.
pub(super) static WORDS: &[&[Foreign]] =
    &[sites::WORDS, programs::WORDS, server::WORDS, lacking::WORDS];
