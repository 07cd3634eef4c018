//! `GET /v1/access`: who may what, by the config in force.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may what.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Access {
    /// Each site, in the config's order.
    pub sites: Vec<SiteAccess>,
    /// There are more routes than were asked for.
    pub more: bool,
    /// Rules that ban clients, which hold for all sites.
    pub bans: Vec<BanTerms>,
}

/// A site, and who may ask for what its routes answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SiteAccess {
    /// What it is called: its first name, `*` without one.
    pub site: String,
    /// All its names; none where it answers for hosts that no other names.
    pub names: Vec<String>,
    /// Where it stands in the config.
    pub place: String,
    /// It is down for maintenance.
    pub down: bool,
    /// Clear text is sent to TLS.
    pub https_only: bool,
    /// Clients must show a certificate when they connect.
    pub requires_certificate: bool,
    /// Its routes, in the order in which they are tried.
    pub routes: Vec<RouteAccess>,
}

/// A route, and who may ask for what it answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RouteAccess {
    /// Its number among its site's, from 0.
    pub index: usize,
    /// Its path.
    pub path: String,
    /// Which requests for that path it answers, as its `when` says; null for all.
    pub when: Option<String>,
    /// Who answers.
    pub handler: String,
    /// Where it stands in the config.
    pub place: String,
    /// Only other routes reach it.
    pub internal: bool,
    /// Everybody may, from everywhere and with any method.
    pub open: bool,
    /// Who may, in words.
    pub who: String,
    /// What `access` says; null where it says nothing.
    pub access: Option<AccessTerms>,
    /// What `require` says; null where nobody has to sign in.
    pub sign_in: Option<SignInTerms>,
    /// How both go together: `all` or `any`; null where there are not both.
    pub satisfy: Option<String>,
    /// Limits that its requests count for.
    pub limits: Vec<LimitTerms>,
}

/// What `access` says.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AccessTerms {
    /// Where it stands in the config: on the route, or on its site.
    pub place: Option<String>,
    /// Who may, by network; null is everybody.
    pub allow: Option<Vec<String>>,
    /// Who may not, whatever `allow` says.
    pub deny: Vec<String>,
    /// With which methods; none is any.
    pub methods: Vec<String>,
    /// Who may, by certificate; none is everybody.
    pub certificates: Vec<String>,
}

/// What `require` says.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SignInTerms {
    /// Where it stands in the config: on the route, or on its site.
    pub place: Option<String>,
    /// The name of the `[[auth]]`.
    pub auth: String,
    /// Who knows the accounts: `htpasswd`, `jwt`, `forward`, `pam`, or `signed_urls` for links.
    pub kind: String,
    /// Who may; where `groups` are empty too, everybody with an account.
    pub users: Vec<String>,
    /// Whose members may.
    pub groups: Vec<String>,
    /// Groups in each of which they have to be besides.
    pub all_groups: Vec<String>,
}

/// A limit of a route.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LimitTerms {
    /// `rate`, `concurrency` or `bandwidth`.
    pub limit: String,
    /// What it says, in words.
    pub text: String,
    /// Where it stands in the config: on the route, or on its site.
    pub place: Option<String>,
}

/// A rule that bans clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BanTerms {
    /// Its name.
    pub name: String,
    /// When it bans, and for how long, in words.
    pub text: String,
    /// Where it stands in the config.
    pub place: Option<String>,
}
