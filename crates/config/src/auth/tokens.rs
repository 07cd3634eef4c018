//! `jwt` of `[[auth]]`: whose tokens let in, and what is read in them.

use std::path::PathBuf;
use std::time::Duration;

use crate::fault::{Faults, Spot};
use crate::text::is_header_name;
use crate::tree::Section;

/// Tokens that an issuer has signed (JSON Web Tokens, RFC 7519).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    /// The keys they are signed with, as a JSON Web Key Set.
    pub keys: PathBuf,
    /// Who has made them.
    pub issuer: String,
    /// For whom, one of which has to be named in them.
    pub audiences: Vec<String>,
    /// How they may be signed, of [`TOKEN_ALGORITHMS`].
    pub algorithms: Vec<&'static str>,
    /// So far the issuer's clock may be from this one.
    pub leeway: Duration,
    /// The claim that has the name.
    pub user: String,
    /// The claim that has the groups.
    pub groups: String,
    /// The cookie that may have the token.
    pub cookie: Option<String>,
    /// Fields that programs and proxied servers get, in lower case, and the claims they hold.
    pub fields: Vec<(String, String)>,
}

/// Ways to sign a token that can be allowed (RFC 7518 section 3.1, RFC 8037): by a key pair, and
/// behind them by a secret that both sides have.
pub const TOKEN_ALGORITHMS: &[&str] = &[
    "ES256", "ES384", "EdDSA", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "HS256",
    "HS384", "HS512",
];

/// Those that are allowed where nothing is said: whoever can check such a token cannot make one.
pub(crate) const SIGNED_BY_PAIR: &[&str] = &[
    "ES256", "ES384", "EdDSA", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
];

/// Whose tokens let in, as `jwt` says.
pub(super) fn read_tokens(section: &Section, faults: &mut Faults<'_>) -> TokenRules {
    let is_given = |key: &str| section.given(key).is_some();
    for key in ["issuer", "user", "groups"] {
        if is_given(key) && section.text(key).is_empty() {
            faults.error(section.spot(key), format!("`{key}` is empty"));
        }
    }
    let audiences = section.texts("audience");
    if is_given("audience") && (audiences.is_empty() || audiences.iter().any(|a| a.0.is_empty())) {
        faults
            .error(section.spot("audience"), "a token has to be for somebody")
            .hint("name what its issuer calls this site; what is meant for others lets nobody in");
    }
    let algorithms = section.texts("algorithms");
    if is_given("algorithms") && algorithms.is_empty() {
        faults
            .error(
                section.spot("algorithms"),
                "without algorithms no token is good",
            )
            .hint("remove it for those that are signed by a key pair");
    }
    let known = |text: &str| { TOKEN_ALGORITHMS.iter().copied() }.find(|known| *known == text);
    let cookie = section.optional_text("cookie");
    if let Some(name) = cookie.filter(|name| !is_header_name(name)) {
        let message = format!("{name:?} is no name of a cookie");
        faults.error(section.spot("cookie"), message);
    }
    TokenRules {
        keys: section.optional_path("keys").cloned().unwrap_or_default(),
        issuer: section.text("issuer").to_owned(),
        audiences: audiences
            .iter()
            .map(|(text, _)| (*text).to_owned())
            .collect(),
        algorithms: { algorithms.iter() }
            .filter_map(|(text, _)| known(text))
            .collect(),
        leeway: section.time("leeway"),
        user: section.text("user").to_owned(),
        groups: section.text("groups").to_owned(),
        cookie: cookie.map(str::to_owned),
        fields: read_fields(section, faults),
    }
}

/// Names of fields in lower case, and their claims.
fn read_fields(section: &Section, faults: &mut Faults<'_>) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for pair in section.map("fields") {
        let mut wrong = |spot: Spot, text: String| {
            faults.error(spot, text);
        };
        let name = pair.name.to_ascii_lowercase();
        if !is_header_name(&name) || name.contains('_') {
            wrong(pair.key, format!("{:?} is no name of a field", pair.name));
        } else if fields.iter().any(|(known, _)| *known == name) {
            wrong(pair.key, format!("two `fields` are called {:?}", pair.name));
        }
        if pair.text.is_empty() {
            wrong(pair.spot, "a claim has a name".to_owned());
        }
        fields.push((name, pair.text.clone()));
    }
    fields
}
