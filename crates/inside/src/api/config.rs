//! The config: `GET /v1/config`, and what comes of another text for one of its files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The config as it stands on disk, and whether it can be changed from here.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigFiles {
    /// Its files.
    pub files: Vec<ConfigFile>,
    /// Counts loads of the config, from 1.
    pub generation: u64,
    /// Who asks may change it.
    pub editable: bool,
    /// Why they may not.
    pub why_not: Option<String>,
    /// Something was changed from here that can be taken back.
    pub can_roll_back: bool,
}

/// One file of the config.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigFile {
    /// Its path.
    pub path: String,
    /// Its text on disk, or else the one in force; secrets are hidden from who may only look.
    pub text: String,
    /// What the server knows this text by, to refuse an edit of an older one.
    pub hash: String,
    /// The server serves by this very text.
    pub in_force: bool,
    /// It can be read.
    pub on_disk: bool,
    /// What puts the text of `new.toml` in its place where hob runs, as it is to be typed. Null
    /// where it can be changed from here, or not by who asks.
    pub command: Option<String>,
}

/// `POST /v1/config/check`: what another text for a file would come to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigVerdict {
    /// It would come into force.
    pub ok: bool,
    /// What is wrong with it.
    pub faults: Vec<ConfigFault>,
    /// What is strange in it, and no reason to refuse it.
    pub warnings: Vec<ConfigFault>,
}

/// Something wrong with a config, and where.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigFault {
    /// The file as it is named.
    pub file: String,
    /// Line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong, and what to do about it.
    pub text: String,
}

/// `POST /v1/config/diff`: how another text for a file differs from what is there.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigDifference {
    /// A unified diff; empty where nothing differs.
    pub diff: String,
}

/// `POST /v1/config/apply` and `/rollback`: a change has come into force.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigChange {
    /// It in words.
    pub text: String,
    /// The generation that it began.
    pub generation: u64,
}

/// A change that is refused because the new text is wrong.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigRejection {
    /// All of it in words, as `hob check` prints it.
    pub text: String,
    /// The faults one by one.
    pub faults: Vec<ConfigFault>,
}
