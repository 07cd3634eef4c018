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
    /// Name of its file, `standard output`, or `syslog` or `program` and which.
    pub name: String,
    /// Path of its file; null where it is none.
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
