//! nginx: for itself, and before servers that speak FastCGI or uwsgi.

use std::net::SocketAddr;

use super::{Door, Ground, Setup, rules};
use crate::copies::COPIES;
use crate::supervisor::ProgramCommand;

pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let (mut upstream, mut fast_cgi) = match &ground.site.c {
        Some(_) => fast_cgi(
            &at("fastcgi_params"),
            &at("fastcgi.sock"),
            ground.is_tuned(),
        ),
        None => (String::new(), String::new()),
    };
    let mut programs = vec![program(ground, ground.program)];
    programs.extend(ground.site.fast_cgi_program(&at("fastcgi.sock")));
    let mut doors = vec![];
    if ground.extra.is_away()
        && let Some(there) = ground.site.fast_cgi_program(&ground.ports.away.to_string())
    {
        let (more_upstream, more) = away(&at("fastcgi_params"), ground.away());
        upstream.push_str(&more_upstream);
        fast_cgi.push_str(&more);
        programs.push(ground.there(ProgramCommand {
            name: "there".to_owned(),
            ..there
        }));
        doors.push(Door::Away(ground.away()));
    }
    fast_cgi.push_str(&copies(ground));
    let rules = rules::of_nginx(ground);
    upstream.push_str(&rules.beside);
    fast_cgi.push_str(&rules.inside);
    if let Some(store) = ground.store() {
        fast_cgi.push_str(&format!("    location /store/ {{ alias {store}/; }}\n"));
    }
    let text = text(ground, &upstream, &fast_cgi);
    let mut files = vec![
        ("nginx.conf", text),
        ("fastcgi_params", parameters("fastcgi")),
    ];
    files.extend(rules.files);
    Setup {
        files,
        programs,
        doors,
        ..Setup::default()
    }
}

/// A page whose compressed copy lies beside it, or is made.
fn copies(ground: &Ground<'_>) -> String {
    if !ground.extra.has_copies() {
        return String::new();
    }
    // `gzip` has text/html in its own list of types.
    let location = |(name, keys): (&str, &str)| {
        format!(
            "    location /{COPIES}/{name}/ {{\n      types {{ text/html html; }}\n{keys}    }}\n"
        )
    };
    let all = [
        ("beside", "      gzip_static on;\n"),
        ("made", "      gzip on;\n"),
        ("plain", ""),
    ];
    all.map(location).concat()
}

/// The program on another machine: over connections that are kept, and one for each request.
fn away(parameters: &str, to: SocketAddr) -> (String, String) {
    let kept = location(
        parameters,
        "kept/fastcgi",
        "there",
        "      fastcgi_keep_conn on;\n",
    );
    let once = location(parameters, "once/fastcgi", &to.to_string(), "");
    let upstream = format!("  upstream there {{ server {to}; keepalive 64; }}\n");
    (upstream, kept + &once)
}

/// The program with the configuration in the server's folder.
pub(super) fn program(ground: &Ground<'_>, path: &str) -> ProgramCommand {
    let at = |name: &str| ground.path(name);
    let mut program = ground.program("nginx", &["-e", &at("nginx.err"), "-c", &at("nginx.conf")]);
    program.command[0] = path.to_owned();
    program
}

/// The configuration that Debian's package begins with, its paths and addresses replaced: parts of
/// ours at the level of `http` and in the server.
pub(super) fn text(ground: &Ground<'_>, upstream: &str, locations: &str) -> String {
    let at = |name: &str| ground.path(name);
    let host = ground.host;
    let secure = secure(ground);
    // With one CPU, `auto` is one process too.
    let tuned = match ground.is_tuned() {
        true => {
            "  tcp_nodelay on;
  open_file_cache max=10000 inactive=600s;
  open_file_cache_valid 600s;
  open_file_cache_min_uses 1;
"
        }
        false => "",
    };
    format!(
        "worker_processes 1;
daemon off;
pid {pid};
error_log {errors} crit;
events {{ worker_connections 4096; }}
http {{
  types {{ text/plain txt; application/octet-stream bin; }}
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 100000000;
  client_max_body_size 1g;
  client_body_temp_path {body};
  proxy_temp_path {proxy};
  fastcgi_temp_path {fastcgi};
  uwsgi_temp_path {uwsgi};
  scgi_temp_path {scgi};
{tuned}{upstream}  server {{
    listen {host}:{port};
{secure}    root {root};
{locations}  }}
}}
",
        pid = at("nginx.pid"),
        errors = at("nginx.err"),
        body = at("body"),
        proxy = at("proxy"),
        fastcgi = at("fastcgi"),
        uwsgi = at("uwsgi"),
        scgi = at("scgi"),
        port = ground.ports.clear,
        root = ground.site.root.display(),
    )
}

fn secure(ground: &Ground<'_>) -> String {
    let host = ground.host;
    ground.where_secure(|certificate, key| {
        format!(
            "    listen {host}:{} ssl http2;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384;
    ssl_ecdh_curve X25519;
    ssl_session_cache shared:SSL:10m;
",
            ground.ports.secure
        )
    })
}

/// The program over FastCGI: a connection for each request, or kept ones.
fn fast_cgi(parameters: &str, socket: &str, is_tuned: bool) -> (String, String) {
    if !is_tuned {
        return (
            String::new(),
            location(parameters, "fastcgi/", &format!("unix:{socket}"), ""),
        );
    }
    let upstream = format!("  upstream fastcgi {{ server unix:{socket}; keepalive 64; }}\n");
    let more = "      fastcgi_keep_conn on;
      fastcgi_buffers 16 64k;
      fastcgi_max_temp_file_size 0;
";
    (upstream, location(parameters, "fastcgi/", "fastcgi", more))
}

/// Requests below a path that are passed on.
fn location(parameters: &str, path: &str, pass: &str, more: &str) -> String {
    format!(
        "    location /{path} {{
      include {parameters};
      fastcgi_pass {pass};
{more}    }}
"
    )
}

/// What nginx tells a program over `fastcgi` or `uwsgi`.
pub(super) fn parameters(protocol: &str) -> String {
    let line = |(name, value): &(&str, &str)| format!("{protocol}_param {name} {value};\n");
    PARAMETERS.iter().map(line).collect()
}

const PARAMETERS: &[(&str, &str)] = &[
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "nginx/$nginx_version"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
];
