//! Why a comparison could not be made, and whose fault it is.

use std::fmt;
use std::io;

/// Why there is no comparison.
#[derive(Debug)]
pub enum CompareError {
    /// What was asked for makes no sense; the text says what to write instead.
    Arguments(String),
    /// hob itself, which everything is compared with, could not be started or asked.
    Subject(String),
    /// Client and servers cannot be joined by a link here; the text says what to do.
    Link(String),
    /// The servers' machine does not do what it is asked to; the text says what to do.
    Target(String),
    /// SIGINT or SIGTERM came before there was anything to tell.
    Interrupted,
    /// The system refused something.
    System {
        /// What was tried, as "cannot ...".
        tried: String,
        /// What the system said.
        error: io::Error,
    },
}

impl CompareError {
    pub(crate) fn system(tried: impl Into<String>) -> impl FnOnce(io::Error) -> CompareError {
        let tried = tried.into();
        move |error| CompareError::System { tried, error }
    }
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompareError::Arguments(text)
            | CompareError::Subject(text)
            | CompareError::Link(text)
            | CompareError::Target(text) => f.write_str(text),
            CompareError::Interrupted => f.write_str("interrupted; nothing was left behind"),
            CompareError::System { tried, error } => write!(f, "{tried}: {error}"),
        }
    }
}

impl std::error::Error for CompareError {}
