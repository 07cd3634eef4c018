//! `GET /v1/certificates`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Order;

/// Certificates that are served, and those that come from an authority.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Certificates {
    /// Those that listeners show.
    pub certificates: Vec<Certificate>,
    /// Those that come from an authority, and how that goes.
    pub orders: Vec<Order>,
}

/// One certificate that is served.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Certificate {
    /// Names that it is good for.
    pub names: Vec<String>,
    /// Addresses of the listeners that show it, with commas between them.
    pub listener: String,
    /// Who issued it.
    pub issuer: String,
    /// From when on it is good, in seconds since 1970.
    pub not_before_unix_s: i64,
    /// Until when it is good, in seconds since 1970.
    pub not_after_unix_s: i64,
    /// Whole days until then; negative once that is over.
    pub days_left: i64,
    /// File of its key; null where it has none.
    pub key: Option<String>,
    /// Its own file, `authority` or `self-signed`.
    pub source: String,
    /// How it stands, in words.
    pub state: String,
}
