//! Why there is no result, and whose fault it is.

use std::fmt;
use std::io;

/// Why nothing could be measured.
#[derive(Debug)]
pub enum CostError {
    /// What was asked for makes no sense; the text says what to write instead.
    Arguments(String),
    /// The script did not answer as it must.
    Script(String),
    /// A server did not do what was expected of it.
    Server(String),
    /// The system refused something.
    System {
        /// What was tried, as "cannot ...".
        tried: String,
        /// What the system said.
        error: io::Error,
    },
    /// SIGINT or SIGTERM came.
    Interrupted,
}

impl CostError {
    pub(crate) fn system(tried: impl Into<String>) -> impl FnOnce(io::Error) -> CostError {
        let tried = tried.into();
        move |error| CostError::System { tried, error }
    }
}

impl From<hob_load::LoadError> for CostError {
    fn from(error: hob_load::LoadError) -> CostError {
        match error {
            hob_load::LoadError::Arguments(text) => CostError::Arguments(text),
            hob_load::LoadError::Server(text) => CostError::Server(text),
            hob_load::LoadError::System { tried, error } => CostError::System { tried, error },
        }
    }
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostError::Arguments(text) | CostError::Script(text) | CostError::Server(text) => {
                f.write_str(text)
            }
            CostError::System { tried, error } => write!(f, "{tried}: {error}"),
            CostError::Interrupted => f.write_str("interrupted; nothing was left behind"),
        }
    }
}

impl std::error::Error for CostError {}
