//! What both sides say to each other.

use serde::{Deserialize, Serialize};

use crate::account::AccountKind;
use crate::error::CompareError;
use crate::instance::Usage;
use crate::rows::{ComparisonRow, Scope};
use crate::server::{Extra, Installed, Missing, Ports, ServerTuning};

/// Grows when what is said changes.
pub(super) const PROTOCOL: u32 = 1;

/// What the client asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum DistantAsk {
    /// To be heard at all: the first thing that is said.
    Hello(Introduction),
    /// That everything is made ready for these rows.
    Prepare(DistantPlan),
    /// That it answers, and nothing else: how long that takes is the round trip.
    Ping,
    /// That a server is started.
    Start {
        /// By its name.
        server: String,
        extra: Extra,
    },
    /// The CPU time of a server up to now.
    Usage {
        /// By the number that it was started under.
        server: u64,
    },
    /// That the kernel throws away what it keeps of a file below the root of all servers.
    Forget { path: String },
    /// That a server ends.
    End { server: u64 },
}

/// Who wants to be heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Introduction {
    pub(super) protocol: u32,
    /// Which hob this is: both must be the same.
    pub(super) version: String,
    /// What the other side printed when it began to listen.
    pub(super) token: String,
}

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DistantPlan {
    pub(super) scope: Scope,
    pub(super) only: Vec<String>,
    pub(super) servers: Vec<String>,
    pub(super) settings: ServerTuning,
    pub(super) is_sweep: bool,
}

/// What the servers' machine answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum DistantAnswer {
    /// What was asked for is done.
    Done,
    /// Rows can be measured.
    Prepared(Box<Prepared>),
    /// A server takes connections.
    Started(Started),
    /// Its CPU time.
    Usage(Usage),
    /// It is not done, and why. Whoever is not heard is told so too.
    Refused {
        why: String,
        /// The arguments of the client are wrong, and no machine.
        is_argument: bool,
    },
}

/// What there is to be measured, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepared {
    pub(crate) servers: Vec<Installed>,
    pub(crate) missing: Vec<Missing>,
    pub(crate) rows: Vec<ComparisonRow>,
    /// What is left out, and why.
    pub(crate) lacks: Vec<String>,
    pub(crate) machine: DistantMachine,
}

/// The machine of the servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DistantMachine {
    /// Names and values, for people.
    pub(crate) facts: Vec<(String, String)>,
    /// Processes that wanted to run in the minute before, on the average.
    pub(crate) load_before: f64,
    /// What its network card on the way to the client says that it carries.
    pub(crate) card_bits_per_second: Option<u64>,
}

/// A server that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Started {
    pub(super) server: u64,
    pub(super) ports: Ports,
    /// What it was told.
    pub(super) shown: String,
    pub(super) account: AccountKind,
}

/// Which hob this is, as both sides must have it.
pub(super) fn version() -> String {
    format!("{}{BUILD}", env!("CARGO_PKG_VERSION"))
}

const BUILD: &str = match cfg!(debug_assertions) {
    true => ", a debug build",
    false => "",
};

impl DistantAnswer {
    /// That something is not done, through no fault of arguments.
    pub(super) fn refused(why: impl Into<String>) -> DistantAnswer {
        DistantAnswer::Refused {
            why: why.into(),
            is_argument: false,
        }
    }

    /// That a comparison cannot be made.
    pub(super) fn of_error(error: &CompareError) -> DistantAnswer {
        DistantAnswer::Refused {
            why: error.to_string(),
            is_argument: matches!(error, CompareError::Arguments(_)),
        }
    }
}

/// Takes a line as both sides do; for fuzzing.
pub fn replay_words(line: &[u8]) {
    let asked = serde_json::from_slice::<DistantAsk>(line);
    if let Ok(ask) = asked {
        let again = serde_json::to_vec(&ask).ok();
        let again = again.and_then(|text| serde_json::from_slice::<DistantAsk>(&text).ok());
        assert_eq!(again.as_ref(), Some(&ask), "what is said is understood");
    }
    // What comes back may hold numbers that do not survive as text, and is only read.
    let _ = serde_json::from_slice::<DistantAnswer>(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_one_line_with_their_name_first_and_nothing_unknown() {
        let hello = DistantAsk::Hello(Introduction {
            protocol: 1,
            version: "0.1.0".to_owned(),
            token: "abc".to_owned(),
        });
        let text = serde_json::to_string(&hello).unwrap();
        assert_eq!(
            text,
            r#"{"ask":"hello","protocol":1,"version":"0.1.0","token":"abc"}"#
        );
        let read = |text: &str| serde_json::from_str::<DistantAsk>(text);
        assert_eq!(read(&text).unwrap(), hello);
        assert_eq!(
            read(r#"{"ask":"usage","server":3}"#).unwrap(),
            DistantAsk::Usage { server: 3 }
        );
        for wrong in [
            "",
            "{}",
            r#"{"ask":"shell","command":"id"}"#,
            r#"{"ask":"usage"}"#,
            r#"{"ask":"usage","server":-1}"#,
            r#"{"ask":"usage","server":1,"more":2}"#,
            r#"{"ask":"ping"}{"ask":"ping"}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        replay_words(text.as_bytes());
        replay_words(b"\xff");
    }

    #[test]
    fn every_way_to_start_a_server_survives_the_wire() {
        use crate::mounts::FileSystem;
        use crate::server::DiagnosticsLevel;
        use std::time::Duration;
        for extra in [
            Extra::None,
            Extra::Routes(7),
            Extra::Nice(-5),
            Extra::Diagnostics(DiagnosticsLevel::Trace),
            Extra::Away(Some(Duration::from_micros(200))),
            Extra::Stored(FileSystem::Overlay),
        ] {
            let start = DistantAsk::Start {
                server: "other hob".to_owned(),
                extra,
            };
            let text = serde_json::to_string(&start).unwrap();
            assert!(!text.contains('\n'));
            assert_eq!(serde_json::from_str::<DistantAsk>(&text).unwrap(), start);
        }
    }
}
