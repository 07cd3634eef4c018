//! Who is not listed gets nothing, and nobody else's word on a client is believed.

use std::process::Command;

use crate::authority::Authority;
use crate::harness::Place;
use crate::harness::client::{ask, call};
use crate::pair::{Owner, certify, front_place, pair, place_with_program, serve_front};

/// What a client of that machine sends and gets, with these options of curl.
fn curl(place: &Place, port: u16, options: &[&str]) -> (bool, String) {
    let output = Command::new("curl")
        .current_dir(place.path(""))
        .args([
            "--silent",
            "--show-error",
            "--cacert",
            "ca.pem",
            "--max-time",
            "60",
        ])
        .args(options)
        .arg(format!("https://localhost:{port}/"))
        .output()
        .unwrap();
    (output.status.success(), crate::harness::text_of(&output))
}

const OWN: [&str; 4] = ["--cert", "own.pem", "--key", "own.key"];

#[test]
fn hob_that_is_not_listed_is_refused() {
    let authority = Authority::new("hobs");
    let owner = Owner::serve(
        place_with_program(),
        &authority,
        "cgi",
        "\"front2\", \"front3\"",
    );
    let front = serve_front(front_place(&authority), &owner.to(), "", "");
    assert_eq!(front.get("/app/tell").answer.status, 502);
    assert_eq!(owner.place.counter("offer_refused"), 1);
    let record = front.record("/app/tell");
    let detail = record["detail"].as_str().unwrap();
    let expected =
        "offer: the program is not offered to this certificate: app to CN=front (sha256:";
    assert!(detail.contains(expected), "{detail}");
    assert_eq!(record["fault"], "upstream");
    front.stop();
    owner.stop();
}

#[test]
fn hob_is_known_by_its_host_or_fingerprint_too() {
    let authority = Authority::new("hobs");
    let place = front_place(&authority);
    let shown = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(place.path("own.pem"))
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let digits = shown.trim().rsplit('=').next().unwrap();
    let by_digits = format!("\"sha256:{digits}\"");
    let mut place = Some(place);
    for to in ["\"localhost\"", &by_digits] {
        let owner = Owner::serve(place_with_program(), &authority, "cgi", to);
        let front = serve_front(place.take().unwrap_or_else(Place::new), &owner.to(), "", "");
        assert_eq!(front.get("/app/tell").answer.status, 200, "{to}");
        let crate::harness::site::Site { place: used, hob } = front;
        hob.stop();
        place = Some(used);
        owner.stop();
    }
}

#[test]
fn hob_that_another_authority_signed_for_has_no_handshake() {
    let authority = Authority::new("hobs");
    let owner = Owner::serve(place_with_program(), &authority, "cgi", "\"front\"");
    let place = Place::new();
    certify(&place, &Authority::new("others"), "front");
    authority.write(&place, "ca.pem");
    let front = serve_front(place, &owner.to(), "", "");
    assert_eq!(front.get("/app/tell").answer.status, 502);
    let record = front.record("/app/tell");
    assert_eq!(
        record["reason"],
        "the other server wants a certificate of ours, or another one"
    );
    owner.place.wait_for_counter("tls_failed_certificate", 1);
    assert_eq!(owner.place.counter("offer_refused"), 0);
    front.stop();
    owner.stop();
}

#[test]
fn listener_of_offers_answers_nothing_else() {
    let authority = Authority::new("hobs");
    let owner = Owner::serve(place_with_program(), &authority, "cgi", "\"front\"");
    let port = owner.hob.tls_port();
    let (place, stranger) = (front_place(&authority), Place::new());
    certify(&stranger, &authority, "stranger");
    let (is_answered, text) = curl(&place, port, &[]);
    assert!(!is_answered, "{text}");
    let (_, text) = curl(&place, port, &OWN);
    assert_eq!(text, "hob offers programs here\n");
    let (_, text) = curl(&stranger, port, &OWN);
    assert_eq!(
        text,
        "nothing is offered to this certificate: CN=stranger\n"
    );
    let field = ["--header", "hob-request: program=app&path=/../x&below=1"];
    let (_, text) = curl(&place, port, &[&OWN[..], &field].concat());
    let wrong = "the field `hob-request` cannot be understood";
    assert_eq!(
        text,
        format!("{wrong}: its path is not in the normal form\n")
    );
    let twice = [
        "--header",
        "hob-request: a=b",
        "--header",
        "hob-request: a=b",
    ];
    let (_, text) = curl(&place, port, &[&OWN[..], &twice].concat());
    assert_eq!(text, format!("{wrong}: there are two\n"));
    let good = [
        "--header",
        "hob-request: program=app&path=/app/tell&below=5&REMOTE_ADDR=192.0.2.7",
    ];
    let (_, text) = curl(&place, port, &[&OWN[..], &good].concat());
    assert!(text.contains("\nREMOTE_ADDR=192.0.2.7\n"), "{text}");
    let (_, text) = curl(&stranger, port, &[&OWN[..], &good].concat());
    assert!(text.starts_with("the program is not offered to this certificate: app to CN=stranger"));
    assert_eq!(owner.place.counter("offer_refused"), 4);
    let told = &owner.place.status()["programs"]["offers"];
    let expected = serde_json::json!([
        { "program": "app", "to": ["front"], "route": "/app/*", "requests": 1 },
    ]);
    assert_eq!(*told, expected);
    let shown = owner.place.run(&["status", "--programs"]);
    let text = crate::harness::text_of(&shown);
    let is_it = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        words == ["app", "/app/*", "1", "front"]
    };
    assert!(text.lines().any(is_it), "{text}");
    owner.stop();
}

#[test]
fn nobody_else_is_believed() {
    let (owner, front) = pair("cgi");
    let forged = "hob-request: program=app&path=/app/tell&below=5&REMOTE_ADDR=192.0.2.7&\
                  REMOTE_USER=root&HTTPS=on\r\n";
    let lines = |text: &str| {
        let told = |line: &&str| line.starts_with("REMOTE_") || line.starts_with("HTTPS");
        text.lines()
            .filter(told)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // At the listener for everybody it is a field like any other.
    let own = ask(owner.hob.clear_port(), "GET", "/app/tell", forged).text();
    assert_eq!(lines(&own)[0], "REMOTE_ADDR=127.0.0.1", "{own}");
    // The machine that has the client says it itself.
    let passed = ask(front.port(), "GET", "/app/tell", forged).text();
    assert_eq!(lines(&passed)[0], "REMOTE_ADDR=127.0.0.1", "{passed}");
    for text in [own, passed] {
        let is_told = |line: &str| line.starts_with("REMOTE_USER=") || line.starts_with("HTTPS=");
        assert!(!text.lines().any(is_told), "{text}");
    }
    front.stop();
    owner.stop();
}

#[test]
fn proxy_with_the_certificate_passes_no_word_of_a_client_on() {
    let authority = Authority::new("hobs");
    let owner = Owner::serve(place_with_program(), &authority, "cgi", "\"front\"");
    let port = owner.hob.tls_port();
    let tls = crate::pair::TLS;
    let handler = format!("proxy = {{ to = \"https://localhost:{port}\", {tls} }}");
    let place = front_place(&authority);
    let front = crate::harness::site::Site::serve(place, "", &handler, "");
    let forged = "hob-request: program=app&path=/app/tell&below=5\r\n";
    let answer = call(front.port(), "GET", "/app/tell", forged, b"").answer;
    assert_eq!(answer.text(), "hob offers programs here\n");
    front.stop();
    owner.stop();
}

#[test]
fn other_machine_has_no_say_over_files_here() {
    let authority = Authority::new("hobs");
    let (other, place) = (Place::new(), front_place(&authority));
    certify(&other, &authority, "owner");
    let folder = place.path("site").display().to_string();
    let other = other.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
         tls = {{ certificate = \"own.pem\", key = \"own.key\" }}\n[[site]]\n[[site.route]]\n\
         path = \"/app/*\"\nheaders = {{ X-Sendfile = \"{folder}/hello.txt\" }}\n\
         respond = {{ status = 200, body = \"x\" }}\n"
    ));
    let to = format!("\"tls://localhost:{}\"", other.tls_port());
    let front = serve_front(place, &to, "", &format!("sendfile = [\"{folder}\"]"));
    assert_eq!(front.get("/app/x").answer.status, 502);
    assert_eq!(
        front.record("/app/x")["reason"],
        "sendfile: the file is below no folder of `sendfile`"
    );
    front.stop();
    other.stop();
}
