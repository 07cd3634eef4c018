//! What a document or a stylesheet names.

use crate::limits::{ASSET_COUNT_MAX, TARGET_BYTES_MAX};
use crate::measure::AssetKind;

/// One thing that is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetReference {
    /// What it is loaded as.
    pub kind: AssetKind,
    /// The reference as it was written, relative or not.
    pub reference: String,
}

/// Everything that is named, in the order of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// What references are relative to, where the document says so.
    pub base: Option<String>,
    /// What is named.
    pub found: Vec<AssetReference>,
    /// What was found beyond the limits.
    pub left_out: u64,
}

impl Scan {
    /// Adds something, if it can be a reference at all.
    pub(super) fn push(&mut self, kind: AssetKind, reference: &str) {
        let reference = reference.trim();
        // What lies in the document itself is the most frequent of all, and long.
        let scheme = reference.get(..5).unwrap_or_default();
        if reference.is_empty()
            || reference.starts_with('#')
            || scheme.eq_ignore_ascii_case("data:")
        {
            return;
        }
        if self.found.len() >= ASSET_COUNT_MAX || reference.len() > TARGET_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.found.push(AssetReference {
            kind,
            reference: reference.to_owned(),
        });
    }
}
