//! Keys that an issuer has at a URL: fetched over TLS that is checked, kept while it is away, and
//! fetched anew for a key that is not there.

use super::*;

/// An issuer's web server, with its keys of these names at `/jwks.json`.
fn serve_keys(place: &Place, port: u16, keys: &str) -> Hob {
    place.write("site/jwks.json", keys);
    place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:{port}\"\ntls = true\n[[site]]\nroot = \"site\"\n"
    ))
}

/// Its authority's certificate, beside a config.
fn copy_ca(from: &Place, to: &Place) {
    let kept = from.path("run/hob/tls/self-signed.pem");
    to.write("ca.pem", &std::fs::read_to_string(kept).unwrap());
}

fn site(place: &Place, jwt: &str) -> String {
    std::fs::create_dir_all(place.path("site/inner")).unwrap();
    place.write("site/inner/a.txt", INNER);
    format!(
        "{TOP}{}[[auth]]\nname = \"tokens\"\njwt = {{ issuer = \"{ISSUER}\", audience = \"shop\", {jwt} }}\n",
        inner("\"tokens\"")
    )
}

fn at(port: u16) -> String {
    format!("keys_url = \"https://localhost:{port}/jwks.json\", keys_ca = \"ca.pem\"")
}

#[test]
fn keys_are_fetched_and_new_ones_when_a_token_names_one() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let (home, place) = (Place::new(), Place::new());
    let server = serve_keys(&home, 0, &issuer.keys(&["es"]));
    copy_ca(&home, &place);
    let hob = place.serve_text(&site(&place, &at(server.tls_port())));
    let token = issuer.sign("ES256", "es", &claims());
    // The first waits for the keys, wherever they are.
    assert_eq!(status(&hob, &token), 200);
    assert_eq!(status(&hob, &token), 200);
    assert_eq!(home.counter("requests"), 1);
    // Many made-up names have the issuer asked once in ten seconds at most.
    let forged = issuer.sign_with("ES256", "es", &claims(), json!({"kid": "made-up"}));
    for _ in 0..20 {
        assert_eq!(status(&hob, &forged), 401);
    }
    assert!(home.counter("requests") <= 2);
    // The issuer changes its keys: tokens of the new ones wait for them, those of old ones are
    // over.
    home.write("site/jwks.json", &issuer.keys(&["ed"]));
    let token_of_new = issuer.sign("EdDSA", "ed", &claims());
    wait_for_status(&hob, &token_of_new, 200);
    assert_eq!(status(&hob, &token), 401);
    // A reload goes on with them, even while the issuer is away.
    server.stop();
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation");
    assert_eq!(status(&hob, &token_of_new), 200);
    hob.stop();
}

#[test]
fn issuer_that_is_away_refuses_no_start_and_is_found_when_it_is_there() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let (home, place) = (Place::new(), Place::new());
    let server = serve_keys(&home, 0, &issuer.keys(&["es"]));
    copy_ca(&home, &place);
    let port = server.tls_port();
    server.stop();
    let hob = place.serve_text(&site(&place, &at(port)));
    let token = issuer.sign("ES256", "es", &claims());
    let refused = get(&hob, "/inner/a.txt?away", &bearer(&token));
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("10"))
    );
    let told = record(&place, "/inner/a.txt?away");
    let reason = "require: the issuer's keys could not be fetched so far";
    assert_eq!(
        (&told["reason"], &told["fault"]),
        (&json!(reason), &json!("server"))
    );
    let field = bearer(&token);
    let explain = ["explain", "--header", field.trim(), "/inner/a.txt"];
    let told = text_of(&place.run(&explain));
    assert!(told.contains(reason), "{told}");
    assert_eq!(get(&hob, "/hello.txt", "").status, 200);
    let server = serve_keys(&home, port, &issuer.keys(&["es"]));
    copy_ca(&home, &place);
    wait_for_status(&hob, &token, 200);
    let told = text_of(&place.run(&explain));
    assert!(told.contains("200"), "{told}");
    hob.stop();
    server.stop();
}

#[test]
fn keys_of_another_are_not_believed() {
    let Some(issuer) = Issuer::start() else {
        return;
    };
    let (home, other, place) = (Place::new(), Place::new(), Place::new());
    let server = serve_keys(&home, 0, &issuer.keys(&["es"]));
    let wrong = serve_keys(&other, 0, &issuer.keys(&["es"]));
    copy_ca(&other, &place);
    let port = server.tls_port();
    let token = issuer.sign("ES256", "es", &claims());
    let hob = place.serve_text(&site(&place, &at(port)));
    assert_eq!(status(&hob, &token), 503);
    hob.wait_for("keys of tokens could not be fetched");
    hob.stop();
    wrong.stop();
    // Not text, no keys, and an answer that is none.
    copy_ca(&home, &place);
    for (path, body) in [
        ("a", "no keys"),
        ("b", "{\"keys\": []}"),
        ("c", ""),
        ("none", ""),
    ] {
        if path != "none" {
            home.write(&format!("site/{path}"), body);
        }
        let url = format!("keys_url = \"https://localhost:{port}/{path}\", keys_ca = \"ca.pem\"");
        let hob = place.serve_text(&site(&place, &url));
        assert_eq!(status(&hob, &token), 503, "{path}");
        hob.stop();
    }
    server.stop();
}
