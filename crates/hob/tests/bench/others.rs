//! Servers of others: what they serve is what the load generator counts, over each protocol that
//! they speak. One that is not installed is left out with a line that says so.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::harness::{DEADLINE, Place, text_of};
use super::{bench, number, result};

/// Another process may take the free port that was found: so often it is tried again.
const TRIES: usize = 5;

/// A server of others that runs; it ends with this value.
pub(crate) struct Other {
    program: Child,
    pub(crate) port: u16,
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Starts a program on a free port; none where it is not installed.
fn start(name: &str, command: impl Fn(u16) -> Command) -> Option<Other> {
    for _ in 0..TRIES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut command = command(port);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let Ok(program) = command.spawn() else {
            println!("skipped: {name} is not installed");
            return None;
        };
        let mut other = Other { program, port };
        let begun = Instant::now();
        while other.program.try_wait().unwrap().is_none() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(other);
            }
            assert!(begun.elapsed() < DEADLINE, "{name} does not listen");
            std::thread::yield_now();
        }
    }
    panic!("{name} ended {TRIES} times at once");
}

/// A folder with a file of 1,000 bytes, and a certificate.
fn site() -> Place {
    let place = Place::new();
    place.write("site/f.txt", &"x".repeat(1000));
    certificate(&place);
    place
}

/// Puts a certificate and its key into a place.
pub(crate) fn certificate(place: &Place) {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args(["-days", "2", "-subj", "/CN=localhost", "-keyout"])
        .arg(place.path("key.pem"))
        .arg("-out")
        .arg(place.path("cert.pem"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

fn check(url: &str, arguments: &[&str]) {
    let fixed = ["-n", "300", "-c", "3", "-m", "7", "--expect", "size=1000"];
    let result = result(&[&[url], &fixed[..], arguments].concat());
    assert_eq!(number(&result, "requests.good"), 300, "{result:#}");
    assert_eq!(number(&result, "bytes.bodies"), 300_000);
}

#[test]
fn nghttpd_is_asked_in_clear_and_over_tls() {
    let place = site();
    let (root, key, cert) = (
        place.path("site"),
        place.path("key.pem"),
        place.path("cert.pem"),
    );
    let clear = start("nghttpd", |port| {
        let mut command = Command::new("nghttpd");
        command
            .args(["--no-tls", "-d"])
            .arg(&root)
            .arg(port.to_string());
        command
    });
    let Some(clear) = clear else { return };
    check(
        &format!("http://127.0.0.1:{}/f.txt", clear.port),
        &["--http2"],
    );
    let secure = start("nghttpd", |port| {
        let mut command = Command::new("nghttpd");
        command.arg("-d").arg(&root).arg(port.to_string());
        command.arg(&key).arg(&cert);
        command
    });
    let secure = secure.unwrap();
    check(
        &format!("https://127.0.0.1:{}/f.txt", secure.port),
        &["--http", "2"],
    );
}

/// nginx with that file, listening as it is told to, with settings of the server.
pub(crate) fn nginx(flags: &str) -> Option<(Place, Other)> {
    let place = site();
    place.folder("nginx");
    let root = place.path("");
    let nginx = start("nginx", |port| {
        let root = root.display();
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {root}/nginx/{name};"));
        let config = format!(
            "daemon off; master_process off; pid {root}/nginx/pid; error_log stderr;\n\
             events {{}}\nhttp {{ access_log off; {}\n\
             server {{ listen 127.0.0.1:{port} {flags}; root {root}/site; }} }}\n",
            paths.concat()
        );
        let file = place.path("nginx/nginx.conf");
        let mut out = std::fs::File::create(&file).unwrap();
        out.write_all(config.as_bytes()).unwrap();
        let mut command = Command::new("nginx");
        command
            .arg("-p")
            .arg(place.path("nginx"))
            .arg("-c")
            .arg(file);
        command
    });
    nginx.map(|nginx| (place, nginx))
}

#[test]
fn nginx_is_asked_over_connections_that_it_ends_all_the_time() {
    let Some((_place, nginx)) = nginx("http2; keepalive_requests 20") else {
        return;
    };
    check(
        &format!("http://127.0.0.1:{}/f.txt", nginx.port),
        &["--http2"],
    );
}

#[test]
fn server_that_agrees_on_another_protocol_is_told_of() {
    let place = site();
    let openssl = start("openssl", |port| {
        let mut command = Command::new("openssl");
        command.args(["s_server", "-quiet", "-alpn", "http/1.1", "-accept"]);
        command.arg(format!("127.0.0.1:{port}"));
        command.arg("-key").arg(place.path("key.pem"));
        command.arg("-cert").arg(place.path("cert.pem"));
        command
    });
    let Some(openssl) = openssl else { return };
    let url = format!("https://127.0.0.1:{}/", openssl.port);
    let output = bench(&[&url, "--http", "2", "-n", "2", "-c", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    let says = "no request was answered; the first failure was tls: ";
    assert!(text_of(&output).contains(says), "{}", text_of(&output));
}
