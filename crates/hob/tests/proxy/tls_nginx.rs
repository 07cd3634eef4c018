//! nginx as a member that speaks TLS.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::authority::Authority;
use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place, User, is_root, send_signal};
use crate::secure::serve_in;

const VERSIONS: [&str; 2] = ["TLSv1.2", "TLSv1.3"];

/// nginx in a place, ended when dropped.
struct Nginx {
    child: Child,
    port: u16,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        send_signal(self.child.id(), rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

impl Nginx {
    /// Shows `server.pem` in one version of TLS, and has more said of its server.
    fn start(place: &Place, version: &str, server: &str) -> Nginx {
        // One that was free a moment ago.
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let path = |name: &str| place.path(name).display().to_string();
        let config = format!(
            "daemon off; master_process off; pid {pid}; error_log stderr notice;\n\
             events {{ }}\n\
             http {{\n access_log off;\n client_body_temp_path {tmp}; proxy_temp_path {tmp};\n\
             fastcgi_temp_path {tmp}; uwsgi_temp_path {tmp}; scgi_temp_path {tmp};\n\
             server {{ listen 127.0.0.1:{port} ssl; root {root};\n\
             ssl_certificate {pem}; ssl_certificate_key {key};\n\
             ssl_protocols {version}; {server}\n}}\n}}\n",
            pid = path("nginx.pid"),
            tmp = path("run"),
            root = path("site"),
            pem = path("server.pem"),
            key = path("server.key"),
        );
        let file = place.path("nginx.conf");
        std::fs::write(&file, config).unwrap();
        let mut child = Command::new("/usr/sbin/nginx")
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + DEADLINE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "nginx does not start");
            assert!(Instant::now() < until, "nginx does not listen");
            std::thread::yield_now();
        }
        Nginx { child, port }
    }
}

/// Certificates of a place: of nginx, and of hob for it.
fn place(authority: &Authority) -> Place {
    let place = Place::new();
    place.fill_big();
    authority.sign(&["localhost"]).write(&place, "server");
    authority.sign(&["hob"]).write(&place, "own");
    authority.write(&place, "ca.pem");
    place
}

fn serve(place: Place, authority: &Authority, nginx: &Nginx, tls: &str) -> Site {
    serve_in(place, authority, &[nginx.port], tls, "")
}

#[test]
fn nginx_knows_hob_by_its_certificate() {
    let authority = Authority::new("ca");
    let rule = |place: &Place| {
        let ca = place.path("ca.pem");
        format!(
            "ssl_client_certificate {}; ssl_verify_client on;\n\
             location /app/who {{ return 200 \"$ssl_client_s_dn $ssl_server_name $ssl_protocol\"; }}",
            ca.display()
        )
    };
    for version in VERSIONS {
        let with = place(&authority);
        let nginx = Nginx::start(&with, version, &rule(&with));
        let own = "ca = \"ca.pem\", certificate = \"own.pem\", key = \"own.key\"";
        let site = serve(with, &authority, &nginx, own);
        for _ in 0..3 {
            let told = site.get("/app/who").answer;
            let expected = format!("CN=rcgen self signed cert localhost {version}");
            assert_eq!(told.text(), expected);
        }
        assert_eq!(site.place.counter("upstream_reuses"), 2);
        site.stop();

        // nginx makes the handshake without one, and answers by itself.
        let site = serve(place(&authority), &authority, &nginx, "ca = \"ca.pem\"");
        let told = site.get("/app/who").answer;
        assert_eq!(told.status, 400);
        assert!(told.text().contains("No required SSL certificate was sent"));
        site.stop();
    }
}

#[test]
fn nginx_sends_large_files_and_resumes_sessions() {
    let authority = Authority::new("ca");
    for version in VERSIONS {
        let place = place(&authority);
        let expected = std::fs::read(place.path("site/big.bin")).unwrap();
        let server = "ssl_session_cache builtin; keepalive_requests 1;\n\
                      location /app/ { rewrite ^/app(.*)$ $1 break; }";
        let nginx = Nginx::start(&place, version, server);
        let site = serve(place, &authority, &nginx, "ca = \"ca.pem\"");
        for _ in 0..3 {
            let reply = site.get("/app/big.bin");
            assert!(reply.is_whole && reply.answer.body == expected);
        }
        assert_eq!(site.place.counter("upstream_tls_handshakes"), 3);
        assert_eq!(site.place.counter("upstream_tls_resumed"), 2);
        site.stop();
    }
}

#[test]
fn key_is_read_by_the_first_process_and_a_new_one_is_taken_over() {
    let (authority, next) = (Authority::new("ca"), Authority::new("next"));
    // As root only root reads it.
    let (user, own) = match is_root() {
        true => (User::Same, "user = \"nobody\"\n"),
        false => (User::Unprivileged, ""),
    };
    let place = Place::for_user(user);
    authority.sign(&["localhost"]).write(&place, "server");
    authority.sign(&["hob"]).write(&place, "own");
    authority.write(&place, "ca.pem");
    next.write(&place, "next.pem");
    let closed = PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(place.path("own.key"), closed).unwrap();
    let rule = format!(
        "ssl_client_certificate {}; ssl_verify_client on; location /app/ {{ return 200 known; }}",
        place.path("next.pem").display()
    );
    let nginx = Nginx::start(&place, "TLSv1.3", &rule);
    let handler = format!(
        "proxy = {{ to = \"https://localhost:{}\", tls = {{ ca = \"ca.pem\", certificate = \
         \"own.pem\", key = \"own.key\" }} }}",
        nginx.port
    );
    next.sign(&["hob"]).write(&place, "next-own");
    let files = ["pem", "key"].map(|end| {
        let path = |name: &str| place.path(&format!("{name}.{end}"));
        (path("next-own"), path("own"))
    });
    let site = Site::serve(place, own, &handler, "");
    assert_eq!(site.get("/app/").answer.status, 400);
    for (from, to) in files {
        std::fs::write(to, std::fs::read(from).unwrap()).unwrap();
    }
    site.hob
        .wait_for("certificates have changed; the new ones are served");
    let until = Instant::now() + DEADLINE;
    // The server has it a moment later; connections that were made with the other one are closed.
    while site.get("/app/").answer.text() != "known" {
        assert!(Instant::now() < until, "the new one is shown in time");
    }
    site.stop();
}
