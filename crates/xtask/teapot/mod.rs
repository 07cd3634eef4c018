//! Teapots: whatever they are asked for, they say that they brew no coffee (RFC 2324, section
//! 2.3.2).
//!
//! - `config` its keys
//! - `answer` what is said, `explain` the same, for whoever asks what would be answered

mod answer;
pub mod config;
mod explain;

/// A teapot.
pub struct Teapot {
    /// What it says.
    pub words: String,
}
