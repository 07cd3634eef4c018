//! `GET /v1/session`, which `POST /v1/login` answers too, and `POST /v1/admin-url`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who is logged in.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Session {
    /// Their name.
    pub user: String,
    /// What they may do.
    pub role: Role,
    /// The field that requests need which change something.
    pub csrf_header: String,
}

/// What a visitor may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look.
    #[default]
    Look,
    /// Look and change things.
    Operate,
}

/// URLs that are good for one login, all with the same token.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoginUrls {
    /// The first of them.
    pub url: String,
    /// One for each listener of the admin pages.
    pub urls: Vec<String>,
}
