//! What is said in words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened, or why something did not: every refusal, and what is done and tells nothing else.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Remark {
    /// The words.
    pub text: String,
}
