//! What sites want of TLS: certificates of clients, TLS at all.

use std::process::Command;

use super::harness::client::ask;
use super::harness::{Hob, Place, text_of};
use super::{curl, fetched, s_client};

/// Makes a certificate `NAME.pem` for a client, signed by `ca`.
pub(super) fn client_certificate(place: &Place, name: &str, subject: &str) {
    let path = |file: &str| place.path(file).display().to_string();
    let run = |arguments: &[&str]| {
        let made = Command::new("openssl").args(arguments).output().unwrap();
        assert!(made.status.success(), "{}", text_of(&made));
    };
    let (key, request, signed) = (
        path(&format!("{name}.key")),
        path(&format!("{name}.csr")),
        path(&format!("{name}.pem")),
    );
    let curve = "ec_paramgen_curve:prime256v1";
    run(&[
        "req", "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-subj", subject, "-keyout", &key,
        "-out", &request,
    ]);
    let extensions = path("client.ext");
    std::fs::write(
        &extensions,
        "basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n",
    )
    .unwrap();
    run(&[
        "x509",
        "-req",
        "-in",
        &request,
        "-CA",
        &path("ca.pem"),
        "-CAkey",
        &path("ca.key"),
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        &extensions,
        "-out",
        &signed,
    ]);
}

const SITES: &str = r#"
[[listen]]
address = "127.0.0.1:0"
tls = "self-signed"

[[listen]]
address = "127.0.0.1:0"

[[site]]
names = ["open.test"]
root = "site"

[[site]]
names = ["closed.test"]
root = "site"
tls = { client = "require", client_ca = "ca.pem" }

[[site.route]]
path = "/cgi/*"
cgi = { dir = "cgi" }

[[site]]
names = ["asking.test"]
root = "site"
tls = { client = "ask", client_ca = "ca.pem" }

[[site.route]]
path = "/cgi/*"
cgi = { dir = "cgi" }

[[site.route]]
path = "/ada"
respond = { body = "ada's" }
access = { certificates = ["Ada"] }

[[site.route]]
path = "/bob"
respond = { body = "bob's" }
access = { certificates = ["bob.test", "sha256:00000000000000000000000000000000000000000000000000000000000000FF"] }
"#;

fn serve(place: &Place) -> Hob {
    place.certificate("ca", "ca.test");
    client_certificate(place, "ada", "/C=DE/O=Example, Inc/CN=Ada");
    place.folder("cgi");
    place.write(
        "cgi/who",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
         echo \"$SSL_CLIENT_VERIFY $SSL_CLIENT_S_DN $SSL_CLIENT_S_DN_CN $SSL_CLIENT_I_DN\"\n",
    );
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("cgi/who"), open).unwrap();
    place.serve_text(SITES)
}

fn as_ada(place: &Place) -> Vec<String> {
    let path = |file: &str| place.path(file).display().to_string();
    let words = ["--cert", &path("ada.pem"), "--key", &path("ada.key"), "-k"];
    words.map(str::to_owned).to_vec()
}

fn words(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

#[test]
fn site_that_requires_a_certificate_answers_nobody_without() {
    let place = Place::new();
    let hob = serve(&place);
    let ada = as_ada(&place);
    let expected = "SUCCESS CN=Ada,O=Example\\, Inc,C=DE Ada CN=ca.test\n";
    for version in ["--tlsv1.3", "--tlsv1.2"] {
        let mut arguments = words(&ada);
        arguments.push(version);
        let said = fetched(&curl(&hob, "closed.test", "/cgi/who", &arguments));
        assert_eq!(said, expected);
    }
    let without = curl(&hob, "closed.test", "/cgi/who", &["-k"]);
    assert!(!without.status.success(), "{}", text_of(&without));
    // Where one is only asked for, both are served.
    assert_eq!(
        fetched(&curl(&hob, "asking.test", "/cgi/who", &words(&ada))),
        expected
    );
    assert_eq!(
        fetched(&curl(&hob, "asking.test", "/cgi/who", &["-k"])),
        "NONE   \n"
    );
    // One that somebody else has signed is no good anywhere.
    place.certificate("stranger", "Ada");
    let path = |file: &str| place.path(file).display().to_string();
    let (file, key) = (path("stranger.pem"), path("stranger.key"));
    let stranger = ["--cert", &file, "--key", &key, "-k"];
    for host in ["closed.test", "asking.test"] {
        let refused = curl(&hob, host, "/cgi/who", &stranger);
        assert!(!refused.status.success(), "{}", text_of(&refused));
    }
    hob.stop();
}

#[test]
fn route_answers_those_whose_certificates_it_names() {
    let place = Place::new();
    let hob = serve(&place);
    let ada = as_ada(&place);
    let code = ["-o", "/dev/null", "-w", "%{http_code}"];
    let ask = |path: &str, arguments: &[&str]| {
        fetched(&curl(
            &hob,
            "asking.test",
            path,
            &[arguments, &code].concat(),
        ))
    };
    assert_eq!(ask("/ada", &words(&ada)), "200");
    assert_eq!(ask("/ada", &["-k"]), "403");
    assert_eq!(ask("/bob", &words(&ada)), "403");
    assert_eq!(place.counter("access_refused"), 2);
    // Its fingerprint names it, too.
    let path = place.path("ada.pem").display().to_string();
    let shown = ["x509", "-in", &path, "-noout", "-fingerprint", "-sha256"];
    let shown = Command::new("openssl").args(shown).output().unwrap();
    let shown = text_of(&shown);
    let digits = shown.trim().rsplit('=').next().unwrap();
    place.write(
        "hob.toml",
        &SITES.replace("bob.test", &format!("sha256:{digits}")),
    );
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation 2");
    assert_eq!(ask("/bob", &words(&ada)), "200");
    hob.stop();
}

#[test]
fn host_whose_rule_differs_from_the_handshakes_gets_421() {
    let place = Place::new();
    let hob = serve(&place);
    let ada = as_ada(&place);
    let code = ["-o", "/dev/null", "-w", "%{http_code}", "-H"];
    let ask = |host: &str, header: &str, arguments: &[&str]| {
        let all = [arguments, &code, &[header]].concat();
        fetched(&curl(&hob, host, "/hello.txt", &all))
    };
    assert_eq!(ask("open.test", "Host: closed.test", &["-k"]), "421");
    assert_eq!(ask("open.test", "Host: asking.test", &["-k"]), "421");
    assert_eq!(ask("closed.test", "Host: open.test", &words(&ada)), "421");
    // No site at all has this one.
    assert_eq!(ask("open.test", "Host: nobody.test", &["-k"]), "421");
    assert_eq!(ask("closed.test", "X: y", &words(&ada)), "200");
    // In clear text there is no certificate at all.
    let answer =
        super::harness::client::ask(hob.port(), "GET", "/hello.txt", "Host: closed.test\r\n");
    assert_eq!(answer.status, 403);
    hob.stop();
}

#[test]
fn ticket_of_one_rule_is_not_taken_under_another() {
    let place = Place::new();
    let hob = serve(&place);
    let saved = place.path("session").display().to_string();
    let request = "GET /hello.txt HTTP/1.1\r\nHost: open.test\r\nConnection: close\r\n\r\n";
    let first = ["-ign_eof", "-servername", "open.test", "-sess_out", &saved];
    assert!(s_client(&hob, &first, request).contains("\nhello\n"));
    let request = request.replace("open", "closed");
    let second = ["-ign_eof", "-servername", "closed.test", "-sess_in", &saved];
    let said = s_client(&hob, &second, &request);
    assert!(
        !said.contains("hello\n") && !said.contains("Reused"),
        "{said}"
    );
    hob.stop();
}

#[test]
fn site_for_tls_only_sends_clear_text_there() {
    let place = Place::new();
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\
         [[site]]\nroot = \"site\"\nhttps_only = true\nhsts = { age = \"1h\", subdomains = true }\n",
    );
    let answer = ask(hob.port(), "GET", "/hello.txt?a=b", "");
    assert_eq!(answer.status, 301);
    let port = hob.tls_port();
    let location = answer.header("location").unwrap().to_owned();
    assert!(
        location.starts_with("https://") && location.ends_with(&format!(":{port}/hello.txt?a=b")),
        "{location}"
    );
    assert_eq!(answer.header("strict-transport-security"), None);
    assert_eq!(
        ask(hob.port(), "POST", "/x", "Content-Length: 0\r\n").status,
        308
    );
    let answer = fetched(&curl(&hob, "localhost", "/hello.txt", &["-k", "-D", "-"]));
    let field = "strict-transport-security: max-age=3600; includeSubDomains\r\n";
    assert!(answer.contains(field), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello\n"), "{answer}");
    // A cached file has it too.
    let again = fetched(&curl(&hob, "localhost", "/hello.txt", &["-k", "-D", "-"]));
    assert!(again.contains(field), "{again}");
    hob.stop();
}
