//! What a token says, and whether that lets in (RFC 7519 section 4.1).

use hob_config::TokenRules;
use hob_http::ToldVariables;
use serde_json::{Map, Value};

use super::TokenRefusal;
use crate::step::auth::accounts::AuthAccount;

/// So many groups of one token are known.
const GROUPS_MAX: usize = 1000;

/// What a token says; its signature is right.
#[derive(Debug)]
pub struct Claims(pub(super) Map<String, Value>);

/// What a token says that is good.
#[derive(Debug, PartialEq, Eq)]
pub struct SignedClaims {
    /// Whose it is.
    pub account: AuthAccount,
    /// What programs and proxied servers are told of them; what it does not say is empty.
    pub fields: ToldVariables,
    /// From then on it is over, in seconds of Unix time.
    pub until_unix_s: u64,
}

impl Claims {
    /// The claims of a text.
    ///
    /// # Errors
    /// It is no JSON object.
    pub fn parse(json: &[u8]) -> serde_json::Result<Claims> {
        serde_json::from_slice(json).map(Claims)
    }

    /// Whose the token is, if it lets in at a time in seconds of Unix time.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self, rules: &TokenRules, now_unix_s: u64) -> Result<SignedClaims, TokenRefusal> {
        let leeway_s = rules.leeway.as_secs();
        let over = { self.0.get("exp") }.and_then(seconds);
        let over_s = over.ok_or(TokenRefusal::Endless)?.saturating_add(leeway_s);
        if now_unix_s >= over_s {
            return Err(TokenRefusal::Over);
        }
        if let Some(begin) = self.0.get("nbf") {
            let begin_s = seconds(begin).ok_or(TokenRefusal::Early)?;
            if begin_s > now_unix_s.saturating_add(leeway_s) {
                return Err(TokenRefusal::Early);
            }
        }
        let is_issuer = { self.0.get("iss") }.and_then(Value::as_str) == Some(&rules.issuer);
        if !is_issuer {
            return Err(TokenRefusal::Issuer);
        }
        let is_for = |value: &Value| {
            let named = value.as_str();
            named.is_some_and(|named| rules.audiences.iter().any(|ours| ours == named))
        };
        let is_audience = match self.0.get("aud") {
            Some(Value::Array(all)) => all.iter().any(is_for),
            Some(one) => is_for(one),
            None => false,
        };
        if !is_audience {
            return Err(TokenRefusal::Audience);
        }
        let name = self.find(&rules.user).and_then(Value::as_str);
        let name = name.map(str::trim).filter(|name| is_line(name));
        let name = name.ok_or(TokenRefusal::Nameless)?;
        let fields = rules.fields.iter().map(|(field, claim)| {
            let value = self.find(claim).and_then(field_text);
            let value = value.unwrap_or_default();
            (field.as_bytes().into(), value.into_bytes().into())
        });
        Ok(SignedClaims {
            account: AuthAccount::of_route(name, self.groups(&rules.groups)),
            fields: fields.collect(),
            until_unix_s: over_s,
        })
    }

    /// A claim by its name, or by a JSON pointer to it.
    fn find(&self, claim: &str) -> Option<&Value> {
        let Some(path) = claim.strip_prefix('/') else {
            return self.0.get(claim);
        };
        let mut steps = path.split('/');
        let unescaped = |step: &str| step.replace("~1", "/").replace("~0", "~");
        let first = self.0.get(&unescaped(steps.next()?))?;
        steps.try_fold(first, |value, step| value.get(unescaped(step)))
    }

    fn groups(&self, claim: &str) -> impl Iterator<Item = &str> {
        let (list, text) = match self.find(claim) {
            Some(Value::Array(list)) => (&list[..], ""),
            Some(Value::String(text)) => (&[][..], text.as_str()),
            _ => (&[][..], ""),
        };
        let listed = list.iter().filter_map(Value::as_str);
        listed.chain(text.split_whitespace()).take(GROUPS_MAX)
    }
}

/// A time in whole seconds of Unix time, those before it at its beginning.
//= rfc7519#2
fn seconds(value: &Value) -> Option<u64> {
    let number = value.as_number()?;
    // Times with a fraction are numbers too, and the cast keeps to what a second can be.
    number.as_u64().or_else(|| Some(number.as_f64()? as u64))
}

/// A claim as the value of a field; nothing where it cannot be one.
fn field_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Array(list) if !list.iter().any(Value::is_array) => {
            let texts: Option<Vec<String>> = list.iter().map(field_text).collect();
            texts?.join(",")
        }
        Value::Array(_) | Value::Object(_) | Value::Null => return None,
    };
    is_line(&text).then_some(text)
}

/// Whether a text can stand in a field and in a log.
fn is_line(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use hob_config::TokenKeysAt;

    use super::*;

    fn rules() -> TokenRules {
        TokenRules {
            keys: TokenKeysAt::File("jwks.json".into()),
            issuer: "https://id.test".to_owned(),
            audiences: vec!["shop".to_owned(), "api".to_owned()],
            algorithms: vec!["ES256"],
            leeway: Duration::from_secs(30),
            user: "sub".to_owned(),
            groups: "groups".to_owned(),
            cookie: None,
            fields: vec![("x-email".to_owned(), "email".to_owned())],
        }
    }

    fn good() -> Value {
        json!({"iss": "https://id.test", "aud": "shop", "exp": 1000, "nbf": 500, "sub": "ann"})
    }

    fn check(claims: &Value, rules: &TokenRules, now: u64) -> Result<SignedClaims, TokenRefusal> {
        let text = claims.to_string();
        Claims::parse(text.as_bytes()).unwrap().check(rules, now)
    }

    /// What becomes of the good one with another value of a claim; `null` is none.
    fn with(claim: &str, value: Value, now: u64) -> Option<TokenRefusal> {
        let mut claims = good();
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(claim)),
            value => claims[claim] = value,
        }
        check(&claims, &rules(), now).err()
    }

    #[test]
    fn token_lets_in_from_its_begin_until_its_end_with_leeway() {
        for (now, refusal) in [
            (469, Some(TokenRefusal::Early)),
            (470, None),
            (1029, None),
            (1030, Some(TokenRefusal::Over)),
        ] {
            assert_eq!(check(&good(), &rules(), now).err(), refusal, "{now}");
        }
        let strict = TokenRules {
            leeway: Duration::ZERO,
            ..rules()
        };
        let at = |now| check(&good(), &strict, now);
        assert_eq!(at(499).err(), Some(TokenRefusal::Early));
        assert_eq!(at(999).unwrap().until_unix_s, 1000);
        assert_eq!(at(1000).err(), Some(TokenRefusal::Over));
    }

    #[test]
    fn times_are_numbers() {
        for exp in [json!(null), json!("1000"), json!([1000]), json!(true)] {
            assert_eq!(with("exp", exp, 600), Some(TokenRefusal::Endless));
        }
        for exp in [json!(0), json!(-1), json!(-1e300), json!(569.9)] {
            assert_eq!(with("exp", exp, 600), Some(TokenRefusal::Over));
        }
        for exp in [json!(1e300), json!(u64::MAX), json!(999.5)] {
            assert_eq!(with("exp", exp, 600), None);
        }
        for nbf in [json!("1"), json!(1e300), json!({}), json!(u64::MAX)] {
            assert_eq!(with("nbf", nbf, 600), Some(TokenRefusal::Early));
        }
        assert_eq!(with("nbf", json!(null), 600), None);
    }

    #[test]
    fn issuer_audience_and_name_are_those_of_the_rules() {
        for iss in [
            json!(null),
            json!("https://id.test/"),
            json!("HTTPS://id.test"),
            json!(["https://id.test"]),
        ] {
            assert_eq!(with("iss", iss, 600), Some(TokenRefusal::Issuer));
        }
        for aud in [
            json!(null),
            json!("shops"),
            json!(""),
            json!([]),
            json!(["sho", ["shop"]]),
            json!({"shop": "shop"}),
        ] {
            assert_eq!(with("aud", aud, 600), Some(TokenRefusal::Audience));
        }
        assert_eq!(with("aud", json!(["else", "api"]), 600), None);
        for sub in [
            json!(null),
            json!(7),
            json!(""),
            json!(" "),
            json!("a\nb"),
            json!(["ann"]),
        ] {
            assert_eq!(with("sub", sub, 600), Some(TokenRefusal::Nameless));
        }
    }

    #[test]
    fn groups_are_a_list_or_a_text_also_within_another_claim() {
        let groups = |claims: Value, name: &str| {
            let rules = TokenRules {
                groups: name.to_owned(),
                ..rules()
            };
            let mut all = good();
            all.as_object_mut()
                .unwrap()
                .extend(claims.as_object().unwrap().clone());
            check(&all, &rules, 600).unwrap().account.groups
        };
        assert_eq!(
            groups(json!({"groups": ["a b", 7, "c"]}), "groups"),
            ["a b", "c"]
        );
        assert_eq!(
            groups(json!({"scope": " read  write "}), "scope"),
            ["read", "write"]
        );
        let within = json!({"realm": {"a/b": ["x"], "list": ["y", {"z": "w"}]}});
        assert_eq!(groups(within.clone(), "/realm/a~1b"), ["x"]);
        for none in [
            "realm",
            "/realm",
            "/realm/none",
            "/",
            "/realm/list/1",
            "/aud/x",
        ] {
            assert!(groups(within.clone(), none).is_empty(), "{none}");
        }
        assert!(groups(json!({}), "groups").is_empty());
        let many: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
        assert_eq!(groups(json!({"groups": many}), "groups").len(), GROUPS_MAX);
    }

    #[test]
    fn field_holds_a_claim_that_is_one_line() {
        let field = |value: Value| {
            let mut claims = good();
            claims["email"] = value;
            let found = check(&claims, &rules(), 600).unwrap().fields;
            assert_eq!(&*found[0].0, b"x-email");
            String::from_utf8(found[0].1.to_vec()).unwrap()
        };
        assert_eq!(field(json!(" ö@test ")), "ö@test");
        assert_eq!(field(json!(7)), "7");
        assert_eq!(field(json!(true)), "true");
        assert_eq!(field(json!(["a", 1])), "a,1");
        for none in [
            json!("a\r\nX-Admin: 1"),
            json!("a\0"),
            json!("\u{85}"),
            json!({"a": "b"}),
            json!(null),
            json!([["a"]]),
            json!(["a", {}]),
            json!(["a", "b\nc"]),
            json!([]),
        ] {
            assert_eq!(field(none), "");
        }
    }
}
