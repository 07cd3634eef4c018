//! Why a run could not be made, and whose fault it is.

use std::fmt;
use std::io;

/// Why there is no result.
#[derive(Debug)]
pub enum LoadError {
    /// What was asked for makes no sense; the text says what to write instead.
    Arguments(String),
    /// The server could not be reached at all.
    Server(String),
    /// The system of the load generator refused something.
    System {
        /// What was tried, as "cannot ...".
        tried: String,
        /// What the system said.
        error: io::Error,
    },
}

impl LoadError {
    pub(crate) fn system(tried: impl Into<String>) -> impl FnOnce(io::Error) -> LoadError {
        let tried = tried.into();
        move |error| LoadError::System { tried, error }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Arguments(text) | LoadError::Server(text) => f.write_str(text),
            LoadError::System { tried, error } => write!(f, "{tried}: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}
