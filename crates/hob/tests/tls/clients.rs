//! Files and programs over TLS, to clients of other makers.

use std::process::Command;

use super::harness::{BIG_BYTES, Place, text_of};
use super::{config, curl, fetched, s_client};

#[test]
fn folder_on_this_machine_is_served_over_tls_without_any_file() {
    let place = Place::new();
    let hob = place.serve_text(&config("true", ""));
    let answer = curl(&hob, "localhost", "/hello.txt", &["-k", "-D", "-"]);
    let answer = fetched(&answer);
    assert!(answer.starts_with("HTTP/2 200"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello\n"), "{answer}");
    let options = ["-k", "-D", "-", "--http1.1"];
    let answer = fetched(&curl(&hob, "localhost", "/hello.txt", &options));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello\n"), "{answer}");
    // Whoever trusts the certificate need not look away.
    let kept = place.path("run/hob/tls/self-signed.pem");
    let trusting = ["--cacert", kept.to_str().unwrap()];
    assert_eq!(
        fetched(&curl(&hob, "localhost", "/hello.txt", &trusting)),
        "hello\n"
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(&kept.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "nobody else reads the key");
    let unknown = curl(&hob, "localhost", "/hello.txt", &[]);
    assert_eq!(unknown.status.code(), Some(60), "{}", text_of(&unknown));
    hob.stop();
    // The next one has the same.
    let hob = place.serve_text(&config("\"self-signed\"", ""));
    assert_eq!(
        fetched(&curl(&hob, "localhost", "/hello.txt", &trusting)),
        "hello\n"
    );
    hob.stop();
}

#[test]
fn large_file_and_upload_arrive_whole() {
    let place = Place::new();
    place.folder("cgi");
    place.write(
        "cgi/count",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nwc -c\n",
    );
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("cgi/count"), open).unwrap();
    let route = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\nbody = \"64MiB\"\n";
    let hob = place.serve_text(&config("true", route));
    let saved = place.path("run/saved");
    let output = ["-k", "-o", saved.to_str().unwrap()];
    fetched(&curl(&hob, "localhost", "/big.bin", &output));
    let (sent, got) = (place.path("site/big.bin"), &saved);
    assert!(std::fs::read(sent).unwrap() == std::fs::read(got).unwrap());
    let upload = format!("@{}", saved.display());
    for version in ["--tlsv1.3", "--tls-max=1.2"] {
        let version = version.split('=').collect::<Vec<_>>();
        let mut arguments = vec!["-k", "--data-binary", &upload];
        arguments.extend(&version);
        let count = fetched(&curl(&hob, "localhost", "/cgi/count", &arguments));
        assert_eq!(count.trim(), BIG_BYTES.to_string(), "{version:?}");
    }
    hob.stop();
}

#[test]
fn program_knows_that_it_answers_over_tls() {
    let place = Place::new();
    place.folder("cgi");
    place.write(
        "cgi/vars",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
         echo \"$HTTPS $REQUEST_SCHEME $SSL_PROTOCOL $SSL_CIPHER $SSL_TLS_SNI $SERVER_PORT\"\n",
    );
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("cgi/vars"), open).unwrap();
    let route = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n";
    let hob = place.serve_text(&config("true", route));
    let suite = ["-k", "--tls13-ciphers", "TLS_AES_128_GCM_SHA256"];
    let said = fetched(&curl(&hob, "localhost", "/cgi/vars", &suite));
    let expected = format!(
        "on https TLSv1.3 TLS_AES_128_GCM_SHA256 localhost {}\n",
        hob.tls_port()
    );
    assert_eq!(said, expected);
    hob.stop();
}

#[test]
fn openssl_resumes_its_session_and_closes_in_order() {
    let place = Place::new();
    let hob = place.serve_text(&config("true", ""));
    let saved = place.path("session").display().to_string();
    let request = "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for version in ["-tls1_3", "-tls1_2"] {
        let common = [version, "-ign_eof", "-servername", "localhost"];
        let first = [&common[..], &["-sess_out", &saved]].concat();
        let said = s_client(&hob, &first, request);
        assert!(said.contains("\nhello\n"), "{said}");
        let second = [&common[..], &["-sess_in", &saved]].concat();
        let said = s_client(&hob, &second, request);
        assert!(said.contains("\nReused, TLSv1."), "{said}");
        assert!(said.contains("\nhello\n"), "{said}");
    }
    assert_eq!(place.counter("tls_resumed"), 2);
    assert_eq!(place.counter("tls_handshakes"), 4);
    hob.stop();
}

#[test]
fn renegotiation_is_refused() {
    let place = Place::new();
    let hob = place.serve_text(&config("true", ""));
    let said = s_client(&hob, &["-tls1_2", "-legacy_renegotiation"], "R\n");
    assert!(said.contains("no renegotiation"), "{said}");
    // One that stays with what was agreed on is served.
    let answer = curl(&hob, "localhost", "/hello.txt", &["-k", "--tls-max", "1.2"]);
    assert_eq!(fetched(&answer), "hello\n");
    hob.stop();
}

#[test]
fn python_speaks_every_version_allowed_and_no_other() {
    let place = Place::new();
    place.certificate("site", "localhost");
    let files = "{ certificate = \"site.pem\", key = \"site.key\", minimum = \"1.3\" }";
    let hob = place.serve_text(&config(files, ""));
    place.write("ask.py", PYTHON);
    let ask = |version: &str| {
        let output = Command::new("python3")
            .current_dir(place.path(""))
            .args(["ask.py", &hob.tls_port().to_string(), version])
            .output()
            .unwrap();
        text_of(&output)
    };
    assert_eq!(ask("TLSv1_3"), "TLSv1.3 http/1.1 HTTP/1.1 200 OK\n");
    assert!(
        ask("TLSv1_2").contains("alert protocol version"),
        "{}",
        ask("TLSv1_2")
    );
    hob.stop();
}

const PYTHON: &str = r#"
import socket, ssl, sys
context = ssl.create_default_context(cafile="site.pem")
version = getattr(ssl.TLSVersion, sys.argv[2])
context.minimum_version = context.maximum_version = version
context.set_alpn_protocols(["h3", "http/1.1"])
try:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as sealed:
            sealed.sendall(b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while piece := sealed.recv(65536):
                answer += piece
            print(sealed.version(), sealed.selected_alpn_protocol(), answer.split(b"\r\n")[0].decode())
except ssl.SSLError as error:
    print(error)
"#;

#[test]
fn clear_text_on_a_tls_port_gets_400_with_a_hint() {
    let place = Place::new();
    let hob = place.serve_text(&config("true", ""));
    let answer = super::harness::client::raw(
        hob.tls_port(),
        b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    assert!(
        answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
        "{answer}"
    );
    assert!(answer.contains("https://"), "{answer}");
    assert_eq!(place.counter("tls_clear_text"), 1);
    hob.stop();
}
