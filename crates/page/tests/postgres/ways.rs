//! Ways to a server: passwords, TLS, and what is refused on them.

use std::process::Command;

use hob_page::sql::Database;
use hob_page::sql::postgres::{PostgresDatabase, PostgresOptions};

use super::server::PostgresServer;
use super::{database, lines};

/// A port that is free for now; nobody else takes those below the system's own.
fn port() -> u16 {
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    let mut ports = first..=32_000;
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).expect("a free port")
}

/// How a way to the server ends.
fn tried(url: &str, more: &str) -> Result<String, (i64, String)> {
    let options = PostgresOptions::parse(&format!("{url}{more}"));
    let options = options.map_err(|text| (0, text))?;
    let database = PostgresDatabase::open(options, None);
    let database = database.map_err(|fault| (fault.code, fault.message))?;
    let text = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    Ok(lines(&database, text, &[])[1].clone())
}

#[test]
fn passwords_are_proved_and_servers_held_to_their_names() {
    let port = port();
    let Some(mut server) = PostgresServer::start() else {
        return;
    };
    let own = database(&server);
    lines(&own, "CREATE USER scram PASSWORD 'pä ss'", &[]);
    lines(&own, "SET LOCAL password_encryption = 'md5'", &[]);
    lines(&own, "CREATE USER old PASSWORD 'old'", &[]);
    own.commit().expect("they are made");
    server.kill();
    let files = tempfile::tempdir().expect("a folder");
    let file = |name: &str| files.path().join(name).display().to_string();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", &file("key"), "-out", &file("pem")])
        .output()
        .expect("openssl is there");
    assert!(made.status.success());
    for (name, from) in [("server.key", "key"), ("server.crt", "pem")] {
        let content = std::fs::read(file(from)).expect("it was made");
        server.write(name, &content);
    }
    server.write(
        "pg_hba.conf",
        b"local all all trust\nhost all old all md5\nhost all scram all scram-sha-256\n\
          host all hob all password\n",
    );
    server.listen(port);
    let at = |user: &str, host: &str| format!("postgres://{user}@{host}:{port}/postgres?");
    let trusted = format!("sslmode=verify-full&sslrootcert={}", file("pem"));
    let off = Ok("false".to_owned());
    assert_eq!(
        tried(&at("scram:p%C3%A4%20ss", "localhost"), &trusted),
        Ok("true".to_owned())
    );
    assert_eq!(tried(&at("scram:p%C3%A4%20ss", "127.0.0.1"), ""), off);
    assert_eq!(tried(&at("old:old", "127.0.0.1"), ""), off);
    for (url, more, code, said) in [
        (
            at("scram:wrong", "127.0.0.1"),
            "",
            -30082,
            "password authentication failed",
        ),
        (
            at("scram", "127.0.0.1"),
            "",
            -30082,
            "asks for a password, and none is known",
        ),
        (
            at("hob:x", "127.0.0.1"),
            "",
            -30082,
            "in the clear, without TLS",
        ),
        (at("none", "127.0.0.1"), "", -30082, "no pg_hba.conf entry"),
        (
            at("old:old", "127.0.0.1"),
            &*trusted,
            -30081,
            "not valid for name",
        ),
        (
            at("old:old", "localhost"),
            "sslmode=verify-full",
            -30081,
            "invalid peer certificate",
        ),
        (
            at("old:old", "localhost"),
            "sslmode=verify-full&sslrootcert=/none",
            -30081,
            "sslrootcert",
        ),
    ] {
        let (found, text) = tried(&url, more).expect_err(&url);
        assert_eq!(found, code, "{url}: {text}");
        assert!(text.contains(said), "{url}: {text}");
    }
    server.kill();
    let (code, text) = tried(&at("old:old", "127.0.0.1"), "").expect_err("nobody is there");
    assert_eq!(code, -30081);
    assert!(
        text.starts_with(&format!(
            "cannot reach the database server at 127.0.0.1:{port}: "
        )),
        "{text}"
    );
}
