//! Access logs: `GET /v1/logs`, `GET /v1/logs/{id}`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Access logs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AccessLogs {
    /// Them, in the config's order.
    pub logs: Vec<LogFile>,
}

/// One access log.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogFile {
    /// Its number, from 0.
    pub id: usize,
    /// Name of its file.
    pub name: String,
    /// Path of that; null of standard output.
    pub path: Option<String>,
    /// Its size, where it can be read.
    pub bytes: Option<u64>,
}

/// The end of a log.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogLines {
    /// Its last lines, as far as they are whole.
    pub lines: Vec<String>,
}
