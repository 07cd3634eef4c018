//! What a config says about history and activity.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fault::Faults;
use super::schema::{ACTIVITY, HISTORY};
use super::tree::{ConfigValue, Section};

/// The history of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistorySettings {
    /// Memory for it, in bytes; 0 keeps none.
    pub bytes: u64,
    /// How old requests get.
    pub time: Duration,
    /// File in which it outlives the server.
    pub file: Option<PathBuf>,
    /// Size of that file at most, in bytes.
    pub file_bytes: u64,
}

/// The server's activity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Nothing is counted by second, minute or route.
    pub is_off: bool,
    /// File in which it outlives the server.
    pub file: KeptFile,
}

/// A file that hob keeps something in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeptFile {
    /// Its usual one, if there is a folder for it.
    #[default]
    Usual,
    /// None.
    Off,
    /// This one.
    At(PathBuf),
}

impl Default for HistorySettings {
    fn default() -> HistorySettings {
        HistorySettings {
            bytes: 8 << 20,
            time: Duration::from_secs(3600),
            file: None,
            file_bytes: 64 << 20,
        }
    }
}

impl Activity {
    /// The file, given the folder for what is kept over restarts, if the config names one.
    pub fn path(&self, state: Option<&Path>) -> Option<PathBuf> {
        match &self.file {
            _ if self.is_off => None,
            KeptFile::Usual => state.map(|state| state.join("activity")),
            KeptFile::Off => None,
            KeptFile::At(path) => Some(path.clone()),
        }
    }
}

pub(crate) fn build_history(root: &Section, faults: &mut Faults<'_>) -> HistorySettings {
    let default = Section::new(&HISTORY, root.header);
    let section = root.section("history").unwrap_or(&default);
    let history = HistorySettings {
        bytes: section.size("bytes"),
        time: section.time("time"),
        file: section.optional_path("file").cloned(),
        file_bytes: section.size("file_size"),
    };
    if history.bytes == 0 && history.file.is_some() {
        faults
            .error(
                section.spot("file"),
                "`history.file` keeps nothing: `history.bytes` is 0",
            )
            .see(section.spot("bytes"), "the memory")
            .hint("what goes into the file comes from memory: remove one of them");
    }
    if history.file.is_none() && section.given("file_size").is_some() {
        let message = "`history.file_size` does nothing: there is no `file`";
        faults
            .warn(section.spot("file_size"), message)
            .hint("add `file`, or remove it");
    }
    history
}

pub(crate) fn build_activity(root: &Section) -> Activity {
    let default = Section::new(&ACTIVITY, root.header);
    let section = root.section("activity").unwrap_or(&default);
    let file = match (section.optional_path("file"), section.given("file")) {
        (Some(path), _) => KeptFile::At(path.clone()),
        (None, Some(given)) if matches!(given.value, ConfigValue::Word(_)) => KeptFile::Off,
        (None, _) => KeptFile::Usual,
    };
    let is_off = matches!(
        root.given("activity").map(|given| &given.value),
        Some(ConfigValue::Word(_))
    );
    Activity { is_off, file }
}
