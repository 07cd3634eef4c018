//! Tokens that the issuer has not made.

use super::*;

#[test]
fn what_is_not_signed_by_a_key_for_it_is_refused() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let all = [&PAIRS[..], &["secret"]].concat();
    // HS256 is allowed here: a public key is no secret all the same.
    let jwt = ", algorithms = [\"ES256\", \"RS256\", \"EdDSA\", \"HS256\"]";
    let hob = serve(&place, &issuer.keys(&all), jwt, &inner("\"tokens\""));
    let sign = |alg: &str, kid: &str, header: Value| issuer.sign_with(alg, kid, &claims(), header);
    let (malformed, no_key) = (
        "this is no signed token",
        "none of the issuer's keys is the token's",
    );
    let (wrong, critical) = (
        "the token's signature is wrong",
        "the token has a `crit` that is not understood",
    );
    let kid = |name: &str| json!({"kid": name});
    let mut cases = vec![
        ("none", sign("none", "es", json!({})), malformed),
        (
            "no kid and none",
            sign("none", "es", json!({"kid": null})),
            malformed,
        ),
        ("unknown kid", sign("ES256", "stranger", json!({})), no_key),
        ("another's", sign("ES256", "stranger", kid("es")), wrong),
        ("kid of RSA", sign("ES256", "es", kid("rs")), no_key),
        (
            "kid of a secret",
            sign("ES256", "es", kid("secret")),
            no_key,
        ),
        ("secret as EC", sign("HS256", "secret", kid("es")), no_key),
        ("curve", sign("ES256", "es", kid("es384")), no_key),
        ("not allowed", sign("RS512", "rs", json!({})), no_key),
        (
            "crit",
            sign("ES256", "es", json!({"crit": ["x"], "x": 1})),
            critical,
        ),
        (
            "crit b64",
            sign("ES256", "es", json!({"crit": ["b64"], "b64": true})),
            critical,
        ),
    ];
    // A key that a token brings along, or says where it is, is nobody's.
    let brought: Value = serde_json::from_str(&issuer.keys(&["stranger"])).unwrap();
    let brought = [
        ("jwk", brought["keys"][0].clone()),
        ("jku", json!("https://evil.test/jwks.json")),
        ("x5u", json!("https://evil.test/cert.pem")),
        ("x5c", json!(["MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A"])),
    ];
    for (name, value) in brought {
        let header = |kid: Value| {
            let mut header = json!({"kid": kid});
            header[name] = value.clone();
            header
        };
        cases.push((name, sign("ES256", "stranger", header(json!("es"))), wrong));
        cases.push((
            name,
            sign("ES256", "stranger", header(json!("stranger"))),
            no_key,
        ));
    }
    for form in ["pem", "der", "n"] {
        cases.push(("RSA key as secret", issuer.confuse("rs", form), no_key));
    }
    cases.push(("EC key as secret", issuer.confuse("es", "pem"), no_key));
    for (case, token, why) in cases {
        let answer = get(&hob, "/inner/a.txt", &bearer(&token));
        let told =
            format!("Bearer realm=\"Shop\", error=\"invalid_token\", error_description=\"{why}\"");
        assert_eq!(
            (answer.status, challenge(&answer)),
            (401, told.as_str()),
            "{case}"
        );
    }
    assert_eq!(place.counter("tokens_refused"), 23);
    assert_eq!(place.counter("tokens_checked"), 0);
    assert_eq!(status(&hob, &sign("ES256", "es", json!({}))), 200);
    hob.stop();
}

#[test]
fn changed_and_truncated_tokens_are_refused() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let place = Place::new();
    let hob = serve(&place, &issuer.keys(&PAIRS), "", &inner("\"tokens\""));
    let token = issuer.sign("ES256", "es", &claims());
    assert_eq!(status(&hob, &token), 200);
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, signature] = parts[..] else {
        panic!("{token}")
    };
    let other = BASE64_URL_SAFE_NO_PAD.encode(claims_with(&json!({"sub": "root"})).to_string());
    let none = BASE64_URL_SAFE_NO_PAD.encode("{\"alg\":\"none\"}");
    let upper = BASE64_URL_SAFE_NO_PAD.encode("{\"alg\":\"NONE\",\"kid\":\"es\"}");
    let zeroes = BASE64_URL_SAFE_NO_PAD.encode([0; 64]);
    for (case, token) in [
        ("payload", format!("{header}.{other}.{signature}")),
        ("none without a signature", format!("{none}.{payload}.")),
        ("none with one", format!("{none}.{payload}.{signature}")),
        ("NONE", format!("{upper}.{payload}.")),
        ("no signature", format!("{header}.{payload}.")),
        ("two parts", format!("{header}.{payload}")),
        ("one part", header.to_owned()),
        ("no payload", format!("{header}..{signature}")),
        ("no header", format!(".{payload}.{signature}")),
        ("dots", "..".to_owned()),
        ("four parts", format!("{token}.{signature}")),
        ("five parts", format!("{token}..{signature}")),
        ("padding", format!("{token}==")),
        (
            "half a signature",
            format!("{header}.{payload}.{}", &signature[..43]),
        ),
        ("zeroes", format!("{header}.{payload}.{zeroes}")),
        ("one letter less", token[..token.len() - 1].to_owned()),
        ("one letter more", format!("{token}A")),
        ("empty", String::new()),
        ("not base64", format!("!{token}")),
        ("two tokens", format!("{token} {token}")),
        ("two schemes", format!("Bearer {token}")),
    ] {
        let answer = get(&hob, "/inner/a.txt", &bearer(&token));
        assert_eq!(answer.status, 401, "{case}: {}", challenge(&answer));
    }
    assert_eq!(status(&hob, &token), 200);
    hob.stop();
}
