//! A JSON Web Key Set (RFC 7517): keys that tokens are checked with, each with the algorithms of
//! its own kind alone, so that no public key is ever taken for a secret.

use std::str::FromStr;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey,
};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use serde::Deserialize;
use serde_json::Value;

/// Longest text of keys, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Most keys of a file.
const KEYS_MAX: usize = 100;

/// Keys that tokens are checked with; shown without what they are made of.
#[derive(Debug, Default)]
pub struct TokenKeys(Vec<TokenKey>);

/// One of them.
#[derive(Debug)]
pub struct TokenKey {
    id: Option<String>,
    pub(super) key: DecodingKey,
    /// A signature by it is checked away from the threads that serve. Microseconds for a token, as
    /// built for a release, on one of two shared cores: ES256 65, EdDSA 48, HS256 5, RSA of 2048
    /// bits 27, of 3072 51, of 4096 84; but P-384 241 and RSA of 8192 bits 308.
    pub takes_long: bool,
    /// Those of its kind that are allowed.
    algorithms: Vec<Algorithm>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl TokenKeys {
    /// The keys of a text that check what one of these algorithms has signed, of
    /// [`hob_config::TOKEN_ALGORITHMS`], and what is wrong with others.
    ///
    /// # Errors
    /// There is none.
    pub fn parse(text: &str, allowed: &[&str]) -> Result<(TokenKeys, Vec<String>), String> {
        let allowed = allowed.iter().copied().map(Algorithm::from_str);
        let allowed: Vec<Algorithm> = allowed.filter_map(Result::ok).collect();
        if text.len() > TEXT_BYTES_MAX {
            return Err("it has more than 1 MiB".to_owned());
        }
        let set: KeySet = serde_json::from_str(text).map_err(|error| {
            format!("this is no JSON Web Key Set, {{\"keys\": [...]}}: {error}")
        })?;
        if set.keys.len() > KEYS_MAX {
            return Err(format!("it has more than {KEYS_MAX} keys"));
        }
        let (mut keys, mut faults) = (Vec::new(), Vec::new());
        for (number, value) in (1..).zip(set.keys) {
            match TokenKey::read(&value, &allowed) {
                Ok(key) if key.algorithms.is_empty() => {}
                Ok(key) => keys.push(key),
                Err(text) => faults.push(format!("key {number}: {text}")),
            }
        }
        if !keys.is_empty() {
            return Ok((TokenKeys(keys), faults));
        }
        let told = faults.first().map(|text| format!(" ({text})"));
        Err(format!(
            "no key in it checks what `algorithms` allows{}",
            told.unwrap_or_default()
        ))
    }

    /// The key that a token means which is signed so: the one of its name, or, where it names none,
    /// the only one that signs so.
    pub fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&TokenKey> {
        let signs_so = |key: &&TokenKey| key.algorithms.contains(&algorithm);
        let mut meant = { self.0.iter() }
            .filter(signs_so)
            .filter(|key| id.is_none() || key.id.as_deref() == id);
        let first = meant.next()?;
        let is_clear = id.is_some() || meant.next().is_none();
        is_clear.then_some(first)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TokenKey {
    /// Its name.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// A key of a set; without algorithms where it is for something else.
    fn read(value: &Value, allowed: &[Algorithm]) -> Result<TokenKey, String> {
        let jwk = Jwk::deserialize(value).map_err(|error| error.to_string())?;
        let (key, kind) = read_material(&jwk.algorithm)?;
        let common = jwk.common;
        let is_for_tokens = common
            .public_key_use
            .is_none_or(|u| u == PublicKeyUse::Signature)
            && { common.key_operations }.is_none_or(|all| all.contains(&KeyOperations::Verify));
        if common.key_algorithm == Some(KeyAlgorithm::UNKNOWN_ALGORITHM) {
            return Err("its `alg` is none that is known here".to_owned());
        }
        let own = common.key_algorithm.map(Algorithm::try_from);
        let is_own = |algorithm: &Algorithm| match &own {
            None => true,
            Some(Ok(own)) => own == algorithm,
            // It encrypts.
            Some(Err(_)) => false,
        };
        if let Some(Ok(own)) = &own
            && !kind.contains(own)
        {
            return Err(format!("its `alg` {own:?} is not one of its kind"));
        }
        let algorithms = kind.iter().copied();
        let takes_long = match key.kind() {
            // More than 4096 bits.
            DecodingKeyKind::RsaModulusExponent { n, .. } => n.len() > 512,
            DecodingKeyKind::SecretOrDer(_) => kind.contains(&Algorithm::ES384),
        };
        Ok(TokenKey {
            id: common.key_id,
            key,
            takes_long,
            algorithms: algorithms
                .filter(|one| is_for_tokens && allowed.contains(one) && is_own(one))
                .collect(),
        })
    }
}

/// A key, and the algorithms of its kind.
fn read_material(
    parameters: &AlgorithmParameters,
) -> Result<(DecodingKey, &'static [Algorithm]), String> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match parameters {
        AlgorithmParameters::RSA(rsa) => {
            let (n, e) = (decode(&rsa.n)?, decode(&rsa.e)?);
            let n = &n[n.iter().take_while(|byte| **byte == 0).count()..];
            // Shorter ones can be broken, longer ones take long; aws-lc checks with neither.
            if !(256..=1024).contains(&n.len()) {
                return Err("an RSA key has 2048 to 8192 bits".to_owned());
            }
            let key = DecodingKey::from_rsa_raw_components(n, &e);
            Ok((key, &[RS256, RS384, RS512, PS256, PS384, PS512]))
        }
        AlgorithmParameters::EllipticCurve(ec) => {
            let point = [&[4][..], &decode(&ec.x)?, &decode(&ec.y)?].concat();
            let (way, kind, len): (_, &[Algorithm], _) = match ec.curve {
                EllipticCurve::P256 => (&ECDSA_P256_SHA256_FIXED, &[ES256], 65),
                EllipticCurve::P384 => (&ECDSA_P384_SHA384_FIXED, &[ES384], 97),
                _ => return Err("its curve is neither P-256 nor P-384".to_owned()),
            };
            if point.len() != len || ParsedPublicKey::new(way, &point).is_err() {
                return Err("it is no point of its curve".to_owned());
            }
            Ok((DecodingKey::from_ec_der(&point), kind))
        }
        AlgorithmParameters::OctetKeyPair(pair) => {
            let key = decode(&pair.x)?;
            let is_key = key.len() == 32 && ParsedPublicKey::new(&ED25519, &key).is_ok();
            match pair.curve == EllipticCurve::Ed25519 && is_key {
                true => Ok((DecodingKey::from_ed_der(&key), &[EdDSA])),
                false => Err("it is no key of Ed25519".to_owned()),
            }
        }
        AlgorithmParameters::OctetKey(octets) => read_secret(&decode(&octets.value)?),
        _ => Err("its kind is not known: EC, RSA, OKP and oct are".to_owned()),
    }
}

/// A secret, and the algorithms for which it is long enough.
//= rfc7518#3.2
fn read_secret(secret: &[u8]) -> Result<(DecodingKey, &'static [Algorithm]), String> {
    use Algorithm::{HS256, HS384, HS512};
    let kind: &[Algorithm] = match secret.len() {
        64.. => &[HS256, HS384, HS512],
        48.. => &[HS256, HS384],
        32.. => &[HS256],
        _ => return Err("a secret has 32 bytes at least, else it can be guessed".to_owned()),
    };
    let key = DecodingKey::from_secret(secret).map_err(|error| error.to_string())?;
    Ok((key, kind))
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(text);
    decoded.map_err(|error| format!("this is no base64 for URLs: {error}"))
}

#[cfg(test)]
mod tests {
    use hob_config::TOKEN_ALGORITHMS;
    use serde_json::json;

    use super::*;

    /// The public key of RFC 8037 appendix A.2.
    fn ed() -> Value {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "ed"})
    }

    fn rsa(bytes: usize) -> Value {
        let n = BASE64_URL_SAFE_NO_PAD.encode(vec![0xA5; bytes]);
        json!({"kty": "RSA", "n": n, "e": "AQAB", "kid": "rs"})
    }

    fn secret(bytes: usize) -> Value {
        let k = BASE64_URL_SAFE_NO_PAD.encode(vec![7; bytes]);
        json!({"kty": "oct", "k": k, "kid": "secret"})
    }

    fn with(mut key: Value, more: &Value) -> Value {
        let more = more.as_object().unwrap().clone();
        key.as_object_mut().unwrap().extend(more);
        key
    }

    fn parse(keys: &[Value]) -> Result<(TokenKeys, Vec<String>), String> {
        TokenKeys::parse(&json!({ "keys": keys }).to_string(), TOKEN_ALGORITHMS)
    }

    /// The algorithms of a key alone, or what is wrong with it.
    fn algorithms(key: Value) -> Result<String, String> {
        let (keys, _) = parse(&[key])?;
        Ok(format!("{:?}", keys.0[0].algorithms))
    }

    #[test]
    fn key_has_the_algorithms_of_its_kind_alone() {
        assert_eq!(algorithms(ed()).unwrap(), "[EdDSA]");
        let all = "[RS256, RS384, RS512, PS256, PS384, PS512]";
        assert_eq!(algorithms(rsa(256)).unwrap(), all);
        assert_eq!(algorithms(secret(32)).unwrap(), "[HS256]");
        assert_eq!(algorithms(secret(64)).unwrap(), "[HS256, HS384, HS512]");
        let own = json!({"alg": "PS384"});
        assert_eq!(algorithms(with(rsa(256), &own)).unwrap(), "[PS384]");
        for (key, alg) in [(rsa(256), "HS256"), (ed(), "ES256"), (secret(32), "HS512")] {
            let fault = algorithms(with(key, &json!({ "alg": alg }))).unwrap_err();
            assert!(fault.contains("is not one of its kind"), "{fault}");
        }
    }

    #[test]
    fn key_for_something_else_checks_no_token() {
        for more in [
            json!({"use": "enc"}),
            json!({"alg": "RSA-OAEP"}),
            json!({"key_ops": ["encrypt"]}),
        ] {
            let (keys, faults) = parse(&[with(rsa(256), &more), ed()]).unwrap();
            assert_eq!((keys.len(), faults), (1, vec![]), "{more}");
        }
        let verify = json!({"use": "sig", "key_ops": ["verify", "sign"]});
        assert!(algorithms(with(rsa(256), &verify)).is_ok());
    }

    #[test]
    fn keys_that_cannot_be_used_are_told_and_the_others_count() {
        let curve = |name: &str| json!({"kty": "EC", "crv": name, "x": "AAAA", "y": "AAAA"});
        for (key, told) in [
            (rsa(128), "2048 to 8192 bits"),
            (rsa(1025), "2048 to 8192 bits"),
            (secret(31), "32 bytes at least"),
            (curve("P-256"), "no point of its curve"),
            (curve("P-521"), "neither P-256 nor P-384"),
            (with(ed(), &json!({"x": "AAAA"})), "no key of Ed25519"),
            (with(ed(), &json!({"x": "+/=="})), "no base64"),
            (with(ed(), &json!({"crv": "X25519"})), "kind is not known"),
            (with(ed(), &json!({"kty": "XYZ"})), "kind is not known"),
            (
                with(ed(), &json!({"alg": "XYZ"})),
                "`alg` is none that is known",
            ),
            (with(ed(), &json!({"kid": 7})), "invalid type"),
            (json!(null), "invalid type"),
        ] {
            let (keys, faults) = parse(&[key.clone(), rsa(256)]).unwrap();
            assert_eq!(keys.len(), 1, "{key}");
            assert!(faults[0].contains(told) && faults.len() == 1, "{faults:?}");
            assert!(parse(&[key]).unwrap_err().contains(told));
        }
        assert!(parse(&vec![ed(); KEYS_MAX]).is_ok());
        assert!(parse(&vec![ed(); KEYS_MAX + 1]).is_err());
        let long = format!("{}{}", " ".repeat(TEXT_BYTES_MAX), json!({"keys": [ed()]}));
        assert!(TokenKeys::parse(&long, TOKEN_ALGORITHMS).is_err());
    }

    #[test]
    fn token_without_a_name_of_a_key_means_the_only_one() {
        let (keys, _) = parse(&[ed(), rsa(256), with(rsa(512), &json!({"kid": "new"}))]).unwrap();
        let found = |id: Option<&str>, algorithm| {
            let key = keys.find(id, algorithm);
            key.map(|key| key.id().unwrap().to_owned())
        };
        assert_eq!(found(None, Algorithm::EdDSA).as_deref(), Some("ed"));
        assert_eq!(found(None, Algorithm::RS256), None);
        assert_eq!(found(Some("new"), Algorithm::RS256).as_deref(), Some("new"));
        assert_eq!(found(Some("ed"), Algorithm::RS256), None);
        assert_eq!(found(Some(""), Algorithm::EdDSA), None);
        assert_eq!(found(Some("secret"), Algorithm::HS256), None);
    }

    #[test]
    fn keys_that_take_long_are_known() {
        let takes_long = |bytes| parse(&[rsa(bytes)]).unwrap().0.0[0].takes_long;
        assert_eq!(
            [256, 512, 513, 1024].map(takes_long),
            [false, false, true, true]
        );
        assert!(!parse(&[ed()]).unwrap().0.0[0].takes_long);
    }
}
