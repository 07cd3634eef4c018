//! `GET /v1/resources`: what was used of the machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Alert;

/// Columns over time, and what should be looked at.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResourceSeries {
    /// Seconds of a row.
    pub step_s: u64,
    /// When the first row begins.
    pub from_unix_s: u64,
    /// Network interfaces that have columns.
    pub interfaces: Vec<InterfaceSpeed>,
    /// Programs that stay, and interpreters that are kept, which have columns.
    pub pools: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows; null where nothing was recorded.
    pub rows: Vec<Option<Vec<u64>>>,
    /// Most descriptors that the server may have open; null for no limit.
    pub descriptors_max: Option<u64>,
    /// What to look at, the worst first.
    pub alerts: Vec<Alert>,
}

/// A network interface.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InterfaceSpeed {
    /// Its name.
    pub name: String,
    /// Bits a second that its link carries; null where it does not say.
    pub speed_bits_s: Option<u64>,
}
