//! Tokens that let in (JSON Web Tokens): whose they are, and until when.
//!
//! The library `jsonwebtoken` takes a token apart and has aws-lc check its signature. Which key and
//! which algorithm may be meant is decided here, by `keys`, before it does; what the claims say is
//! read by `claims`, at a time that is given, since the library asks the clock itself. A token that
//! was good is remembered for a while as a keyed hash, as passwords are.

pub mod claims;
pub mod issuer;
pub mod keys;

use std::path::PathBuf;
use std::sync::Arc;

use hob_config::{AccountSource, AuthSettings, TokenKeysAt, TokenRules};
use hob_http::{Known, Request};
use hob_keeper::preflight::PreflightReport;
use hob_trace::Mutex;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation};

use self::claims::{Claims, SignedClaims};
use self::issuer::{IssuerKeys, Issuers, KeysFetched};
use self::keys::{TokenKey, TokenKeys};
use super::tag::{ByTag, CredentialTag, TagKey};
use super::{FileVersion, LOOK_MS, LookTimes, read_file, version};
use crate::config::Built;
use crate::step::cookie::cookies;

/// Longest token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 8 << 10;
/// So many tokens are remembered.
const REMEMBERED_MAX: usize = 10_000;
/// So long at most.
const REMEMBER_MS: u64 = 60_000;

/// An issuer's keys, and what its tokens have to say.
pub struct TokenSource {
    /// What `require` calls it.
    pub name: String,
    /// What clients are told.
    pub realm: String,
    /// What the config says.
    pub rules: TokenRules,
    from: KeysSource,
    state: Mutex<TokenState>,
    times: LookTimes,
    /// Of the tags of what is remembered.
    key: TagKey,
}

struct TokenState {
    /// None before the issuer has been asked for them.
    keys: Arc<TokenKeys>,
    version: Option<KeysVersion>,
    /// Why the keys that are there now were not taken.
    fault: Option<String>,
    remembered: ByTag<RememberedToken>,
    /// When those that were over were taken out last.
    tidied_unix_ms: u64,
}

/// Where the keys are.
enum KeysSource {
    File(PathBuf),
    Issuer(Arc<IssuerKeys>),
}

/// What tells one state of the keys from another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeysVersion {
    File(FileVersion),
    /// The how-many-th that were fetched, and how often that failed.
    Fetched(u64, u64),
}

struct RememberedToken {
    claims: Arc<SignedClaims>,
    until_unix_ms: u64,
}

/// What a request shows of who sends it.
#[derive(Debug, PartialEq, Eq)]
pub enum ShownToken<'r> {
    /// No token.
    None,
    /// Several things that may be one: it is not clear which counts.
    Several,
    /// This may be one.
    One(&'r [u8]),
}

/// A token that is good.
pub struct GoodToken {
    /// What it says.
    pub claims: Arc<SignedClaims>,
    /// Its signature was checked for this, and not remembered.
    pub is_new: bool,
}

/// Why a token lets nobody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefusal {
    /// It has more than [`TOKEN_BYTES_MAX`] bytes.
    TooLong,
    /// It is no signed token, or signed in a way that nothing here knows (`none` among them).
    Malformed,
    /// It wants something understood that is not.
    Critical,
    /// None of the keys signs so and may be meant.
    NoKey,
    /// The keys could not be fetched so far.
    KeysAway,
    /// The signature is not that of the key.
    Signature,
    /// It does not say until when it is good.
    Endless,
    /// It is over.
    Over,
    /// It is for later.
    Early,
    /// Somebody else has made it.
    Issuer,
    /// It is for others.
    Audience,
    /// It does not say whose it is.
    Nameless,
}

impl TokenRefusal {
    /// In the words of the record.
    pub fn reason(self) -> &'static str {
        match self {
            TokenRefusal::TooLong => "require: the token is longer than 8 KiB",
            TokenRefusal::Malformed => "require: this is no signed token",
            TokenRefusal::Critical => "require: the token has a `crit` that is not understood",
            TokenRefusal::NoKey => "require: none of the issuer's keys is the token's",
            TokenRefusal::KeysAway => "require: the issuer's keys could not be fetched so far",
            TokenRefusal::Signature => "require: the token's signature is wrong",
            TokenRefusal::Endless => "require: the token has no `exp`",
            TokenRefusal::Over => "require: the token is over",
            TokenRefusal::Early => "require: the token is not good yet",
            TokenRefusal::Issuer => "require: the token is another issuer's",
            TokenRefusal::Audience => "require: the token is for another audience",
            TokenRefusal::Nameless => "require: the token does not say whose it is",
        }
    }

    /// No issuer has made it. One that is over, or for others, an honest client may bring again and
    /// again.
    pub fn is_forged(self) -> bool {
        matches!(
            self,
            TokenRefusal::TooLong
                | TokenRefusal::Malformed
                | TokenRefusal::Critical
                | TokenRefusal::Signature
        )
    }

    /// The same for its client.
    pub fn description(self) -> &'static str {
        let reason = self.reason();
        reason.strip_prefix("require: ").unwrap_or(reason)
    }
}

impl TokenSource {
    /// The keys of a config's file, which waits for a disk, or those that `issuers` have.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn open(
        settings: &AuthSettings,
        rules: &TokenRules,
        issuers: &Issuers,
        now_ms: u64,
    ) -> Result<TokenSource, String> {
        let from = match &rules.keys {
            TokenKeysAt::File(file) => KeysSource::File(file.clone()),
            TokenKeysAt::Url(url) => KeysSource::Issuer(issuers.find(url)?),
        };
        let source = TokenSource {
            name: settings.name.clone(),
            realm: settings.realm.clone(),
            rules: rules.clone(),
            from,
            state: Mutex::new(TokenState {
                keys: Arc::new(TokenKeys::default()),
                version: None,
                fault: None,
                remembered: ByTag::default(),
                tidied_unix_ms: 0,
            }),
            times: LookTimes::new(now_ms),
            key: TagKey::new()?,
        };
        source.look();
        match (&source.from, source.state.lock().fault.take()) {
            (KeysSource::File(_), Some(fault)) => return Err(fault),
            // They may come.
            (KeysSource::Issuer(_), _) | (_, None) => {}
        }
        Ok(source)
    }

    /// True once a second, for one that has to [`TokenSource::look`].
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.times.is_due(now_ms)
    }

    /// Reads the keys anew where they have changed, and remembers nothing then. Keys that are wrong
    /// or gone leave those that there were; true when that is news. Waits for a disk.
    pub fn look(&self) -> bool {
        let version = self.version();
        {
            let state = self.state.lock();
            if state.version == version && version.is_some() {
                return false;
            }
        }
        let read = self.read();
        let mut state = self.state.lock();
        state.version = version;
        match read {
            Ok(keys) => {
                state.keys = Arc::new(keys);
                state.fault = None;
                state.remembered.clear();
                false
            }
            Err(text) => {
                let is_news = state.fault.as_ref() != Some(&text);
                if is_news && !state.keys.is_empty() {
                    tracing::error!(auth = self.name, "the keys stay as they were: {text}");
                }
                state.fault = Some(text);
                is_news
            }
        }
    }

    /// The keys are others than those that were read last.
    pub fn has_changed(&self) -> bool {
        self.version() != self.state.lock().version
    }

    fn version(&self) -> Option<KeysVersion> {
        match &self.from {
            KeysSource::File(file) => version(file).map(KeysVersion::File),
            KeysSource::Issuer(issuer) => {
                let (fetched, failed) = issuer.counts();
                Some(KeysVersion::Fetched(fetched, failed))
            }
        }
    }

    /// The keys as they are now, or why there are none.
    fn read(&self) -> Result<TokenKeys, String> {
        let (at, text) = match &self.from {
            KeysSource::File(file) => (file.display().to_string(), read_file(file)?),
            KeysSource::Issuer(issuer) => (issuer.url().to_owned(), issuer.text()?),
        };
        let read = TokenKeys::parse(&text, &self.rules.algorithms);
        let (keys, faults) = read.map_err(|text| format!("{at}: {text}"))?;
        for fault in faults {
            tracing::warn!(auth = self.name, "{at}: {fault}");
        }
        Ok(keys)
    }

    /// Whether the issuer may have a newer key, with which it would have been good.
    pub fn may_be_newer<T>(&self, checked: &Result<T, TokenRefusal>) -> bool {
        let is_issuers = matches!(self.from, KeysSource::Issuer(_));
        is_issuers && matches!(checked, Err(TokenRefusal::NoKey | TokenRefusal::KeysAway))
    }

    /// Resolves when the issuer has been asked for its keys after a token was checked with none of
    /// them; nothing where that does not help, or was done just now.
    pub fn fetching<T>(&self, checked: &Result<T, TokenRefusal>) -> Option<KeysFetched> {
        match &self.from {
            KeysSource::Issuer(issuer) if self.may_be_newer(checked) => issuer.fetch(),
            _ => None,
        }
    }

    /// As [`TokenSource::check`], once the issuer has been asked for keys that are not there. Waits
    /// for that.
    ///
    /// # Errors
    /// Why it is not good.
    pub fn check_waiting(&self, token: &[u8], now_unix_ms: u64) -> Result<GoodToken, TokenRefusal> {
        let checked = self.check(token, now_unix_ms);
        if let Some(fetched) = self.fetching(&checked) {
            // It has ended either way.
            let _ = fetched.blocking_recv();
        }
        self.look();
        self.check(token, now_unix_ms)
    }

    /// What a request shows: the token of `Authorization`, else that of the cookie, where the
    /// config names one.
    //= rfc6750#2.1
    pub fn shown<'r>(&self, request: &'r Request) -> ShownToken<'r> {
        let head = request.head();
        if head.is_repeated(Known::Authorization) {
            return ShownToken::Several;
        }
        if let Some(token) = head.value(Known::Authorization).and_then(bearer) {
            return ShownToken::One(token);
        }
        let Some(name) = &self.rules.cookie else {
            return ShownToken::None;
        };
        let mut tokens = cookies(request, name.as_bytes());
        match (tokens.next(), tokens.next()) {
            (None, _) => ShownToken::None,
            (Some(token), None) => ShownToken::One(token),
            // One of them may be somebody else's, set from a neighbouring name.
            (Some(_), Some(_)) => ShownToken::Several,
        }
    }

    /// As [`TokenSource::check`], where that takes less than a serving thread may; nothing where
    /// the key is one that takes longer, and the token not remembered.
    pub fn check_soon(
        &self,
        token: &[u8],
        now_unix_ms: u64,
    ) -> Option<Result<GoodToken, TokenRefusal>> {
        self.check_by(token, now_unix_ms, |key| !key.takes_long)
            .transpose()
    }

    /// What a token says, where it is good at a time in milliseconds of Unix time. It is remembered
    /// then. Takes long with some keys: see [`keys::TokenKey::takes_long`].
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self, token: &[u8], now_unix_ms: u64) -> Result<GoodToken, TokenRefusal> {
        let checked = self.check_by(token, now_unix_ms, |_| true)?;
        checked.ok_or(TokenRefusal::NoKey)
    }

    /// Nothing where the key is none that may be used now.
    fn check_by(
        &self,
        token: &[u8],
        now_unix_ms: u64,
        may_use: fn(&TokenKey) -> bool,
    ) -> Result<Option<GoodToken>, TokenRefusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefusal::TooLong);
        }
        let tag = self.key.tag(token);
        let keys = {
            let state = self.state.lock();
            if let Some(known) = state.remembered.get(&tag)
                && now_unix_ms < known.until_unix_ms
            {
                let claims = Arc::clone(&known.claims);
                let is_new = false;
                return Ok(Some(GoodToken { claims, is_new }));
            }
            Arc::clone(&state.keys)
        };
        if keys.is_empty() {
            return Err(TokenRefusal::KeysAway);
        }
        let (key, algorithm) = key_of(token, &keys)?;
        if !may_use(key) {
            return Ok(None);
        }
        let claims = claims_of(token, key, algorithm)?;
        let claims = Arc::new(claims.check(&self.rules, now_unix_ms / 1000)?);
        self.remember(tag, &keys, &claims, now_unix_ms);
        let is_new = true;
        Ok(Some(GoodToken { claims, is_new }))
    }

    fn remember(
        &self,
        tag: CredentialTag,
        keys: &Arc<TokenKeys>,
        claims: &Arc<SignedClaims>,
        now_unix_ms: u64,
    ) {
        let mut state = self.state.lock();
        // Else they have changed meanwhile: the token was good when it was asked for.
        if !Arc::ptr_eq(&state.keys, keys) {
            return;
        }
        // All are looked at for that, which is not done for each that comes.
        let is_due = now_unix_ms >= state.tidied_unix_ms.saturating_add(LOOK_MS);
        if state.remembered.len() >= REMEMBERED_MAX && is_due {
            state.tidied_unix_ms = now_unix_ms;
            let is_good = |known: &mut RememberedToken| now_unix_ms < known.until_unix_ms;
            state.remembered.retain(|_, known| is_good(known));
        }
        // Who finds no place is checked again.
        if state.remembered.len() < REMEMBERED_MAX {
            let over_ms = claims.until_unix_s.saturating_mul(1000);
            let known = RememberedToken {
                claims: Arc::clone(claims),
                until_unix_ms: over_ms.min(now_unix_ms + REMEMBER_MS),
            };
            state.remembered.insert(tag, known);
        }
    }
}

/// The key that has to have signed a token, and how.
///
/// # Errors
/// There is none.
pub fn key_of<'k>(
    token: &[u8],
    keys: &'k TokenKeys,
) -> Result<(&'k TokenKey, Algorithm), TokenRefusal> {
    let header = jsonwebtoken::decode_header(token).map_err(|_| TokenRefusal::Malformed)?;
    if header.crit.is_some() {
        return Err(TokenRefusal::Critical);
    }
    let key = keys.find(header.kid.as_deref(), header.alg);
    Ok((key.ok_or(TokenRefusal::NoKey)?, header.alg))
}

/// What a token says that a key has signed in this way.
///
/// # Errors
/// It has not.
pub fn claims_of(
    token: &[u8],
    key: &TokenKey,
    algorithm: Algorithm,
) -> Result<Claims, TokenRefusal> {
    // Signature and encoding alone: see the top.
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    match jsonwebtoken::decode(token, &key.key, &validation) {
        Ok(token) => Ok(Claims(token.claims)),
        Err(error) => Err(match error.kind() {
            ErrorKind::InvalidSignature => TokenRefusal::Signature,
            _ => TokenRefusal::Malformed,
        }),
    }
}

/// The token of `Bearer` credentials; nothing where the scheme is another one.
//= rfc6750#2.1
pub fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer ");
    is_bearer.then(|| rest.trim_ascii())
}

/// Tells what is wrong with the files of keys that a config names. One that is not there is told
/// already, and the server tells of one that it may not read: whoever looks here may be another.
pub fn look(built: &Built, told: &mut PreflightReport<'_, '_>) {
    for (auth, [spot, _]) in built.config.auth.iter().zip(&built.spots.auth) {
        let AccountSource::Tokens(rules) = &auth.source else {
            continue;
        };
        // What an issuer has is not asked for here: it may be away.
        let TokenKeysAt::File(file) = &rules.keys else {
            continue;
        };
        let Ok(text) = read_file(file) else {
            continue;
        };
        let file = file.display();
        match TokenKeys::parse(&text, &rules.algorithms) {
            Err(text) => told.error(*spot, &format!("{file}: {text}"), SAVE_KEYS),
            Ok((_, faults)) => {
                for fault in faults {
                    told.warn(
                        *spot,
                        &format!("{file}: {fault}"),
                        "tokens of that key are refused",
                    );
                }
            }
        }
    }
}

/// What to do about a file of keys that is wrong.
const SAVE_KEYS: &str = "save there what the issuer has at its `jwks_uri`";

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;

    use super::*;

    const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

    fn source(dir: &Path) -> TokenSource {
        let keys = dir.join("jwks.json");
        let k = BASE64_URL_SAFE_NO_PAD.encode(SECRET);
        let text = format!("{{\"keys\": [{{\"kty\": \"oct\", \"k\": \"{k}\"}}]}}");
        std::fs::write(&keys, text).unwrap();
        let rules = TokenRules {
            keys: TokenKeysAt::File(keys),
            issuer: "i".to_owned(),
            audiences: vec!["a".to_owned()],
            algorithms: vec!["HS256"],
            leeway: Duration::ZERO,
            user: "sub".to_owned(),
            groups: "groups".to_owned(),
            cookie: None,
            fields: Vec::new(),
        };
        let settings = AuthSettings {
            name: "tokens".to_owned(),
            realm: "tokens".to_owned(),
            source: AccountSource::Tokens(rules.clone()),
        };
        TokenSource::open(&settings, &rules, &Issuers::default(), 0).unwrap()
    }

    fn token(name: &str) -> String {
        let header = BASE64_URL_SAFE_NO_PAD.encode("{\"alg\":\"HS256\"}");
        let claims = format!("{{\"iss\":\"i\",\"aud\":\"a\",\"sub\":\"{name}\",\"exp\":1000}}");
        let signed = format!("{header}.{}", BASE64_URL_SAFE_NO_PAD.encode(claims));
        use aws_lc_rs::hmac;
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
        let tag = hmac::sign(&key, signed.as_bytes());
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(tag))
    }

    #[test]
    fn token_is_remembered_for_a_minute_and_never_longer_than_it_is_good() {
        let dir = tempfile::tempdir().unwrap();
        let (source, ann) = (source(dir.path()), token("ann"));
        let is_new = |now_ms| source.check(ann.as_bytes(), now_ms).map(|good| good.is_new);
        assert_eq!(is_new(900_000), Ok(true));
        assert_eq!(is_new(959_999), Ok(false));
        assert_eq!(is_new(960_000), Ok(true));
        assert_eq!(is_new(999_999), Ok(false));
        assert_eq!(is_new(1_000_000), Err(TokenRefusal::Over));
    }

    #[test]
    fn tokens_that_find_no_place_are_checked_again() {
        let dir = tempfile::tempdir().unwrap();
        let source = source(dir.path());
        let is_new = |name: &str, now_ms| {
            let good = source.check(token(name).as_bytes(), now_ms);
            good.map(|good| good.is_new).unwrap()
        };
        for number in 0..REMEMBERED_MAX {
            assert!(is_new(&number.to_string(), 100_000));
        }
        assert!(is_new("more", 100_000) && is_new("more", 100_500));
        assert!(!is_new("0", 100_500));
        assert_eq!(source.state.lock().remembered.len(), REMEMBERED_MAX);
        // The others are over, and make room.
        assert!(is_new("more", 200_000) && !is_new("more", 200_000));
        assert_eq!(source.state.lock().remembered.len(), 1);
    }
}
