//! Tokens that let in: files of keys, tokens, and what they say.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use hob_server::config::{TOKEN_ALGORITHMS, TokenKeysAt, TokenRules};
use hob_server::step::auth::tokens::claims::Claims;
use hob_server::step::auth::tokens::keys::TokenKeys;
use hob_server::step::auth::tokens::{bearer, claims_of, key_of};
use libfuzzer_sys::fuzz_target;

/// A public key of RFC 8037, and a secret, by which whoever knows it can sign.
const KEYS: &str = r#"{"keys": [
    {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
    {"kty": "oct", "kid": "secret", "k": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}
]}"#;

static KNOWN: LazyLock<TokenKeys> = LazyLock::new(|| {
    let (keys, _) = TokenKeys::parse(KEYS, TOKEN_ALGORITHMS).expect("they are keys");
    keys
});

fuzz_target!(|input: (&str, &[u8], &[u8], u64)| {
    let (keys, value, claims, now_unix_s) = input;
    if let Ok((keys, _)) = TokenKeys::parse(keys, TOKEN_ALGORITHMS) {
        assert!(!keys.is_empty());
        if let Ok((key, algorithm)) = key_of(value, &keys) {
            let _ = claims_of(value, key, algorithm);
        }
    }
    let token = bearer(value).unwrap_or(value);
    if let Ok((key, algorithm)) = key_of(token, &KNOWN) {
        // Whoever finds a signature without the key has broken more than this.
        let is_secret = key.id() == Some("secret");
        assert_eq!(is_secret, format!("{algorithm:?}") == "HS256");
        let found = claims_of(token, key, algorithm);
        assert!(is_secret || found.is_err());
    }
    let rules = TokenRules {
        keys: TokenKeysAt::File("jwks.json".into()),
        issuer: "i".to_owned(),
        audiences: vec!["a".to_owned()],
        algorithms: TOKEN_ALGORITHMS.to_vec(),
        leeway: Duration::from_secs(30),
        user: "/sub/0".to_owned(),
        groups: "/g/~1/2".to_owned(),
        cookie: None,
        fields: vec![("x-a".to_owned(), "f".to_owned())],
    };
    let Ok(claims) = Claims::parse(claims) else {
        return;
    };
    if let Ok(good) = claims.check(&rules, now_unix_s) {
        assert!(now_unix_s < good.until_unix_s && !good.account.name.is_empty());
        let is_plain = |text: &[u8]| !text.iter().any(|byte| byte.is_ascii_control());
        assert!(is_plain(good.account.name.as_bytes()) && is_plain(&good.fields[0].1));
    }
});
