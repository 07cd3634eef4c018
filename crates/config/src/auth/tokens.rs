//! `jwt` of `[[auth]]`: whose tokens let in, and what is read in them.

use std::path::PathBuf;
use std::time::Duration;

use crate::fault::{Faults, Spot};
use crate::metrics::is_address;
use crate::text::is_header_name;
use crate::tree::Section;

/// Tokens that an issuer has signed (JSON Web Tokens, RFC 7519).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    /// The keys they are signed with, as a JSON Web Key Set.
    pub keys: TokenKeysAt,
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

/// Where an issuer's keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKeysAt {
    /// In a file.
    File(PathBuf),
    /// At the issuer's.
    Url(TokenKeysUrl),
}

/// Where they are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenKeysUrl {
    /// An `https://` address, or one of this machine.
    pub url: String,
    /// File with authorities of whom one may have signed the issuer's certificate.
    pub ca: Option<PathBuf>,
    /// So old they may become.
    pub every: Duration,
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
        keys: read_keys(section, faults),
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

/// Where the keys are: one of two has to be said.
fn read_keys(section: &Section, faults: &mut Faults<'_>) -> TokenKeysAt {
    let file = section.optional_path("keys").cloned();
    let Some(url) = section.optional_text("keys_url") else {
        if file.is_none() && section.given("keys").is_none() {
            let message = "`jwt` does not say with which keys tokens are signed";
            let hint = "name a file (`keys`) or the issuer's `jwks_uri` (`keys_url`)";
            faults.error(section.header, message).hint(hint);
        }
        if section.given("keys_ca").is_some() {
            let message = "`keys_ca` without `keys_url`";
            let hint = "a file is read as it is; remove `keys_ca`";
            faults.error(section.spot("keys_ca"), message).hint(hint);
        }
        return TokenKeysAt::File(file.unwrap_or_default());
    };
    let spot = section.spot("keys_url");
    if file.is_some() {
        let message = "`keys` and `keys_url` both say where the keys are";
        faults.error(spot, message).hint("remove one");
    }
    if !is_address(url) || url.contains('@') {
        let message = format!("{url:?} is no `https://` address");
        let hint = "write the `jwks_uri` of the issuer's `/.well-known/openid-configuration`";
        faults.error(spot, message).hint(hint);
    } else if url.starts_with("http:") && !is_of_this_machine(url) {
        let message = "keys that come in clear text are anybody's on the way";
        let hint = "write `https://`; `http://` is for 127.0.0.1, [::1] and localhost";
        faults.error(spot, message).hint(hint);
    }
    TokenKeysAt::Url(TokenKeysUrl {
        url: url.to_owned(),
        ca: section.optional_path("keys_ca").cloned(),
        every: section.time("keys_every"),
    })
}

fn is_of_this_machine(url: &str) -> bool {
    let url = http::Uri::try_from(url);
    let host = url.as_ref().map_or(None, http::Uri::host);
    let host = host.unwrap_or_default().trim_matches(['[', ']']);
    let address: Result<std::net::IpAddr, _> = host.parse();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
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
