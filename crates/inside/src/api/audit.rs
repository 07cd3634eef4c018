//! `GET /v1/audit`, and the lines of the file of an audit log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was done, and by whom.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditLog {
    /// What is kept in memory, the newest first.
    pub entries: Vec<AuditEntry>,
    /// Lines that could not be written to the file.
    pub lost: u64,
}

/// Something that was done, or tried.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditEntry {
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Name of who did it.
    pub who: String,
    /// Where they are: an address, or `control socket`.
    pub from: String,
    /// What, and to what.
    pub action: String,
    /// What came of it.
    pub outcome: String,
}
