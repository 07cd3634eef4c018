//! Clients that are banned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Clients that are banned, who is free first in front.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Banned {
    /// Each of them.
    pub bans: Vec<BannedClient>,
    /// How many there are; more than are listed where `limit` of the query is smaller.
    pub total: usize,
}

/// A client that is banned.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BannedClient {
    /// Its address, or a network as `2001:db8::/64`.
    pub client: String,
    /// The rule that has banned it; null where an operator has.
    pub rule: Option<String>,
    /// What it was refused last: a status and a target, or a TLS handshake; null where an operator
    /// has banned it.
    pub why: Option<String>,
    /// Since when, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// Until when, in milliseconds since 1970.
    pub until_unix_ms: u64,
    /// Its new connections are closed.
    pub close: bool,
    /// Requests and connections refused for it so far, by this server.
    pub refused: u64,
}

/// What came of banning somebody, or of ending bans.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BanOutcome {
    /// What is so now, in words.
    pub text: String,
    /// Bans that were made or ended.
    pub count: usize,
}
