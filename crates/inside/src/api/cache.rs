//! The cache of files: `GET /v1/cache`, `POST /v1/cache/purge`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files in the cache.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CacheContents {
    /// Those that were asked for, in the order that was asked for.
    pub entries: Vec<CacheEntry>,
    /// There are more.
    pub more: bool,
    /// The cache as a whole.
    pub totals: CacheTotals,
}

/// One file in the cache.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CacheEntry {
    /// Its path.
    pub path: String,
    /// The site that it is served on; empty where none does any more.
    pub site: String,
    /// Bytes counted for it.
    pub bytes: u64,
    /// How often it was asked for since it is there.
    pub hits: u64,
    /// How much it is asked for of late.
    pub heat: u8,
    /// Seconds since it was looked at on the disk.
    pub age_s: u64,
    /// `pinned`, `hot` or `kept`.
    pub state: String,
}

/// The cache as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CacheTotals {
    /// Files in it.
    pub entries: usize,
    /// Bytes counted for them.
    pub bytes: u64,
    /// Most bytes.
    pub bytes_max: u64,
    /// Bytes of files that are pinned.
    pub pinned_bytes: u64,
    /// Files thrown out to make room.
    pub evictions: u64,
    /// Files that were asked for, listed or not.
    pub matching: u64,
    /// Bytes counted for those.
    pub matching_bytes: u64,
}

/// What left the cache.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PurgeOutcome {
    /// It in words.
    pub text: String,
    /// Files that left.
    pub purged: usize,
}
